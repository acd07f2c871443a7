// tcgen05.cp: shared memory to tensor memory, asynchronously (PTX ISA 9.0, "Tensor Memory Data
// Movement Instructions"). Rows of 16 or 32 bytes become 4 or 8 columns of one lane; narrow shapes
// are repeated in several lanes:
//
//   shape                  row i goes to lanes
//   128x256b, 128x128b     i
//   64x128b.warpx2::02_13  i, i + 64
//   64x128b.warpx2::01_23  64 * (i / 32) + i % 32, and + 32
//   32x128b.warpx4         i, i + 32, i + 64, i + 96
//   4x256b                 32 * i
//
// With cta_group::2 each CTA of the pair copies from its own shared memory, at the same offsets.
#include <fmt/format.h>

#include <array>
#include <cstring>

#include "insn/tensor/tcgen05.hpp"
#include "machine/tensor_core/descriptor.hpp"

namespace ptxsim {
namespace {

enum class CopyShape : uint8_t {
  k128x256b,
  k4x256b,
  k128x128b,
  k64x128b0213,
  k64x128b0123,
  k32x128b
};
enum class SourceFormat : uint8_t { kPlain, k4Bit, k6Bit };

struct CopyDetail : Detail {
  uint32_t cta_group = 1;
  CopyShape shape = CopyShape::k128x256b;
  SourceFormat format = SourceFormat::kPlain;
  TmemOperand destination;

  uint32_t rows() const {
    static constexpr uint32_t kRows[] = {128, 4, 128, 64, 64, 32};
    return kRows[static_cast<int>(shape)];
  }
  uint32_t row_bytes() const { return shape <= CopyShape::k4x256b ? 32 : 16; }
};

// 16 elements of 4 or 6 bits, padded to 16 bytes, become bytes: 4 bits in the middle of the byte, 6
// bits at its low end (PTX ISA, "Optional Decompression").
void decompress(SourceFormat format, const uint8_t* from, uint8_t* to) {
  for (unsigned i = 0; i < 16; ++i) {
    if (format == SourceFormat::k4Bit) {
      to[i] = static_cast<uint8_t>((from[i / 2] >> (i % 2 * 4) & 15) << 2);
    } else {
      const unsigned bit = 6 * i;
      const unsigned pair = from[bit / 8] | from[bit / 8 + 1] << 8;
      to[i] = static_cast<uint8_t>(pair >> bit % 8 & 63);
    }
  }
}

void for_lanes_of_row(CopyShape shape, uint32_t row, auto&& visit) {
  switch (shape) {
    case CopyShape::k4x256b:
      visit(32 * row);
      break;
    case CopyShape::k64x128b0213:
      for (uint32_t copy : {0u, 64u}) visit(row + copy);
      break;
    case CopyShape::k64x128b0123:
      for (uint32_t copy : {0u, 32u}) visit(row / 32 * 64 + row % 32 + copy);
      break;
    case CopyShape::k32x128b:
      for (uint32_t copy : {0u, 32u, 64u, 96u}) visit(row + copy);
      break;
    default:
      visit(row);
  }
}

void copy_now(Cta& cta, const SmemDescriptor& source, TmemAddress to, const CopyDetail& detail) {
  TensorMemory& tmem = tensor_memory(cta);
  for (uint32_t row = 0; row < detail.rows(); ++row) {
    for (uint32_t chunk = 0; chunk < detail.row_bytes() / 16; ++chunk) {
      uint8_t bytes[17] = {}, plain[16];  // one more than a chunk: 6-bit elements are read in pairs
      std::memcpy(bytes, cta.shared.at(k_major_chunk(source, row, chunk)), 16);
      if (detail.format == SourceFormat::kPlain)
        std::memcpy(plain, bytes, 16);
      else
        decompress(detail.format, bytes, plain);
      for_lanes_of_row(detail.shape, row, [&](uint32_t lane) {
        std::memcpy(tmem.at(to.lane + lane, to.column + 4 * chunk), plain, 16);
      });
    }
  }
}

void note_accesses(Execution& x, int lane, const std::vector<Cta*>& ctas,
                   const std::vector<ByteRange>& ranges, TmemAddress to, const CopyDetail& detail) {
  if (!x.is_observed()) return;
  const AsyncOp op = x.issue(lane, AsyncKind::kTcgen05);
  const uint32_t columns = detail.row_bytes() / 4;
  for (Cta* cta : ctas) {
    for (const ByteRange& range : ranges)
      x.tell([&](Observer& o) {
        o.async_shared(op, x, *cta, range.offset, range.bytes, AccessKind::kRead);
      });
    const auto write = [&](uint32_t first_lane, uint32_t lanes) {
      x.tell([&](Observer& o) {
        o.async_tmem(op, x, *cta, first_lane, lanes, to.column, columns, AccessKind::kWrite);
      });
    };
    if (detail.shape == CopyShape::k4x256b) {
      for (uint32_t row = 0; row < 4; ++row) write(to.lane + 32 * row, 1);
    } else {
      write(0, TensorMemory::kLanes);
    }
  }
}

void copy(Execution& x, const Insn& insn, const CopyDetail& detail, int lane) {
  const std::vector<Cta*> ctas = ctas_of(x, detail.cta_group, "tcgen05.cp");
  const SmemDescriptor source =
      decode_tcgen05_descriptor(x.source<uint64_t>(insn.slot[0])[lane], "s-desc");
  require_step_in_row(source, detail.row_bytes(), "s-desc");
  const auto to = TmemAddress::of(detail.destination.bits(x, lane));
  const uint32_t last_lane = detail.shape == CopyShape::k4x256b ? 31 : 0;
  if (to.lane > last_lane)
    x.fault(fmt::format("tcgen05.cp to lane {}; must be at most {} for its shape (R14)", to.lane,
                        last_lane),
            lane);
  const std::vector<ByteRange> ranges =
      k_major_footprint(source, detail.rows(), detail.row_bytes());
  for (Cta* cta : ctas) {
    tensor_memory(*cta).check_columns(to.column, detail.row_bytes() / 4, "tcgen05.cp");
    for (const ByteRange& range : ranges) cta->shared.check_range(range.offset, range.bytes);
  }
  note_accesses(x, lane, ctas, ranges, to, detail);
  ++x.machine.stats().async_operations;
  x.cluster.async.submit(channel_of(x, lane), [ctas, source, to, &detail] {
    for (Cta* cta : ctas) copy_now(*cta, source, to, detail);
  });
}

Outcome execute_copy(Execution& x, const Insn& insn) {
  const auto& detail = static_cast<const CopyDetail&>(*insn.detail);
  x.for_lanes([&](int lane) { copy(x, insn, detail, lane); });
  return Outcome::kNext;
}

CopyShape decode_shape(Decode& d) {
  Modifiers& m = d.modifiers();
  const int shape = m.take_one_of({"128x256b", "4x256b", "128x128b", "64x128b", "32x128b"});
  const int multicast = m.take_one_of({"warpx2::02_13", "warpx2::01_23", "warpx4"});
  if (shape < 0) d.fail("tcgen05.cp without a shape that is known");
  if (shape == 3 && multicast != 0 && multicast != 1)
    d.fail("tcgen05.cp.64x128b needs .warpx2::02_13 or .warpx2::01_23");
  if (shape == 4 && multicast != 2) d.fail("tcgen05.cp.32x128b needs .warpx4");
  if (shape < 3 && multicast >= 0) d.fail("only .64x128b and .32x128b of tcgen05.cp have .warpx");
  if (shape == 3) return multicast == 0 ? CopyShape::k64x128b0213 : CopyShape::k64x128b0123;
  return shape == 4 ? CopyShape::k32x128b : static_cast<CopyShape>(shape);
}

}  // namespace

void decode_tcgen05_cp(Decode& d) {
  auto* detail = d.make_detail<CopyDetail>();
  detail->cta_group = take_cta_group(d);
  detail->shape = decode_shape(d);
  Modifiers& m = d.modifiers();
  const bool expands = m.take("b8x16");
  const int format = m.take_one_of({"b4x16_p64", "b6x16_p32"});
  if (expands != (format >= 0)) d.fail("tcgen05.cp needs both .b8x16 and the source format");
  if (expands) detail->format = format == 0 ? SourceFormat::k4Bit : SourceFormat::k6Bit;
  d.expect_operands(2, 2);
  detail->destination = tmem_operand(d, 0);
  d.insn().slot[0] = d.source(1, Type::kB64);
  d.insn().execute = execute_copy;
}

}  // namespace ptxsim
