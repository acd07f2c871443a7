# Options, and the compile flags that every target of this project shares (never exported to users).
option(DUALGEMM_BUILD_CLI "Build the dualgemm command" ${PROJECT_IS_TOP_LEVEL})
option(DUALGEMM_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(DUALGEMM_BUILD_BENCH "Build the benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(DUALGEMM_BUILD_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(DUALGEMM_BUILD_FUZZ "Build the libFuzzer targets (clang only)" OFF)
option(DUALGEMM_BUILD_CHECKPOINT "Build the library that reads checkpoints" ${PROJECT_IS_TOP_LEVEL})
option(DUALGEMM_INSTALL "Create the install rules" ${PROJECT_IS_TOP_LEVEL})
option(DUALGEMM_WERROR "Treat compiler warnings as errors" ${PROJECT_IS_TOP_LEVEL})
option(DUALGEMM_LINEINFO "Source lines of the kernels for profilers and sanitizers; the same code, twice the size" OFF)
option(DUALGEMM_STATIC_RUNTIME "Link libstdc++ and libgcc statically into executables" OFF)
option(DUALGEMM_TEST_BY_EXECUTABLE "One ctest entry per test executable instead of one per test" OFF)
# Headers, and the code made from their templates, are most of the compile time of most files, once a unit.
option(DUALGEMM_UNITY "Compile many files as one unit: half the time for all, more for an edit" ON)
set(DUALGEMM_SANITIZE "" CACHE STRING "Argument of -fsanitize=, e.g. address,undefined or thread")
set(DUALGEMM_CUDA "AUTO" CACHE STRING "AUTO: compile the CUDA part when nvcc is found; ON: demand it; OFF")
set_property(CACHE DUALGEMM_CUDA PROPERTY STRINGS AUTO ON OFF)
set(DUALGEMM_CUTLASS "" CACHE PATH "CUTLASS's headers, as scripts/get_cutlass has them: the strategy cutlass, minutes more")

# -ffp-contract=off: results must not depend on where the compiler sees a multiply beside an add.
add_library(dualgemm_flags INTERFACE)
target_compile_options(dualgemm_flags INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall$<SEMICOLON>-Wextra$<SEMICOLON>-ffp-contract=off>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # GCC 12 warns about std::string's operator+ (its bug 105651), and notes for
  # each type aligned to 128 bytes that GCC 4.5 passed it in another way
  target_compile_options(dualgemm_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict$<SEMICOLON>-Wno-psabi>)
endif()
if(DUALGEMM_WERROR)
  target_compile_options(dualgemm_flags INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Werror>)
endif()
if(DUALGEMM_SANITIZE)
  target_compile_options(dualgemm_flags INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${DUALGEMM_SANITIZE}>
    $<$<COMPILE_LANGUAGE:C,CXX>:-fno-sanitize-recover=all$<SEMICOLON>-fno-omit-frame-pointer$<SEMICOLON>-g1>)
  target_link_options(dualgemm_flags INTERFACE -fsanitize=${DUALGEMM_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # its manual: sanitizers make this one warn falsely, here in <regex>
    target_compile_options(dualgemm_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
  endif()
endif()
if(DUALGEMM_STATIC_RUNTIME)
  target_link_options(dualgemm_flags INTERFACE
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-static-libstdc++$<SEMICOLON>-static-libgcc>)
endif()

# pch_defines, time_macros: without them ccache passes by every source that uses a precompiled header.
find_program(DUALGEMM_CCACHE ccache)
if(DUALGEMM_CCACHE AND PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${DUALGEMM_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()
