#include "bench/cuda/baseline.hpp"

#include <algorithm>
#include <cmath>

#include "cuda/kernels/common/join.hpp"
#include "cuda/kernels/convert/dequantize.hpp"
#include "cuda/kernels/convert/requantize.hpp"
#include "cuda/runtime/check.hpp"
#include "cuda/runtime/kernel_launch.hpp"

namespace dualgemm::bench {
namespace {

// Products of E4M3 codes reach 448^2 * k; with this factor they fit fp16, and no bit is lost.
constexpr float kE4m3Alpha = 0x1p-9f;
constexpr int kAlgorithmReplays = 3;  // of each algorithm, after one that does not count
constexpr size_t kKept = 2;           // algorithms of a path that go into the rounds

cuda::Nvfp4Source source_of(const void* codes, const uint8_t* scales, int64_t k) {
  return {.codes = static_cast<const uint8_t*>(codes),
          .scales = scales,
          .row_bytes = k / 2,
          .batch_bytes = 0,
          .scale_ld = k / kSfVec,
          .scale_batch_bytes = 0};
}

Status decode(LtNumber number, const cuda::Nvfp4Source& source, int64_t rows, int64_t k,
              uint8_t* out, float* scales, cudaStream_t stream) {
  const cuda::SourceExtent extent{.rows = rows, .out_rows = rows, .batches = 1, .cols = k};
  if (number == LtNumber::kE4M3) {
    return cuda::enqueue(cuda::requantize_launch({source, extent, out, scales}), stream);
  }
  return cuda::enqueue(cuda::dequantize_launch({source, extent, out}, cuda::OutputType::kF16),
                       stream);
}

}  // namespace

Expected<DecodedOperands> decode_operands(LtNumber number, const Problem& problem,
                                          const Buffers& packed, cudaStream_t stream) {
  const int64_t n = problem.n, k = problem.k;
  const int64_t value_bytes = number == LtNumber::kE4M3 ? 1 : 2;
  DecodedOperands out;
  out.number = number, out.n = n, out.k = k;
  auto weights = ColdSets::allocate(2 * n * k * value_bytes);
  if (!weights) return weights.status();
  out.weights = *std::move(weights);
  const auto allocate = [](int64_t bytes, cuda::DeviceMemory& to) -> Status {
    auto memory = cuda::DeviceMemory::allocate(bytes, "decoded operand");
    if (!memory) return memory.status();
    to = *std::move(memory);
    return {};
  };
  DUALGEMM_TRY(allocate(problem.m * k * value_bytes, out.a));
  DUALGEMM_TRY(allocate(2 * n * 4, out.weight_scales));
  DUALGEMM_TRY(allocate(problem.m * 4, out.a_scales));
  auto* const scales = reinterpret_cast<float*>(out.weight_scales.data());
  uint8_t* const gate = out.weights.of_call(0);
  uint8_t* const up = gate + n * k * value_bytes;
  DUALGEMM_TRY(
      decode(number, source_of(packed.gate, packed.gate_scales, k), n, k, gate, scales, stream));
  DUALGEMM_TRY(
      decode(number, source_of(packed.up, packed.up_scales, k), n, k, up, scales + n, stream));
  DUALGEMM_TRY(decode(number, source_of(packed.a, packed.a_scales, k), problem.m, k, out.a.data(),
                      reinterpret_cast<float*>(out.a_scales.data()), stream));
  DUALGEMM_TRY(cuda::synchronize(stream));
  DUALGEMM_TRY(out.weights.replicate());
  return out;
}

Expected<Baseline> Baseline::make(LtContext& context, DecodedOperands& operands, int64_t m,
                                  float alpha, uint8_t* d, cuda::DeviceMemory& products) {
  Baseline out;
  out.operands_ = &operands;
  out.m_ = m, out.alpha_ = alpha, out.d_ = d, out.products_ = products.data();
  const float gemm_alpha = operands.number == LtNumber::kE4M3 ? kE4m3Alpha : 1.0f;
  const int64_t n = operands.n;
  auto single = LtGemm::make(context, {operands.number, m, n, operands.k, n, gemm_alpha});
  if (!single) return single.status();
  auto stacked = LtGemm::make(context, {operands.number, m, 2 * n, operands.k, 2 * n, gemm_alpha});
  if (!stacked) return stacked.status();
  out.single_ = *std::move(single);
  out.stacked_ = *std::move(stacked);
  return out;
}

Status Baseline::multiply(bool stacked, int algorithm, int call, cudaStream_t stream) {
  const uint8_t* const gate = operands_->weights.of_call(call);
  const uint8_t* const a = operands_->a.data();
  if (stacked) return stacked_.enqueue(algorithm, gate, a, products_, stream);
  const int64_t value_bytes = operands_->number == LtNumber::kE4M3 ? 1 : 2;
  DUALGEMM_TRY(single_.enqueue(algorithm, gate, a, products_, stream));
  return single_.enqueue(algorithm, gate + operands_->n * operands_->k * value_bytes, a,
                         products_ + m_ * operands_->n * 2, stream);
}

Status Baseline::activate(bool stacked, cudaStream_t stream) {
  const int64_t n = operands_->n;
  const bool e4m3 = operands_->number == LtNumber::kE4M3;
  const auto* const scales = reinterpret_cast<const float*>(operands_->weight_scales.data());
  const auto* const a_scales = reinterpret_cast<const float*>(operands_->a_scales.data());
  const float alpha = e4m3 ? alpha_ / kE4m3Alpha : alpha_;
  const cuda::JoinParams params{.gate = products_,
                                .up = products_ + (stacked ? n : m_ * n) * 2,
                                .product_ld = stacked ? 2 * n : n,
                                .d = d_,
                                .d_row_bytes = 2 * n,
                                .d_batch_bytes = 0,
                                .a_row_scale = nullptr,
                                .requantized_rows = e4m3 ? a_scales : nullptr,
                                .requantized_gate = e4m3 ? scales : nullptr,
                                .requantized_up = e4m3 ? scales + n : nullptr,
                                .requantized_stride = 0,
                                .alpha_gate_per_batch = nullptr,
                                .alpha_up_per_batch = nullptr,
                                .alpha_gate = alpha,
                                .alpha_up = alpha,
                                .bias = {},
                                .act = {cuda::ActKind::kSilu, 1.0f, 0.0f, HUGE_VALF},
                                .rows = m_,
                                .n = n,
                                .batches = 1};
  return cuda::enqueue(cuda::join_launch(params, cuda::OutputType::kF16, cuda::OutputType::kF16),
                       stream);
}

// The activation is the same for all algorithms and is left out here.
Expected<BaselinePath> Baseline::time_path(bool stacked, Stopwatch& stopwatch) {
  BaselinePath path;
  path.name = stacked ? "stacked" : "two";
  std::vector<std::pair<double, int>> timed;
  const LtGemm& gemm = stacked ? stacked_ : single_;
  for (int algorithm = 0; algorithm < gemm.num_algorithms(); ++algorithm) {
    // Once outside a graph: one that cannot run is left out, and its kernel gets loaded.
    if (!multiply(stacked, algorithm, 0, stopwatch.stream()).ok()) continue;
    DUALGEMM_TRY(cuda::synchronize(stopwatch.stream()));
    const auto recorded = cuda::RecordedCalls::record(
        operands_->weights.count(), stopwatch.stream(), [&](void* stream, int call) {
          return multiply(stacked, algorithm, call, static_cast<cudaStream_t>(stream));
        });
    if (!recorded) return recorded.status();
    std::vector<double> seconds;
    for (int replay = -1; replay < kAlgorithmReplays; ++replay) {
      const auto one = stopwatch.seconds_per_call(*recorded);
      if (!one) return one.status();
      if (replay >= 0) seconds.push_back(*one);
    }
    timed.emplace_back(timing_of(std::move(seconds)).median, algorithm);
  }
  std::sort(timed.begin(), timed.end());
  path.algorithms_timed = static_cast<int>(timed.size());
  for (size_t i = 0; i < std::min(kKept, timed.size()); ++i) path.best.push_back(timed[i].second);
  return path;
}

Status Baseline::record(Stopwatch& stopwatch) {
  for (const bool stacked : {false, true}) {
    auto path = time_path(stacked, stopwatch);
    if (!path) return path.status();
    for (const int algorithm : path->best) {
      auto recorded =
          cuda::RecordedCalls::record(operands_->weights.calls(), stopwatch.stream(),
                                      [&](void* raw_stream, int call) -> Status {
                                        auto* const stream = static_cast<cudaStream_t>(raw_stream);
                                        DUALGEMM_TRY(multiply(stacked, algorithm, call, stream));
                                        return activate(stacked, stream);
                                      });
      if (!recorded) return recorded.status();
      entries_.push_back({path->name, algorithm, *std::move(recorded)});
    }
    paths_.push_back(*std::move(path));
  }
  if (!entries_.empty()) return {};
  return Status::unsupported("cuBLASLt", "no algorithm runs", "needs one for this shape");
}

}  // namespace dualgemm::bench
