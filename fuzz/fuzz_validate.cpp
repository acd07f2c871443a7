// validate() and make_plan() on hostile problems. What validate() accepts and is small is run with
// buffers of exactly the size that the problem demands: any access beyond it is AddressSanitizer's
// find.
#include <fuzzer/FuzzedDataProvider.h>

#include <cstdlib>
#include <limits>
#include <memory>
#include <vector>

#include "core/enum_table.hpp"
#include "core/problem.hpp"
#include "core/resolved_activation.hpp"
#include "dualgemm/dualgemm.hpp"

namespace {

using namespace dualgemm;  // NOLINT(google-build-using-namespace)

constexpr int64_t kMaxOperandBytes = 1 << 14;
constexpr int64_t kMaxFlops = 1 << 20;

void require(bool condition) {
  if (!condition) std::abort();
}

// Mostly small, sometimes anything.
int64_t extent(FuzzedDataProvider& data, int64_t most) {
  if (data.ConsumeIntegralInRange(0, 15) != 0) return data.ConsumeIntegralInRange<int64_t>(0, most);
  return data.ConsumeIntegral<int64_t>();
}

int64_t stride(FuzzedDataProvider& data, int64_t least) {
  switch (data.ConsumeIntegralInRange(0, 7)) {
    case 0:
      return data.ConsumeIntegral<int64_t>();
    case 1:
    case 2: {
      int64_t value = 0;
      const int64_t extra = data.ConsumeIntegralInRange<int64_t>(-2, 64);
      return __builtin_add_overflow(least, extra, &value) ? least : value;
    }
    default:
      return 0;
  }
}

// Any of the table, now and then the number after the last one.
template <class Enum>
Enum enumerator(FuzzedDataProvider& data) {
  return static_cast<Enum>(data.ConsumeIntegralInRange<int32_t>(
      0, core::kEnumCount<Enum> - 1 + (data.ConsumeIntegralInRange(0, 63) == 0 ? 1 : 0)));
}

Matrix matrix(FuzzedDataProvider& data, int64_t rows, int64_t cols, bool weights) {
  Matrix out;
  if (!weights || data.ConsumeIntegralInRange(0, 31) == 0) {
    out.type = enumerator<DataType>(data);
  }
  out.scale_layout = enumerator<ScaleLayout>(data);
  out.ld = stride(data, cols);
  int64_t tight = 0;
  if (!__builtin_mul_overflow(rows, out.ld == 0 ? cols : out.ld, &tight)) {
    out.batch_stride = stride(data, tight);
  }
  if (out.type != DataType::kE2M1) return out;
  if (out.scale_layout == ScaleLayout::kLinear) out.scale_ld = stride(data, cols / kSfVec);
  const auto span = checked_scale_span(out.scale_layout, rows, cols / kSfVec, out.scale_ld);
  if (span) out.scale_batch_stride = stride(data, *span);
  return out;
}

Activation activation(FuzzedDataProvider& data) {
  Activation act;
  act.kind = enumerator<ActivationKind>(data);
  const bool wild = data.ConsumeIntegralInRange(0, 15) == 0;
  if (wild || core::takes_parameters(act.kind)) {
    if (data.ConsumeBool()) act.alpha = data.ConsumeFloatingPoint<float>();
    if (data.ConsumeBool()) act.beta = data.ConsumeFloatingPoint<float>();
    if (data.ConsumeBool())
      act.limit = wild && data.ConsumeBool() ? std::numeric_limits<float>::quiet_NaN()
                                             : data.ConsumeFloatingPoint<float>();
  }
  return act;
}

// D's strides are those of n columns: refused, or more than enough, unless they are tight.
void side_by_side(FuzzedDataProvider& data, Problem& out) {
  out.combine = enumerator<Combine>(data);
  if (data.ConsumeBool()) out.act = {};
  out.up_column = data.ConsumeBool() ? extent(data, 40) : 0;
  out.residual = data.ConsumeBool();
  out.bias_stride = stride(data, out.n);
}

Problem problem(FuzzedDataProvider& data) {
  Problem out;
  out.m = extent(data, 40);
  out.n = extent(data, 40);
  out.k = data.ConsumeBool() ? 16 * data.ConsumeIntegralInRange<int64_t>(1, 8) : extent(data, 160);
  out.l = extent(data, 4);
  out.grouping = enumerator<Grouping>(data);
  out.a = matrix(data, out.m, out.k, false);
  out.gate = matrix(data, out.n, out.k, true);
  out.up = matrix(data, out.n, out.k, true);
  out.d = matrix(data, out.m, out.n, false);
  out.act = activation(data);
  out.batch_invariant = data.ConsumeBool();
  out.bias = enumerator<BiasType>(data);
  if (data.ConsumeBool()) side_by_side(data, out);
  return out;
}

// An allocation of exactly `bytes`, at an address that is `misalign` beyond a multiple of 16.
class Allocation {
 public:
  Allocation(int64_t bytes, uint32_t& noise, int64_t misalign = 0)
      : bytes_(static_cast<size_t>(bytes)),
        begin_(static_cast<size_t>(misalign)),
        data_(static_cast<uint8_t*>(std::malloc(begin_ + bytes_))) {
    for (size_t i = 0; i < begin_ + bytes_; ++i) {
      noise = noise * 1664525u + 1013904223u;
      data_[i] = static_cast<uint8_t>(noise >> 24);
    }
  }
  ~Allocation() { std::free(data_); }
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  uint8_t* data() const { return data_ + begin_; }
  size_t size() const { return bytes_; }

 private:
  size_t bytes_, begin_;
  uint8_t* data_;
};

// Row counts that usually, but not always, obey the rules.
std::vector<int32_t> expert_offsets(FuzzedDataProvider& data, const Problem& p) {
  std::vector<int32_t> offsets(static_cast<size_t>(p.l) + 1);
  int64_t at = 0;
  for (size_t i = 1; i < offsets.size(); ++i) {
    at += data.ConsumeIntegralInRange<int64_t>(0, p.m - at);
    offsets[i] = static_cast<int32_t>(i + 1 == offsets.size() ? p.m : at);
  }
  if (data.ConsumeIntegralInRange(0, 15) == 0) {
    offsets[data.ConsumeIntegralInRange<size_t>(0, offsets.size() - 1)] =
        data.ConsumeIntegral<int32_t>();
  }
  return offsets;
}

std::vector<int32_t> expert_rows(FuzzedDataProvider& data, const Problem& p) {
  std::vector<int32_t> rows(static_cast<size_t>(p.l));
  for (int32_t& count : rows)
    count = data.ConsumeIntegralInRange<int32_t>(-1, static_cast<int>(p.m));
  return rows;
}

// Any number is legal; most of these are experts, -1 and l are none.
std::vector<int32_t> row_experts(FuzzedDataProvider& data, const Problem& p) {
  std::vector<int32_t> experts(static_cast<size_t>(p.m));
  for (int32_t& expert : experts)
    expert = data.ConsumeIntegralInRange<int32_t>(-1, static_cast<int>(p.l));
  return experts;
}

// Operands of exactly the bytes that the problem and its groups demand.
struct Operands {
  Operands(const Problem& p, const OperandSizes& sizes, FuzzedDataProvider& data, uint32_t& noise)
      : experts(p.grouping == Grouping::kContiguous && p.m > 0 && data.ConsumeBool()
                    ? row_experts(data, p)
                    : std::vector<int32_t>()),
        offsets(p.grouping == Grouping::kContiguous && experts.empty() ? expert_offsets(data, p)
                                                                       : std::vector<int32_t>()),
        rows(p.grouping == Grouping::kMasked ? expert_rows(data, p) : std::vector<int32_t>()),
        misalign(data.ConsumeIntegralInRange(0, 31) == 0 ? 1 : 0),
        a(sizes.a, noise, misalign),
        a_scales(scale_bytes(p, p.a, p.k, sizes.a_scales), noise, misalign),
        gate(sizes.gate, noise, misalign),
        gate_scales(sizes.gate_scales, noise, misalign),
        up(sizes.up, noise, misalign),
        up_scales(sizes.up_scales, noise, misalign),
        d(sizes.d, noise, misalign),
        d_scales(scale_bytes(p, p.d, core::columns_of_d(p), sizes.d_scales), noise, misalign),
        residual(p.residual ? sizes.d : 0, noise, misalign),
        row_scale(sizes.a_row_scale, noise),
        bias_gate(sizes.bias_gate, noise, misalign),
        bias_up(sizes.bias_up, noise, misalign),
        alphas(p.l * 4, noise) {}

  // operand_sizes() covers every distribution over the experts; this is the one at hand.
  int64_t scale_bytes(const Problem& p, const Matrix& m, int64_t cols, int64_t bound) const {
    if (bound == 0 || offsets.empty() || m.scale_layout == ScaleLayout::kLinear) return bound;
    int64_t padded_rows = 0;
    for (size_t i = 0; i + 1 < offsets.size(); ++i) {
      const int64_t count = int64_t{offsets[i + 1]} - offsets[i];
      if (count < 0 || count > p.m) return bound;  // will be refused
      padded_rows += core::round_up_rows(count);
    }
    return std::min(bound, ScaleMap(m.scale_layout, padded_rows, cols / 16).required_span_size());
  }

  Buffers buffers(const Problem& p, FuzzedDataProvider& data) const {
    Buffers out;
    out.a = a.data();
    if (p.a.type == DataType::kE2M1) out.a_scales = a_scales.data();
    out.gate = gate.data();
    out.gate_scales = gate_scales.data();
    out.up = up.data();
    out.up_scales = up_scales.data();
    out.d = d.data();
    if (p.d.type == DataType::kE2M1) out.d_scales = d_scales.data();
    if (p.bias != BiasType::kNone) {
      out.bias_gate = bias_gate.data();
      out.bias_up = bias_up.data();
    }
    if (!offsets.empty()) out.expert_offsets = offsets.data();
    if (!rows.empty()) out.expert_rows = rows.data();
    if (!experts.empty()) out.row_experts = experts.data();
    if (p.residual) out.residual = data.ConsumeBool() ? d.data() : residual.data();
    const auto floats = [](const Allocation& allocation) {
      return reinterpret_cast<const float*>(allocation.data());
    };
    if (data.ConsumeBool()) out.a_row_scale = floats(row_scale);
    if (data.ConsumeBool()) out.alpha_gate_per_batch = floats(alphas);
    if (data.ConsumeBool()) out.alpha_up_per_batch = floats(alphas);
    out.d_global_scale = data.ConsumeBool() ? 1.0f : data.ConsumeFloatingPoint<float>();
    switch (data.ConsumeIntegralInRange(0, 31)) {
      case 0:
        out.a = nullptr;
        break;
      case 1:
        out.up_scales = nullptr;
        break;
      case 2:
        out.d_scales = d_scales.data();
        break;
      case 3:
        out.expert_rows = reinterpret_cast<const int32_t*>(alphas.data());
        break;
      case 4:
        out.bias_gate = nullptr;
        break;
      case 5:
        out.bias_up = alphas.data();
        out.bias_gate = nullptr;
        break;
    }
    return out;
  }

  std::vector<int32_t> experts, offsets, rows;
  int64_t misalign;
  Allocation a, a_scales, gate, gate_scales, up, up_scales, d, d_scales, residual, row_scale,
      bias_gate, bias_up, alphas;
};

void run_plan(const Plan& plan, Buffers buffers) {
  PreparedWeights prepared;
  if (plan.prepared && plan.prepared_bytes > 0) {
    auto made = prepare(plan, buffers);
    require(made.ok() && made->size_bytes() == plan.prepared_bytes);
    prepared = *std::move(made);
    buffers.prepared = &prepared;
    buffers.gate = buffers.up = nullptr;
    buffers.gate_scales = buffers.up_scales = nullptr;
  }
  const auto bytes = static_cast<size_t>(plan.workspace_bytes);
  void* workspace = nullptr;
  if (bytes > 0) require(posix_memalign(&workspace, 64, bytes) == 0);
  const Status status = run(plan, buffers, workspace, plan.workspace_bytes);
  require(status.ok());
  std::free(workspace);
}

bool small(const Problem& p, const OperandSizes& s) {
  for (int64_t bytes : {s.a, s.a_scales, s.gate, s.gate_scales, s.up, s.up_scales, s.d, s.d_scales,
                        s.a_row_scale, s.bias_gate, s.bias_up}) {
    if (bytes > kMaxOperandBytes) return false;
  }
  return p.l < 256 && core::flops(p) < kMaxFlops;
}

// An output that shares a byte with an input must be refused.
void check_overlap(const Problem& p, Buffers buffers, const Operands& operands) {
  buffers.d = operands.gate.data();
  if (operands.gate.size() > 0 && operands.d.size() > 0) require(!validate(p, buffers).ok());
  buffers.d = operands.bias_up.data();
  if (operands.bias_up.size() > 0 && operands.d.size() > 0) require(!validate(p, buffers).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  FuzzedDataProvider data(bytes, size);
  const Problem p = problem(data);
  const Status status = validate(p);
  require(status.ok() == status.rule().empty());
  PlanOptions options;
  options.strategy = enumerator<StrategyId>(data);
  options.device =
      data.ConsumeIntegralInRange(0, 31) == 0 ? enumerator<DeviceKind>(data) : DeviceKind::kAuto;
  options.isa = data.ConsumeBool() ? Isa::kAuto : enumerator<Isa>(data);
  options.threads = data.ConsumeIntegralInRange(-1, 3);
  options.prepared = data.ConsumeBool();
  const auto plan = make_plan(p, options);
  require(status.ok() || !plan.ok());
  if (plan) require(!plan->config().empty() && !plan->explain().empty());
  if (!status.ok()) return 0;

  const auto sizes = operand_sizes(p);
  require(sizes.ok());
  if (!small(p, *sizes)) return 0;
  auto noise = data.ConsumeIntegral<uint32_t>();
  const Operands operands(p, *sizes, data, noise);
  const Buffers buffers = operands.buffers(p, data);
  if (!validate(p, buffers).ok()) {
    require(!run(p, buffers).ok());
    return 0;
  }
  check_overlap(p, buffers, operands);
  require(run(p, buffers, {.strategy = StrategyId::kReference}).ok());
  require(run(p, buffers, {.strategy = StrategyId::kFused, .threads = 2}).ok());
  if (plan) run_plan(*plan, buffers);
  return 0;
}
