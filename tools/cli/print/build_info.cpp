#include "tools/cli/print/build_info.hpp"

#include "dualgemm_revision.h"

namespace dualgemm::cli {

const char* const kRevision = DUALGEMM_REVISION;
#if defined(__clang__)
const char* const kCompiler = "clang " __clang_version__;
#else
const char* const kCompiler = "gcc " __VERSION__;
#endif
const char* const kBuildType = DUALGEMM_BUILD_TYPE;
const bool kHasCuda = DUALGEMM_HAS_CUDA;

}  // namespace dualgemm::cli
