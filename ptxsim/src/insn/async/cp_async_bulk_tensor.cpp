// cp.async.bulk.tensor into shared memory, and its prefetch (PTX ISA 9.0, "cp.async.bulk.tensor").
// Not modelled: interleaved layouts, which the manual describes by the names of their dimensions
// alone.
#include "insn/async/cp_async_bulk_tensor.hpp"

#include <fmt/format.h>

#include <cstring>

namespace ptxsim {
namespace {

struct TensorLoadDetail : Detail {
  TensorOperand tensor;
  LoadRoute route;
};

// The whole box, out-of-bounds parts filled.
void write_box(const TensorBox& tensor, Cta& cta, uint32_t offset) {
  constexpr uint32_t kMaxRowBytes = 256 * 8;
  std::array<std::byte, kMaxRowBytes> row;
  for (const BoxRun& run : tensor.box.runs) {
    if (run.in_bounds) {
      std::memcpy(row.data(), cta.machine.global().read(run.global, run.bytes), run.bytes);
      convert_loaded(tensor.map, row.data(), run.bytes);
    } else {
      fill_out_of_bounds(tensor.map, row.data(), run.bytes);
    }
    for_pieces(tensor.map, run, offset, [&](uint32_t to, uint32_t from, uint32_t bytes) {
      std::memcpy(cta.shared.at(to), row.data() + from, bytes);
      cta.shared.mark_written(to, bytes);
    });
  }
}

// The gaps of packed types, and of rows shorter than the swizzle's span, keep what they hold.
void poison_box(const TensorBox& tensor, Cta& cta, uint32_t offset) {
  if (tensor.box.shared_bytes == tensor.box.copied_bytes)
    return cta.shared.poison(offset, tensor.box.shared_bytes);
  for (const BoxRun& run : tensor.box.runs)
    for_pieces(tensor.map, run, offset,
               [&](uint32_t to, uint32_t, uint32_t bytes) { cta.shared.poison(to, bytes); });
}

Outcome execute_load(Execution& x, const Insn& insn) {
  const auto& detail = static_cast<const TensorLoadDetail&>(*insn.detail);
  x.for_lanes([&](int lane) {
    const auto tensor = tensor_box(x, detail.tensor, lane);
    const auto targets =
        route_load(x, lane, detail.route, tensor->box.shared_bytes, kTensorAlignment);
    x.machine.stats().l2_read_bytes += bytes_in_bounds(tensor->box);
    start_load(x, lane, targets,
               {tensor->box.shared_bytes, tensor->box.copied_bytes, AccessKind::kWrite,
                [tensor](Cta& cta, uint32_t offset) { write_box(*tensor, cta, offset); },
                [tensor](Cta& cta, uint32_t offset) { poison_box(*tensor, cta, offset); }, nullptr,
                global_part(x, *tensor)});
  });
  return Outcome::kNext;
}

Outcome execute_prefetch(Execution& x, const Insn& insn) {
  const auto& detail = static_cast<const TensorLoadDetail&>(*insn.detail);
  x.for_lanes([&](int lane) { tensor_box(x, detail.tensor, lane); });
  return Outcome::kNext;
}

// The box of a lane, by the mode of its copy.
Box walk(const Execution& x, const TensorMap& map, const TensorOperand& operand,
         std::span<const int32_t> at, int lane) {
  std::array<uint16_t, 3> im2col{};
  for (size_t i = 0; i < im2col.size(); ++i)
    if (operand.im2col[i].present()) im2col[i] = x.source<uint16_t>(operand.im2col[i])[lane];
  switch (operand.mode) {
    case BoxMode::kTile:
      return walk_box(map, at.first(operand.dimensions));
    case BoxMode::kFourRows:
      return walk_four_rows(map, at[0], at.subspan<1, 4>());
    case BoxMode::kPixels:
      return walk_pixels(map, at.first(operand.dimensions), im2col);
    case BoxMode::kWide:
    case BoxMode::kWide128:
      break;
  }
  return walk_wide_pixels(map, at.first(operand.dimensions),
                          {im2col[0], im2col[1], operand.mode == BoxMode::kWide128});
}

}  // namespace

TensorOperand take_tensor_operand(Decode& d, size_t index, const BoxModeNames& modes) {
  const int dimensions = d.modifiers().take_one_of({"1d", "2d", "3d", "4d", "5d"});
  if (dimensions < 0) d.fail("a tensor copy needs its dimension: .1d .2d .3d .4d .5d");
  TensorOperand operand;
  operand.dimensions = static_cast<uint32_t>(dimensions) + 1;
  for (size_t mode = 0; mode < modes.size(); ++mode)
    if (modes[mode][0] != '\0' && d.modifiers().take(modes[mode]))
      operand.mode = static_cast<BoxMode>(mode);
  if (operand.mode >= BoxMode::kPixels && operand.dimensions < 3)
    d.fail("im2col modes need .3d, .4d or .5d");
  const Decode::Address address = d.address(index);
  if (address.base_bytes != 8)
    d.fail("the address of a tensor map is generic and must have 64 bits");
  operand.base = address.base;
  operand.offset = address.offset;
  if (address.variable != nullptr && address.variable->space == Space::kParam)
    operand.offset += static_cast<int64_t>(kParamWindow);
  const size_t needed = operand.mode == BoxMode::kFourRows ? 5 : operand.dimensions;
  if (address.more.size() != 1 || address.more[0]->kind != Operand::Kind::kVector ||
      address.more[0]->parts.size() != needed)
    d.fail(fmt::format("needs [map, {{{} coordinates}}]", needed));
  for (size_t i = 0; i < needed; ++i)
    operand.coordinates[i] = d.source(address.more[0]->parts[i], Type::kS32);
  return operand;
}

void take_im2col_operand(Decode& d, size_t& index, TensorOperand& operand) {
  if (operand.mode < BoxMode::kPixels) return;
  const size_t needed = operand.mode == BoxMode::kPixels ? operand.dimensions - 2 : 2;
  const bool is_vector = d.operand(index).kind == Operand::Kind::kVector;
  const auto elements = d.elements(index++);
  if (!is_vector || elements.size() != needed)
    d.fail(fmt::format("needs a vector of {} behind the mbarrier or the map", needed));
  for (size_t i = 0; i < needed; ++i) operand.im2col[i] = d.source(*elements[i], Type::kU16);
}

std::shared_ptr<const TensorBox> tensor_box(const Execution& x, const TensorOperand& operand,
                                            int lane) {
  const uint64_t address = raw_address(x, operand.base, 8, operand.offset, lane);
  auto tensor = std::make_shared<TensorBox>();
  tensor->map_address = address;
  tensor->map = read_tensor_map(x.machine, address, lane);
  if (tensor->map.rank != operand.dimensions)
    x.fault(fmt::format("tensor map of rank {} in an instruction of {} dimensions (R14)",
                        tensor->map.rank, operand.dimensions),
            lane);
  std::array<int32_t, 5> at{};
  for (size_t i = 0; i < at.size(); ++i)
    if (operand.coordinates[i].present()) at[i] = x.source<int32_t>(operand.coordinates[i])[lane];
  tensor->box = walk(x, tensor->map, operand, at, lane);
  return tensor;
}

uint32_t bytes_in_bounds(const Box& box) {
  uint32_t bytes = 0;
  for (const BoxRun& run : box.runs) bytes += run.in_bounds ? run.bytes : 0;
  return bytes;
}

GlobalPart global_part(const Execution& x, const TensorBox& tensor) {
  GlobalPart part;
  if (!x.cluster.observers.any_of_global_accesses()) return part;
  part.tensor_map = tensor.map_address;
  part.ranges.reserve(tensor.box.runs.size());
  for (const BoxRun& run : tensor.box.runs)
    if (run.in_bounds) part.ranges.push_back({run.global, run.bytes});
  return part;
}

void decode_tensor_copy(Decode& d) {
  Modifiers& modifiers = d.modifiers();
  if (modifiers.take("bulk_group")) return decode_tensor_store(d);
  if (!modifiers.take("mbarrier::complete_tx::bytes"))
    d.fail("needs a completion mechanism: .mbarrier::complete_tx::bytes or .bulk_group");
  const int space = modifiers.take_one_of({"shared::cluster", "shared::cta"});
  if (space < 0 || !modifiers.take("global"))
    d.fail("a tensor load goes from .global to .shared::cluster or .shared::cta");
  const SharedForm form = space == 0 ? SharedForm::kCluster : SharedForm::kCta;
  auto* detail = d.make_detail<TensorLoadDetail>();
  detail->tensor = take_tensor_operand(d, 1, kLoadModes);
  detail->route.destination = shared_operand(d, 0, form);
  detail->route.pair = modifiers.take_one_of({"cta_group::1", "cta_group::2"}) == 1;
  // With .cta_group::2 the mbarrier may be the peer's, also when the destination is .shared::cta.
  detail->route.barrier = shared_operand(d, 2, detail->route.pair ? SharedForm::kCluster : form);
  size_t next = 3;
  take_im2col_operand(d, next, detail->tensor);
  if (modifiers.take("multicast::cluster")) {
    if (form == SharedForm::kCta)
      d.fail(".multicast::cluster needs a destination in .shared::cluster");
    detail->route.multicast = d.source(next++, Type::kB16);
  }
  take_cache_hint(d, next);
  d.expect_operands(next, next);
  d.insn().execute = execute_load;
}

void decode_tensor_prefetch(Decode& d) {
  if (!d.modifiers().take("L2") || !d.modifiers().take("global"))
    d.fail("a bulk prefetch needs .L2.global");
  auto* detail = d.make_detail<TensorLoadDetail>();
  detail->tensor = take_tensor_operand(d, 0, kLoadModes);
  size_t next = 1;
  take_im2col_operand(d, next, detail->tensor);
  take_cache_hint(d, next);
  d.expect_operands(next, next);
  d.insn().execute = execute_prefetch;
}

}  // namespace ptxsim
