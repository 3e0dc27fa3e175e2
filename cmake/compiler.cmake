# Flags every target of ours gets, through the interface target ooc_flags.
add_library(ooc_flags INTERFACE)
target_include_directories(ooc_flags INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_options(ooc_flags INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
                       -Wno-sign-conversion -Werror=return-type -fno-math-errno)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_options(ooc_flags INTERFACE -march=${OOC_MARCH})
endif()
if(OOC_SANITIZE)
  target_compile_options(ooc_flags INTERFACE -fsanitize=${OOC_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all)
  target_link_options(ooc_flags INTERFACE -fsanitize=${OOC_SANITIZE})
  target_compile_definitions(ooc_flags INTERFACE OOC_SANITIZED=1)
endif()
if(OOC_FUZZ)  # tests/fuzz
  target_compile_options(ooc_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# ooc_add_folder(NAME [LINK libs...]): the static library of one source folder, every .cc in it.
function(ooc_add_folder name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  add_library(ooc_${name} STATIC ${sources})
  target_link_libraries(ooc_${name} PUBLIC ooc_flags ${ARG_LINK})
  target_precompile_headers(ooc_${name} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/precompiled.h)
endfunction()
