// How CTAs divide the work on the tiles of an instance, and what their sums take.
#pragma once

#include <cstdint>

#include "cuda/kernels/sm80/config.hpp"
#include "dualgemm/dualgemm.hpp"

namespace dualgemm::cuda::sm80 {

// Parts into which CTAs can divide k, of wide tiles.
inline constexpr int64_t kSplits[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16};

// How CTAs divide the work.
struct Division {
  static constexpr int64_t kShares = 0;
  // Equal parts of the k of each tile; kShares: the chunks of the tiles that do not fill a turn of
  // `ctas` CTAs are divided into equal shares of these.
  int64_t splits = 1;
  // CTAs that take whole tiles in turns; 0: a CTA for each part of each tile.
  int64_t ctas = 0;
  bool operator==(const Division&) const = default;
};

// Whether CTAs can have equal shares of all of an instance's tiles.
bool can_share(const Config& config, const Problem& problem);
// Such shares of at most `most` CTAs, each a chunk at least.
Division shares_of(const Config& config, const Problem& problem, int64_t most);

// CTAs of an instance that an SM of a GPU has at a time: as many as registers and shared memory
// hold. Where CTAs take turns or have shares, at the most so many.
int64_t ctas_of_sm(const Config& config, int compute_capability);

// Whether CTAs can take an instance's tiles whole, in turns.
bool can_take_turns(const Config& config, const Problem& problem);
// At most `most` of them, a tile each at least.
Division turns_of(const Config& config, const Problem& problem, int64_t most);

// Parts of k that batch_invariant keeps.
inline constexpr int64_t kInvariantParts = 4;

// Whether CTAs can divide the k of an instance's tiles.
bool can_divide_k(const Config& config, const Problem& problem);

// Batches that are groups have others.
int64_t tiles_of(const Problem& problem, const Config& config);
// The same, or of groups the most that there can be.
int64_t most_tiles_of(const Problem& problem, const Config& config);
int64_t chunks_of(const Problem& problem);  // of a tile

inline bool has_shares(const Division& division) { return division.splits == Division::kShares; }
// Whether tiles have parts whose sums another launch adds.
inline bool is_divided(const Division& division) { return division.splits != 1; }

// Bytes of the sums of all parts, in the workspace.
int64_t partial_bytes(const Problem& problem, const Config& config, const Division& division);
// What is chosen unasked.
inline constexpr int64_t kMaxPartialBytes = 128 << 20;

// What CTAs that divide k write to the workspace, and what is read again: rows in groups of 8, of
// shares at the most.
int64_t moved_partial_bytes(const Problem& problem, const Config& config, const Division& division);

// What should take the least time on a GPU, and how long: microseconds of an H200, to be compared
// with those of other instances.
struct TimedDivision {
  Division division;
  double us;
};
TimedDivision fastest_division(const Config& config, const Problem& problem,
                               const DeviceCaps& caps);
inline Division division_for(const Config& config, const Problem& problem, const DeviceCaps& caps) {
  return fastest_division(config, problem, caps).division;
}

}  // namespace dualgemm::cuda::sm80
