#include "tools/verify/operands.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <numbers>

#include "core/problem.hpp"
#include "dualgemm/dualgemm.hpp"
#include "dualgemm/formats.hpp"

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
  kResidual
};
uint64_t stream_seed(uint64_t seed, Stream stream) noexcept { return random_bits(seed, stream); }

// Mean squares of what is generated below; they fix the alphas.
constexpr double kCodeMeanSquare = 68.5 / 8;  // {0, 1/4, 1, 9/4, 4, 9, 16, 36} / 8
constexpr double kUniformScaleMeanSquare = 1.0 / 3;
constexpr double kEdgeScaleMeanSquare = 0.72;  // bytes 0x20 .. 0x3F: 2^-3 .. 1.875

void fill_codes(AlignedBytes& codes, uint64_t seed) {
#pragma omp parallel for schedule(static)
  for (int64_t begin = 0; begin < codes.size(); begin += 8) {
    const uint64_t bits = random_bits(seed, static_cast<uint64_t>(begin));
    std::memcpy(codes.data() + begin, &bits,
                static_cast<size_t>(std::min<int64_t>(8, codes.size() - begin)));
  }
}

uint8_t edge_scale(uint64_t bits) noexcept {
  // Zero, smallest and largest subnormal, smallest normal, one, four, minus zero, minus one.
  constexpr uint8_t kEdges[8] = {0x00, 0x01, 0x07, 0x08, 0x38, 0x48, 0x80, 0xB8};
  if (bits % 16 == 0) return kEdges[bits / 16 % 8];
  return static_cast<uint8_t>(0x20 + bits / 16 % 0x20);
}

void fill_scales(AlignedBytes& scales, RandomKind kind, uint64_t seed) {
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < scales.size(); ++i) {
    const uint64_t index = static_cast<uint64_t>(i);
    scales.data()[i] = kind == RandomKind::kEdges
                           ? edge_scale(random_bits(seed, index))
                           : encode_e4m3(static_cast<float>(random_unit(seed, index)));
  }
}

struct OperandMemory {
  AlignedBytes data, scales;
};

Expected<OperandMemory> allocate_operand(const core::ResolvedMatrix& matrix, int64_t batches,
                                         uint8_t fill) {
  OperandMemory memory;
  Expected<AlignedBytes> data = allocate_filled(matrix.data_span_bytes(batches), fill);
  if (!data) return data.status();
  memory.data = *std::move(data);
  if (matrix.type != DataType::kE2M1) return memory;
  Expected<AlignedBytes> scales = allocate_filled(matrix.scale_span_bytes(batches), fill);
  if (!scales) return scales.status();
  memory.scales = *std::move(scales);
  return memory;
}

Expected<OperandMemory> random_operand(const core::ResolvedMatrix& matrix, int64_t batches,
                                       RandomKind kind, uint64_t data_seed, uint64_t scale_seed) {
  Expected<OperandMemory> memory = allocate_operand(matrix, batches, 0);
  if (!memory) return memory;
  if (matrix.type == DataType::kE2M1) {
    fill_codes(memory->data, data_seed);
    fill_scales(memory->scales, kind, scale_seed);
    return memory;
  }
  const int64_t count = memory->data.size() * 8 / core::bits_of(matrix.type);
  DUALGEMM_TRY(random_normal(matrix.type, count, 1.0, 0, 1.0, data_seed, memory->data.data()));
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

Status fill_residual(const core::ResolvedProblem& problem, uint64_t seed, AlignedBytes& residual) {
  if (!problem.problem.residual) return {};
  return fill_normal(problem.d.type, problem.d.data_span_bytes(problem.problem.l), seed, residual);
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
  return buffers;
}

void Output::attach_to(Buffers& buffers) noexcept {
  buffers.d = d.data();
  buffers.d_scales = d_scales.data();
  buffers.d_global_scale = d_global_scale;
}

void Output::poison() noexcept {
  std::memset(d.data(), 0xFF, static_cast<size_t>(d.size()));
  if (d_scales.size() > 0) std::memset(d_scales.data(), 0xFF, static_cast<size_t>(d_scales.size()));
}

Expected<Operands> random_operands(const Problem& problem, RandomKind kind, uint64_t seed) {
  DUALGEMM_TRY(validate(problem));
  if (problem.grouping != Grouping::kNone) {
    return Status::unsupported("grouping", name_of(problem.grouping),
                               "random operands are made for none");
  }
  const core::ResolvedProblem resolved = core::resolve(problem);
  Expected<OperandMemory> a = random_operand(resolved.a, problem.l, kind, stream_seed(seed, kA),
                                             stream_seed(seed, kAScales));
  if (!a) return a.status();
  Expected<OperandMemory> gate = random_operand(
      resolved.gate, problem.l, kind, stream_seed(seed, kGate), stream_seed(seed, kGateScales));
  if (!gate) return gate.status();
  Expected<OperandMemory> up = random_operand(resolved.up, problem.l, kind, stream_seed(seed, kUp),
                                              stream_seed(seed, kUpScales));
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
                    {}};
  DUALGEMM_TRY(fill_bias(resolved, stream_seed(seed, kBiasGate), operands.bias_gate));
  DUALGEMM_TRY(fill_bias(resolved, stream_seed(seed, kBiasUp), operands.bias_up));
  DUALGEMM_TRY(fill_residual(resolved, stream_seed(seed, kResidual), operands.residual));
  const double deviation =
      std::sqrt(mean_square(problem.a.type, kind) * mean_square(DataType::kE2M1, kind) *
                static_cast<double>(problem.k));
  operands.alpha_gate = static_cast<float>(2.0 / deviation);
  operands.alpha_up =
      static_cast<float>(1.5 / deviation);  // differs, so that exchanged alphas show
  if (kind == RandomKind::kEdges && seed % 2 == 1) {
    operands.a_row_scale.resize(static_cast<size_t>(problem.m * problem.l));
    for (size_t i = 0; i < operands.a_row_scale.size(); ++i) {
      operands.a_row_scale[i] =
          static_cast<float>(0.5 + 1.5 * random_unit(stream_seed(seed, kRowScale), i));
    }
  }
  return operands;
}

Expected<Output> allocate_output(const Problem& problem) {
  DUALGEMM_TRY(validate(problem));
  Expected<OperandMemory> memory = allocate_operand(core::resolve(problem).d, problem.l, 0xFF);
  if (!memory) return memory.status();
  // |d| seldom exceeds 32 with random_operands' alphas; 6 * 448 * 2^-6 = 42.
  return Output{std::move(memory->data), std::move(memory->scales),
                problem.d.type == DataType::kE2M1 ? 0x1p-6f : 1.0f};
}

Status random_normal(DataType type, int64_t count, double deviation, int64_t columns,
                     double outlier, uint64_t seed, void* values) {
  if (type == DataType::kE2M1)
    return Status::invalid("type", name_of(type), "must be f32, f16 or bf16");
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; ++i) {
    const bool is_outlier =
        columns > 0 && random_bits(~seed, static_cast<uint64_t>(i % columns)) % 64 == 0;
    const float value = static_cast<float>(random_gauss(seed, static_cast<uint64_t>(i)) *
                                           deviation * (is_outlier ? outlier : 1.0));
    if (type == DataType::kF32) static_cast<float*>(values)[i] = value;
    if (type == DataType::kF16) static_cast<uint16_t*>(values)[i] = encode_f16(value);
    if (type == DataType::kBF16) static_cast<uint16_t*>(values)[i] = encode_bf16(value);
  }
  return {};
}

std::vector<RandomShape> random_shapes(DataType d_type, int64_t count, uint64_t seed) {
  // Around the row regimes (4 | 32), the vector width 16, and the k-tile of 512.
  constexpr int64_t kM[] = {1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 70};
  constexpr int64_t kN[] = {1, 2, 15, 16, 17, 31, 32, 33, 48, 64, 80, 127, 128, 144};
  constexpr int64_t kK[] = {16, 32, 48, 64, 112, 128, 144, 496, 512, 528, 1024, 1040};
  const auto pick = [&](const auto& list, uint64_t index) {
    return list[random_bits(stream_seed(seed, kShape), index) % std::size(list)];
  };
  std::vector<RandomShape> shapes;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t base = static_cast<uint64_t>(i) * 4;
    RandomShape shape{pick(kM, base), pick(kN, base + 1), pick(kK, base + 2), i % 4 == 3 ? 3 : 1,
                      seed + static_cast<uint64_t>(i)};
    if (d_type == DataType::kE2M1) shape.n = (shape.n + 15) / 16 * 16;
    shapes.push_back(shape);
  }
  return shapes;
}

}  // namespace dualgemm::verify
