// The parts in which finish_pairs.cuh takes a tile. Host and device.
#pragma once

namespace dualgemm::cuda {

inline constexpr int kPairGroupRows = 8;  // rows of A in a group: mma's N
inline constexpr int kPairUnitCols = 8;   // columns of D from one half of an item to the other
inline constexpr int kItemFloats = 8;     // sums of a lane that are finished together

}  // namespace dualgemm::cuda
