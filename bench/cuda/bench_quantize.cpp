// The quantiser on the GPU: GB/s beside a copy that is measured in the same rounds, and the time of
// a few rows beside an empty kernel. Markdown on stdout. Exit codes: 0 measured; 1 an error; 2 no
// GPU, or arguments, of which there are none.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/cuda/stopwatch.hpp"
#include "core/quantize_problem.hpp"
#include "cuda/kernels/common/read_bytes.hpp"
#include "cuda/kernels/convert/quantize.hpp"
#include "cuda/runtime/check.hpp"
#include "cuda/runtime/device.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "dualgemm/quantize.hpp"

namespace dualgemm::bench {
namespace {

constexpr int kCallsOfMany = 4, kCallsOfFew = 200;
constexpr int64_t kCopyBytes = int64_t{256} << 20;
constexpr ExecutionOptions kOnGpu{.device = DeviceKind::kCuda, .trusted_pointers = true};

struct Case {
  std::string name;
  double bytes = 0;  // read and written by one call
  cuda::RecordedCalls recorded;
};

// Normal numbers would do no better: neither time nor traffic depends on values that are finite.
Status fill(cuda::DeviceMemory& memory, DataType type) {
  std::vector<uint8_t> host(static_cast<size_t>(memory.size()));
  uint64_t state = 88172645463325252u;
  for (size_t i = 0; i + 4 <= host.size(); i += 4) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    auto bits = static_cast<uint32_t>(state >> 20);
    // Exponents near that of 1, any sign and mantissa.
    bits = type == DataType::kF32   ? (bits & 0x81FFFFFFu) | 0x3E000000u
           : type == DataType::kF16 ? (bits & 0x8FFF8FFFu) | 0x30003000u
                                    : (bits & 0x81FF81FFu) | 0x3E003E00u;
    for (size_t b = 0; b < 4; ++b) host[i + b] = static_cast<uint8_t>(bits >> (8 * b));
  }
  return memory.upload(host.data());
}

// One tensor in both forms on the GPU.
class Tensor {
 public:
  static Expected<Tensor> make(const QuantizeProblem& problem) {
    const auto sizes = quantize_sizes(problem, DeviceKind::kCuda);
    if (!sizes) return sizes.status();
    Tensor out;
    out.problem_ = problem;
    out.sizes_ = *sizes;
    int64_t i = 0;
    for (const int64_t bytes : {sizes->x, sizes->codes, sizes->scales, sizes->global_scale,
                                std::max<int64_t>(sizes->workspace, 64)}) {
      auto memory = cuda::DeviceMemory::allocate(bytes, "tensor");
      if (!memory) return memory.status();
      out.memory_[i++] = *std::move(memory);
    }
    DUALGEMM_TRY(fill(out.memory_[0], problem.x.type));
    const std::vector<float> ones(static_cast<size_t>(sizes->global_scale / 4), 0.001f);
    DUALGEMM_TRY(out.memory_[3].upload(ones.data()));
    return out;
  }
  Expected<Case> quantizing(Stopwatch& stopwatch, int calls) {
    const bool given = problem_.scaling == GlobalScaling::kGiven;
    auto* const scale = reinterpret_cast<float*>(memory_[3].data());
    QuantizeBuffers buffers{.x = memory_[0].data(),
                            .codes = memory_[1].data(),
                            .scales = memory_[2].data(),
                            .global_scale = given ? scale : nullptr,
                            .found_scale = given ? nullptr : scale,
                            .workspace = memory_[4].data(),
                            .workspace_bytes = memory_[4].size()};
    auto recorded = cuda::RecordedCalls::record(calls, stopwatch.stream(), [&](void* stream, int) {
      buffers.stream = stream;
      return quantize(problem_, buffers, kOnGpu);
    });
    if (!recorded) return recorded.status();
    const int reads = problem_.scaling == GlobalScaling::kTensor ? 2 : 1;
    return Case{"quantize " + name() + ", scale " + name_of(problem_.scaling) +
                    (problem_.four_over_six ? ", four over six" : "") +
                    (problem_.transform.hadamard != 0
                         ? fmt::format(", Hadamard {}", problem_.transform.hadamard)
                         : ""),
                static_cast<double>(reads * sizes_.x + sizes_.codes + sizes_.scales),
                *std::move(recorded)};
  }
  // In place: an orthogonal matrix keeps the values as large as they are.
  Expected<Case> transforming(Stopwatch& stopwatch, int calls) {
    const Matrix matrix{.type = problem_.x.type};
    const TransformProblem transform{.rows = problem_.rows,
                                     .cols = problem_.cols,
                                     .x = matrix,
                                     .y = matrix,
                                     .transform = problem_.transform};
    TransformBuffers buffers{.x = memory_[0].data(), .y = memory_[0].data()};
    auto recorded = cuda::RecordedCalls::record(calls, stopwatch.stream(), [&](void* stream, int) {
      buffers.stream = stream;
      return transform_rows(transform, buffers, kOnGpu);
    });
    if (!recorded) return recorded.status();
    return Case{fmt::format("transform {}, Hadamard {}", name(), problem_.transform.hadamard),
                2.0 * static_cast<double>(sizes_.x), *std::move(recorded)};
  }
  Expected<Case> dequantizing(Stopwatch& stopwatch, int calls) {
    DequantizeBuffers buffers{.codes = memory_[1].data(),
                              .scales = memory_[2].data(),
                              .global_scale = reinterpret_cast<float*>(memory_[3].data()),
                              .x = memory_[0].data()};
    auto recorded = cuda::RecordedCalls::record(calls, stopwatch.stream(), [&](void* stream, int) {
      buffers.stream = stream;
      return dequantize(problem_, buffers, kOnGpu);
    });
    if (!recorded) return recorded.status();
    return Case{"dequantize " + name(),
                static_cast<double>(sizes_.x + sizes_.codes + sizes_.scales), *std::move(recorded)};
  }

 private:
  std::string name() const {
    return fmt::format("{} x {} {}, {}", problem_.rows, problem_.cols, name_of(problem_.x.type),
                       name_of(problem_.q.scale_layout));
  }
  QuantizeProblem problem_;
  QuantizeSizes sizes_;
  std::array<cuda::DeviceMemory, 5> memory_;
};

// A copy that moves as much as `like` does.
Expected<Case> copying(Stopwatch& stopwatch, cuda::DeviceMemory& from, cuda::DeviceMemory& to,
                       const Case& like) {
  const auto bytes = static_cast<size_t>(like.bytes / 2);
  auto recorded =
      cuda::RecordedCalls::record(kCallsOfMany, stopwatch.stream(), [&](void* stream, int) {
        DUALGEMM_CUDA_TRY(cudaMemcpyAsync(to.data(), from.data(), bytes, cudaMemcpyDeviceToDevice,
                                          static_cast<cudaStream_t>(stream)));
        return Status();
      });
  if (!recorded) return recorded.status();
  return Case{"copy", 2.0 * static_cast<double>(bytes), *std::move(recorded)};
}

Expected<Case> converting(Stopwatch& stopwatch, cuda::DeviceMemory& from, cuda::DeviceMemory& to,
                          bool swizzles) {
  constexpr int64_t kRows = 1 << 18, kCols = 448;  // 112 MiB
  ScaleConversion c{.rows = kRows, .sf_cols = kCols};
  (swizzles ? c.to : c.from).layout = ScaleLayout::kSwizzled128x4;
  auto recorded = cuda::RecordedCalls::record(
      kCallsOfMany, stopwatch.stream(),
      [&](void* stream, int) { return convert_scales(c, from.data(), to.data(), stream, kOnGpu); });
  if (!recorded) return recorded.status();
  return Case{fmt::format("convert scales {} x {} {}", kRows, kCols,
                          swizzles ? "to swizzled" : "to linear"),
              2.0 * kRows * kCols, *std::move(recorded)};
}

Expected<std::vector<Timing>> time_all(Stopwatch& stopwatch, const std::vector<Case>& cases) {
  std::vector<const cuda::RecordedCalls*> recorded;
  for (const Case& one : cases) recorded.push_back(&one.recorded);
  return time_in_turn(stopwatch, recorded, {.seconds = 1.0, .min_rounds = 9, .max_rounds = 41});
}

Status add(std::vector<Case>& cases, Expected<Case> made) {
  if (!made) return made.status();
  cases.push_back(*std::move(made));
  return {};
}

QuantizeProblem problem_of(int64_t rows, DataType type, ScaleLayout layout, GlobalScaling scaling,
                           bool four_over_six = false, int64_t hadamard = 0) {
  QuantizeProblem p{.rows = rows, .cols = 7168, .x = {.type = type}};
  p.transform.hadamard = hadamard;
  p.q.scale_layout = layout;
  p.scaling = scaling;
  p.four_over_six = four_over_six;
  return p;
}

QuantizeProblem rotated(int64_t rows, GlobalScaling scaling, int64_t hadamard) {
  return problem_of(rows, DataType::kBF16, ScaleLayout::kLinear, scaling, false, hadamard);
}

Status measure_many(Stopwatch& stopwatch) {
  using enum GlobalScaling;
  constexpr auto kLinear = ScaleLayout::kLinear, kSwizzled = ScaleLayout::kSwizzled128x4;
  auto from = cuda::DeviceMemory::allocate(kCopyBytes, "copy");
  if (!from) return from.status();
  auto to = cuda::DeviceMemory::allocate(kCopyBytes, "copy");
  if (!to) return to.status();
  DUALGEMM_TRY(fill(*from, DataType::kF32));
  std::vector<Case> cases;
  std::vector<Tensor> tensors;
  tensors.reserve(20);
  const auto tensor = [&](const QuantizeProblem& problem) -> Expected<Tensor*> {
    auto made = Tensor::make(problem);
    if (!made) return made.status();
    tensors.push_back(*std::move(made));
    return &tensors.back();
  };
  for (const QuantizeProblem& problem :
       {problem_of(16384, DataType::kBF16, kLinear, kGiven),
        problem_of(16384, DataType::kBF16, kSwizzled, kGiven),
        problem_of(16384, DataType::kF16, kLinear, kGiven),
        problem_of(8192, DataType::kF32, kLinear, kGiven),
        problem_of(16384, DataType::kBF16, kLinear, kRow),
        problem_of(16384, DataType::kBF16, kSwizzled, kRow),
        problem_of(8192, DataType::kF32, kLinear, kRow),
        problem_of(16384, DataType::kBF16, kLinear, kTensor),
        problem_of(16384, DataType::kBF16, kLinear, kGiven, true), rotated(16384, kGiven, 64),
        rotated(16384, kRow, 64), rotated(16384, kRow, 256),
        problem_of(4681, DataType::kBF16, kLinear, kGiven)}) {
    const auto made = tensor(problem);
    if (!made) return made.status();
    DUALGEMM_TRY(add(cases, (*made)->quantizing(stopwatch, kCallsOfMany)));
  }
  const auto in_place = tensor(rotated(16384, kGiven, 64));
  if (!in_place) return in_place.status();
  DUALGEMM_TRY(add(cases, (*in_place)->transforming(stopwatch, kCallsOfMany)));
  for (const auto& [type, layout] : {std::pair{DataType::kBF16, kLinear},
                                     {DataType::kBF16, kSwizzled},
                                     {DataType::kF32, kLinear}}) {
    const auto made =
        tensor(problem_of(type == DataType::kF32 ? 8192 : 16384, type, layout, kGiven));
    if (!made) return made.status();
    DUALGEMM_TRY(add(cases, (*made)->dequantizing(stopwatch, kCallsOfMany)));
  }
  for (const bool swizzles : {true, false})
    DUALGEMM_TRY(add(cases, converting(stopwatch, *from, *to, swizzles)));
  const size_t count = cases.size();
  for (size_t i = 0; i < count; ++i)
    DUALGEMM_TRY(add(cases, copying(stopwatch, *from, *to, cases[i])));
  const auto timings = time_all(stopwatch, cases);
  if (!timings) return timings.status();
  fmt::print("\n| call | MB read and written | us | GB/s | GB/s of a copy of as much | ratio |\n");
  fmt::print("|---|---|---|---|---|---|\n");
  for (size_t i = 0; i < count; ++i) {
    const auto rate = [&](size_t at) { return cases[at].bytes / (*timings)[at].median; };
    fmt::print("| {} | {:.0f} | {:.1f} | {:.0f} | {:.0f} | {:.1f} % |\n", cases[i].name,
               cases[i].bytes * 1e-6, (*timings)[i].median * 1e6, rate(i) * 1e-9,
               rate(count + i) * 1e-9, 100.0 * rate(i) / rate(count + i));
  }
  return {};
}

// Calls behind each other in a graph: what one more of them costs.
Status measure_few(Stopwatch& stopwatch) {
  using enum GlobalScaling;
  constexpr auto kLinear = ScaleLayout::kLinear, kSwizzled = ScaleLayout::kSwizzled128x4;
  std::vector<Case> cases;
  auto word = cuda::DeviceMemory::allocate(64, "word");
  if (!word) return word.status();
  const auto empty =
      cuda::RecordedCalls::record(kCallsOfFew, stopwatch.stream(), [&](void* stream, int) {
        const cuda::ReadBytesParams nothing{word->data(), 0,
                                            reinterpret_cast<uint32_t*>(word->data())};
        return cuda::enqueue(cuda::read_bytes_launch(nothing, 112, {64, 4, 1}),
                             static_cast<cudaStream_t>(stream));
      });
  if (!empty) return empty.status();
  std::vector<Tensor> tensors;
  tensors.reserve(10);
  for (const QuantizeProblem& problem :
       {problem_of(16, DataType::kBF16, kLinear, kGiven),
        problem_of(16, DataType::kBF16, kSwizzled, kGiven),
        problem_of(16, DataType::kBF16, kLinear, kGiven, true),
        problem_of(16, DataType::kBF16, kLinear, kRow),
        problem_of(16, DataType::kBF16, kSwizzled, kRow),
        problem_of(16, DataType::kBF16, kLinear, kTensor), rotated(16, kGiven, 128),
        rotated(16, kRow, 128), problem_of(1, DataType::kBF16, kSwizzled, kGiven)}) {
    auto made = Tensor::make(problem);
    if (!made) return made.status();
    tensors.push_back(*std::move(made));
    DUALGEMM_TRY(add(cases, tensors.back().quantizing(stopwatch, kCallsOfFew)));
  }
  DUALGEMM_TRY(add(cases, tensors.back().transforming(stopwatch, kCallsOfFew)));
  std::vector<const cuda::RecordedCalls*> recorded{&*empty};
  for (const Case& one : cases) recorded.push_back(&one.recorded);
  const auto timings =
      time_in_turn(stopwatch, recorded, {.seconds = 0.5, .min_rounds = 9, .max_rounds = 41});
  if (!timings) return timings.status();
  fmt::print("\n| call, one after the other in a graph | us |\n|---|---|\n");
  fmt::print("| empty kernel, 112 CTAs of 64 threads | {:.2f} |\n", (*timings)[0].median * 1e6);
  for (size_t i = 0; i < cases.size(); ++i)
    fmt::print("| {} | {:.2f} |\n", cases[i].name, (*timings)[i + 1].median * 1e6);
  return {};
}

int fail(const Status& status, int code) {
  fmt::print(stderr, "bench_quantize: {}\n", status.message());
  return code;
}

int run() {
  const Expected<DeviceCaps> caps = cuda::detect_device_caps();
  if (!caps) return fail(caps.status(), 2);
  auto stopwatch = Stopwatch::make();
  if (!stopwatch) return fail(stopwatch.status(), 1);
  fmt::print("{}\n", caps->name);
  if (const Status status = measure_few(*stopwatch); !status.ok()) return fail(status, 1);
  if (const Status status = measure_many(*stopwatch); !status.ok()) return fail(status, 1);
  return 0;
}

}  // namespace
}  // namespace dualgemm::bench

int main(int argc, char**) {
  if (argc == 1) return dualgemm::bench::run();
  fmt::print(stderr, "usage: bench_quantize\n");
  return 2;
}
