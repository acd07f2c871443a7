// cublasCreate and its like: what a handle has.
#include "fake_cuda/blas/handle.hpp"

#include <memory>
#include <set>

namespace ptxsim::cuda::blas {
namespace {

// Under the session's mutex. Never destroyed, as the session is not.
std::set<std::unique_ptr<Handle>>& handles() {
  static auto* all = new std::set<std::unique_ptr<Handle>>();
  return *all;
}

auto position_of(const void* handle) {
  auto at = handles().begin();
  while (at != handles().end() && at->get() != handle) ++at;
  return at;
}

struct StatusText {
  int status;
  const char *name, *text;
};
constexpr StatusText kTexts[] = {
    {kBlasSuccess, "CUBLAS_STATUS_SUCCESS", "success"},
    {kBlasNotInitialized, "CUBLAS_STATUS_NOT_INITIALIZED", "the library was not initialized"},
    {kBlasAllocFailed, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"},
    {kBlasInvalidValue, "CUBLAS_STATUS_INVALID_VALUE", "an unsupported value was passed"},
    {kBlasMappingError, "CUBLAS_STATUS_MAPPING_ERROR", "an access to GPU memory failed"},
    {kBlasExecutionFailed, "CUBLAS_STATUS_EXECUTION_FAILED", "the function failed to launch"},
    {kBlasNotSupported, "CUBLAS_STATUS_NOT_SUPPORTED", "the functionality is not supported"},
};

const char* text_of_status(int status, const char* StatusText::*part) {
  for (const StatusText& row : kTexts)
    if (row.status == status) return row.*part;
  return "CUBLAS_STATUS_UNKNOWN";
}

// A member of the handle as the program sees it.
template <class T>
BlasStatus give(void* handle, T* out, T (*member)(const Handle&)) {
  return with_handle(handle, [&](Session&, Handle& h) {
    if (out == nullptr) return kBlasInvalidValue;
    *out = member(h);
    return kBlasSuccess;
  });
}

}  // namespace

Handle* make_handle() { return handles().insert(std::make_unique<Handle>()).first->get(); }
Handle* find_handle(const void* handle) {
  const auto at = position_of(handle);
  return at == handles().end() ? nullptr : at->get();
}
bool destroy_handle(const void* handle) {
  const auto at = position_of(handle);
  if (at == handles().end()) return false;
  handles().erase(at);
  return true;
}

PTXSIM_CUDA_API int cublasCreate_v2(void** handle) {
  return blas_call([&](Session&) {
    if (handle == nullptr) return kBlasInvalidValue;
    *handle = make_handle();
    return kBlasSuccess;
  });
}
PTXSIM_CUDA_API int cublasDestroy_v2(void* handle) {
  return blas_call(
      [&](Session&) { return destroy_handle(handle) ? kBlasSuccess : kBlasNotInitialized; });
}
PTXSIM_CUDA_API int cublasGetVersion_v2(void* handle, int* version) {
  return give<int>(handle, version, [](const Handle&) {
    return kBlasVersion[0] * 10000 + kBlasVersion[1] * 100 + kBlasVersion[2];
  });
}
PTXSIM_CUDA_API int cublasGetProperty(int part, int* value) {  // libraryPropertyType
  if (part < 0 || part > 2 || value == nullptr) return kBlasInvalidValue;
  *value = kBlasVersion[part];
  return kBlasSuccess;
}
PTXSIM_CUDA_API size_t cublasGetCudartVersion() { return 13000; }

PTXSIM_CUDA_API int cublasSetStream_v2(void* handle, void* stream) {
  return with_handle(handle, [&](Session&, Handle& h) {
    h.stream = stream;
    return kBlasSuccess;
  });
}
PTXSIM_CUDA_API int cublasGetStream_v2(void* handle, void** stream) {
  return give<void*>(handle, stream, [](const Handle& h) { return h.stream; });
}
// No workspace is needed.
PTXSIM_CUDA_API int cublasSetWorkspace_v2(void* handle, void*, size_t) {
  return with_handle(handle, [](Session&, Handle&) { return kBlasSuccess; });
}
PTXSIM_CUDA_API int cublasSetMathMode(void* handle, int mode) {
  return with_handle(handle, [&](Session&, Handle& h) {
    h.math_mode = mode;
    return kBlasSuccess;
  });
}
PTXSIM_CUDA_API int cublasGetMathMode(void* handle, int* mode) {
  return give<int>(handle, mode, [](const Handle& h) { return h.math_mode; });
}
PTXSIM_CUDA_API int cublasSetPointerMode_v2(void* handle, int mode) {
  return with_handle(handle, [&](Session&, Handle& h) {
    if (mode != kOfHost && mode != kOfDevice) return kBlasInvalidValue;
    h.pointer_mode = static_cast<PointerMode>(mode);
    return kBlasSuccess;
  });
}
PTXSIM_CUDA_API int cublasGetPointerMode_v2(void* handle, int* mode) {
  return give<int>(handle, mode, [](const Handle& h) { return static_cast<int>(h.pointer_mode); });
}
PTXSIM_CUDA_API int cublasSetAtomicsMode(void* handle, int mode) {
  return with_handle(handle, [&](Session&, Handle& h) {
    h.atomics_mode = mode;
    return kBlasSuccess;
  });
}
PTXSIM_CUDA_API int cublasGetAtomicsMode(void* handle, int* mode) {
  return give<int>(handle, mode, [](const Handle& h) { return h.atomics_mode; });
}
PTXSIM_CUDA_API int cublasSetSmCountTarget(void* handle, int count) {
  return with_handle(handle, [&](Session&, Handle& h) {
    h.sm_count_target = count;
    return kBlasSuccess;
  });
}
PTXSIM_CUDA_API int cublasGetSmCountTarget(void* handle, int* count) {
  return give<int>(handle, count, [](const Handle& h) { return h.sm_count_target; });
}

PTXSIM_CUDA_API const char* cublasGetStatusName(int status) {
  return text_of_status(status, &StatusText::name);
}
PTXSIM_CUDA_API const char* cublasGetStatusString(int status) {
  return text_of_status(status, &StatusText::text);
}
PTXSIM_CUDA_API const char* cublasLtGetStatusName(int status) {
  return text_of_status(status, &StatusText::name);
}
PTXSIM_CUDA_API const char* cublasLtGetStatusString(int status) {
  return text_of_status(status, &StatusText::text);
}
PTXSIM_CUDA_API int cublasLoggerConfigure(int, int, int, const char*) { return kBlasSuccess; }
PTXSIM_CUDA_API int cublasSetLoggerCallback(void*) { return kBlasSuccess; }

PTXSIM_CUDA_API int cublasLtCreate(void** handle) { return cublasCreate_v2(handle); }
PTXSIM_CUDA_API int cublasLtDestroy(void* handle) { return cublasDestroy_v2(handle); }
PTXSIM_CUDA_API size_t cublasLtGetVersion() {
  return size_t{10000} * kBlasVersion[0] + size_t{100} * kBlasVersion[1] + kBlasVersion[2];
}
PTXSIM_CUDA_API size_t cublasLtGetCudartVersion() { return cublasGetCudartVersion(); }
PTXSIM_CUDA_API int cublasLtGetProperty(int part, int* value) {
  return cublasGetProperty(part, value);
}

}  // namespace ptxsim::cuda::blas
