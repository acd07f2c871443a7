// Copies of operands in the layout that tensor copies need: rows at multiples of 16 bytes, scales
// in scale tiles of 512 bytes whose padding is zero. On any GPU.
#pragma once

#include <cstdint>
#include <vector>

#include "cuda/kernels/convert/repack_params.hpp"
#include "cuda/runtime/launch_value.hpp"

namespace dualgemm::cuda {

KernelLaunch repack_rows_launch(const RowCopy& copy);
KernelLaunch repack_scales_launch(const ScaleCopy& copy);

// Into a launch of `launches` that makes such copies and has room for one more, or behind all. None
// of them may need what is copied, or make what it is copied from. On Hopper and later: it begins
// while the grid in front ends, for which it waits.
void add_repack_rows(const RowCopy& copy, std::vector<KernelLaunch>& launches);
void add_repack_scales(const ScaleCopy& copy, std::vector<KernelLaunch>& launches);

// Bytes of the destination.
int64_t swizzled_scale_bytes(int64_t rows, int64_t sf_cols);  // one batch, a multiple of 512

}  // namespace dualgemm::cuda
