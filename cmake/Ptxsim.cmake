# ptxsim as a part of this build: its options are this project's, fmt is compiled once for both, and its command lies
# beside this one's.
set(PTXSIM_BUILD_COMMAND ${DUALGEMM_BUILD_CLI})
set(PTXSIM_BUILD_TESTS ${DUALGEMM_BUILD_TESTS})
set(PTXSIM_BUILD_FUZZ ${DUALGEMM_BUILD_FUZZ})
set(PTXSIM_BUILD_SILICON ${DUALGEMM_CUDA_FOUND})
set(PTXSIM_INSTALL OFF)  # cmake -S ptxsim installs it
set(PTXSIM_WERROR ${DUALGEMM_WERROR})
set(PTXSIM_SANITIZE "${DUALGEMM_SANITIZE}")
set(PTXSIM_STATIC_RUNTIME ${DUALGEMM_STATIC_RUNTIME})
set(PTXSIM_TEST_BY_EXECUTABLE ${DUALGEMM_TEST_BY_EXECUTABLE})
set(PTXSIM_UNITY ${DUALGEMM_UNITY})
set(PTXSIM_OUTPUT_FOLDER ${PROJECT_BINARY_DIR})
add_library(ptxsim_fmt INTERFACE)
target_link_libraries(ptxsim_fmt INTERFACE dualgemm_fmt)
set(PTXSIM_FMT_OBJECTS ${DUALGEMM_FMT_OBJECTS})
add_subdirectory(ptxsim)
