// wgmma.mma_async: decoding, and what is checked when a warp issues it. Single-bit forms are not
// modelled.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "insn/tensor/wgmma.hpp"
#include "machine/findings.hpp"

namespace ptxsim {
namespace {

// R8. PTX leaves the behaviour undefined, today's ptxas makes it defined: it puts the fence in and
// says so (C7519).
void warn_of_unfenced(const Execution& x) {
  add_finding(x, -1,
              {8, Severity::kWarning,
               "a register of D or A of wgmma.mma_async was written after the last wgmma.fence",
               "wgmma.fence between the write and wgmma.mma_async",
               "fence after the last write; ptxas puts a fence in, which the PTX manual does not "
               "promise"});
}

// Registers written after the last wgmma.fence, or never fenced (PTX ISA 9.0, "wgmma.fence", which
// names those of D and A; nvcc moves sparsity metadata into its register behind the fence).
void check_fenced(Execution& x, const WgmmaDetail& detail, const WgmmaState::PerWarp& warp) {
  if (!warp.fenced) x.fault("wgmma.mma_async before any wgmma.fence of this warp (R8)");
  const auto& unfenced = x.warp.unfenced;
  for (const auto* list : {&detail.d, &detail.a})
    for (const Slot slot : *list)
      if (std::find(unfenced.begin(), unfenced.end(), slot.at) != unfenced.end())
        return warn_of_unfenced(x);
}

// Registers of D may be in use by earlier operations, which the hardware runs in order; those of A
// may not.
void check_and_own(Execution& x, const WgmmaDetail& detail, uint64_t number) {
  for (const Slot slot : detail.a)
    for (const Warp::OwnedRange& owned : x.warp.owned)
      if (!owned.reads_allowed && slot.at < owned.at + owned.bytes && owned.at < slot.at + 128)
        x.fault("a register of A is a result of an unfinished operation; wait for it first (R8)");
  const int statement = static_cast<int>(x.insn->statement);
  for (const Slot slot : detail.d)
    x.warp.owned.push_back({slot.at, 128, wgmma_owner(number), false, statement});
  for (const Slot slot : detail.a)
    x.warp.owned.push_back({slot.at, 128, wgmma_owner(number), true, statement});
}

// k elements of K in so many bytes of a row.
std::vector<ByteRange> footprint(const SmemDescriptor& d, uint32_t rows, uint32_t k, uint32_t bytes,
                                 bool mn_major) {
  return mn_major ? mn_major_footprint(d, rows * bytes / k, k) : k_major_footprint(d, rows, bytes);
}

SmemDescriptor descriptor(Execution& x, uint64_t bits, const char* name, uint32_t row_bytes,
                          bool mn_major) {
  const SmemDescriptor d = decode_wgmma_descriptor(bits, name);
  if (!mn_major) require_step_in_row(d, row_bytes, name);
  if (d.start % 16 != 0)
    x.fault(fmt::format("{}: start address 0x{:x} must be a multiple of 16 (R14)", name, d.start));
  return d;
}

void note_accesses(Execution& x, const WgmmaDetail& detail, WgmmaOperation& operation) {
  std::vector<ByteRange> ranges =
      footprint(operation.b, detail.n, detail.k, detail.b_bytes(), detail.b_mn_major);
  if (detail.a.empty()) {
    const std::vector<ByteRange> a =
        footprint(operation.a, kWgmmaRows, detail.stored_k(), kWgmmaKBytes, detail.a_mn_major);
    ranges.insert(ranges.end(), a.begin(), a.end());
  }
  for (const ByteRange& range : ranges) x.cta.shared.check_range(range.offset, range.bytes);
  if (!x.is_observed()) return;
  const AsyncOp op = x.issue(x.first_lane(), AsyncKind::kWgmma);
  for (const ByteRange& range : ranges)
    x.tell([&](Observer& o) {
      o.async_shared(op, x, x.cta, range.offset, range.bytes, AccessKind::kRead);
    });
  operation.ops[x.warp.index % kWarpgroupWarps] = op;
}

// What this warp says must be what the warps before it said.
void fill_in(Execution& x, const WgmmaDetail& detail, WgmmaOperation& operation) {
  const uint64_t b = x.uniform<uint64_t>(detail.b_descriptor, "the descriptor of B");
  const uint64_t a =
      detail.a.empty() ? x.uniform<uint64_t>(detail.a_descriptor, "the descriptor of A") : 0;
  const uint32_t scale_d = x.predicate(detail.scale_d, detail.scale_d_negated);
  if (scale_d != 0 && scale_d != 0xffffffffu)
    x.fault("scale-d differs between the lanes of a warp (R12)");
  if (operation.issued != 0 && (operation.detail != &detail || operation.a_bits != a ||
                                operation.b_bits != b || operation.accumulate != (scale_d != 0)))
    x.fault(
        "wgmma.mma_async differs from what another warp of the warpgroup issued at this point "
        "(R12)");
  operation.detail = &detail;
  operation.a_bits = a;
  operation.b_bits = b;
  operation.accumulate = scale_d != 0;
  operation.b = descriptor(x, b, "b-desc", detail.b_bytes(), detail.b_mn_major);
  if (detail.a.empty()) operation.a = descriptor(x, a, "a-desc", kWgmmaKBytes, detail.a_mn_major);
  if (detail.sparse.present())
    std::copy_n(x.source<uint32_t>(detail.sparse.metadata), kWarpSize,
                operation.metadata[x.warp.index % kWarpgroupWarps].begin());
}

Outcome issue(Execution& x, const Insn& insn) {
  const auto& detail = static_cast<const WgmmaDetail&>(*insn.detail);
  if (x.cta.warps.size() < (x.warp.index / kWarpgroupWarps + 1) * kWarpgroupWarps)
    x.fault(fmt::format("wgmma in warp {} of {}; needs four warps from a multiple of 4 on (R12)",
                        x.warp.index, x.cta.warps.size()));
  WgmmaState::Group& group = x.cta.state<WgmmaState>().groups[x.warp.index / kWarpgroupWarps];
  const uint32_t rank = x.warp.index % kWarpgroupWarps;
  WgmmaState::PerWarp& warp = group.warps[rank];
  check_fenced(x, detail, warp);
  const uint64_t number = warp.issued++;
  if (number == group.operations.size())
    group.operations.push_back(std::make_shared<WgmmaOperation>());
  const std::shared_ptr<WgmmaOperation> operation = group.operations[number];
  fill_in(x, detail, *operation);
  check_and_own(x, detail, number);
  note_accesses(x, detail, *operation);
  operation->registers[rank] = x.registers;
  operation->issued |= 1u << rank;
  if (operation->issued != (1u << kWarpgroupWarps) - 1) return Outcome::kNext;
  Stats& stats = x.machine.stats();
  ++stats.mma_instructions;
  stats.mma_multiply_adds += uint64_t{kWgmmaRows} * detail.n * detail.stored_k();
  if (group.channel == 0) group.channel = x.cluster.async.new_channel();
  const bool exact = x.machine.options().mma == MmaMode::kExact;
  x.cluster.async.submit(group.channel, [&cta = x.cta, operation, exact] {
    compute(cta, *operation, exact);
    operation->done = true;
    cta.cluster.changed();
  });
  return Outcome::kNext;
}

struct Kind {
  Type type;
  Element element;
  uint32_t k;  // of a dense A
};
constexpr Kind kKinds[] = {{Type::kF16, Element::kF16, 16},
                           {Type::kBf16, Element::kBf16, 16},
                           {Type::kTf32, Element::kTf32, 8},
                           {Type::kE4m3, Element::kE4m3, 32},
                           {Type::kE5m2, Element::kE5m2, 32}};

const Kind* find_kind(Type type) {
  const auto found = std::find_if(std::begin(kKinds), std::end(kKinds),
                                  [&](const Kind& k) { return k.type == type; });
  return found == std::end(kKinds) ? nullptr : found;
}

// ".m64n128k16"
void take_shape(Decode& d, WgmmaDetail& detail) {
  const std::optional<std::string> text = d.modifiers().take_prefix("m64n");
  if (!text) d.fail("wgmma.mma_async needs a shape .m64nNkK");
  const char* end = text->data() + text->size();
  const auto n = std::from_chars(text->data(), end, detail.n);
  const bool has_k = n.ec == std::errc() && n.ptr != end && *n.ptr == 'k';
  if (!has_k || std::from_chars(n.ptr + 1, end, detail.k).ptr != end || detail.n % 8 != 0 ||
      detail.n < 8 || detail.n > 256)
    d.fail(fmt::format("shape .m64n{}: N must be a multiple of 8 from 8 to 256", *text));
}

// `dense_k`: K of the shape, halved with a sparse A.
void take_types(Decode& d, WgmmaDetail& detail, uint32_t dense_k) {
  const Type result = d.modifiers().take_type(), a = d.modifiers().take_type(),
             b = d.modifiers().take_type();
  const auto is_8 = [](Type t) { return t == Type::kS8 || t == Type::kU8; };
  if (is_8(a) && is_8(b) && result == Type::kS32) {
    detail.integer = true;
    detail.a_signed = a == Type::kS8;
    detail.b_signed = b == Type::kS8;
    detail.saturate = d.modifiers().take("satfinite");
    if (dense_k != 32 || (detail.n > 32 && detail.n % 16 != 0))
      d.fail("this shape does not exist for 8-bit integers");
    return;
  }
  const Kind* kind_a = find_kind(a);
  const Kind* kind_b = find_kind(b);
  const bool fp8 = kind_a != nullptr && kind_a->k == 32;
  if (kind_a == nullptr || kind_b == nullptr || (!fp8 && a != b) || (fp8 && kind_b->k != 32) ||
      kind_a->k != dense_k ||
      (result != Type::kF32 && !(result == Type::kF16 && (a == Type::kF16 || fp8))))
    d.fail(fmt::format("wgmma.mma_async of .{}.{}.{} with K = {} is not known", name_of(result),
                       name_of(a), name_of(b), detail.k));
  detail.a_type = kind_a->element;
  detail.b_type = kind_b->element;
  detail.rules.fraction_bits = fp8 ? 13 : 25;
  detail.rules.accumulator = result == Type::kF16 ? Accumulator::kF16
                             : fp8                ? Accumulator::kF32Fraction13
                                                  : Accumulator::kF32;
}

// 1 or -1: true when the operand is negated.
bool take_sign(Decode& d, size_t index) {
  const std::optional<uint64_t> sign = d.immediate(index);
  if (!sign || (*sign != 1 && static_cast<int64_t>(*sign) != -1))
    d.fail("imm-scale must be 1 or -1");
  return *sign != 1;
}
bool take_transpose(Decode& d, size_t index) {
  const std::optional<uint64_t> transpose = d.immediate(index);
  if (!transpose || *transpose > 1) d.fail("imm-trans must be 0 or 1");
  return *transpose == 1;
}

// D, A and B; true when A is in registers.
bool take_matrices(Decode& d, WgmmaDetail& detail) {
  const bool f16_result = detail.rules.accumulator == Accumulator::kF16 && !detail.integer;
  const std::vector<const Operand*> results = d.elements(0);
  if (results.size() != detail.n / (f16_result ? 4 : 2))
    d.fail(fmt::format("D has {} registers; this shape needs {}", results.size(),
                       detail.n / (f16_result ? 4 : 2)));
  for (const Operand* r : results) detail.d.push_back(d.destination(*r, Type::kB32));
  const bool a_in_registers = d.operand(1).kind == Operand::Kind::kVector;
  if (a_in_registers) {
    if (d.elements(1).size() != 4)
      d.fail(fmt::format("A has {} registers; needs 4", d.elements(1).size()));
    for (const Operand* r : d.elements(1)) detail.a.push_back(d.source(*r, Type::kB32));
  } else {
    detail.a_descriptor = d.source(1, Type::kB64);
  }
  detail.b_descriptor = d.source(2, Type::kB64);
  return a_in_registers;
}

}  // namespace

void decode_wgmma_mma(Decode& d) {
  auto* detail = d.make_detail<WgmmaDetail>();
  const bool is_sparse = d.modifiers().take("sp");
  take_shape(d, *detail);
  const uint32_t dense_k = is_sparse ? detail->k / 2 : detail->k;
  take_types(d, *detail, dense_k);
  const bool a_in_registers = take_matrices(d, *detail);
  size_t next = 3;
  if (is_sparse) {
    take_metadata(d, next, detail->k, kWgmmaKBytes * 8 / dense_k, detail->sparse);
    next += 2;
  }
  detail->scale_d = d.predicate(next);
  detail->scale_d_negated = d.is_negated(next);
  const bool may_transpose = !detail->integer && dense_k == 16;
  const size_t count = next + (detail->integer ? 1 : !may_transpose ? 3 : a_in_registers ? 4 : 5);
  d.expect_operands(count, count);
  if (!detail->integer) {
    detail->negate_a = take_sign(d, next + 1);
    detail->negate_b = take_sign(d, next + 2);
  }
  if (may_transpose) {
    if (!a_in_registers) detail->a_mn_major = take_transpose(d, next + 3);
    detail->b_mn_major = take_transpose(d, count - 1);
  }
  d.insn().may_touch_owned = d.insn().owns_registers = true;
  d.insn().execute = issue;
}

}  // namespace ptxsim
