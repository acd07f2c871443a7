// The texts that teach: what `--help` prints below the options.
#pragma once

namespace dualgemm::cli::help {

extern const char* const kProgram;
extern const char* const kProgramFooter;
extern const char* const kInfo;
extern const char* const kPlan;
extern const char* const kMakeLayer;
extern const char* const kQuantize;
extern const char* const kConvert;
extern const char* const kRun;
extern const char* const kVerify;
extern const char* const kBench;
extern const char* const kValidate;

}  // namespace dualgemm::cli::help
