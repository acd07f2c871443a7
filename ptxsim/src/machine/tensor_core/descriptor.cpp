#include "machine/tensor_core/descriptor.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ptxsim/error.hpp"

namespace ptxsim {
namespace {

uint32_t field(uint64_t bits, unsigned first, unsigned count) {
  return static_cast<uint32_t>(bits >> first & ((uint64_t{1} << count) - 1));
}

[[noreturn]] void refuse(uint64_t bits, const char* name, const char* what, unsigned first,
                         unsigned last, const char* rule) {
  throw Fault(fmt::format("{} 0x{:016x}: {} (bits {}-{}) is {}; {} (R14)", name, bits, what, first,
                          last, field(bits, first, last - first + 1), rule));
}

void require_zero(uint64_t bits, const char* name, unsigned first, unsigned last) {
  if (field(bits, first, last - first + 1) != 0)
    refuse(bits, name, "reserved field", first, last, "must be 0");
}

SmemDescriptor common_fields(uint64_t bits, const char* name) {
  require_zero(bits, name, 14, 15);
  require_zero(bits, name, 30, 31);
  SmemDescriptor d;
  d.start = field(bits, 0, 14) << 4;
  d.leading_bytes = field(bits, 16, 14) << 4;
  d.stride_bytes = field(bits, 32, 14) << 4;
  return d;
}

// The base offset says where a swizzle pattern starts; without a swizzle there is none. Compilers
// write (address >> 7) & 7 into it whatever the swizzle.
void check_base_offset(uint64_t bits, const char* name, SmemSwizzle swizzle) {
  if (swizzle != SmemSwizzle::kNone && field(bits, 49, 3) != 0)
    refuse(bits, name, "matrix base offset", 49, 51,
           "only 0 is modelled: the swizzle pattern must start on 1024, 512 or 256 bytes");
}

void sort_and_join(std::vector<ByteRange>& ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const ByteRange& a, const ByteRange& b) { return a.offset < b.offset; });
  size_t kept = 0;
  for (const ByteRange& range : ranges) {
    if (kept > 0 && range.offset <= ranges[kept - 1].offset + ranges[kept - 1].bytes) {
      ByteRange& last = ranges[kept - 1];
      last.bytes = std::max(last.offset + last.bytes, range.offset + range.bytes) - last.offset;
    } else {
      ranges[kept++] = range;
    }
  }
  ranges.resize(kept);
}

}  // namespace

SmemDescriptor decode_tcgen05_descriptor(uint64_t bits, const char* name) {
  SmemDescriptor d = common_fields(bits, name);
  if (field(bits, 46, 3) != 1) refuse(bits, name, "constant", 46, 48, "must be 1");
  if (field(bits, 52, 1) != 0)
    refuse(bits, name, "leading dimension mode", 52, 52,
           "only 0 (relative) is modelled; 1 belongs to K = 96 of sm_103a");
  require_zero(bits, name, 53, 60);
  switch (field(bits, 61, 3)) {
    case 0:
      d.swizzle = SmemSwizzle::kNone;
      break;
    case 1:
      d.swizzle = SmemSwizzle::k128BAtom32B;
      break;
    case 2:
      d.swizzle = SmemSwizzle::k128B;
      break;
    case 4:
      d.swizzle = SmemSwizzle::k64B;
      break;
    case 6:
      d.swizzle = SmemSwizzle::k32B;
      break;
    default:
      refuse(bits, name, "swizzle mode", 61, 63, "must be 0, 1, 2, 4 or 6");
  }
  check_base_offset(bits, name, d.swizzle);
  return d;
}

SmemDescriptor decode_wgmma_descriptor(uint64_t bits, const char* name) {
  SmemDescriptor d = common_fields(bits, name);
  require_zero(bits, name, 46, 48);
  require_zero(bits, name, 52, 61);
  static constexpr SmemSwizzle kModes[] = {SmemSwizzle::kNone, SmemSwizzle::k128B,
                                           SmemSwizzle::k64B, SmemSwizzle::k32B};
  d.swizzle = kModes[field(bits, 62, 2)];
  check_base_offset(bits, name, d.swizzle);
  return d;
}

void require_step_in_row(const SmemDescriptor& d, uint32_t k_bytes, const char* name) {
  const uint32_t span = swizzle_span(d.swizzle);
  if (d.swizzle != SmemSwizzle::kNone && d.start % span + k_bytes > span)
    throw Fault(
        fmt::format("{}: start address 0x{:x} is byte {} of a swizzled row of {} bytes; the "
                    "{} bytes of a step along K must lie in one row (R14)",
                    name, d.start, d.start % span, span, k_bytes));
}

uint32_t swizzled(SmemSwizzle mode, uint32_t offset) {
  switch (mode) {
    case SmemSwizzle::k32B:
      return offset ^ (offset >> 3 & 0x10);
    case SmemSwizzle::k64B:
      return offset ^ (offset >> 3 & 0x30);
    case SmemSwizzle::k128B:
      return offset ^ (offset >> 3 & 0x70);
    case SmemSwizzle::k128BAtom32B:
      return offset ^ (offset >> 2 & 0x60);
    default:
      return offset;
  }
}

uint32_t swizzle_span(SmemSwizzle mode) {
  switch (mode) {
    case SmemSwizzle::k32B:
      return 32;
    case SmemSwizzle::k64B:
      return 64;
    case SmemSwizzle::k128B:
    case SmemSwizzle::k128BAtom32B:
      return 128;
    default:
      return 16;
  }
}

// Canonical layouts ((8,m),(T,2k)) : ((span,SBO),(1,T)), and without a swizzle
// ((8,m),(T,2k)) : ((T,SBO),(1,LBO)), in bytes and 16-byte chunks.
uint32_t k_major_chunk(const SmemDescriptor& d, uint32_t row, uint32_t chunk) {
  const uint32_t step = d.swizzle == SmemSwizzle::kNone ? d.leading_bytes : 16;
  const uint32_t offset =
      d.start + row % 8 * swizzle_span(d.swizzle) + row / 8 * d.stride_bytes + chunk * step;
  return swizzled(d.swizzle, offset);
}

// Canonical layouts ((T,w,m),(8,k)) : ((1,T,LBO),(wT,SBO)) with w = span / 16 chunks; without a
// swizzle ((T,1,m),(8,k)) : ((1,T,SBO),(T,LBO)). Atoms of 32 bytes come in groups of 4 lines.
uint32_t mn_major_chunk(const SmemDescriptor& d, uint32_t mn_chunk, uint32_t k) {
  const uint32_t span = swizzle_span(d.swizzle);
  const uint32_t wide = span / 16;
  const uint32_t lines = d.swizzle == SmemSwizzle::k128BAtom32B ? 4 : 8;
  const bool plain = d.swizzle == SmemSwizzle::kNone;
  const uint32_t next_mn = plain ? d.stride_bytes : d.leading_bytes;
  const uint32_t next_k = plain ? d.leading_bytes : d.stride_bytes;
  const uint32_t offset = d.start + mn_chunk % wide * 16 + mn_chunk / wide * next_mn +
                          k % lines * span + k / lines * next_k;
  return swizzled(d.swizzle, offset);
}

std::vector<ByteRange> k_major_footprint(const SmemDescriptor& d, uint32_t rows, uint32_t k_bytes) {
  std::vector<ByteRange> ranges;
  ranges.reserve(size_t{rows} * (k_bytes / 16));
  for (uint32_t row = 0; row < rows; ++row)
    for (uint32_t chunk = 0; chunk < k_bytes / 16; ++chunk)
      ranges.push_back({k_major_chunk(d, row, chunk), 16});
  sort_and_join(ranges);
  return ranges;
}

std::vector<ByteRange> mn_major_footprint(const SmemDescriptor& d, uint32_t mn_bytes, uint32_t k) {
  std::vector<ByteRange> ranges;
  ranges.reserve(size_t{k} * (mn_bytes / 16));
  for (uint32_t line = 0; line < k; ++line)
    for (uint32_t chunk = 0; chunk < mn_bytes / 16; ++chunk)
      ranges.push_back({mn_major_chunk(d, chunk, line), 16});
  sort_and_join(ranges);
  return ranges;
}

}  // namespace ptxsim
