#include <algorithm>
#include <cstring>

#include "core/int_math.hpp"
#include "cuda/kernels/convert/repack.hpp"

namespace dualgemm::cuda {
namespace {

using core::ceil_div;

constexpr int64_t kMostCopyCtas = 65535;
constexpr int64_t kScaleTileRows = 128, kScaleTileCols = 4;

int64_t pieces_of(const RowCopy& copy) {
  return ceil_div(copy.destination_row_bytes, int64_t{kRepackRowBytes}) * copy.rows * copy.batches;
}
int64_t pieces_of(const ScaleCopy& copy) {
  return ceil_div(copy.sf_cols, int64_t{kRepackScaleCols}) * ceil_div(copy.rows, kScaleTileRows) *
         copy.batches;
}

template <class Copy>
void add(const Copy& copy, RepackParams<Copy>& params) {
  const int64_t begin = params.count == 0 ? 0 : params.ends[params.count - 1];
  params.copies[params.count] = copy;
  std::fill(params.ends + params.count, std::end(params.ends), begin + pieces_of(copy));
  ++params.count;
}

template <class Copy>
KernelLaunch launch_of(const Kernel& kernel, const RepackParams<Copy>& params) {
  constexpr int64_t kWarps = kRepackThreads / 32;  // a piece each
  KernelLaunch launch{.kernel = kernel, .threads = kRepackThreads};
  launch.ctas = static_cast<uint32_t>(std::clamp<int64_t>(
      ceil_div(params.ends[RepackParams<Copy>::kMostCopies - 1], kWarps), 1, kMostCopyCtas));
  launch.set_params(params);
  return launch;
}

template <class Copy>
KernelLaunch launch_of(const Kernel& kernel, const Copy& copy) {
  RepackParams<Copy> params{};
  add(copy, params);
  return launch_of(kernel, params);
}

template <class Copy>
void add_to(std::vector<KernelLaunch>& launches, const Kernel& kernel, const Copy& copy) {
  for (KernelLaunch& launch : launches) {
    if (launch.kernel.handle != kernel.handle) continue;
    RepackParams<Copy> params;
    std::memcpy(&params, launch.params.data(), sizeof params);
    if (params.count == params.kMostCopies) continue;
    add(copy, params);
    launch = launch_of(kernel, params);
    launch.overlaps_previous = true;
    return;
  }
  launches.push_back(launch_of(kernel, copy));
  launches.back().overlaps_previous = true;
}

}  // namespace

KernelLaunch repack_rows_launch(const RowCopy& copy) {
  return launch_of(repack_rows_kernel(), copy);
}
KernelLaunch repack_scales_launch(const ScaleCopy& copy) {
  return launch_of(repack_scales_kernel(), copy);
}

void add_repack_rows(const RowCopy& copy, std::vector<KernelLaunch>& launches) {
  add_to(launches, repack_rows_kernel(), copy);
}
void add_repack_scales(const ScaleCopy& copy, std::vector<KernelLaunch>& launches) {
  add_to(launches, repack_scales_kernel(), copy);
}

int64_t swizzled_scale_bytes(int64_t rows, int64_t sf_cols) {
  return ceil_div(rows, kScaleTileRows) * ceil_div(sf_cols, kScaleTileCols) *
         (kScaleTileRows * kScaleTileCols);
}

}  // namespace dualgemm::cuda
