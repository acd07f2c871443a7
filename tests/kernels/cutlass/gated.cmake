# The kernels of src/cuda/cutlass in the interpreter, and the strategy on them. Built and run with CUTLASS's other kernels,
# whose CMakeLists.txt includes this: cutlass.build compiles them once and keeps them.
if(NOT TARGET dualgemm_test_simulation OR NOT 100f IN_LIST DUALGEMM_CUDA_ARCHITECTURES)
  return()
endif()
set(gated_parts "")  # with DUALGEMM_CUTLASS they come with the layer cuda
if(NOT DUALGEMM_CUTLASS)
  dualgemm_add_cutlass_kernels(gated_parts ${cutlass})
  list(APPEND gated_parts ${PROJECT_SOURCE_DIR}/src/cuda/cutlass/gated_instances.cpp)
endif()

file(GLOB gated_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/*.cpp)
add_executable(test_gated EXCLUDE_FROM_ALL ${gated_tests} ${gated_parts})
target_include_directories(test_gated PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(test_gated PRIVATE GTest::gtest GTest::gtest_main dualgemm_test_simulation ptxsim_lib
  ptxsim_case ptxsim_driver dualgemm_fmt nlohmann_json::nlohmann_json)
dualgemm_link_layers(test_gated cuda core plan reference)
add_dependencies(test_gated dualgemm_cutlass_kernels)
add_dependencies(cutlass_cases test_gated)
add_test(NAME cutlass.gated COMMAND test_gated)
set_tests_properties(cutlass.gated PROPERTIES FIXTURES_REQUIRED cutlass_cases LABELS cutlass TIMEOUT 1500)

# Their launches by the clock.
add_executable(write_cutlass_case EXCLUDE_FROM_ALL ${CMAKE_CURRENT_LIST_DIR}/case/write_case.cpp ${gated_parts})
set_target_properties(write_cutlass_case PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
target_link_libraries(write_cutlass_case PRIVATE ptxsim_driver ptxsim_lib dualgemm_fmt nlohmann_json::nlohmann_json)
target_include_directories(write_cutlass_case PRIVATE ${PROJECT_SOURCE_DIR})
dualgemm_link_layers(write_cutlass_case cuda core plan)
add_dependencies(write_cutlass_case dualgemm_cutlass_kernels)
add_dependencies(cutlass_cases write_cutlass_case)
foreach(pair "gated_1sm|128" "gated_2sm|256")
  string(REPLACE "|" ";" pair "${pair}")
  list(GET pair 0 module)
  list(GET pair 1 rows)
  set(case ${CMAKE_CURRENT_BINARY_DIR}/case_${rows})
  add_test(NAME cutlass.time_${module} COMMAND sh -c
    "$<TARGET_FILE:write_cutlass_case> 256 256 512 ${rows} ${case} && exec $<TARGET_FILE:ptxsim> time \
     ${PROJECT_BINARY_DIR}/ptx/${module}.ptx --case ${case}/case.json --gpu b200")
  set_tests_properties(cutlass.time_${module} PROPERTIES FIXTURES_REQUIRED cutlass_cases LABELS cutlass TIMEOUT 1500)
endforeach()

# The command as a build with DUALGEMM_CUTLASS has it, below ptxsim.
if(NOT TARGET dualgemm_cli OR NOT TARGET ptxsim_cuda)
  return()
endif()
add_executable(dualgemm_with_cutlass EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tools/cli/main.cpp ${gated_parts})
target_link_libraries(dualgemm_with_cutlass PRIVATE dualgemm_cli_args dualgemm_cli_commands)
dualgemm_link_layers(dualgemm_with_cutlass ${DUALGEMM_LAYERS} measure verify checkpoint checkpoint_jobs)
add_dependencies(dualgemm_with_cutlass dualgemm_cutlass_kernels)
add_dependencies(cutlass_cases dualgemm_with_cutlass)
function(dualgemm_add_cutlass_exec name)
  add_test(NAME cutlass.strategy_${name}
    COMMAND ptxsim exec --device b200 --ptx ${PROJECT_BINARY_DIR}/ptx/dual_gemm_sm100a_pair.ptx
      --ptx ${PROJECT_BINARY_DIR}/ptx/repack.ptx --ptx ${PROJECT_BINARY_DIR}/ptx/interleave.ptx -- $<TARGET_FILE:dualgemm_with_cutlass> ${ARGN})
  set_tests_properties(cutlass.strategy_${name} PROPERTIES FIXTURES_REQUIRED cutlass_cases LABELS cutlass TIMEOUT 1500)
endfunction()
dualgemm_add_cutlass_exec(verified verify --device cuda --strategies cutlass -m 16,150 -n 136 -k 272 -l 1,2)
dualgemm_add_cutlass_exec(prepared verify --device cuda --strategies cutlass -m 150 -n 136 -k 256 --prepared)
# `verify` gives row scales, which the visitor tree refuses before anything runs.
dualgemm_add_cutlass_exec(refused verify --device cuda --strategies cutlass -m 40 -n 136 -k 256 --config kernel=cutlassvisitor)
set_tests_properties(cutlass.strategy_refused PROPERTIES PASS_REGULAR_EXPRESSION
  "a_row_scale: given; the visitor tree takes none.*0 launches of 0 kernels")
