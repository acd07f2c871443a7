// One gated-MLP layer: weights quantised to NVFP4, activations too, D = silu(A * Gate^T) * (A *
// Up^T) in FP32. Prints what ran and one element beside the same sum done by hand; exits with 1 if
// they differ.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "dualgemm/dualgemm.hpp"

namespace {

// A matrix as NVFP4: codes, block scales, and the factor that one FP32 multiply puts back at the
// end.
struct Nvfp4 {
  std::vector<uint8_t> codes, scales;
  float global_scale = 0.0f;
};

Nvfp4 quantize(int64_t rows, int64_t cols, float phase) {
  std::vector<float> x(static_cast<size_t>(rows * cols));
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(phase * static_cast<float>(i));
  Nvfp4 out{std::vector<uint8_t>(x.size() / 2), std::vector<uint8_t>(x.size() / 16)};
  const auto global = dualgemm::quantize_nvfp4(x.data(), dualgemm::DataType::kF32, rows, cols, 0,
                                               out.codes.data(), 0, out.scales.data());
  if (global) out.global_scale = *global;
  return out;
}

// Row r of x, times row s of w, in double.
double dot(const Nvfp4& x, int64_t r, const Nvfp4& w, int64_t s, int64_t k) {
  const auto row = [k](const Nvfp4& matrix, int64_t index) {
    std::vector<float> values(static_cast<size_t>(k));
    const dualgemm::Status status = dualgemm::dequantize_nvfp4(
        matrix.codes.data() + index * k / 2, 0, matrix.scales.data() + index * k / 16,
        dualgemm::ScaleLayout::kLinear, 0, matrix.global_scale, 1, k, values.data(), 0);
    if (!status.ok()) values.assign(values.size(), NAN);
    return values;
  };
  const std::vector<float> a = row(x, r), b = row(w, s);
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

int fail(const dualgemm::Status& status) {
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return 1;
}

}  // namespace

int main() {
  const int64_t m = 8, n = 256, k = 512;
  const Nvfp4 a = quantize(m, k, 0.7f), gate = quantize(n, k, 0.3f), up = quantize(n, k, 0.9f);
  std::vector<float> d(static_cast<size_t>(m * n));

  // What to compute, where it lies, run.
  dualgemm::Problem problem{.m = m, .n = n, .k = k};
  problem.d.type = dualgemm::DataType::kF32;
  dualgemm::Buffers buffers{.a = a.codes.data(), .a_scales = a.scales.data()};
  buffers.gate = gate.codes.data(), buffers.gate_scales = gate.scales.data();
  buffers.up = up.codes.data(), buffers.up_scales = up.scales.data();
  buffers.alpha_gate = a.global_scale * gate.global_scale;
  buffers.alpha_up = a.global_scale * up.global_scale;
  buffers.d = d.data();
  const auto once = dualgemm::run(problem, buffers);
  if (!once.ok()) return fail(once);

  // The same in a loop: plan once, keep a workspace.
  const auto plan = dualgemm::make_plan(problem);
  if (!plan) return fail(plan.status());
  const auto workspace = dualgemm::Workspace::allocate(*plan);
  if (!workspace) return fail(workspace.status());
  const auto status = dualgemm::run(*plan, buffers, *workspace);
  if (!status.ok()) return fail(status);

  const int64_t i = 3, j = 200;
  const double g = dot(a, i, gate, j, k), u = dot(a, i, up, j, k);
  const double want = g / (1.0 + std::exp(-g)) * u;
  const double got = d[static_cast<size_t>(i * n + j)];
  std::printf("%s\nd[%lld][%lld] = %.6f, by hand %.6f\n", plan->config().c_str(),
              static_cast<long long>(i), static_cast<long long>(j), got, want);
  return std::abs(got - want) <= 1e-4 * (1.0 + std::abs(want)) ? 0 : 1;
}
