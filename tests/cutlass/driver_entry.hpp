// CUTLASS asks the driver for tensor maps. ptxsim's stand-in for cuTensorMapEncodeTiled answers;
// the im2col form is named by the same headers, and never called.
#pragma once

#include <cuda.h>

extern "C" CUresult CUDAAPI cuTensorMapEncodeIm2col(CUtensorMap*, CUtensorMapDataType, cuuint32_t,
                                                    void*, const cuuint64_t*, const cuuint64_t*,
                                                    const int*, const int*, cuuint32_t, cuuint32_t,
                                                    const cuuint32_t*, CUtensorMapInterleave,
                                                    CUtensorMapSwizzle, CUtensorMapL2promotion,
                                                    CUtensorMapFloatOOBfill) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
