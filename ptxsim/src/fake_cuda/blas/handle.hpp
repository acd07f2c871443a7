// Handles of cuBLAS and cuBLASLt, and what surrounds their calls.
#pragma once

#include "fake_cuda/abi.hpp"
#include "fake_cuda/blas/product.hpp"
#include "fake_cuda/call.hpp"

namespace ptxsim::cuda::blas {

struct Handle {  // cublasHandle_t; serves as a cublasLtHandle_t, too
  void* stream = nullptr;
  int math_mode = 0;
  PointerMode pointer_mode = kOfHost;
  int atomics_mode = 0;
  int sm_count_target = 0;
};

Handle* make_handle();
Handle* find_handle(const void* handle);  // nullptr: it is none
bool destroy_handle(const void* handle);

// f(Session&) -> BlasStatus
template <class F>
BlasStatus blas_call(F&& f) {
  BlasStatus result = kBlasExecutionFailed;
  const Status status = guarded_unless_sticky([&](Session& session) {
    result = f(session);
    return kSuccess;
  });
  return status == kOutOfMemory ? kBlasAllocFailed : result;
}
// f(Session&, Handle&) -> BlasStatus
template <class F>
BlasStatus with_handle(void* handle, F&& f) {
  return blas_call([&](Session& session) {
    Handle* found = find_handle(handle);
    return found == nullptr ? kBlasNotInitialized : f(session, *found);
  });
}

inline constexpr int kBlasVersion[] = {13, 1, 0};  // of CUDA 13.0's cublas_api.h

}  // namespace ptxsim::cuda::blas
