#include <utility>

#include "fake_cuda/runtime/call.hpp"

namespace ptxsim::cuda::runtime {
namespace {

thread_local Status last_error = kSuccess;

}  // namespace

int remember(Status status) {
  if (status != kSuccess && DriverCall::depth() == 0) last_error = status;
  return status;
}

int& DriverCall::depth() {
  static thread_local int depth = 0;
  return depth;
}

PTXSIM_CUDA_API int cudaGetLastError() { return std::exchange(last_error, kSuccess); }
PTXSIM_CUDA_API int cudaPeekAtLastError() { return last_error; }
PTXSIM_CUDA_API const char* cudaGetErrorName(int error) {
  const char* name = runtime_name(error);
  return name == nullptr ? "unrecognized error code" : name;
}
PTXSIM_CUDA_API const char* cudaGetErrorString(int error) {
  const char* text = text_of(error);
  return text == nullptr ? "unrecognized error code" : text;
}

}  // namespace ptxsim::cuda::runtime
