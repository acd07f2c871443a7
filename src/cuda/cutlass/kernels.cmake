# CUTLASS's kernels, each by itself: a minute or two of the compiler, kept under the hash of all that goes in. Builds below
# build/ share them.

# dualgemm_add_cutlass_kernels(<objects> <headers>): <objects> lists what to link beside gated_instances.cpp, made on
# demand by the target dualgemm_cutlass_kernels, with the PTX in ptx/<name>.ptx. <headers>: what scripts/get_cutlass has
# filled, before they are made.
function(dualgemm_add_cutlass_kernels objects headers)
  cmake_path(IS_PREFIX PROJECT_SOURCE_DIR "${PROJECT_BINARY_DIR}" NORMALIZE inside)
  set(cache ${PROJECT_BINARY_DIR}/_cutlass_kernels)
  if(inside)
    set(cache ${PROJECT_SOURCE_DIR}/build/_cutlass_kernels)
  endif()
  set(source ${PROJECT_SOURCE_DIR}/src/cuda/cutlass)
  set(ptx ${PROJECT_BINARY_DIR}/ptx)
  set(script ${PROJECT_SOURCE_DIR}/scripts/build/build_cutlass_kernels)
  set(folders ${source} ${PROJECT_SOURCE_DIR}/src/cuda/device ${PROJECT_SOURCE_DIR}/src/cuda/ptx
    ${PROJECT_SOURCE_DIR}/src/cuda/runtime ${PROJECT_SOURCE_DIR}/src/core)
  list(TRANSFORM folders APPEND /*.hpp OUTPUT_VARIABLE hpp)
  list(TRANSFORM folders APPEND /*.cuh OUTPUT_VARIABLE cuh)
  file(GLOB own_headers CONFIGURE_DEPENDS ${hpp} ${cuh})
  file(MAKE_DIRECTORY ${ptx})
  set(made "")
  foreach(name gated_1sm gated_2sm visitor_1sm)
    add_custom_command(OUTPUT ${ptx}/${name}.o ${ptx}/${name}.ptx
      COMMAND ${CMAKE_COMMAND} -E env NVCC=${CMAKE_CUDA_COMPILER} ${script} ${source}/${name}.cu 100a ${headers} ${cache}
        ${ptx}/${name} -std=c++20 --diag-suppress=2810 -Xcompiler=-fPIC -I${PROJECT_SOURCE_DIR}/src
        -I${PROJECT_SOURCE_DIR}/include
      DEPENDS ${headers}/sha256 ${script} ${source}/${name}.cu ${own_headers} VERBATIM
      COMMENT "CUTLASS kernel ${name}")
    list(APPEND made ${ptx}/${name}.o)
  endforeach()
  add_custom_target(dualgemm_cutlass_kernels DEPENDS ${made})
  set(${objects} ${made} PARENT_SCOPE)
endfunction()
