# What cpack packs (bin/README.md, "A bundle"): programs in bin/, the libraries they need in lib/,
# so that they run wherever the archive is unpacked. Components: programs; gpu_checks, in tests/.
if(OOC_SANITIZE)
  return()
endif()

# Clp asks for LAPACK. The serial OpenBLAS has that, too; Debian's liblapack.so.3 is a link which
# leads to whichever of several libraries was chosen there.
get_filename_component(openblas_folder ${OPENBLAS_SERIAL} DIRECTORY)
if(NOT EXISTS ${openblas_folder}/libopenblas.so.0)
  message(STATUS "no libopenblas.so.0 in ${openblas_folder}: cpack makes no bundle")
  return()
endif()
file(REAL_PATH ${openblas_folder}/libopenblas.so.0 openblas)
get_filename_component(openblas_name ${openblas} NAME)
add_library(bundled_openblas SHARED IMPORTED)
set_target_properties(bundled_openblas PROPERTIES IMPORTED_LOCATION ${openblas})

# Every Linux brings its own of these. Debian 12's libstdc++ and libgcc_s ask for a newer glibc than
# all the others do.
set(not_bundled PRE_EXCLUDE_REGEXES "^ld-linux" "^lib(c|m|mvec|pthread|dl|rt|util|resolv)\\.so"
    "^libstdc\\+\\+" "^libgcc_s" "^lib(lapack|blas|openblas)\\.so")

# ooc_bundle(COMPONENT FOLDER TARGETS...): the component's programs, and their libraries in lib/.
function(ooc_bundle component folder)
  foreach(target ${ARGN})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL EXECUTABLE)
      # RPATH, not RUNPATH: it serves libraries of libraries, too, and comes before LD_LIBRARY_PATH.
      # In the build folder, too, where it leads nowhere: what CMake would replace on installing is
      # padded by ":", which has programs look for libraries where they are started.
      set_target_properties(${target} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib"
                                                 BUILD_WITH_INSTALL_RPATH ON)
      target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
    endif()
  endforeach()
  install(TARGETS ${ARGN} RUNTIME_DEPENDENCY_SET ${component}
          RUNTIME DESTINATION ${folder} COMPONENT ${component}
          LIBRARY DESTINATION ${folder} COMPONENT ${component})
  install(RUNTIME_DEPENDENCY_SET ${component} ${not_bundled}
          LIBRARY DESTINATION lib COMPONENT ${component})
endfunction()

install(IMPORTED_RUNTIME_ARTIFACTS bundled_openblas RUNTIME_DEPENDENCY_SET programs
        LIBRARY DESTINATION lib COMPONENT programs)
install(CODE "file(CREATE_LINK ${openblas_name}
                   \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/liblapack.so.3 SYMBOLIC)"
        COMPONENT programs)
install(FILES LICENSE README.md DESTINATION . COMPONENT programs)
install(DIRECTORY docs DESTINATION . COMPONENT programs)
set(programs ooc-prep ooc-train ooc-infer ooc-inspect)
if(TARGET ooc_cuda)
  list(APPEND programs ooc_cuda)
endif()
ooc_bundle(programs bin ${programs})
set(gpu_checks "")
foreach(target gpu_tests gpu_training_tests gpu_gather_bench)
  if(TARGET ${target})
    list(APPEND gpu_checks ${target})
  endif()
endforeach()
if(gpu_checks)
  ooc_bundle(gpu_checks tests ${gpu_checks})
endif()

# In a folder shared with other programs theirs would find these libraries, too.
if(CMAKE_INSTALL_PREFIX_INITIALIZED_TO_DEFAULT)
  set_property(CACHE CMAKE_INSTALL_PREFIX PROPERTY VALUE /opt/ooc)
endif()

set(CPACK_GENERATOR External)
set(CPACK_EXTERNAL_PACKAGE_SCRIPT ${CMAKE_SOURCE_DIR}/cmake/pack_bundle.cmake)
set(CPACK_EXTERNAL_ENABLE_STAGING ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_DIRECTORY ${CMAKE_BINARY_DIR})
set(platform linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PACKAGE_FILE_NAME ooc-${PROJECT_VERSION}-${platform})
set(CPACK_INSTALL_CMAKE_PROJECTS "${CMAKE_BINARY_DIR};ooc;programs;/")
include(CPack)

# The same, and tests/ with what checks a GPU.
if(gpu_checks)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/CPackGpuChecks.cmake @ONLY CONTENT [[
include(@CMAKE_BINARY_DIR@/CPackConfig.cmake)
set(CPACK_PACKAGE_FILE_NAME ooc-@PROJECT_VERSION@-gpu-checks-@platform@)
set(CPACK_INSTALL_CMAKE_PROJECTS
    "@CMAKE_BINARY_DIR@;ooc;programs;/;@CMAKE_BINARY_DIR@;ooc;gpu_checks;/")
]])
endif()
