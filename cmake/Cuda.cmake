# CUDA is optional. DUALGEMM_CUDA=AUTO takes it when nvcc is found, ON demands it, OFF leaves it alone.
# The library holds machine code for these GPUs, and PTX for those that are not named. 100f is the family of B200 and B300:
# one machine code for both, with the registers of 100a (nvcc 13.0, every kernel); 120f that of RTX 50 and DGX Spark.
set(DUALGEMM_CUDA_ARCHITECTURES 80 90a 100f 120f CACHE STRING "GPUs whose machine code is compiled: 80 90a ...")
list(TRANSFORM DUALGEMM_CUDA_ARCHITECTURES REPLACE "-(real|virtual)$" "")  # as CMake spells them
list(TRANSFORM DUALGEMM_CUDA_ARCHITECTURES REPLACE "^10[03]a$" "100f")  # members of the family
list(TRANSFORM DUALGEMM_CUDA_ARCHITECTURES REPLACE "^12[01]a$" "120f")
list(REMOVE_DUPLICATES DUALGEMM_CUDA_ARCHITECTURES)

# dualgemm_what_cuda_lacks(<variable>): a sentence, empty where the CUDA part can be built.
function(dualgemm_what_cuda_lacks variable)
  set(lacking "")
  if(NOT DUALGEMM_NVCC)
    set(lacking "there is no nvcc; needs it in PATH or in /usr/local/cuda/bin")
  elseif(CMAKE_CROSSCOMPILING AND NOT DUALGEMM_CUDART)
    set(lacking "there is no libcudart_static.a for ${CMAKE_SYSTEM_PROCESSOR}: scripts/build/get_aarch64_packages cuda")
  endif()
  set(${variable} "${lacking}" PARENT_SCOPE)
endfunction()

# A toolkit has the host code's libraries of its own machine alone; another processor's runtime is found where the toolchain
# file says, and the machine code of GPUs and the headers are the same. So CMake's own search, which wants the other
# processor's toolkit, is not asked.
macro(dualgemm_enable_cuda_of_another_processor)
  get_filename_component(toolkit ${DUALGEMM_NVCC} REALPATH)
  get_filename_component(toolkit ${toolkit}/../.. ABSOLUTE)
  get_filename_component(CUDAToolkit_LIBRARY_DIR ${DUALGEMM_CUDART} DIRECTORY)
  file(GLOB target RELATIVE ${toolkit}/targets ${toolkit}/targets/*-linux)  # the one that there is
  set(CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} --target-directory=${target} -L${CUDAToolkit_LIBRARY_DIR}")
  set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
  enable_language(CUDA)
  set(CUDAToolkit_INCLUDE_DIRS ${toolkit}/include)
  find_package(Threads REQUIRED)
  add_library(CUDA::cudart_static STATIC IMPORTED GLOBAL)
  set_target_properties(CUDA::cudart_static PROPERTIES IMPORTED_LOCATION ${DUALGEMM_CUDART}
    INTERFACE_INCLUDE_DIRECTORIES ${CUDAToolkit_INCLUDE_DIRS} INTERFACE_LINK_LIBRARIES "Threads::Threads;dl;rt")
endmacro()

macro(dualgemm_find_cuda)
  set(DUALGEMM_CUDA_FOUND FALSE)
  set(lacking "")
  if(NOT DUALGEMM_CUDA STREQUAL "OFF")
    find_program(DUALGEMM_NVCC nvcc PATHS /usr/local/cuda/bin)
    if(CMAKE_CROSSCOMPILING)
      find_library(DUALGEMM_CUDART libcudart_static.a)
    endif()
    dualgemm_what_cuda_lacks(lacking)
    if(NOT lacking)
      set(CMAKE_CUDA_COMPILER ${DUALGEMM_NVCC})
      set(CMAKE_CUDA_ARCHITECTURES OFF)  # the flags of each source are dualgemm_set_gencode()'s
      set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
      if(CMAKE_CROSSCOMPILING)
        dualgemm_enable_cuda_of_another_processor()
      else()
        enable_language(CUDA)
        find_package(CUDAToolkit REQUIRED)  # here, so that every directory sees its targets
      endif()
      if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake 3.25 does not know that nvcc has C++20
        set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
        set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
      endif()
      set(CMAKE_CUDA_STANDARD 20)
      set(CMAKE_CUDA_STANDARD_REQUIRED ON)
      set(DUALGEMM_CUDA_FOUND TRUE)
    elseif(DUALGEMM_CUDA STREQUAL "ON")
      message(FATAL_ERROR "DUALGEMM_CUDA: ON, but ${lacking}")
    endif()
  endif()
  if(lacking)
    message(STATUS "CUDA part: FALSE; ${lacking}")
  else()
    message(STATUS "CUDA part: ${DUALGEMM_CUDA_FOUND}")
  endif()
endmacro()

# dualgemm_portable_gencode(<flags> <codes> <floor>...): for kernels that run on every GPU. What comes before ptxas, half
# of nvcc's time, runs once for each floor: the PTX of the highest floor at or below a GPU becomes that GPU's machine code.
# <codes> lists what comes out, as ptxas names it. The PTX of every floor goes along: a driver, or `ptxsim exec`, that has
# to make do with PTX takes the highest that fits, and a kernel may wait for the grid before it from 90 on only.
function(dualgemm_portable_gencode flags codes)
  set(floors ${ARGN})
  list(TRANSFORM DUALGEMM_CUDA_ARCHITECTURES REPLACE "[a-z]+$" "" OUTPUT_VARIABLE gpus)
  list(REMOVE_DUPLICATES gpus)
  set(all_flags "")
  set(all_codes "")
  foreach(floor IN LISTS floors)
    set(machine_code compute_${floor})
    foreach(gpu IN LISTS gpus)
      set(own 0)  # the highest floor at or below this GPU
      foreach(other IN LISTS floors)
        if(other LESS_EQUAL gpu)
          set(own ${other})
        endif()
      endforeach()
      if(own EQUAL floor)
        list(APPEND machine_code sm_${gpu})
        list(APPEND all_codes sm_${gpu})
      endif()
    endforeach()
    list(JOIN machine_code "," code)
    list(APPEND all_flags "-gencode=arch=compute_${floor},code=[${code}]")
  endforeach()
  set(${flags} ${all_flags} PARENT_SCOPE)
  set(${codes} ${all_codes} PARENT_SCOPE)
endfunction()

# dualgemm_own_gencode(<flags> <codes> <architecture>...): for kernels that exist on these architectures alone, as far as
# the build has them. Where it has none, the entry points are still compiled, as the empty bodies of any other GPU.
function(dualgemm_own_gencode flags codes)
  set(all_flags "")
  set(all_codes "")
  foreach(architecture IN LISTS ARGN)
    if(architecture IN_LIST DUALGEMM_CUDA_ARCHITECTURES)
      list(APPEND all_flags "-gencode=arch=compute_${architecture},code=sm_${architecture}")
      list(APPEND all_codes sm_${architecture})
    endif()
  endforeach()
  if(NOT all_flags)
    dualgemm_portable_gencode(all_flags all_codes 80)
  endif()
  set(${flags} ${all_flags} PARENT_SCOPE)
  set(${codes} ${all_codes} PARENT_SCOPE)
endfunction()
