// A stand-in for the driver's cuTensorMapEncodeTiled, cuTensorMapEncodeIm2col and
// cuTensorMapEncodeIm2colWide: the same arguments, the same checks (CUDA driver API 13.0, "Tensor
// Map Object Management"), and the same bytes, but those of the last, which are not published.
//
// Three ways in, all of which do the same:
//  - encode_tensor_map(): typed, with a message for the check that failed;
//  - encode_tiled_abi() and its like: binary-compatible with cuTensorMapEncodeTiled; code that
//    keeps the driver's entry point as a function pointer takes this one instead:
//    reinterpret_cast<PFN_cuTensorMapEncodeTiled>(&encode_tiled_abi);
//  - the C symbol cuTensorMapEncodeTiled itself: driver_symbols.cpp, a library of its own
//    (ptxsim_driver), so that programs that link the real driver never meet it.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "ptxsim/error.hpp"

namespace ptxsim {

// Values of the enums are the driver's.
enum class TensorMapType : uint32_t {
  kU8,
  kU16,
  kU32,
  kS32,
  kU64,
  kS64,
  kF16,
  kF32,
  kF64,
  kBf16,
  kF32Ftz,
  kTf32,
  kTf32Ftz,
  k16U4Align8,   // packed 4-bit values, no gaps
  k16U4Align16,  // packed in global memory; in shared memory 8 bytes of values, then an 8-byte gap
  k16U6Align16,  // packed in global memory; in shared memory 12 bytes of values, then a 4-byte gap
};
enum class TensorMapInterleave : uint32_t { kNone, k16, k32 };
enum class TensorMapSwizzle : uint32_t {
  kNone,
  k32,
  k64,
  k128,
  k128Atom32,
  k128Atom32Flip8,
  k128Atom64
};
enum class TensorMapL2Promotion : uint32_t { kNone, k64, k128, k256 };
enum class TensorMapFill : uint32_t { kZero, kNan };
// What a copy covers: a box of tiles; columns of pixels, along W, H and D or along W alone.
enum class TensorMapMode : uint8_t { kTiled, kIm2col, kIm2colWide };

inline constexpr uint32_t kTensorMapMaxRank = 5;
inline constexpr uint32_t kWidePixels =
    128;  // of a copy with .im2col::w::128, whatever the map says

// The 128 bytes of a CUtensorMap, little endian: src/tensor_map_encoder/bits.hpp says what they
// hold.
struct TensorMapRecord {
  std::array<uint32_t, 32> words{};
};
static_assert(sizeof(TensorMapRecord) == 128);

// Bits of one element in global memory.
uint32_t element_bits(TensorMapType type);
// Bytes that `elements` of the innermost dimension take in shared memory, gaps included.
uint64_t shared_row_bytes(TensorMapType type, uint64_t elements);
bool is_packed_with_gaps(TensorMapType type);
bool is_floating(TensorMapType type);
// Bytes within which a swizzle mode moves its chunks; 0 for none.
uint32_t swizzle_span_bytes(TensorMapSwizzle swizzle);

// What im2col maps have in place of a box (PTX ISA 9.0, "Im2col mode").
struct TensorMapPixels {
  // The pixel box, by how far its corners lie from those of the image: W, H, D; wide maps: W alone.
  std::array<int32_t, 3> lower{}, upper{};
  uint32_t count = 1;  // of a column
};

struct TensorMap {
  TensorMapMode mode = TensorMapMode::kTiled;
  TensorMapType type = TensorMapType::kU8;
  uint32_t rank = 1;
  uint64_t address = 0;                            // as the kernel sees it
  std::array<uint64_t, 5> extents{1, 1, 1, 1, 1};  // elements, innermost first
  std::array<uint64_t, 4> stride_bytes{};          // of dimensions 1 .. rank - 1
  std::array<uint32_t, 5> box{1, 1, 1, 1,
                              1};  // elements; im2col: the first alone, channels of a pixel
  TensorMapPixels pixels;
  std::array<uint32_t, 5> element_strides{1, 1, 1, 1, 1};
  TensorMapInterleave interleave = TensorMapInterleave::kNone;
  TensorMapSwizzle swizzle = TensorMapSwizzle::kNone;
  TensorMapL2Promotion l2_promotion = TensorMapL2Promotion::kNone;
  TensorMapFill fill = TensorMapFill::kZero;
};

// Dimensions of an im2col map's pixel box.
inline uint32_t pixel_dimensions(const TensorMap& map) {
  return map.mode == TensorMapMode::kIm2colWide ? 1 : map.rank - 2;
}
// Bits of each of its corners' offsets, and of the offsets that a copy gives.
inline uint32_t corner_bits(const TensorMap& map) {
  constexpr uint32_t kBits[3] = {16, 8, 5};
  return kBits[pixel_dimensions(map) - 1];
}

// Every documented check of the arguments; the message names the argument, the value and the rule.
Result<TensorMapRecord> encode_tensor_map(const TensorMap& map);
// The map that any encoder made, the driver among them, unchecked but for what its bytes cannot
// mean.
Result<TensorMap> decode_record(const TensorMapRecord& record);

// Signature of cuTensorMapEncodeTiled as the calling convention sees it (enums are 32-bit, CUresult
// an int). Returns 0 or 1 (CUDA_ERROR_INVALID_VALUE); the reason is in last_encode_error() of the
// same thread.
using EncodeTiledAbi = int (*)(void* tensor_map, uint32_t type, uint32_t rank, void* address,
                               const uint64_t* extents, const uint64_t* stride_bytes,
                               const uint32_t* box, const uint32_t* element_strides,
                               uint32_t interleave, uint32_t swizzle, uint32_t l2_promotion,
                               uint32_t fill);
int encode_tiled_abi(void* tensor_map, uint32_t type, uint32_t rank, void* address,
                     const uint64_t* extents, const uint64_t* stride_bytes, const uint32_t* box,
                     const uint32_t* element_strides, uint32_t interleave, uint32_t swizzle,
                     uint32_t l2_promotion, uint32_t fill);
// The same for cuTensorMapEncodeIm2col and cuTensorMapEncodeIm2colWide.
int encode_im2col_abi(void* tensor_map, uint32_t type, uint32_t rank, void* address,
                      const uint64_t* extents, const uint64_t* stride_bytes,
                      const int32_t* lower_corner, const int32_t* upper_corner, uint32_t channels,
                      uint32_t pixels, const uint32_t* element_strides, uint32_t interleave,
                      uint32_t swizzle, uint32_t l2_promotion, uint32_t fill);
int encode_im2col_wide_abi(void* tensor_map, uint32_t type, uint32_t rank, void* address,
                           const uint64_t* extents, const uint64_t* stride_bytes,
                           int32_t lower_corner, int32_t upper_corner, uint32_t channels,
                           uint32_t pixels, const uint32_t* element_strides, uint32_t interleave,
                           uint32_t mode, uint32_t swizzle, uint32_t l2_promotion, uint32_t fill);
const std::string& last_encode_error();

}  // namespace ptxsim
