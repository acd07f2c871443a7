// Copies for the TMA unit, a warp a piece at a time. A lane asks for all it needs before it looks
// at any of it: what does not exist is asked for elsewhere, so that no load waits for a branch.
#include "cuda/device/scale_offset.cuh"
#include "cuda/device/unaligned_word.cuh"
#include "cuda/kernels/convert/repack_params.hpp"
#include "cuda/ptx/grid.cuh"

namespace dualgemm::cuda {
namespace {

constexpr int kTileBytes = kTileRows * kTileCols;
constexpr int kTileWords = 4;  // of a line of a tile: of rows that are 32 apart
constexpr int kPieceTiles = kRepackScaleCols / kTileCols;

// Linear scales: a lane loads 16 of each of these rows.
constexpr int kLoadCols = 16;
constexpr int kRowsAtOnce = 32 * kLoadCols / kRepackScaleCols;  // by a warp
constexpr int kLoads = kTileRows / kRowsAtOnce;
using RowWords = uint32_t[kLoads][kTileWords];

// By all threads, before they touch memory: the grid in front may still be writing what is copied,
// or reading what was copied before.
__device__ void wait_for_grid_before() {
#if __CUDA_ARCH__ >= 900
  ptx::griddepcontrol_launch_dependents();
  ptx::griddepcontrol_wait();
#endif
}

// visit(copy, piece of it) for each of this warp's pieces.
template <class Copy, class Visit>
__device__ void for_pieces(const RepackParams<Copy>& p, const Visit& visit) {
  constexpr int kWarps = kRepackThreads / 32;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * kWarps;
  for (int64_t piece = static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
       piece < p.ends[2]; piece += stride) {
    const int copy = piece < p.ends[0] ? 0 : piece < p.ends[1] ? 1 : 2;
    visit(p.copies[copy], copy == 0 ? piece : piece - p.ends[copy - 1]);
  }
}

// 128 rows and 32 columns of scales.
struct ScalePiece {
  const uint8_t* from;  // linear: its first scale; swizzled: its first tile
  uint8_t* to;          // its first tile
  int rows, cols;       // that exist, cols up to the end of the row
  bool begins_row;
};

__device__ ScalePiece piece_of(const ScaleCopy& copy, int64_t index) {
  const int64_t tile_cols = (copy.sf_cols + kTileCols - 1) / kTileCols;
  const int64_t tile_rows = (copy.rows + kTileRows - 1) / kTileRows;
  const int64_t across = (tile_cols + kPieceTiles - 1) / kPieceTiles;
  const int64_t row_of_all = index / across, batch = row_of_all / tile_rows;
  const int64_t tile_row = row_of_all - batch * tile_rows;
  const int64_t tile_col = (index - row_of_all * across) * kPieceTiles;
  const int64_t place = copy.source_ld != 0
                            ? tile_row * kTileRows * copy.source_ld + tile_col * kTileCols
                            : (tile_row * tile_cols + tile_col) * kTileBytes;
  constexpr int64_t kManyCols = 2 * kRepackScaleCols;
  return {.from = copy.source + batch * copy.source_batch_bytes + place,
          .to = copy.destination + (row_of_all * tile_cols + tile_col) * kTileBytes,
          .rows = static_cast<int>(min(copy.rows - tile_row * kTileRows, int64_t{kTileRows})),
          .cols = static_cast<int>(min(copy.sf_cols - tile_col * kTileCols, kManyCols)),
          .begins_row = tile_col == 0};
}

template <int kBytes>
__device__ uint32_t load_unit(const uint8_t* from) {
  if constexpr (kBytes == 4) return *reinterpret_cast<const uint32_t*>(from);
  return *from;
}

// A lane's rows first, first + 16, ...
struct LaneRows {
  const uint8_t* from;  // of the first row of all, at the lane's columns
  int64_t ld;
  int first, rows;

  // The last one in place of one that does not exist.
  __device__ const uint8_t* row(int i) const {
    return from + min(first + i * kRowsAtOnce, rows - 1) * ld;
  }
};

// 16 columns that all exist. Unaligned, so do four more in front of them and behind them: then a
// word more is loaded, and each of the result is made of two.
template <int kAlignment>
__device__ void load_whole(const LaneRows& lane, RowWords& words) {
  constexpr int kRaw = kAlignment == 1 ? kTileWords + 1 : kTileWords;
  uint32_t raw[kLoads][kRaw];
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    const uint8_t* const from = lane.row(i);
    if constexpr (kAlignment == 16) {
      const uint4 all = *reinterpret_cast<const uint4*>(from);
      raw[i][0] = all.x, raw[i][1] = all.y, raw[i][2] = all.z, raw[i][3] = all.w;
    } else {
      const uint8_t* const aligned = from - reinterpret_cast<uintptr_t>(from) % 4;
#pragma unroll
      for (int word = 0; word < kRaw; ++word) raw[i][word] = load_unit<4>(aligned + 4 * word);
    }
  }
#pragma unroll
  for (int i = 0; i < kLoads; ++i) {
    const auto shift = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(lane.row(i)) % 4 * 8);
#pragma unroll
    for (int word = 0; word < kTileWords; ++word) {
      uint32_t scales = raw[i][word];
      if constexpr (kAlignment == 1) scales = __funnelshift_r(scales, raw[i][word + 1], shift);
      words[i][word] = scales;
    }
  }
}

// `cols` of 16, at least one, by loads of kUnit bytes, of which cols is a multiple; zeros behind
// them. With units below 4 bytes two rows at a time are in registers.
template <int kUnit>
__device__ void load_part(const LaneRows& lane, int cols, RowWords& words) {
  constexpr int kRound = kUnit == 4 ? kLoads : 2, kUnits = kLoadCols / kUnit;
#pragma unroll
  for (int begin = 0; begin < kLoads; begin += kRound) {
    uint32_t units[kRound][kUnits];
#pragma unroll
    for (int i = 0; i < kRound; ++i) {
#pragma unroll
      for (int unit = 0; unit < kUnits; ++unit)
        units[i][unit] = load_unit<kUnit>(lane.row(begin + i) + min(unit * kUnit, cols - kUnit));
    }
#pragma unroll
    for (int i = 0; i < kRound; ++i) {
#pragma unroll
      for (int word = 0; word < kTileWords; ++word) {
        uint32_t scales = 0;
#pragma unroll
        for (int byte = 0; byte < 4; byte += kUnit) {
          scales |= 4 * word + byte < cols ? units[i][(4 * word + byte) / kUnit] << (8 * byte) : 0;
        }
        words[begin + i][word] = scales;
      }
    }
  }
}

// Lanes 0 - 15 have a piece's first 16 columns, the others the rest; a lane of either the rows
// lane % 16, + 16, ... So it writes whole lines of a tile: lane % 16 and + 16.
template <int kAlignment>
__device__ void copy_linear(const ScalePiece& piece, int64_t ld, int lane) {
  const int half = lane / kRowsAtOnce, first = lane % kRowsAtOnce;
  const int cols = piece.cols - half * kLoadCols;
  if (cols <= 0) return;
  const LaneRows rows{piece.from + half * kLoadCols, ld, first, piece.rows};
  const bool whole = kAlignment == 1 ? !(piece.begins_row && half == 0) && cols >= kLoadCols + 4
                                     : cols >= kLoadCols;
  RowWords words;  // a row that does not exist has another one's
  if (whole) {
    load_whole<kAlignment>(rows, words);
  } else if (kAlignment != 1 && cols % 4 == 0) {
    load_part<4>(rows, cols, words);
  } else {
    load_part<1>(rows, min(cols, kLoadCols), words);
  }
  if (piece.rows < kTileRows) {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
#pragma unroll
      for (uint32_t& word : words[i]) word = first + i * kRowsAtOnce < piece.rows ? word : 0;
    }
  }
#pragma unroll
  for (int tile = 0; tile < kLoadCols / static_cast<int>(kTileCols); ++tile) {
    if (tile * static_cast<int>(kTileCols) >= cols) return;
    auto* const to = reinterpret_cast<uint4*>(
        piece.to + (half * (kLoadCols / static_cast<int>(kTileCols)) + tile) * kTileBytes);
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      to[first + i * kRowsAtOnce] =
          make_uint4(words[i][tile], words[i + 2][tile], words[i + 4][tile], words[i + 6][tile]);
    }
  }
}

// A line of a tile: a word of each of the rows line, line + 32, ... `cols` of a word exist; by
// loads of kUnit bytes, of which cols is a multiple.
template <int kUnit>
__device__ void load_line(const uint8_t* tile, int line, int rows, int cols,
                          uint32_t (&words)[kTileWords]) {
  uint32_t units[kTileWords][4 / kUnit];
#pragma unroll
  for (int word = 0; word < kTileWords; ++word) {
    const int row = min(line + 32 * word, rows - 1);
    const uint8_t* const from = tile + row % 32 * sizeof(uint4) + row / 32 * kTileCols;
#pragma unroll
    for (int unit = 0; unit < 4 / kUnit; ++unit)
      units[word][unit] = load_unit<kUnit>(from + min(unit * kUnit, cols - kUnit));
  }
#pragma unroll
  for (int word = 0; word < kTileWords; ++word) {
    words[word] = 0;
#pragma unroll
    for (int byte = 0; byte < 4; byte += kUnit) {
      const bool exists = line + 32 * word < rows && byte < cols;
      words[word] |= exists ? units[word][byte / kUnit] << (8 * byte) : 0;
    }
  }
}

// A lane has the line `lane` of each tile.
template <int kAlignment>
__device__ void copy_tiles(const ScalePiece& piece, int lane) {
  constexpr int kCols = kTileCols;
  const int whole = min(piece.cols / kCols, kPieceTiles);
  uint32_t words[kPieceTiles][kTileWords] = {};
#pragma unroll
  for (int tile = 0; tile < kPieceTiles; ++tile) {
    if (whole == 0) break;
    const uint8_t* const from = piece.from + min(tile, whole - 1) * kTileBytes;
    if (kAlignment == 16 && piece.rows == kTileRows) {
      const uint4 line = reinterpret_cast<const uint4*>(from)[lane];
      words[tile][0] = line.x, words[tile][1] = line.y;
      words[tile][2] = line.z, words[tile][3] = line.w;
    } else {
      load_line<kAlignment == 1 ? 1 : 4>(from, lane, piece.rows, kCols, words[tile]);
    }
  }
  const bool partial = whole < kPieceTiles && piece.cols % kCols != 0;
  uint32_t last[kTileWords];
  if (partial)
    load_line<1>(piece.from + whole * kTileBytes, lane, piece.rows, piece.cols % kCols, last);
#pragma unroll
  for (int tile = 0; tile < kPieceTiles; ++tile) {
    auto* const to = reinterpret_cast<uint4*>(piece.to + tile * kTileBytes) + lane;
    if (tile < whole) {
      *to = make_uint4(words[tile][0], words[tile][1], words[tile][2], words[tile][3]);
    } else if (tile == whole && partial) {
      *to = make_uint4(last[0], last[1], last[2], last[3]);
    }
  }
}

template <int kAlignment>
__device__ void copy_piece(const ScalePiece& piece, int64_t ld, int lane) {
  if (ld != 0) {
    copy_linear<kAlignment>(piece, ld, lane);
  } else {
    copy_tiles<kAlignment>(piece, lane);
  }
}

}  // namespace

// A lane takes words of 8 bytes, 32 apart.
extern "C" __global__ void __launch_bounds__(kRepackThreads)
    dual_gemm_repack_rows(const __grid_constant__ RepackRowsParams p) {
  wait_for_grid_before();
  for_pieces(p, [](const RowCopy& copy, int64_t index) {
    constexpr int kWordBytes = 8, kStep = 32 * kWordBytes, kWords = kRepackRowBytes / kStep;
    const int64_t across = (copy.destination_row_bytes + kRepackRowBytes - 1) / kRepackRowBytes;
    const int64_t flat_row = index / across, batch = flat_row / copy.rows;
    const int64_t row = flat_row - batch * copy.rows;
    const int64_t byte = (index - flat_row * across) * kRepackRowBytes +
                         static_cast<int64_t>(threadIdx.x % 32 * kWordBytes);
    const uint8_t* const from =
        copy.source + batch * copy.source_batch_bytes + row * copy.source_row_bytes + byte;
    uint8_t* const to = copy.destination + flat_row * copy.destination_row_bytes + byte;
    uint64_t words[kWords] = {};
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      if (byte + i * kStep < copy.row_bytes) words[i] = load_unaligned_u64(from + i * kStep);
    }
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      if (byte + i * kStep < copy.destination_row_bytes)
        *reinterpret_cast<uint64_t*>(to + i * kStep) = words[i];
    }
  });
}

extern "C" __global__ void __launch_bounds__(kRepackThreads)
    dual_gemm_repack_scales(const __grid_constant__ RepackScalesParams p) {
  wait_for_grid_before();
  for_pieces(p, [](const ScaleCopy& copy, int64_t index) {
    const ScalePiece piece = piece_of(copy, index);
    const int lane = static_cast<int>(threadIdx.x % 32);
    const uintptr_t places = reinterpret_cast<uintptr_t>(piece.from) | copy.source_ld;
    if (places % 16 == 0) {
      copy_piece<16>(piece, copy.source_ld, lane);
    } else if (places % 4 == 0) {
      copy_piece<4>(piece, copy.source_ld, lane);
    } else {
      copy_piece<1>(piece, copy.source_ld, lane);
    }
  });
}

Kernel repack_rows_kernel() {
  return {"repack", "dual_gemm_repack_rows", reinterpret_cast<const void*>(&dual_gemm_repack_rows)};
}
Kernel repack_scales_kernel() {
  return {"repack", "dual_gemm_repack_scales",
          reinterpret_cast<const void*>(&dual_gemm_repack_scales)};
}

}  // namespace dualgemm::cuda
