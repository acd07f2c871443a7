#include "dualgemm/status.hpp"

namespace dualgemm {

const char* status_code_name(StatusCode code) noexcept {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalidArgument:
      return "invalid_argument";
    case StatusCode::kUnsupported:
      return "unsupported";
    case StatusCode::kOverflow:
      return "overflow";
    case StatusCode::kOutOfMemory:
      return "out_of_memory";
    case StatusCode::kWorkspaceTooSmall:
      return "workspace_too_small";
    case StatusCode::kNotFound:
      return "not_found";
    case StatusCode::kIoError:
      return "io_error";
    case StatusCode::kCorruptFile:
      return "corrupt_file";
    case StatusCode::kInternal:
      return "internal";
  }
  return "unknown";  // a caller's cast; never one of ours
}

}  // namespace dualgemm
