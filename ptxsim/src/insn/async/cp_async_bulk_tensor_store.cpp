// cp.async.bulk.tensor and cp.reduce.async.bulk.tensor out of shared memory (PTX ISA 9.0,
// "cp.async.bulk.tensor", "cp.reduce.async.bulk.tensor"). What lies out of bounds is not written,
// but for the rest of 16 bytes that a row ends in.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "insn/async/cp_async_bulk_tensor.hpp"
#include "insn/memory/atom_red.hpp"

namespace ptxsim {
namespace {

struct TensorStoreDetail : Detail {
  TensorOperand tensor;
  SharedOperand source;
  bool reduces = false;
  AtomicOp op = AtomicOp::kAdd;
};

// An H200 clips the rows of stores and reductions in steps of 16 bytes: where the extent of the
// first dimension ends inside 16 bytes, it writes all of them (measured with u8, u16 and u32, with
// and without swizzles; loads are clipped to the element).
void end_rows_at_16_bytes(Box& box) {
  for (size_t i = 0; i + 1 < box.runs.size(); ++i) {
    BoxRun &run = box.runs[i], &next = box.runs[i + 1];
    if (!run.in_bounds || run.bytes % 16 == 0 || next.in_bounds) continue;
    const uint32_t more = std::min(16 - run.bytes % 16, next.bytes);
    run.bytes += more;
    next.bytes -= more;
    next.dense += more;
  }
}

// The in-bounds bytes of the box, at their dense offsets.
std::vector<std::byte> read_box(const TensorBox& tensor, Cta& cta, uint32_t offset) {
  std::vector<std::byte> bytes(tensor.box.shared_bytes);
  for (const BoxRun& run : tensor.box.runs) {
    if (!run.in_bounds) continue;
    for_pieces(tensor.map, run, offset, [&](uint32_t from, uint32_t to, uint32_t count) {
      check_source(cta, from, count);
      std::memcpy(bytes.data() + run.dense + to, cta.shared.at(from), count);
    });
  }
  return bytes;
}

void write_box(const TensorBox& tensor, GlobalMemory& global, const std::vector<std::byte>& bytes,
               UpdateElement update) {
  const uint32_t element = element_bits(tensor.map.type) / 8;
  for (const BoxRun& run : tensor.box.runs) {
    if (!run.in_bounds) continue;
    if (update == nullptr) {
      std::memcpy(global.write(run.global, run.bytes), bytes.data() + run.dense, run.bytes);
      continue;
    }
    global.read(run.global, run.bytes);  // that somebody has written them
    std::byte* memory = global.write(run.global, run.bytes);
    for (uint32_t i = 0; i < run.bytes; i += element)
      update(memory + i, bytes.data() + run.dense + i, nullptr);
  }
}

void check_storable(const Execution& x, const TensorStoreDetail& detail, const TensorBox& tensor,
                    int lane) {
  if (is_packed_with_gaps(tensor.map.type))
    x.fault("stores of the ALIGN16B types: 16U4 does not exist, 16U6 is not modelled", lane);
  if (detail.reduces && tensor.map.type == TensorMapType::k16U4Align8)
    x.fault("there are no reductions of packed 4-bit types", lane);
  // "Restriction on Tensor Copy instructions"
  const TensorMap& map = tensor.map;
  for (uint32_t i = 0; map.mode == TensorMapMode::kIm2col && i < pixel_dimensions(map); ++i)
    if (map.pixels.lower[i] < 0 || map.pixels.upper[i] > 0)
      x.fault(fmt::format("a store of pixels whose box begins at {} and ends {} pixels behind the "
                          "image; must lie "
                          "inside it (R14)",
                          map.pixels.lower[i], map.pixels.upper[i]),
              lane);
  const uint32_t axes = detail.tensor.mode == BoxMode::kFourRows ? 5 : detail.tensor.dimensions;
  for (uint32_t i = 0; i < axes; ++i) {
    const int32_t at = x.source<int32_t>(detail.tensor.coordinates[i])[lane];
    if (at < 0)
      x.fault(
          fmt::format("coordinate {} of a tensor store is {}; must not be negative (R14)", i, at),
          lane);
  }
}

// The type of a reduction's elements is the map's; and, or, xor take it as bits.
UpdateElement update_of(const Execution& x, const TensorStoreDetail& detail,
                        const TensorBox& tensor, int lane) {
  if (!detail.reduces) return nullptr;
  const bool bitwise =
      detail.op == AtomicOp::kAnd || detail.op == AtomicOp::kOr || detail.op == AtomicOp::kXor;
  Type type = Type::kNone;
  switch (tensor.map.type) {
    case TensorMapType::kU32:
      type = bitwise ? Type::kB32 : Type::kU32;
      break;
    case TensorMapType::kS32:
      type = bitwise ? Type::kB32 : Type::kS32;
      break;
    case TensorMapType::kU64:
      type = bitwise ? Type::kB64 : Type::kU64;
      break;
    case TensorMapType::kS64:
      type = bitwise ? Type::kB64 : Type::kS64;
      break;
    case TensorMapType::kF16:
      type = Type::kF16;
      break;
    case TensorMapType::kBf16:
      type = Type::kBf16;
      break;
    case TensorMapType::kF32:
    case TensorMapType::kF32Ftz:
      type = Type::kF32;
      break;
    default:
      break;
  }
  // Only the .FTZ type flushes subnormals, as with cp.reduce.async.bulk (cp_async_bulk.cpp).
  const AtomicUpdate updates = atomic_update(detail.op, type, true);
  const bool flushes = tensor.map.type == TensorMapType::kF32Ftz;
  const UpdateElement update = flushes ? updates.global : updates.shared;
  if (update == nullptr || (type == Type::kS64 && detail.op == AtomicOp::kAdd))
    x.fault(fmt::format("this reduction does not exist for tensor map type {}",
                        static_cast<uint32_t>(tensor.map.type)),
            lane);
  return update;
}

Outcome execute_store(Execution& x, const Insn& insn) {
  const auto& detail = static_cast<const TensorStoreDetail&>(*insn.detail);
  x.for_lanes([&](int lane) {
    const auto box = std::make_shared<TensorBox>(*tensor_box(x, detail.tensor, lane));
    end_rows_at_16_bytes(box->box);
    const std::shared_ptr<const TensorBox> tensor = box;
    check_storable(x, detail, *tensor, lane);
    const UpdateElement update = update_of(x, detail, *tensor, lane);
    const uint32_t offset =
        locate(x, detail.source, lane, tensor->box.shared_bytes, kTensorAlignment).offset;
    Store store;
    store.offset = offset;
    store.shared_bytes = tensor->box.shared_bytes;
    store.global_bytes = bytes_in_bounds(tensor->box);
    if (detail.reduces) store.access = AccessKind::kAtomic;
    store.global = global_part(x, *tensor);
    store.read = [tensor, offset](Cta& cta) { return read_box(*tensor, cta, offset); };
    store.write = [tensor, update](GlobalMemory& global, const std::vector<std::byte>& bytes) {
      write_box(*tensor, global, bytes, update);
    };
    start_store(x, lane, std::move(store));
  });
  return Outcome::kNext;
}

void decode_store(Decode& d, TensorStoreDetail& detail, const BoxModeNames& modes) {
  if (!d.modifiers().take("global") || !d.modifiers().take("shared::cta"))
    d.fail("a tensor store goes from .shared::cta to .global");
  detail.tensor = take_tensor_operand(d, 0, modes);
  detail.source = shared_operand(d, 1, SharedForm::kCta);
  size_t next = 2;
  take_cache_hint(d, next);
  d.expect_operands(next, next);
  d.insn().execute = execute_store;
}

}  // namespace

void decode_tensor_store(Decode& d) {
  decode_store(d, *d.make_detail<TensorStoreDetail>(),
               {"tile", "tile::scatter4", "im2col_no_offs", "", ""});
}

void decode_tensor_reduce(Decode& d) {
  auto* detail = d.make_detail<TensorStoreDetail>();
  detail->reduces = true;
  detail->op = take_atomic_op(d);
  if (detail->op == AtomicOp::kExch || detail->op == AtomicOp::kCas)
    d.fail("bulk reductions have no .exch or .cas");
  if (!d.modifiers().take("bulk_group")) d.fail("a tensor reduction needs .bulk_group");
  decode_store(d, *detail, {"tile", "", "im2col_no_offs", "", ""});
}

}  // namespace ptxsim
