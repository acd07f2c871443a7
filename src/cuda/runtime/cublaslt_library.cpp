#include "cuda/runtime/cublaslt_library.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

namespace dualgemm::cuda {
namespace {

constexpr const char* kNames[] = {"libcublasLt.so.13", "libcublasLt.so.12",
                                  "/usr/local/cuda/lib64/libcublasLt.so.13",
                                  "/usr/local/cuda/lib64/libcublasLt.so.12"};

template <class Function>
void look_up(void* library, const char* name, Function* function, std::string& missing) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  if (*function == nullptr) missing += std::string(missing.empty() ? "" : ", ") + name;
}

// The functions of an open library; `missing` lists those that are not there.
CublasLtLibrary functions_of(void* library, std::string& missing) {
  CublasLtLibrary out{};
  look_up(library, "cublasLtCreate", &out.create, missing);
  look_up(library, "cublasLtGetStatusName", &out.status_name, missing);
  look_up(library, "cublasLtGetVersion", &out.version, missing);
  look_up(library, "cublasLtMatmulDescInit_internal", &out.desc_init, missing);
  look_up(library, "cublasLtMatmulDescSetAttribute", &out.desc_set, missing);
  look_up(library, "cublasLtMatrixLayoutInit_internal", &out.layout_init, missing);
  look_up(library, "cublasLtMatrixLayoutSetAttribute", &out.layout_set, missing);
  look_up(library, "cublasLtMatmulPreferenceInit_internal", &out.preference_init, missing);
  look_up(library, "cublasLtMatmulPreferenceSetAttribute", &out.preference_set, missing);
  look_up(library, "cublasLtMatmulAlgoGetHeuristic", &out.heuristic, missing);
  look_up(library, "cublasLtMatmul", &out.matmul, missing);
  return out;
}

}  // namespace

Expected<CublasLtLibrary> load_cublaslt(std::span<const char* const> names) {
  std::string reasons;
  for (const char* name : names) {
    void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    std::string missing;
    if (library != nullptr) {
      const CublasLtLibrary functions = functions_of(library, missing);
      if (missing.empty()) return functions;
      dlclose(library);
      missing = std::string(name) + " lacks " + missing;
    } else {
      const char* const error = dlerror();
      missing = error == nullptr ? name : error;
    }
    reasons += (reasons.empty() ? "" : "; ") + missing;
  }
  return Status::unsupported("cuBLASLt", reasons,
                             "must be installed (CUDA 12 or 13), or DUALGEMM_CUBLASLT its path");
}

const Expected<CublasLtLibrary>& cublaslt() {
  static const Expected<CublasLtLibrary> library = [] {
    const char* const path = std::getenv("DUALGEMM_CUBLASLT");
    if (path != nullptr && *path != '\0') return load_cublaslt({&path, 1});
    return load_cublaslt(kNames);
  }();
  return library;
}

Status check(const CublasLtLibrary& library, cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  const StatusCode code = status == CUBLAS_STATUS_NOT_SUPPORTED  ? StatusCode::kUnsupported
                          : status == CUBLAS_STATUS_ALLOC_FAILED ? StatusCode::kOutOfMemory
                                                                 : StatusCode::kInternal;
  return Status::error(code, what, library.status_name(status), "must succeed");
}

}  // namespace dualgemm::cuda
