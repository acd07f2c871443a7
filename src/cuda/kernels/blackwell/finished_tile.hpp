// How the epilogue divides a tile of D whose rows are the MMA's N, and whose columns, of Gate and
// behind them of Up, are the MMA's M: lanes of tensor memory. Host and device.
#pragma once

namespace dualgemm::cuda::blackwell {

struct FinishedTile {
  int tile_m, tile_n;  // rows and columns of D
  bool operator==(const FinishedTile&) const = default;
};

template <FinishedTile kTile>
struct TurnsOf {
  static constexpr int kUsedRows = 2 * kTile.tile_n;       // of the MMA's M
  static constexpr int kProductWarps = kTile.tile_n / 32;  // for each product
  // Rows that a warp finishes at a time: 8 where more would leave Up's warps without any.
  static constexpr int kTurnRows = kTile.tile_m >= 64 ? 16 : 8;

  // Persistent CTAs: accumulators, one is read, one written; from column 0 on.
  static constexpr int kAccs = 2;
  // Where gate and up meet: turns, in one of two places.
  static constexpr int kExchangeBytes = 2 * 2 * kTurnRows * kTile.tile_n * 4;
};

}  // namespace dualgemm::cuda::blackwell
