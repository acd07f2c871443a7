# Options, and the compile flags that every target of ptxsim shares (never exported to users). A project that includes this
# one sets them as variables before it does.
option(PTXSIM_BUILD_COMMAND "Build the command ptxsim" ${PROJECT_IS_TOP_LEVEL})
option(PTXSIM_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(PTXSIM_BUILD_FUZZ "Build the libFuzzer target (clang only)" OFF)
option(PTXSIM_BUILD_SILICON "Build what compares the cases with a GPU, if CUDA's toolkit is there" ${PROJECT_IS_TOP_LEVEL})
option(PTXSIM_INSTALL "Create the install rules" ${PROJECT_IS_TOP_LEVEL})
option(PTXSIM_WERROR "Treat compiler warnings as errors" OFF)
option(PTXSIM_STATIC_RUNTIME "Link libstdc++ and libgcc statically into executables" OFF)
option(PTXSIM_TEST_BY_EXECUTABLE "One ctest entry per test executable instead of one per test" OFF)
option(PTXSIM_UNITY "Compile many files as one unit: half the time for all, more for an edit" ON)
set(PTXSIM_SANITIZE "" CACHE STRING "Argument of -fsanitize=, e.g. address,undefined")
# bin/ptxsim and lib/ptxsim, which `ptxsim exec` looks for beside it; tests/ and fuzz/.
set(PTXSIM_OUTPUT_FOLDER ${PROJECT_BINARY_DIR} CACHE PATH "The folder of bin/ and lib/")
mark_as_advanced(PTXSIM_OUTPUT_FOLDER)

# -ffp-contract=off: results must not depend on where the compiler sees a multiply beside an add.
add_library(ptxsim_flags INTERFACE)
target_compile_options(ptxsim_flags INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall$<SEMICOLON>-Wextra$<SEMICOLON>-ffp-contract=off>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # GCC 12 warns about std::string's operator+ (its bug 105651), and notes for
  # each type aligned to 128 bytes that GCC 4.5 passed it in another way
  target_compile_options(ptxsim_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict$<SEMICOLON>-Wno-psabi>)
endif()
if(PTXSIM_WERROR)
  target_compile_options(ptxsim_flags INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-Werror>)
endif()
if(PTXSIM_SANITIZE)
  target_compile_options(ptxsim_flags INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${PTXSIM_SANITIZE}>
    $<$<COMPILE_LANGUAGE:C,CXX>:-fno-sanitize-recover=all$<SEMICOLON>-fno-omit-frame-pointer$<SEMICOLON>-g1>)
  target_link_options(ptxsim_flags INTERFACE -fsanitize=${PTXSIM_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # its manual: sanitizers make this one warn falsely, here in <regex>
    target_compile_options(ptxsim_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
  endif()
endif()
if(PTXSIM_STATIC_RUNTIME)
  target_link_options(ptxsim_flags INTERFACE
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-static-libstdc++$<SEMICOLON>-static-libgcc>)
endif()

# pch_defines, time_macros: without them ccache passes by every source that uses a precompiled header.
find_program(PTXSIM_CCACHE ccache)
if(PTXSIM_CCACHE AND PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${PTXSIM_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()
