#include "cpu/work.hpp"

#include <algorithm>

namespace dualgemm::cpu {
namespace {

using core::ceil_div;

// gemv takes a group whole; its activation tile is exactly as high as the group.
int tile_height(const Engine& engine, int64_t rows) noexcept {
  return uses_gemv(engine, rows) ? static_cast<int>(rows) : engine.mr;
}

// The packed activation is k-tile-major, so that one k-tile of a row chunk is contiguous:
// [k-tile][row tile][block of the k-tile][height x activation_bytes].
int64_t activation_at(const Work& work, const GroupWork& group, int64_t k_tile,
                      int64_t tile) noexcept {
  const int64_t tile_bytes =
      work.engine->activation_bytes * group.height * work.engine->tile_k_blocks;
  return group.activation_offset + (k_tile * group.tiles + tile) * tile_bytes;
}

int k_tile_blocks(const Work& work, int64_t k_tile) noexcept {
  const int64_t begin = k_tile * work.engine->tile_k_blocks;
  const int64_t left = padded_blocks(work.blocks(), *work.engine) - begin;
  return static_cast<int>(std::min<int64_t>(left, work.engine->tile_k_blocks));
}

const GroupWork& group_of(const Work& work, int64_t index, int64_t GroupWork::*first) noexcept {
  const GroupWork *begin = work.groups, *end = begin + work.num_groups;
  const GroupWork* after = std::upper_bound(
      begin, end, index, [&](int64_t i, const GroupWork& g) { return i < g.*first; });
  return *(after - 1);
}

// The packed groups of one k-tile: in place when the panel is packed, else packed into `buffer`.
const uint8_t* packed_k_tile(const Work& work, const PanelSource& source, int64_t k_tile,
                             uint8_t* buffer) noexcept {
  const int64_t begin = k_tile * work.engine->tile_k_blocks;
  if (source.packed != nullptr) return source.packed + begin / kGroupBlocks * kPackedGroupBytes;
  work.table->pack_panel(
      source, begin, std::min<int64_t>(source.blocks - begin, work.engine->tile_k_blocks), buffer);
  return buffer;
}

// Asks for the bytes of a k-tile of a panel pair, line by line, while another one is multiplied:
// k-tiles of a panel are read far apart in time, so that no prefetcher of the processor's has them,
// and decoding them would wait for memory.
class Request {
 public:
  // Nothing is asked for where pair is null.
  Request(const Work& work, const PanelPair* pair, int64_t k_tile) noexcept {
    if (pair == nullptr) return;
    panels_[0] = &pair->p;
    panels_[1] = &pair->q;
    block_ = k_tile * work.engine->tile_k_blocks;
    const int64_t blocks = std::min<int64_t>(pair->p.blocks - block_, work.engine->tile_k_blocks);
    const bool packed = pair->p.packed != nullptr;
    rows_ = packed ? 1 : kPanelN;
    row_lines_ =
        ceil_div(packed ? ceil_div(blocks, kGroupBlocks) * kPackedGroupBytes : blocks * 8, kLine);
    begin_row();
  }
  int64_t lines() const noexcept { return 2 * rows_ * row_lines_; }

  void ask(int64_t count) noexcept {
    for (; count > 0 && panel_ < 2; --count) {
      __builtin_prefetch(at_, 0, 3);  // into L1: see asks_into_l1()
      at_ += kLine;
      if (--lines_left_ > 0) continue;
      if (++row_ == rows_) {
        row_ = 0;
        ++panel_;
      }
      if (panel_ < 2) begin_row();
    }
  }

 private:
  static constexpr int64_t kLine = 64;

  void begin_row() noexcept {
    const PanelSource& panel = *panels_[panel_];
    at_ = panel.packed != nullptr
              ? panel.packed + block_ / kGroupBlocks * kPackedGroupBytes
              : panel.codes + std::min(row_, panel.cols - 1) * panel.row_bytes + block_ * 8;
    lines_left_ = row_lines_;
  }

  const PanelSource* panels_[2] = {nullptr, nullptr};
  int64_t block_ = 0, row_lines_ = 0, lines_left_ = 0;
  int rows_ = 0, row_ = 0, panel_ = 0;
  const uint8_t* at_ = nullptr;
};

}  // namespace

bool uses_gemv(const Engine& engine, int64_t group_rows) noexcept {
  return engine.gemv != nullptr && group_rows <= engine.gemv_rows;
}

int64_t padded_blocks(int64_t blocks, const Engine& engine) noexcept {
  return ceil_div(blocks, engine.block_step) * engine.block_step;
}

int64_t max_row_tiles(const Problem& problem, const Engine& engine) noexcept {
  if (problem.grouping == Grouping::kContiguous) return problem.m / engine.mr + problem.l;
  return problem.l * ceil_div(problem.m, engine.mr);
}

int64_t activation_bytes(const Problem& problem, const Engine& engine) noexcept {
  const int64_t k_tiles = ceil_div(problem.k / kSfVec, engine.tile_k_blocks);
  return max_row_tiles(problem, engine) * engine.mr * k_tiles * engine.tile_k_blocks *
         engine.activation_bytes;
}

bool list_groups(Work& work, core::RowGroups& groups) noexcept {
  core::RowGroup rows;
  int64_t offset = 0;
  work.num_groups = work.num_pack_units = work.num_row_chunks = 0;
  while (work.num_groups < work.problem->problem.l && groups.next(rows)) {
    if (rows.rows == 0) continue;  // an expert without tokens
    GroupWork& group = work.groups[work.num_groups++];
    group.rows = rows;
    group.height = tile_height(*work.engine, rows.rows);
    group.tiles = ceil_div(rows.rows, group.height);
    group.activation_offset = offset;
    group.first_pack_unit = work.num_pack_units;
    group.first_row_chunk = work.num_row_chunks;
    work.num_pack_units += group.tiles;
    work.num_row_chunks += ceil_div(rows.rows, work.l2_tile.rows);
    offset += group.tiles * group.height * work.k_tiles() * work.engine->tile_k_blocks *
              work.engine->activation_bytes;
  }
  work.activation_bytes = offset;
  return work.num_groups > 0;
}

Scratch take_scratch(Arena& arena, const Engine& engine, const L2Tile& l2_tile,
                     bool sequential) noexcept {
  Scratch scratch;
  const int64_t packed_bytes = engine.tile_k_blocks / kGroupBlocks * kPackedGroupBytes;
  scratch.packed_p = arena.take<uint8_t>(packed_bytes);
  scratch.packed_q = arena.take<uint8_t>(packed_bytes);
  scratch.decoded = arena.take<uint8_t>(engine.tile_k_blocks * engine.decoded_block_bytes);
  const int64_t c_floats = l2_tile.pairs * (l2_tile.rows + kMaxHeight) * kCTileN;
  scratch.c = arena.take<float>(c_floats);
  scratch.c2 = sequential ? arena.take<float>(c_floats) : nullptr;
  scratch.tile = arena.take<float>(kMaxHeight * kPanelN);
  return scratch;
}

void pack_activation(const Work& work, int64_t unit) noexcept {
  const GroupWork& group = group_of(work, unit, &GroupWork::first_pack_unit);
  const int64_t tile = unit - group.first_pack_unit, row = tile * group.height;
  const ActivationSource source = activation_of(*work.problem, *work.buffers, group.rows, row);
  const int rows = static_cast<int>(std::min<int64_t>(group.height, group.rows.rows - row));
  for (int64_t k_tile = 0; k_tile < work.k_tiles(); ++k_tile)
    work.engine->pack_activation(source, rows, group.height, k_tile * work.engine->tile_k_blocks,
                                 k_tile_blocks(work, k_tile),
                                 work.activation + activation_at(work, group, k_tile, tile));
}

RowChunk row_chunk(const Work& work, int64_t index) noexcept {
  const GroupWork& group = group_of(work, index, &GroupWork::first_row_chunk);
  const int64_t row = (index - group.first_row_chunk) * work.l2_tile.rows;
  return {&group, row, std::min(work.l2_tile.rows, group.rows.rows - row)};
}

void multiply_pairs(const Work& work, const RowChunk& rows, const PanelPair* pairs, int count,
                    const Scratch& scratch, float* c) noexcept {
  const Engine& engine = *work.engine;
  const GroupWork& group = *rows.group;
  const int64_t c_stride = work.l2_tile.rows * kCTileN;
  if (uses_gemv(engine, group.rows.rows)) {
    for (int i = 0; i < count; ++i)
      engine.gemv(work.activation + activation_at(work, group, 0, 0), pairs[i],
                  i + 1 < count ? &pairs[i + 1] : nullptr, static_cast<int>(rows.rows),
                  c + i * c_stride);
    return;
  }
  const int64_t tile_begin = rows.row / group.height;
  for (int64_t k_tile = 0; k_tile < work.k_tiles(); ++k_tile) {
    const int blocks = k_tile_blocks(work, k_tile);
    for (int i = 0; i < count; ++i) {
      engine.decode(packed_k_tile(work, pairs[i].p, k_tile, scratch.packed_p),
                    packed_k_tile(work, pairs[i].q, k_tile, scratch.packed_q), blocks,
                    scratch.decoded);
      const bool last_pair = i + 1 == count;
      const bool last = last_pair && k_tile + 1 == work.k_tiles();
      Request next(work, last ? nullptr : &pairs[last_pair ? 0 : i + 1],
                   last_pair ? k_tile + 1 : k_tile);
      const int64_t lines = ceil_div(next.lines(), ceil_div(rows.rows, group.height));
      for (int64_t row = 0; row < rows.rows; row += group.height) {
        next.ask(lines);
        const int here = static_cast<int>(std::min<int64_t>(group.height, rows.rows - row));
        engine.multiply(
            work.activation + activation_at(work, group, k_tile, tile_begin + row / group.height),
            group.height, scratch.decoded, blocks, here, k_tile > 0,
            c + i * c_stride + row * kCTileN);
      }
    }
  }
}

}  // namespace dualgemm::cpu
