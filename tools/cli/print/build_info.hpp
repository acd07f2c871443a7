// How this binary was made.
#pragma once

namespace dualgemm::cli {

extern const char* const kRevision;   // git's short hash, "+" behind it when the tree had changes;
                                      // "unknown" outside of git
extern const char* const kCompiler;   // e.g. "gcc 12.2.0"
extern const char* const kBuildType;  // e.g. "Release"
extern const bool kHasCuda;           // the CUDA part is compiled in

}  // namespace dualgemm::cli
