# The kernels of src/cuda/cutlass in the interpreter. Built and run with CUTLASS's other kernels, whose CMakeLists.txt
# includes this: cutlass.build compiles them once and keeps them.
if(NOT TARGET dualgemm_test_simulation OR NOT 100a IN_LIST DUALGEMM_CUDA_ARCHITECTURES)
  return()
endif()
set(gated_source ${PROJECT_SOURCE_DIR}/src/cuda/cutlass)
set(gated_ptx ${PROJECT_BINARY_DIR}/ptx)  # where dualgemm_test_simulation looks
file(GLOB gated_headers CONFIGURE_DEPENDS ${gated_source}/*.hpp ${gated_source}/*.cuh
  ${PROJECT_SOURCE_DIR}/src/cuda/device/*.cuh ${PROJECT_SOURCE_DIR}/src/cuda/ptx/*.cuh)
file(MAKE_DIRECTORY ${gated_ptx})
set(gated_objects "")
foreach(name gated_1sm gated_2sm visitor_1sm)
  add_custom_command(OUTPUT ${gated_ptx}/${name}.o ${gated_ptx}/${name}.ptx
    COMMAND ${CMAKE_COMMAND} -E env NVCC=${CMAKE_CUDA_COMPILER} ${scripts}/build_cutlass_kernels
      ${gated_source}/${name}.cu 100a ${cutlass} ${cache}/_cutlass_kernels ${gated_ptx}/${name}
      -std=c++20 --diag-suppress=2810 -I${PROJECT_SOURCE_DIR}/src -I${PROJECT_SOURCE_DIR}/include
    DEPENDS ${cutlass}/sha256 ${scripts}/build_cutlass_kernels ${gated_source}/${name}.cu ${gated_headers} VERBATIM)
  list(APPEND gated_objects ${gated_ptx}/${name}.o)
endforeach()

file(GLOB gated_host CONFIGURE_DEPENDS ${gated_source}/*.cpp)
file(GLOB gated_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cpp)
add_executable(test_gated EXCLUDE_FROM_ALL ${gated_tests} ${gated_host} ${gated_source}/interleave.cu ${gated_objects})
set_source_files_properties(${gated_source}/interleave.cu PROPERTIES
  COMPILE_OPTIONS "-gencode=arch=compute_80,code=compute_80")
target_include_directories(test_gated PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(test_gated PRIVATE GTest::gtest GTest::gtest_main dualgemm_test_simulation ptxsim_lib
  ptxsim_case ptxsim_driver dualgemm_fmt nlohmann_json::nlohmann_json)
dualgemm_link_layers(test_gated cuda core plan reference)
add_dependencies(cutlass_cases test_gated)

add_test(NAME cutlass.gated COMMAND test_gated)
set_tests_properties(cutlass.gated PROPERTIES FIXTURES_REQUIRED cutlass_cases LABELS cutlass TIMEOUT 1500)
