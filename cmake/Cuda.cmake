# CUDA is optional. DUALGEMM_CUDA=AUTO takes it when nvcc is found, ON demands it, OFF leaves it alone.
# The library holds machine code for these GPUs, and PTX for those that are not named. 100f is the family of B200 and B300:
# one machine code for both, with the registers of 100a (nvcc 13.0, every kernel).
set(DUALGEMM_CUDA_ARCHITECTURES 80 90a 100f 120a CACHE STRING "GPUs whose machine code is compiled: 80 90a ...")
list(TRANSFORM DUALGEMM_CUDA_ARCHITECTURES REPLACE "-(real|virtual)$" "")  # as CMake spells them
list(TRANSFORM DUALGEMM_CUDA_ARCHITECTURES REPLACE "^10[03]a$" "100f")  # members of the family
list(REMOVE_DUPLICATES DUALGEMM_CUDA_ARCHITECTURES)

# dualgemm_what_cuda_lacks(<variable>): a sentence, empty where the CUDA part can be built.
function(dualgemm_what_cuda_lacks variable)
  set(lacking "")
  if(NOT DUALGEMM_NVCC)
    set(lacking "there is no nvcc; needs it in PATH or in /usr/local/cuda/bin")
  elseif(CMAKE_CROSSCOMPILING)
    set(lacking "there is no libcudart_static.a for ${CMAKE_SYSTEM_PROCESSOR}")
  endif()
  set(${variable} "${lacking}" PARENT_SCOPE)
endfunction()

macro(dualgemm_find_cuda)
  set(DUALGEMM_CUDA_FOUND FALSE)
  set(lacking "")
  if(NOT DUALGEMM_CUDA STREQUAL "OFF")
    find_program(DUALGEMM_NVCC nvcc PATHS /usr/local/cuda/bin)
    dualgemm_what_cuda_lacks(lacking)
    if(NOT lacking)
      set(CMAKE_CUDA_COMPILER ${DUALGEMM_NVCC})
      set(CMAKE_CUDA_ARCHITECTURES OFF)  # the flags of each source are dualgemm_set_gencode()'s
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
      message(FATAL_ERROR "DUALGEMM_CUDA: ON, but ${lacking}")
    endif()
  endif()
  if(lacking)
    message(STATUS "CUDA part: no; ${lacking}")
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
