// The functions of cuBLASLt that are used, from the shared library of a CUDA installation.
#pragma once

#include <cublasLt.h>

#include <span>
#include <string>

#include "dualgemm/status.hpp"

namespace dualgemm::cuda {

struct CublasLtLibrary {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtGetStatusName) status_name;
  decltype(&cublasLtGetVersion) version;
  decltype(&cublasLtMatmulDescInit_internal) desc_init;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set;
  decltype(&cublasLtMatrixLayoutInit_internal) layout_init;
  decltype(&cublasLtMatrixLayoutSetAttribute) layout_set;
  decltype(&cublasLtMatmulPreferenceInit_internal) preference_init;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic;
  decltype(&cublasLtMatmul) matmul;
};

// From the first of `names` that has all of them; the library stays loaded.
Expected<CublasLtLibrary> load_cublaslt(std::span<const char* const> names);

// Loaded at the first call: what DUALGEMM_CUBLASLT names, if it is set, else the versions that
// these declarations fit, wherever the loader looks and in the usual place of a CUDA toolkit.
const Expected<CublasLtLibrary>& cublaslt();

// `what`: the function that returned it.
Status check(const CublasLtLibrary& library, cublasStatus_t status, const char* what);

}  // namespace dualgemm::cuda
