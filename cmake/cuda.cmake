# CUDA's sources, *_cuda.cu, have two compilers: nvcc for GPUs, where there is a toolkit, and the
# host's for tests without one (tests/support/cuda). The latter needs the toolkit's headers alone.
file(GLOB_RECURSE OOC_CUDA_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/*_cuda.cu)

# What a program and the module that it opens share: a module of other headers is refused.
file(GLOB shared_headers CONFIGURE_DEPENDS
     ${CMAKE_SOURCE_DIR}/kernels/device/backend.h
     ${CMAKE_SOURCE_DIR}/kernels/device/queue.h ${CMAKE_SOURCE_DIR}/kernels/device/cuda_module.h
     ${CMAKE_SOURCE_DIR}/kernels/device/host_buffer.h
     ${CMAKE_SOURCE_DIR}/storage/base/errors.h ${CMAKE_SOURCE_DIR}/storage/base/types.h
     ${CMAKE_SOURCE_DIR}/kernels/spec/*.h ${CMAKE_SOURCE_DIR}/storage/format/*.h)
set(OOC_MODULE_KEY "${PROJECT_VERSION}")
foreach(header ${shared_headers})
  file(SHA256 ${header} hash)
  string(SHA256 OOC_MODULE_KEY "${OOC_MODULE_KEY}${hash}")
endforeach()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${shared_headers})

set(OOC_CUDA_CACHE $ENV{XDG_CACHE_HOME})
if(NOT OOC_CUDA_CACHE)
  set(OOC_CUDA_CACHE $ENV{HOME}/.cache)
endif()

find_program(OOC_NVCC nvcc PATHS /usr/local/cuda/bin)
if(NOT OOC_NVCC AND EXISTS ${OOC_CUDA_CACHE}/ooc/cuda-13.0/bin/nvcc)
  set(CUDAToolkit_ROOT ${OOC_CUDA_CACHE}/ooc/cuda-13.0)  # bin/install-dependencies --cuda
endif()
if(OOC_CUDA)
  find_package(CUDAToolkit 13.0 QUIET)
endif()
# bin/install-dependencies puts them there where no toolkit is.
find_path(OOC_CUDA_INCLUDE_DIR cuda_runtime_api.h
          HINTS ${CUDAToolkit_INCLUDE_DIRS} /usr/local/cuda/include
          ${OOC_CUDA_CACHE}/ooc/cuda-13.0/include REQUIRED)

if(CUDAToolkit_FOUND AND CUDAToolkit_NVCC_EXECUTABLE)
  message(STATUS "CUDA toolkit ${CUDAToolkit_VERSION} found")
  set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
  enable_language(CUDA)
  # Debian 12's CMake doesn't know that nvcc does.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  # The module of the GPUs, apart from the programs: who has none needs nothing of NVIDIA's. Kernels
  # that spill registers are errors.
  add_library(ooc_cuda_objects OBJECT ${OOC_CUDA_SOURCES})
  target_include_directories(ooc_cuda_objects PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_definitions(ooc_cuda_objects PRIVATE OOC_MODULE_KEY="${OOC_MODULE_KEY}")
  set_target_properties(ooc_cuda_objects PROPERTIES POSITION_INDEPENDENT_CODE ON
    CUDA_ARCHITECTURES "75-real;80-real;90;120" CUDA_VISIBILITY_PRESET hidden)
  add_library(ooc_cuda SHARED $<TARGET_OBJECTS:ooc_cuda_objects>)
  set_target_properties(ooc_cuda PROPERTIES LINKER_LANGUAGE CUDA
    CUDA_RUNTIME_LIBRARY Static LIBRARY_OUTPUT_DIRECTORY ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}
    CUDA_ARCHITECTURES "75-real;80-real;90;120")
  target_compile_options(ooc_cuda_objects PRIVATE --expt-relaxed-constexpr -Werror=all-warnings
    "SHELL:-Xptxas -warn-spills,-warn-lmem-usage" "SHELL:-Xcompiler -Wall,-Wextra")
else()
  message(STATUS "no CUDA toolkit: building for the CPU only")
endif()
