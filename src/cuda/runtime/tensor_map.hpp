// Tensor maps for the TMA unit. The driver encodes them; it is asked for through the runtime, so
// nothing links to libcuda, and a test may put its own encoder in the driver's place.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "cuda/runtime/tensor_map_object.hpp"
#include "dualgemm/status.hpp"

namespace dualgemm::cuda {

// The driver's cuTensorMapEncodeTiled, or a stand-in.
using EncodeTiled = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*,
                                 const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,
                                 const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                                 CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

// From the installed driver; an error names what is missing.
Expected<EncodeTiled> driver_encode_tiled();

// A tensor in device memory and the box of it that one copy takes. Elements outside read as zero.
struct TensorView {
  static constexpr int kMaxRank = 4;

  const char* name;  // for errors
  CUtensorMapDataType type;
  CUtensorMapSwizzle swizzle;
  int rank;
  const void* address;                  // aligned to 16 bytes
  uint64_t dims[kMaxRank];              // elements, innermost first
  uint64_t stride_bytes[kMaxRank - 1];  // of dims 1 .. rank-1, multiples of 16
  uint32_t box[kMaxRank];               // elements
};

Status encode(const TensorView& view, EncodeTiled encode_tiled, TensorMap* map);

}  // namespace dualgemm::cuda
