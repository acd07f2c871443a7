// The texts that teach: what `--help` prints below the options.
#pragma once

#include <string>

namespace dualgemm::cli::help {

extern const char* const kProgram;
std::string program_footer();  // with every strategy of the library
extern const char* const kInfo;
extern const char* const kPlan;
extern const char* const kMakeLayer;
extern const char* const kQuantize;
extern const char* const kConvert;
extern const char* const kRun;
extern const char* const kVerify;
extern const char* const kBench;
extern const char* const kValidate;
extern const char* const kHelp;
extern const char* const kCompletion;
extern const char* const kMan;

}  // namespace dualgemm::cli::help
