# CUDA is optional. DUALGEMM_CUDA=AUTO takes it when nvcc is found, ON demands it, OFF leaves it alone.
# Every architecture has its own code; the PTX of the portable one serves GPUs that are not named.
set(DUALGEMM_CUDA_ARCHITECTURES 80 90a-real 100a-real 103a-real 120a-real CACHE STRING "CUDA architectures")

macro(dualgemm_find_cuda)
  set(DUALGEMM_CUDA_FOUND FALSE)
  if(NOT DUALGEMM_CUDA STREQUAL "OFF")
    find_program(DUALGEMM_NVCC nvcc PATHS /usr/local/cuda/bin)
    if(DUALGEMM_NVCC)
      set(CMAKE_CUDA_COMPILER ${DUALGEMM_NVCC})
      set(CMAKE_CUDA_ARCHITECTURES ${DUALGEMM_CUDA_ARCHITECTURES})
      set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
      enable_language(CUDA)
      if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc has C++20
        set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
        set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
      endif()
      set(CMAKE_CUDA_STANDARD 20)
      set(CMAKE_CUDA_STANDARD_REQUIRED ON)
      find_package(CUDAToolkit REQUIRED)  # here, so that every directory sees its targets
      set(DUALGEMM_CUDA_FOUND TRUE)
    elseif(DUALGEMM_CUDA STREQUAL "ON")
      message(FATAL_ERROR "DUALGEMM_CUDA: ON, but there is no nvcc; needs it in PATH or in /usr/local/cuda/bin")
    endif()
  endif()
  message(STATUS "CUDA part: ${DUALGEMM_CUDA_FOUND}")
endmacro()
