// What the command returns to the shell.
#pragma once

namespace dualgemm::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;  // the operation failed: I/O, bad file, verification
inline constexpr int kExitUsage = 2;   // the request itself is wrong

}  // namespace dualgemm::cli
