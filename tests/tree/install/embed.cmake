# cmake -DSOURCE=... -DBINARY=... -P embed.cmake
# A project that embeds this one (add_subdirectory, as FetchContent does) must get the library alone: no tests, no
# command, no warnings turned into errors, no build type forced on it.
file(REMOVE_RECURSE "${BINARY}")
file(WRITE "${BINARY}/source/CMakeLists.txt" "
cmake_minimum_required(VERSION 3.25)
project(embedder LANGUAGES C CXX)
add_subdirectory(\"${SOURCE}\" dualgemm)
foreach(target dualgemm_cli test_core)
  if(TARGET \${target})
    message(FATAL_ERROR \"\${target} is built for an embedder\")
  endif()
endforeach()
get_target_property(flags dualgemm_flags INTERFACE_COMPILE_OPTIONS)
if(flags MATCHES \"Werror\")
  message(FATAL_ERROR \"embedders get -Werror: \${flags}\")
endif()
if(CMAKE_BUILD_TYPE)
  message(FATAL_ERROR \"a build type was forced: \${CMAKE_BUILD_TYPE}\")
endif()
add_executable(user \"${SOURCE}/tests/tree/install/user.cpp\")
target_link_libraries(user PRIVATE dualgemm::dualgemm)
")
execute_process(COMMAND "${CMAKE_COMMAND}" -G Ninja -S "${BINARY}/source" -B "${BINARY}/build" -DDUALGEMM_CUDA=OFF
  RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${output}")
endif()
