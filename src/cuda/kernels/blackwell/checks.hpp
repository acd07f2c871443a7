// What no Blackwell kernel with A in NVFP4 does; a kernel's supports() adds what only it does not
// do.
#pragma once

#include "dualgemm/types.hpp"

namespace dualgemm::cuda::blackwell {

// Problems without groups: A's type, extents, strides, tiles of 128 x 64.
Status check_without_groups(const Problem& problem);

// A is not read by index.
Status check_rows_in_order(const Problem& problem);

// Groups of experts: the same, but tiles of 16 x 64.
Status check_with_groups(const Problem& problem);

}  // namespace dualgemm::cuda::blackwell
