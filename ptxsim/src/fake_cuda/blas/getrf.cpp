// cublas<t>getrfBatched(): P A = L U of each matrix of an array, in its place, by rows exchanged or
// as they are. Sums are those of f64, in the order of the columns, and rounded once to A's type.
#include <algorithm>
#include <cmath>
#include <utility>

#include "fake_cuda/blas/handle.hpp"
#include "fake_cuda/blas/memory.hpp"

namespace ptxsim::cuda::blas {
namespace {

struct Factors {
  std::vector<double> pivots;  // of each column: the row that it was exchanged with, from 1
  double info = 0;             // the first column, from 1, whose pivot is 0; 0: there is none
};

// `a`: n columns of n, which become L below the diagonal, whose own 1s are not stored, and U.
Factors factor(std::vector<double>& a, uint64_t n, bool exchanges) {
  Factors factors;
  const auto at = [&](uint64_t row, uint64_t column) -> double& { return a[column * n + row]; };
  for (uint64_t k = 0; k < n; ++k) {
    uint64_t pivot = k;
    for (uint64_t row = k + 1; row < n && exchanges; ++row)
      if (std::fabs(at(row, k)) > std::fabs(at(pivot, k))) pivot = row;
    factors.pivots.push_back(static_cast<double>(pivot + 1));
    for (uint64_t column = 0; column < n && pivot != k; ++column)
      std::swap(at(k, column), at(pivot, column));
    if (at(k, k) == 0) {
      if (factors.info == 0) factors.info = static_cast<double>(k + 1);
      continue;
    }
    for (uint64_t row = k + 1; row < n; ++row) at(row, k) /= at(k, k);
    for (uint64_t column = k + 1; column < n; ++column)
      for (uint64_t row = k + 1; row < n; ++row) at(row, column) -= at(row, k) * at(k, column);
  }
  return factors;
}

struct Batch {
  uint64_t n = 0, count = 0;
  Matrix a, pivots, infos;
};

Status run(Session& session, const char* call, Batch batch) {
  return with_faults(session, call, [&] {
    read_addresses(session, batch.a, batch.count);
    const bool exchanges = batch.pivots.begin != nullptr;
    std::vector<MemoryRange> writes, reads;
    add_ranges(batch.a, batch.count, writes);
    add_ranges(batch.infos, batch.count, writes);
    if (exchanges) add_ranges(batch.pivots, batch.count, writes);
    add_ranges(batch.a, batch.count, reads);
    reads.push_back({batch.a.begin, batch.count * sizeof(void*)});
    session.touched(call, writes, reads);
    for (uint64_t i = 0; i < batch.count; ++i) {
      std::vector<double> values = read(session, batch.a, i);
      const Factors factors = factor(values, batch.n, exchanges);
      write(session, batch.a, i, values);
      write(session, batch.infos, i, {factors.info});
      if (exchanges) write(session, batch.pivots, i, factors.pivots);
    }
  });
}

BlasStatus factor_all(const char* call, Type type, void* handle, int n, const void* addresses,
                      int lda, const int* pivots, const int* infos, int batches) {
  return with_handle(handle, [&](Session& session, const Handle& h) {
    if (n < 0 || batches < 0 || lda < std::max(1, n) || addresses == nullptr || infos == nullptr) {
      session.recorder.refused(call, kInvalidValue,
                               "a size, a leading dimension or a null pointer that cuBLAS does "
                               "not take");
      return kBlasInvalidValue;
    }
    if (n == 0 || batches == 0) return kBlasSuccess;
    const auto size = static_cast<uint64_t>(n), count = static_cast<uint64_t>(batches);
    const Batch batch = {size,
                         count,
                         {"A", type, addresses, size, size, lda, false, 0, true},
                         {"the pivots", Type::kI32, pivots, size, 1, n, false, n},
                         {"info", Type::kI32, infos, 1, 1, 1, false, 1}};
    const auto operation = [&session, call, batch] { return run(session, call, batch); };
    const Status status = session.streams.issue(h.stream, operation, NodeType::kGraph);
    return status == kSuccess ? kBlasSuccess : kBlasExecutionFailed;
  });
}

}  // namespace

PTXSIM_CUDA_API int cublasSgetrfBatched(void* handle, int n, float* const* a, int lda, int* pivots,
                                        int* infos, int batches) {
  return factor_all("cublasSgetrfBatched", Type::kF32, handle, n, a, lda, pivots, infos, batches);
}
PTXSIM_CUDA_API int cublasDgetrfBatched(void* handle, int n, double* const* a, int lda, int* pivots,
                                        int* infos, int batches) {
  return factor_all("cublasDgetrfBatched", Type::kF64, handle, n, a, lda, pivots, infos, batches);
}

}  // namespace ptxsim::cuda::blas
