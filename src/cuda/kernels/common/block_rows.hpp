// Host and device: kBlockRows.
#pragma once

#include <cstdint>

namespace dualgemm::cuda {

// A grid's CTAs take tiles of D in blocks of so many rows of them: what runs at the same time then
// shares rows and columns, which L2 holds.
inline constexpr uint32_t kBlockRows = 16;

}  // namespace dualgemm::cuda
