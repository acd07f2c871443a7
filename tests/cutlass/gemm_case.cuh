// From a CUTLASS kernel and its arguments to a launch record, by the functions that CUTLASS itself
// launches with.
#pragma once

#include <exception>
#include <iostream>
#include <string>

#include "cutlass/cutlass.h"
#include "cutlass/epilogue/collective/collective_builder.hpp"
#include "cutlass/gemm/collective/collective_builder.hpp"
#include "cutlass/gemm/kernel/gemm_universal.hpp"
#include "launch_record.hpp"
#include "product.hpp"

namespace cutlass_case {

struct Problem {
  int m, n, k, l;
  int a_pad, b_pad, d_pad;  // elements after each row
  float alpha, beta;
  uint64_t seed;
};

// Strides of a K-major (or row-major) matrix whose rows are `row_stride` elements apart.
template <class Stride>
Stride strides(int64_t row_stride, int64_t rows) {
  Stride stride{};
  cute::get<0>(stride) = row_stride;
  cute::get<2>(stride) = row_stride * rows;
  return stride;
}

template <class Kernel>
void set_launch(const typename Kernel::Arguments& arguments, LaunchRecord& record) {
  if (!Kernel::can_implement(arguments)) throw std::runtime_error("CUTLASS: problem not supported");
  if (Kernel::get_workspace_size(arguments) != 0) throw std::runtime_error("workspace needed");
  typename Kernel::Params params{};
  std::memset(static_cast<void*>(&params), 0,
              sizeof params);  // padding, too, is the same in every run
  params = Kernel::to_underlying_arguments(arguments, nullptr);
  record.params = blob_of(params);
  const dim3 grid = Kernel::get_grid_shape(params);
  const dim3 block = Kernel::get_block_shape();
  using Cluster = typename Kernel::ClusterShape;
  record.grid = {grid.x, grid.y, grid.z};
  record.block = {block.x, block.y, block.z};
  record.cluster = {cute::size<0>(Cluster{}), cute::size<1>(Cluster{}), cute::size<2>(Cluster{})};
  record.dynamic_shared_bytes = Kernel::SharedStorageSize;
}

// alpha·A·Bᵀ + beta·C in double, rounded to the output's type, and how far a right kernel may be
// from it. mma_error: of one sum, relative to the sum of its terms' magnitudes; 0 when all of it is
// exact.
template <class Element, class Operand, class Source>
void set_expected(const Problem& p, const Operand& a, const Operand& b, const Source& c,
                  double mma_error, LaunchRecord& record) {
  Expected& e = record.expected;
  e.rows = p.m;
  e.cols = p.n;
  e.batches = p.l;
  e.row_stride = p.n + p.d_pad;
  e.batch_stride = e.row_stride * p.m;
  constexpr double kStep = std::is_same_v<Element, float>             ? 0x1p-24
                           : std::is_same_v<Element, cutlass::half_t> ? 0x1p-11
                                                                      : 0x1p-8;
  constexpr double kTiny = std::is_same_v<Element, cutlass::half_t> ? 0x1p-24 : 0x1p-126;
  for (int l = 0; l < p.l; ++l) {
    for (int i = 0; i < p.m; ++i) {
      for (int j = 0; j < p.n; ++j) {
        const Product product = dot(a, b, l, i, j, p.k);
        const double source = p.beta == 0 ? 0 : p.beta * c(l, i, j);
        const double sum = p.alpha * product.sum + source;
        const double value =
            static_cast<double>(static_cast<float>(Element(static_cast<float>(sum))));
        const double magnitude = std::fabs(p.alpha) * product.magnitude + std::fabs(source);
        e.value.push_back(mma_error == 0 ? value : sum);
        e.bound.push_back(mma_error == 0 ? 0
                                         : magnitude * (mma_error + 0x1p-22) +
                                               kStep * (1 + 0x1p-7) * std::fabs(sum) + kTiny);
      }
    }
  }
}

template <class MakeCase>
int run_main(int argc, char** argv, const MakeCase& make_cases) {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " FOLDER\n";
    return 2;
  }
  try {
    make_cases(std::filesystem::path(argv[1]));
    return 0;
  } catch (const std::exception& error) {
    std::cerr << argv[0] << ": " << error.what() << '\n';
    return 1;
  }
}

}  // namespace cutlass_case
