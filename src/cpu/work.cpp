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

// Packed groups from a block on: in place when the panel is packed, else packed into `buffer`.
const uint8_t* packed_groups(const Work& work, const PanelSource& source, int64_t begin,
                             int64_t blocks, uint8_t* buffer) noexcept {
  if (source.packed != nullptr) return source.packed + begin / kGroupBlocks * kPackedGroupBytes;
  work.table->pack_panel(source, begin, std::min(source.blocks - begin, blocks), buffer);
  return buffer;
}

// Decodes a k-tile of a panel pair. Rows are packed some blocks at a time, so that what is packed
// is still in L1 when it is decoded.
void decode_k_tile(const Work& work, const PanelPair& pair, int64_t k_tile, int blocks,
                   const Scratch& scratch) noexcept {
  const Engine& engine = *work.engine;
  const int at_once =
      pair.p.packed != nullptr || engine.blocks_packed == 0 ? blocks : engine.blocks_packed;
  for (int done = 0; done < blocks; done += at_once) {
    const int64_t begin = k_tile * engine.tile_k_blocks + done;
    const int here = std::min(at_once, blocks - done);
    engine.decode(packed_groups(work, pair.p, begin, here, scratch.packed_p),
                  packed_groups(work, pair.q, begin, here, scratch.packed_q), here,
                  scratch.decoded + done * engine.decoded_block_bytes);
  }
}

// Asks for the bytes of a k-tile of a panel pair, line by line, while another one is multiplied:
// k-tiles of a panel are read far apart in time, so that no prefetcher of the processor's has them,
// and decoding them would wait for memory.
class Request {
 public:
  // Nothing is asked for where pair is null.
  Request(const Work& work, const PanelPair* pair, int64_t k_tile) noexcept {
    if (pair == nullptr) return;
    const int64_t block = k_tile * work.engine->tile_k_blocks;
    const int64_t blocks = std::min<int64_t>(pair->p.blocks - block, work.engine->tile_k_blocks);
    for (const PanelSource* panel : {&pair->p, &pair->q}) add(*panel, block, blocks);
    begin();
  }
  Request(const Request&) = delete;  // it points into itself
  Request& operator=(const Request&) = delete;
  int64_t lines() const noexcept { return lines_; }

  void ask(int64_t count) noexcept {
    while (count > 0 && piece_ < pieces_end_) {
      const int64_t now = std::min(count, lines_left_);
      const uint8_t* at = at_;
      for (int64_t line = 0; line < now; ++line, at += kLine)
        __builtin_prefetch(at, 0, 3);  // into L1: see asks_into_l1()
      at_ = at;
      count -= now;
      lines_left_ -= now;
      if (lines_left_ > 0) return;
      piece_->first += piece_->stride;
      if (--piece_->count == 0) ++piece_;
      begin();
    }
  }

 private:
  static constexpr int64_t kLine = 64;
  // `count` runs of `lines` lines, the next one `stride` bytes behind the one before.
  struct Pieces {
    const uint8_t* first = nullptr;
    int64_t stride = 0, count = 0, lines = 0;
  };

  void add(const PanelSource& panel, int64_t block, int64_t blocks) noexcept {
    const int64_t groups = ceil_div(blocks, kGroupBlocks);
    if (panel.packed != nullptr) {
      add({panel.packed + block / kGroupBlocks * kPackedGroupBytes, 0, 1,
           ceil_div(groups * kPackedGroupBytes, kLine)});
      return;
    }
    add({panel.codes + block * 8, panel.row_bytes, panel.cols, ceil_div(blocks * 8, kLine)});
    // 16 rows of a swizzled group lie side by side.
    const uint8_t* const scales = panel.scales + block / kGroupBlocks * panel.scale_group_stride;
    if (panel.scale_row_stride == 16 && panel.scale_group_stride == 512) {
      add({scales, panel.scale_group_stride, groups, 16 * kPanelN / kLine});
    } else {
      add({scales, panel.scale_row_stride, panel.cols, ceil_div(blocks, kLine)});
    }
  }
  void add(const Pieces& pieces) noexcept {
    *pieces_end_++ = pieces;
    lines_ += pieces.count * pieces.lines;
  }
  void begin() noexcept {
    if (piece_ == pieces_end_) return;
    at_ = piece_->first;
    lines_left_ = piece_->lines;
  }

  Pieces pieces_[4];
  Pieces *piece_ = pieces_, *pieces_end_ = pieces_;
  int64_t lines_ = 0, lines_left_ = 0;
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
  const int64_t tile_begin = rows.row / group.height, tiles = ceil_div(rows.rows, group.height);
  const int last_rows = static_cast<int>(rows.rows - (tiles - 1) * group.height);
  const int64_t tile_bytes = engine.activation_bytes * group.height * engine.tile_k_blocks;
  for (int64_t k_tile = 0; k_tile < work.k_tiles(); ++k_tile) {
    const int blocks = k_tile_blocks(work, k_tile);
    for (int i = 0; i < count; ++i) {
      decode_k_tile(work, pairs[i], k_tile, blocks, scratch);
      const bool last_pair = i + 1 == count;
      const bool last = last_pair && k_tile + 1 == work.k_tiles();
      Request next(work, last ? nullptr : &pairs[last_pair ? 0 : i + 1],
                   last_pair ? k_tile + 1 : k_tile);
      const int64_t lines = ceil_div(next.lines(), tiles);
      const uint8_t* activation = work.activation + activation_at(work, group, k_tile, tile_begin);
      float* tile_c = c + i * c_stride;
      for (int64_t tile = 0; tile < tiles; ++tile) {
        next.ask(lines);
        engine.multiply(activation, group.height, scratch.decoded, blocks,
                        tile + 1 < tiles ? group.height : last_rows, k_tile > 0, tile_c);
        activation += tile_bytes;
        tile_c += group.height * kCTileN;
      }
    }
  }
}

}  // namespace dualgemm::cpu
