// Is a result right? Comparisons with the oracle, whole or sampled, and of two results with each
// other.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "dualgemm/status.hpp"
#include "dualgemm/types.hpp"

namespace dualgemm::verify {

inline constexpr int64_t kMapTile =
    16;  // rows and columns of D that one character of the map stands for

enum class TileState : uint8_t { kNotCompared = 0, kRight = 1, kWrong = 2 };

struct CheckReport {
  int64_t compared = 0;             // elements; for an NVFP4 D blocks of 16 count as 16
  int64_t failed = 0;               // outside the bound
  bool nothing_to_compare = false;  // no row is any expert's
  int64_t written_elsewhere = 0;  // elements of rows that are no expert's; CheckOptions::unwritten

  // The worst element: a failed one if there is any, else the one that uses most of its bound.
  double worst_share = 0.0;  // |actual - expected| / bound on that side; above 1 only if failed
  // Batch: of groups the expert. Row: of D, of kMasked of the expert's own.
  int64_t worst_batch = 0, worst_row = 0, worst_col = 0;
  double actual = 0.0, expected = 0.0, lowest = 0.0, highest = 0.0;

  // One state per tile of kMapTile x kMapTile; D's batches one below the other.
  int64_t map_rows = 0, map_cols = 0;
  std::vector<TileState> map;

  bool passed() const noexcept {
    return failed == 0 && written_elsewhere == 0 && (compared > 0 || nothing_to_compare);
  }
  // One line per row of tiles: '.' right, 'X' wrong, ' ' not compared. At the most max_rows x
  // max_cols characters: a character of a larger map stands for several tiles and is 'X' if any of
  // them is wrong.
  std::string picture(int64_t max_rows = 64, int64_t max_cols = 96) const;
};

struct CheckOptions {
  // 0: every element. Else at least so many, spread over all rows and columns of tiles; which ones
  // depends on the seed.
  int64_t samples = 0;
  uint64_t seed = 1;
  // What every byte of D was before the run: then rows that are no expert's must be so still.
  std::optional<uint8_t> unwritten = {};
};

// D of `buffers` against the double-precision oracle; each element within a bound derived from the
// operands (docs/numerics.md). `isa` is the one that computed D. With groups only the rows that are
// an expert's. The caller may hand in any bytes as D: nothing but D decides.
Expected<CheckReport> check_result(const Problem& problem, const Buffers& buffers, Isa isa,
                                   const CheckOptions& options = {});

struct OutputDifference {
  int64_t elements = 0;
  int64_t differing = 0;  // bit patterns (NVFP4: code or scale of its block)
  double rel_l2 = 0.0;    // ||actual - expected|| / ||expected|| over finite pairs
  double max_abs = 0.0;
  int64_t non_finite =
      0;  // pairs of which one or both are NaN or infinite and that are not bit-identical

  // May the distance come from the operands' rounding to E4M3 (strategy fp8: 2^-4 relative at the
  // worst for each, 0.05 measured in D) and D's to NVFP4? Few elements may cancel to any distance,
  // so that their distance says nothing.
  bool is_fp8_rounding() const noexcept { return elements < 1024 || rel_l2 <= 0.2; }
};

// Two results of one problem; only d, d_scales and d_global_scale of both are read.
Expected<OutputDifference> output_difference(const Problem& problem, const Buffers& expected,
                                             const Buffers& actual);

// Every element of `actual` against `trusted`, a result of the same operands that has been checked.
// Elements that are bit-identical pass. Among those that differ, the `most` with the largest
// difference are compared with the oracle, so every other one differs less than they do.
Expected<CheckReport> check_against(const Problem& problem, const Buffers& trusted,
                                    const Buffers& actual, Isa isa, int64_t most = 4096);

}  // namespace dualgemm::verify
