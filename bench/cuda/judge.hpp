// Is D right? Sampled elements against the oracle's bound, all of them against another result.
#pragma once

#include <cstdint>
#include <vector>

#include "dualgemm/dualgemm.hpp"

namespace dualgemm::bench {

// The largest share of the oracle's bound that any element of some sampled tiles uses; above 1 (or
// infinity): wrong. All pointers of `host` are host memory.
double worst_share_of_bound(const Problem& problem, const Buffers& host, Isa isa);

// Two results in fp16, m x n: the largest of |actual - expected| / |expected| (Euclidean norms)
// over tiles of 64 x 64, so that one lost tile cannot hide; NaN anywhere gives infinity.
double worst_tile_difference(const uint16_t* actual, const uint16_t* expected, int64_t m,
                             int64_t n);

}  // namespace dualgemm::bench
