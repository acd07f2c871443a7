// Shared-memory matrix descriptors of tcgen05 and wgmma: which bytes a matrix operand occupies.
// Sources: PTX ISA 9.0, "Shared memory descriptor", "Major-ness supported by Strides",
// "Shared Memory Layout and Swizzling"; for wgmma "Matrix Descriptor Format" of "Asynchronous
// Warpgroup Level Matrix Multiply-Accumulate".
#pragma once

#include <cstdint>
#include <vector>

namespace ptxsim {

enum class SmemSwizzle : uint8_t { kNone, k32B, k64B, k128B, k128BAtom32B };

// A 64-bit descriptor, decoded. Byte values; offsets of the CTA's shared memory, without a rank.
struct SmemDescriptor {
  uint32_t start = 0;
  uint32_t leading_bytes = 0;  // LBO
  uint32_t stride_bytes = 0;   // SBO
  SmemSwizzle swizzle = SmemSwizzle::kNone;
};

// Throw a Fault (R14) that names field, value and rule when a field is not legal or not modelled.
// `name` is what the operand is called in the message ("a-desc").
SmemDescriptor decode_tcgen05_descriptor(uint64_t bits, const char* name);
SmemDescriptor decode_wgmma_descriptor(uint64_t bits, const char* name);

// K-major: the `k_bytes` that an instruction reads of a row must lie in one row of the swizzle
// pattern, else the last of them would be taken from the next row. A Fault (R14) otherwise.
void require_step_in_row(const SmemDescriptor& d, uint32_t k_bytes, const char* name);

// The bits of an absolute shared-memory offset that a swizzle mode exchanges.
uint32_t swizzled(SmemSwizzle mode, uint32_t offset);

// Bytes from the start of one row to the next in a swizzled layout: 128, 64, 32; 16 without one.
uint32_t swizzle_span(SmemSwizzle mode);

// Offset of 16-byte chunk `chunk` (along K) of row `row`, K-major.
uint32_t k_major_chunk(const SmemDescriptor& d, uint32_t row, uint32_t chunk);

// Offset of the 16-byte chunk that holds elements [16/size * mn_chunk, ...) of line `k`, MN-major.
uint32_t mn_major_chunk(const SmemDescriptor& d, uint32_t mn_chunk, uint32_t k);

struct ByteRange {
  uint32_t offset = 0;
  uint32_t bytes = 0;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};
// What an operand of `rows` rows x `k_bytes` occupies (k_bytes = 32 for an MMA), K-major; sorted,
// neighbours joined.
std::vector<ByteRange> k_major_footprint(const SmemDescriptor& d, uint32_t rows, uint32_t k_bytes);
// The same MN-major: `mn_bytes` along MN for each of `k` lines.
std::vector<ByteRange> mn_major_footprint(const SmemDescriptor& d, uint32_t mn_bytes, uint32_t k);

}  // namespace ptxsim
