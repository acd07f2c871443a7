// Where a row of a tensor lies in all of its arrays, and whether it is wanted. Numbers of rows come
// from device memory and may be anything: whatever they are, no place is outside of the arrays.
#pragma once

#include <cstdint>

#include "cuda/device/scale_offset.cuh"
#include "cuda/kernels/convert/quantize_params.hpp"
#include "cuda/ptx/target.hpp"

namespace dualgemm::cuda {

struct RowPlace {
  uint32_t batch, row;  // of x and the codes
  uint32_t expert;      // whose given scale it is
  int64_t scale_row;    // of the batch's scales
  // Rows that share scale tiles, and which of them this is: they divide the padding below them.
  uint32_t group_rows, group_row;
  bool wanted;      // it is quantised
  bool has_scales;  // it has a place in the scales, whose padded columns become 0
};

DUALGEMM_DEVICE uint32_t cut(int32_t number, uint32_t most) {
  return number < 0 ? 0u : min(static_cast<uint32_t>(number), most);
}

// The experts of contiguous rows, one after the other.
class ExpertCursor {
 public:
  DUALGEMM_DEVICE ExpertCursor(const GroupParams& groups, uint32_t rows)
      : groups_(groups), rows_(rows) {}

  // To the expert that holds `row`, or is the next one behind it. By all lanes of a warp, for the
  // same row.
  DUALGEMM_DEVICE void seek(uint32_t row) {
    uint32_t passed = 0, tiles = 0;
    for (uint32_t expert = threadIdx.x % 32; expert < groups_.experts; expert += 32) {
      const uint32_t begin = offset(expert), end = offset(expert + 1);
      if (end > row) continue;
      ++passed;
      tiles += tiles_of(begin, end);
    }
    expert_ = __reduce_add_sync(0xFFFFFFFFu, passed);
    tiles_ = __reduce_add_sync(0xFFFFFFFFu, tiles);
    load();
  }
  // The same for a lane of its own, forwards.
  DUALGEMM_DEVICE void advance(uint32_t row) {
    while (expert_ < groups_.experts && end_ <= row) {
      tiles_ += tiles_of(begin_, end_);
      ++expert_;
      load();
    }
  }
  DUALGEMM_DEVICE bool holds(uint32_t row) const {
    return expert_ < groups_.experts && begin_ <= row && row < end_;
  }
  DUALGEMM_DEVICE uint32_t expert() const { return expert_; }
  DUALGEMM_DEVICE uint32_t begin() const { return begin_; }
  DUALGEMM_DEVICE uint32_t end() const { return end_; }
  // Scale tiles of the experts before this one.
  DUALGEMM_DEVICE uint32_t tiles_before() const { return tiles_; }

 private:
  DUALGEMM_DEVICE uint32_t offset(uint32_t index) const {
    return cut(groups_.expert_offsets[index], rows_);
  }
  DUALGEMM_DEVICE static uint32_t tiles_of(uint32_t begin, uint32_t end) {
    return end > begin ? (end - begin + kTileRows - 1) / kTileRows : 0u;
  }
  DUALGEMM_DEVICE void load() {
    if (expert_ >= groups_.experts) return;
    begin_ = offset(expert_);
    end_ = offset(expert_ + 1);
  }

  const GroupParams& groups_;
  uint32_t rows_;
  uint32_t expert_ = 0, tiles_ = 0, begin_ = 0, end_ = 0;
};

// Row `index` of those of the launch, below p.count. `cursor` has sought a row at or before it,
// where there are offsets.
DUALGEMM_DEVICE RowPlace place_of_row(const TensorParams& p, ExpertCursor& cursor, uint32_t index) {
  const uint32_t flat = p.row_begin + index;
  const uint32_t batch = p.rows.value > flat ? 0u : quotient(flat, p.rows);
  const uint32_t row = flat - batch * p.rows.value;
  RowPlace at{batch, row, batch, row, p.rows.value, row, true, true};
  if (p.groups.expert_rows != nullptr) {
    at.wanted = row < cut(p.groups.expert_rows[batch], p.rows.value);
  } else if (p.groups.row_experts != nullptr) {
    at.expert = static_cast<uint32_t>(p.groups.row_experts[row]);
    at.wanted = at.expert < p.groups.experts;
  } else if (p.groups.expert_offsets != nullptr) {
    cursor.advance(row);
    at.wanted = at.has_scales = cursor.holds(row);
    at.expert = cursor.expert();
    if (p.scale_ld == 0) {
      at.group_row = row - cursor.begin();
      at.group_rows = cursor.end() - cursor.begin();
      at.scale_row = static_cast<int64_t>(cursor.tiles_before()) * kTileRows + at.group_row;
      // Offsets that fall may add up to anything.
      if (at.scale_row >= p.scale_rows) at.wanted = at.has_scales = false;
    }
  }
  return at;
}

DUALGEMM_DEVICE uint8_t* scale_at(const TensorParams& p, const RowPlace& at, int64_t row,
                                  uint32_t block) {
  return p.scales + at.batch * p.scale_batch_bytes +
         scale_offset(p.scale_ld, p.scale_tile_cols, row, block);
}
DUALGEMM_DEVICE uint8_t* x_at(const TensorParams& p, const RowPlace& at) {
  return p.x + at.batch * p.x_batch_bytes + at.row * p.x_row_bytes;
}
DUALGEMM_DEVICE uint8_t* codes_at(const TensorParams& p, const RowPlace& at) {
  return p.codes + at.batch * p.code_batch_bytes + at.row * p.code_row_bytes;
}

// Whether clear_rows_below() has anything to do for the row: one of the first eight, whose blocks'
// places in a tile are 32, of a number of rows that fills no tiles.
DUALGEMM_DEVICE bool has_rows_below(const TensorParams& p, const RowPlace& at) {
  return p.scale_ld == 0 && at.group_rows % kTileRows != 0 && at.has_scales &&
         at.group_row < 32 / kTileCols;
}

// Zeros below the rows that share tiles, up to a multiple of 128. A tile has 32 groups of 16 bytes,
// of rows that are 32 apart: row i of n writes the groups 4i + q, 4(i + n) + q, ... of the last
// tile, where q is the block's place in the tile.
DUALGEMM_DEVICE void clear_rows_below(const TensorParams& p, const RowPlace& at, uint32_t block) {
  constexpr uint32_t kGroups = 32, kRowsOfGroup = kTileRows / kGroups;
  const uint32_t used = at.group_rows % kTileRows;  // rows of the last tile
  if (!has_rows_below(p, at)) return;
  const int64_t tile_row = at.scale_row - at.group_row + (at.group_rows - used);
  if (tile_row >= p.scale_rows) return;
  uint8_t* const tile = scale_at(p, at, tile_row, block / kTileCols * kTileCols);
  for (uint32_t group = at.group_row * kTileCols + block % kTileCols; group < kGroups;
       group += min(at.group_rows, kGroups) * kTileCols) {
    uint8_t* const bytes = tile + group * (kRowsOfGroup * kTileCols);
    if (group >= used && p.scale_alignment == 16) {
      *reinterpret_cast<uint4*>(bytes) = make_uint4(0, 0, 0, 0);
      continue;
    }
    for (uint32_t i = 0; i < kRowsOfGroup; ++i) {
      if (group + kGroups * i < used) continue;
      uint8_t* const word = bytes + i * kTileCols;
      if (p.scale_alignment >= kTileCols) {
        *reinterpret_cast<uint32_t*>(word) = 0;
      } else {
        for (uint32_t col = 0; col < kTileCols; ++col) word[col] = 0;
      }
    }
  }
}

}  // namespace dualgemm::cuda
