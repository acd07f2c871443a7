// Matrices in the GPU's memory, read and written with the checks that accesses of kernels have.
#pragma once

#include <string>
#include <vector>

#include "fake_cuda/blas/product.hpp"

namespace ptxsim::cuda::blas {

struct BlasFault {  // thrown
  Status status;
  std::string message;
};

// f(), which may throw one: it is recorded, and no call works from then on.
template <class F>
Status with_faults(Session& session, const char* call, F&& f) {
  try {
    f();
    return kSuccess;
  } catch (const BlasFault& fault) {
    session.recorder.refused(call, fault.status, fault.message, false);
    return session.sticky = fault.status;
  }
}

// The elements of batch `batch`, column by column.
std::vector<double> read(Session& session, const Matrix& matrix, uint64_t batch);
void write(Session& session, const Matrix& matrix, uint64_t batch,
           const std::vector<double>& values);
// Where the matrices of an array begin: reads `begin`, fills `begins`.
void read_addresses(Session& session, Matrix& matrix, uint64_t batches);
double read_scale(Session& session, const Scale& scale, Type type, const char* name);
double rounded(Type type, double value);
// The bytes of all batches, a range for each column or row.
void add_ranges(const Matrix& matrix, uint64_t batches, std::vector<MemoryRange>& ranges);

}  // namespace ptxsim::cuda::blas
