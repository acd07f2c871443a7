# Writes OUTPUT with the git revision, compiler and flags of this build; runs at every build, changes the file only when they change.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12
  OUTPUT_VARIABLE revision OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(revision unknown)
endif()
string(STRIP "${FLAGS}" flags)
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
#pragma once
namespace dualgemm::bench {
inline constexpr const char* kBuildRevision = "@revision@";
inline constexpr const char* kBuildCompiler = "@COMPILER@";
inline constexpr const char* kBuildFlags = "@flags@";
}  // namespace dualgemm::bench
]])
