#include "fake_cuda/blas/product.hpp"

#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "fake_cuda/blas/memory.hpp"

namespace ptxsim::cuda::blas {
namespace {

// The values of op(A), row by row, or of op(B), column by column: k of each lie together.
// `lies_so`: they do already.
std::vector<double> lines_along_k(const std::vector<double>& stored, uint64_t lines, uint64_t k,
                                  bool lies_so) {
  if (lies_so) return stored;
  std::vector<double> result(stored.size());
  for (uint64_t i = 0; i < lines; ++i)
    for (uint64_t p = 0; p < k; ++p) result[i * k + p] = stored[p * lines + i];
  return result;
}

double dot(const double* a, const double* b, uint64_t count) {
  double sum = 0;
  for (uint64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

// As ReLU of cuBLASLt: NaN stays.
double relu(double value) { return value < 0 ? 0 : value; }

void run_batch(Session& session, const Product& p, double alpha, double beta, uint64_t batch) {
  const std::vector<double> a = lines_along_k(read(session, p.a, batch), p.m, p.k, p.transposes_a);
  const std::vector<double> b = lines_along_k(read(session, p.b, batch), p.n, p.k, !p.transposes_b);
  const bool has_bias = (p.epilogue & kBias) != 0;
  const std::vector<double> c = beta != 0 ? read(session, p.c, batch) : std::vector<double>();
  const std::vector<double> bias = has_bias ? read(session, p.bias, batch) : std::vector<double>();
  std::vector<double> d(p.m * p.n);
  for (uint64_t column = 0; column < p.n; ++column)
    for (uint64_t row = 0; row < p.m; ++row) {
      const uint64_t at = column * p.m + row;
      const double sum = rounded(p.sums, dot(&a[row * p.k], &b[column * p.k], p.k));
      double value = alpha * sum;
      if (beta != 0) value += beta * c[at];
      if (has_bias) value += bias[row];
      d[at] = (p.epilogue & kRelu) != 0 ? relu(value) : value;
    }
  write(session, p.d, batch, d);
}

void note_ranges(Session& session, const char* call, const Product& p, bool reads_c) {
  std::vector<MemoryRange> writes, reads;
  add_ranges(p.d, p.batches, writes);
  add_ranges(p.a, p.batches, reads);
  add_ranges(p.b, p.batches, reads);
  if (reads_c) add_ranges(p.c, p.batches, reads);
  if ((p.epilogue & kBias) != 0) add_ranges(p.bias, p.batches, reads);
  for (const Matrix* matrix : {&p.a, &p.b, &p.c})
    if (matrix->is_array)
      reads.push_back({static_cast<const std::byte*>(matrix->begin), p.batches * sizeof(void*)});
  session.touched(call, writes, reads);
}

Status run(Session& session, const char* call, Product p) {
  return with_faults(session, call, [&] {
    for (Matrix* matrix : {&p.a, &p.b, &p.c, &p.d})
      if (matrix->is_array) read_addresses(session, *matrix, p.batches);
    const double alpha = read_scale(session, p.alpha, p.scale, "alpha");
    const double beta = read_scale(session, p.beta, p.scale, "beta");
    note_ranges(session, call, p, beta != 0);
    for (uint64_t batch = 0; batch < p.batches; ++batch) run_batch(session, p, alpha, beta, batch);
  });
}

}  // namespace

BlasStatus issue(Session& session, const char* call, void* stream, Product product) {
  if (product.m == 0 || product.n == 0 || product.batches == 0) return kBlasSuccess;
  // Scales of the host are read now, those of the device when the product is done.
  struct Scales {
    std::byte alpha[8] = {}, beta[8] = {};
  };
  const auto scales = std::make_shared<Scales>();
  const uint32_t bytes = bytes_of(product.scale);
  for (auto [scale, kept] :
       {std::pair{&product.alpha, scales->alpha}, std::pair{&product.beta, scales->beta}}) {
    if (scale->mode != kOfHost) continue;
    std::memcpy(kept, scale->at, bytes);
    scale->at = kept;
  }
  const auto operation = [&session, call, scales, product] { return run(session, call, product); };
  const Status status = session.streams.issue(stream, operation, NodeType::kGraph);
  return status == kSuccess ? kBlasSuccess : kBlasExecutionFailed;
}

BlasStatus refuse(Session& session, const char* call, const std::string& what) {
  session.recorder.refused(call, kNotSupported, what + " is not modelled", false);
  return kBlasNotSupported;
}

}  // namespace ptxsim::cuda::blas
