#include "tools/verify/operands.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numbers>
#include <utility>

#include "core/int_math.hpp"
#include "core/problem.hpp"
#include "dualgemm/dualgemm.hpp"
#include "dualgemm/formats.hpp"
#include "tools/measure/parallel_for.hpp"

namespace dualgemm::verify {
namespace {

// SplitMix64 as a function of (seed, index): every element is independent of the order in which
// threads make them.
uint64_t random_bits(uint64_t seed, uint64_t index) noexcept {
  uint64_t x = seed * 0xD1342543DE82EF95u + (index + 1) * 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

double random_unit(uint64_t seed, uint64_t index) noexcept {  // [0, 1)
  return static_cast<double>(random_bits(seed, index) >> 11) * 0x1p-53;
}

double random_gauss(uint64_t seed, uint64_t index) noexcept {  // Box-Muller
  const double radius = std::sqrt(-2.0 * std::log(1.0 - random_unit(seed, 2 * index)));
  return radius * std::cos(2.0 * std::numbers::pi * random_unit(seed, 2 * index + 1));
}

// Streams of one seed that must not overlap.
enum Stream : uint64_t {
  kA = 1,
  kAScales,
  kGate,
  kGateScales,
  kUp,
  kUpScales,
  kRowScale,
  kShape,
  kBiasGate,
  kBiasUp,
  kResidual,
  kExperts
};
uint64_t stream_seed(uint64_t seed, Stream stream) noexcept { return random_bits(seed, stream); }

// Mean squares of what is generated below; they fix the alphas.
constexpr double kCodeMeanSquare = 68.5 / 8;  // {0, 1/4, 1, 9/4, 4, 9, 16, 36} / 8
constexpr double kUniformScaleMeanSquare = 1.0 / 3;
constexpr double kEdgeScaleMeanSquare = 0.72;  // bytes 0x20 .. 0x3F: 2^-3 .. 1.875

void fill_codes(AlignedBytes& codes, uint64_t seed) {
  measure::parallel_for(core::ceil_div(codes.size(), 8), [&](int64_t word) {
    const int64_t begin = 8 * word;
    const uint64_t bits = random_bits(seed, static_cast<uint64_t>(begin));
    std::memcpy(codes.data() + begin, &bits,
                static_cast<size_t>(std::min<int64_t>(8, codes.size() - begin)));
  });
}

uint8_t edge_scale(uint64_t bits) noexcept {
  // Zero, smallest and largest subnormal, smallest normal, one, four, minus zero, minus one.
  constexpr uint8_t kEdges[8] = {0x00, 0x01, 0x07, 0x08, 0x38, 0x48, 0x80, 0xB8};
  if (bits % 16 == 0) return kEdges[bits / 16 % 8];
  return static_cast<uint8_t>(0x20 + bits / 16 % 0x20);
}

void fill_scales(AlignedBytes& scales, RandomKind kind, uint64_t seed) {
  measure::parallel_for(scales.size(), [&](int64_t i) {
    const uint64_t index = static_cast<uint64_t>(i);
    scales.data()[i] = kind == RandomKind::kEdges
                           ? edge_scale(random_bits(seed, index))
                           : encode_e4m3(static_cast<float>(random_unit(seed, index)));
  });
}

struct OperandMemory {
  AlignedBytes data, scales;
};

// scale_bytes: 0 where the type has no scales.
Expected<OperandMemory> allocate_operand(int64_t bytes, int64_t scale_bytes, uint8_t fill) {
  OperandMemory memory;
  Expected<AlignedBytes> data = allocate_filled(bytes, fill);
  if (!data) return data.status();
  memory.data = *std::move(data);
  if (scale_bytes == 0) return memory;
  Expected<AlignedBytes> scales = allocate_filled(scale_bytes, fill);
  if (!scales) return scales.status();
  memory.scales = *std::move(scales);
  return memory;
}

Expected<OperandMemory> random_operand(DataType type, int64_t bytes, int64_t scale_bytes,
                                       RandomKind kind, uint64_t data_seed, uint64_t scale_seed) {
  Expected<OperandMemory> memory = allocate_operand(bytes, scale_bytes, 0);
  if (!memory) return memory;
  if (type == DataType::kE2M1) {
    fill_codes(memory->data, data_seed);
    fill_scales(memory->scales, kind, scale_seed);
    return memory;
  }
  const int64_t count = memory->data.size() * 8 / core::bits_of(type);
  DUALGEMM_TRY(random_normal(type, count, 1.0, 0, 1.0, data_seed, memory->data.data()));
  return memory;
}

Status fill_normal(DataType type, int64_t bytes, uint64_t seed, AlignedBytes& out) {
  Expected<AlignedBytes> memory = allocate_filled(bytes, 0);
  if (!memory) return memory.status();
  out = *std::move(memory);
  return random_normal(type, bytes / core::bytes_of(type, 1), 1.0, 0, 1.0, seed, out.data());
}

Status fill_bias(const core::ResolvedProblem& problem, uint64_t seed, AlignedBytes& bias) {
  const BiasType bias_type = problem.problem.bias;
  if (bias_type == BiasType::kNone) return {};
  const DataType type = bias_type == BiasType::kF32 ? DataType::kF32 : DataType::kBF16;
  return fill_normal(type, core::bias_span_bytes(problem), seed, bias);
}

Status fill_residual(const Problem& problem, int64_t bytes, uint64_t seed, AlignedBytes& residual) {
  if (!problem.residual) return {};
  return fill_normal(problem.d.type, bytes, seed, residual);
}

// The rows of each of l experts, in all `total`; every third expert or so has none.
std::vector<int32_t> ragged_rows(int64_t l, int64_t total, uint64_t seed) {
  const int64_t empty = l >= 3 ? static_cast<int64_t>(random_bits(seed, 0) % 3) : l;
  std::vector<double> weight;
  double sum = 0.0;
  for (int64_t e = 0; e < l; ++e) {
    weight.push_back(e % 3 == empty ? 0.0 : 0.05 + random_unit(seed, static_cast<uint64_t>(e) + 1));
    sum += weight.back();
  }
  std::vector<int32_t> rows;
  int64_t left = total;
  for (int64_t e = 0; e < l; ++e) {
    const auto wanted =
        static_cast<int64_t>(weight[static_cast<size_t>(e)] / sum * static_cast<double>(total));
    rows.push_back(static_cast<int32_t>(std::min(wanted, left)));
    left -= rows.back();
  }
  // What rounding left over: the first expert's that has rows.
  const auto first = std::find_if(weight.begin(), weight.end(), [](double w) { return w > 0.0; });
  rows[static_cast<size_t>(first - weight.begin())] += static_cast<int32_t>(left);
  return rows;
}

// kContiguous: how many of the m rows each expert has. kMasked: of its own m.
std::vector<int32_t> rows_of_experts(const Problem& p, ExpertRows rows, uint64_t seed) {
  std::vector<int32_t> counts(static_cast<size_t>(p.l), 0);
  if (rows == ExpertRows::kNobody) return counts;
  if (rows == ExpertRows::kOneExpert) {
    counts[random_bits(seed, 0) % counts.size()] = static_cast<int32_t>(p.m);
    return counts;
  }
  if (p.grouping == Grouping::kContiguous) return ragged_rows(p.l, p.m, seed);
  for (size_t e = 0; e < counts.size(); ++e) {
    if (p.l >= 3 && e % 3 == seed % 3) continue;
    counts[e] = 1 + static_cast<int32_t>(random_bits(seed, e) % static_cast<uint64_t>(p.m));
  }
  return counts;
}

// Runs of an expert's rows in ascending order; the first row of each is given to no expert, by any
// number that names none.
std::vector<int32_t> experts_of_rows(const Problem& p, const std::vector<int32_t>& counts,
                                     ExpertRows rows) {
  const int32_t nobody[] = {-1, static_cast<int32_t>(p.l), INT32_MIN, INT32_MAX};
  std::vector<int32_t> experts;
  for (size_t e = 0; e < counts.size(); ++e)
    experts.insert(experts.end(), static_cast<size_t>(counts[e]), static_cast<int32_t>(e));
  experts.resize(static_cast<size_t>(p.m), -1);
  if (rows == ExpertRows::kOneExpert) return experts;
  int32_t before = -1;  // the expert that the row before was given
  for (size_t row = 0; row < experts.size(); ++row) {
    const bool begins = std::exchange(before, experts[row]) != experts[row];
    if (rows == ExpertRows::kNobody || (begins && p.m > p.l)) experts[row] = nobody[row % 4];
  }
  return experts;
}

void add_groups(const Problem& p, const RandomGroups& groups, uint64_t seed, Operands& operands) {
  if (p.grouping == Grouping::kNone) return;
  const std::vector<int32_t> counts = rows_of_experts(p, groups.rows, seed);
  if (p.grouping == Grouping::kMasked) {
    operands.expert_rows = counts;
  } else if (groups.row_experts) {
    operands.row_experts = experts_of_rows(p, counts, groups.rows);
  } else {
    operands.expert_offsets.push_back(0);
    for (const int32_t count : counts)
      operands.expert_offsets.push_back(operands.expert_offsets.back() + count);
  }
}

double mean_square(DataType type, RandomKind kind) noexcept {
  if (type != DataType::kE2M1) return 1.0;
  return kCodeMeanSquare *
         (kind == RandomKind::kEdges ? kEdgeScaleMeanSquare : kUniformScaleMeanSquare);
}

}  // namespace

Expected<AlignedBytes> allocate_filled(int64_t size, uint8_t fill) {
  Expected<AlignedBytes> bytes = AlignedBytes::allocate(size, "operand");
  if (bytes) std::memset(bytes->data(), fill, static_cast<size_t>(size));
  return bytes;
}

Buffers Operands::buffers() const noexcept {
  Buffers buffers;
  buffers.a = a.data();
  buffers.a_scales = a_scales.data();
  buffers.a_row_scale = a_row_scale.empty() ? nullptr : a_row_scale.data();
  buffers.gate = gate.data();
  buffers.gate_scales = gate_scales.data();
  buffers.up = up.data();
  buffers.up_scales = up_scales.data();
  buffers.alpha_gate = alpha_gate;
  buffers.alpha_up = alpha_up;
  buffers.bias_gate = bias_gate.data();
  buffers.bias_up = bias_up.data();
  buffers.residual = residual.data();
  buffers.expert_offsets = expert_offsets.empty() ? nullptr : expert_offsets.data();
  buffers.expert_rows = expert_rows.empty() ? nullptr : expert_rows.data();
  buffers.row_experts = row_experts.empty() ? nullptr : row_experts.data();
  return buffers;
}

void Output::attach_to(Buffers& buffers) noexcept {
  buffers.d = d.data();
  buffers.d_scales = d_scales.data();
  buffers.d_global_scale = d_global_scale;
}

void Output::poison() noexcept {
  std::memset(d.data(), kUnwritten, static_cast<size_t>(d.size()));
  if (d_scales.size() > 0)
    std::memset(d_scales.data(), kUnwritten, static_cast<size_t>(d_scales.size()));
}

const char* name_of(ExpertRows rows) noexcept {
  switch (rows) {
    case ExpertRows::kRagged:
      return "ragged";
    case ExpertRows::kOneExpert:
      return "one_expert";
    case ExpertRows::kNobody:
      return "nobody";
  }
  return "unknown";
}

Expected<Operands> random_operands(const Problem& problem, RandomKind kind, uint64_t seed,
                                   const RandomGroups& groups) {
  DUALGEMM_TRY(validate(problem));
  const bool by_offsets = problem.grouping == Grouping::kContiguous && !groups.row_experts;
  if (by_offsets && groups.rows == ExpertRows::kNobody) {
    return Status::unsupported("rows", name_of(groups.rows), "offsets give every row to an expert");
  }
  const Expected<OperandSizes> sizes = operand_sizes(problem);
  if (!sizes) return sizes.status();
  const core::ResolvedProblem resolved = core::resolve(problem);
  Expected<OperandMemory> a = random_operand(problem.a.type, sizes->a, sizes->a_scales, kind,
                                             stream_seed(seed, kA), stream_seed(seed, kAScales));
  if (!a) return a.status();
  Expected<OperandMemory> gate =
      random_operand(DataType::kE2M1, sizes->gate, sizes->gate_scales, kind,
                     stream_seed(seed, kGate), stream_seed(seed, kGateScales));
  if (!gate) return gate.status();
  Expected<OperandMemory> up = random_operand(DataType::kE2M1, sizes->up, sizes->up_scales, kind,
                                              stream_seed(seed, kUp), stream_seed(seed, kUpScales));
  if (!up) return up.status();

  Operands operands{std::move(a->data),
                    std::move(a->scales),
                    std::move(gate->data),
                    std::move(gate->scales),
                    std::move(up->data),
                    std::move(up->scales),
                    {},
                    1.0f,
                    1.0f,
                    {},
                    {},
                    {},
                    {},
                    {},
                    {}};
  DUALGEMM_TRY(fill_bias(resolved, stream_seed(seed, kBiasGate), operands.bias_gate));
  DUALGEMM_TRY(fill_bias(resolved, stream_seed(seed, kBiasUp), operands.bias_up));
  DUALGEMM_TRY(fill_residual(problem, sizes->d, stream_seed(seed, kResidual), operands.residual));
  add_groups(problem, groups, stream_seed(seed, kExperts), operands);
  const double deviation =
      std::sqrt(mean_square(problem.a.type, kind) * mean_square(DataType::kE2M1, kind) *
                static_cast<double>(problem.k));
  operands.alpha_gate = static_cast<float>(2.0 / deviation);
  operands.alpha_up =
      static_cast<float>(1.5 / deviation);  // differs, so that exchanged alphas show
  if (kind == RandomKind::kEdges && seed % 2 == 1) {
    operands.a_row_scale.resize(static_cast<size_t>(sizes->a_row_scale) / sizeof(float));
    for (size_t i = 0; i < operands.a_row_scale.size(); ++i) {
      operands.a_row_scale[i] =
          static_cast<float>(0.5 + 1.5 * random_unit(stream_seed(seed, kRowScale), i));
    }
  }
  return operands;
}

Expected<Output> allocate_output(const Problem& problem) {
  DUALGEMM_TRY(validate(problem));
  const Expected<OperandSizes> sizes = operand_sizes(problem);
  if (!sizes) return sizes.status();
  Expected<OperandMemory> memory = allocate_operand(sizes->d, sizes->d_scales, kUnwritten);
  if (!memory) return memory.status();
  // |d| seldom exceeds 32 with random_operands' alphas; 6 * 448 * 2^-6 = 42.
  return Output{std::move(memory->data), std::move(memory->scales),
                problem.d.type == DataType::kE2M1 ? 0x1p-6f : 1.0f};
}

Status random_normal(DataType type, int64_t count, double deviation, int64_t columns,
                     double outlier, uint64_t seed, void* values) {
  if (type == DataType::kE2M1)
    return Status::invalid("type", name_of(type), "must be f32, f16 or bf16");
  measure::parallel_for(count, [&](int64_t i) {
    const bool is_outlier =
        columns > 0 && random_bits(~seed, static_cast<uint64_t>(i % columns)) % 64 == 0;
    const float value = static_cast<float>(random_gauss(seed, static_cast<uint64_t>(i)) *
                                           deviation * (is_outlier ? outlier : 1.0));
    if (type == DataType::kF32) static_cast<float*>(values)[i] = value;
    if (type == DataType::kF16) static_cast<uint16_t*>(values)[i] = encode_f16(value);
    if (type == DataType::kBF16) static_cast<uint16_t*>(values)[i] = encode_bf16(value);
  });
  return {};
}

std::vector<RandomShape> random_shapes(DataType d_type, int64_t count, uint64_t seed, bool groups) {
  // Around the row regimes (4 | 32), the vector width 16, and the k-tile of 512.
  constexpr int64_t kM[] = {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 70};
  constexpr int64_t kN[] = {1, 2, 15, 16, 17, 31, 32, 33, 48, 64, 80, 127, 128, 144};
  constexpr int64_t kExpertCounts[] = {5, 1, 3, 9, 2};
  constexpr int64_t kK[] = {16, 32, 48, 64, 112, 128, 144, 496, 512, 528, 1024, 1040};
  const auto pick = [&](const auto& list, uint64_t index) {
    return list[random_bits(stream_seed(seed, kShape), index) % std::size(list)];
  };
  std::vector<RandomShape> shapes;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t base = static_cast<uint64_t>(i) * 4;
    RandomShape shape{pick(kM, base), pick(kN, base + 1), pick(kK, base + 2), i % 4 == 3 ? 3 : 1,
                      seed + static_cast<uint64_t>(i)};
    if (groups) shape.l = kExpertCounts[i % 5];
    if (d_type == DataType::kE2M1) shape.n = (shape.n + 15) / 16 * 16;
    shapes.push_back(shape);
  }
  return shapes;
}

}  // namespace dualgemm::verify
