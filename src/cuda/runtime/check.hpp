// CUDA errors become a Status that names the expression and its place.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "dualgemm/status.hpp"

namespace dualgemm::cuda {

inline Status check(cudaError_t error, const char* expression, const char* place) {
  if (error == cudaSuccess) return {};
  const StatusCode code =
      error == cudaErrorMemoryAllocation ? StatusCode::kOutOfMemory : StatusCode::kInternal;
  return Status::error(
      code, expression,
      std::string(cudaGetErrorName(error)) + " (" + cudaGetErrorString(error) + ")",
      std::string("must succeed at ") + place);
}

}  // namespace dualgemm::cuda

#define DUALGEMM_CUDA_STRING_OF(x) #x
#define DUALGEMM_CUDA_STRING(x) DUALGEMM_CUDA_STRING_OF(x)
// Returns the Status of a failed CUDA call from the enclosing function.
#define DUALGEMM_CUDA_TRY(expr) \
  DUALGEMM_TRY(::dualgemm::cuda::check((expr), #expr, __FILE__ ":" DUALGEMM_CUDA_STRING(__LINE__)))
