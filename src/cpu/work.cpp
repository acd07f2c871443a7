#include "cpu/work.hpp"

#include <algorithm>

namespace dualgemm::cpu {
namespace {

using core::ceil_div;

// gemv takes a group whole; its activation tile is exactly as high as the group.
int tile_height(const Engine& engine, int64_t rows) noexcept {
  return uses_gemv(engine, rows) ? static_cast<int>(rows) : engine.mr;
}

// The packed activation is slab-major, so that one slab of a row block is contiguous:
// [slab][row tile][block of the slab][height x activation_bytes].
int64_t activation_at(const Work& work, const GroupWork& group, int64_t slab,
                      int64_t tile) noexcept {
  const int64_t tile_bytes =
      work.engine->activation_bytes * group.height * work.engine->slab_blocks;
  return group.activation_offset + (slab * group.tiles + tile) * tile_bytes;
}

int slab_blocks(const Work& work, int64_t slab) noexcept {
  const int64_t begin = slab * work.engine->slab_blocks;
  const int64_t left = padded_blocks(work.blocks(), *work.engine) - begin;
  return static_cast<int>(std::min<int64_t>(left, work.engine->slab_blocks));
}

const GroupWork& group_of(const Work& work, int64_t index, int64_t GroupWork::*first) noexcept {
  const GroupWork *begin = work.groups, *end = begin + work.num_groups;
  const GroupWork* after = std::upper_bound(
      begin, end, index, [&](int64_t i, const GroupWork& g) { return i < g.*first; });
  return *(after - 1);
}

// The packed groups of one slab: in place when the panel is packed, else packed into `buffer`.
const uint8_t* slab_of(const Work& work, const PanelSource& source, int64_t slab,
                       uint8_t* buffer) noexcept {
  const int64_t begin = slab * work.engine->slab_blocks;
  if (source.packed != nullptr) return source.packed + begin / kGroupBlocks * kPackedGroupBytes;
  work.table->pack_panel(
      source, begin, std::min<int64_t>(source.blocks - begin, work.engine->slab_blocks), buffer);
  return buffer;
}

}  // namespace

bool uses_gemv(const Engine& engine, int64_t group_rows) noexcept {
  return engine.gemv != nullptr && group_rows <= kGemvRows;
}

int64_t padded_blocks(int64_t blocks, const Engine& engine) noexcept {
  return ceil_div(blocks, engine.block_step) * engine.block_step;
}

int64_t max_row_tiles(const Problem& problem, const Engine& engine) noexcept {
  if (problem.grouping == Grouping::kContiguous) return problem.m / engine.mr + problem.l;
  return problem.l * ceil_div(problem.m, engine.mr);
}

int64_t activation_bytes(const Problem& problem, const Engine& engine) noexcept {
  const int64_t slabs = ceil_div(problem.k / kSfVec, engine.slab_blocks);
  return max_row_tiles(problem, engine) * engine.mr * slabs * engine.slab_blocks *
         engine.activation_bytes;
}

void list_groups(Work& work) noexcept {
  core::RowGroups groups(work.problem->problem, *work.buffers);
  core::RowGroup rows;
  int64_t offset = 0;
  work.num_groups = work.num_pack_units = work.num_row_blocks = 0;
  while (groups.next(rows)) {
    if (rows.rows == 0) continue;  // an expert without tokens
    GroupWork& group = work.groups[work.num_groups++];
    group.rows = rows;
    group.height = tile_height(*work.engine, rows.rows);
    group.tiles = ceil_div(rows.rows, group.height);
    group.activation_offset = offset;
    group.first_pack_unit = work.num_pack_units;
    group.first_row_block = work.num_row_blocks;
    work.num_pack_units += group.tiles;
    work.num_row_blocks += ceil_div(rows.rows, work.blocking.rows);
    offset += group.tiles * group.height * work.slabs() * work.engine->slab_blocks *
              work.engine->activation_bytes;
  }
  work.activation_bytes = offset;
}

Scratch take_scratch(Arena& arena, const Engine& engine, const Blocking& blocking,
                     bool sequential) noexcept {
  Scratch scratch;
  const int64_t slab_bytes = engine.slab_blocks / kGroupBlocks * kPackedGroupBytes;
  scratch.slab_p = arena.take<uint8_t>(slab_bytes);
  scratch.slab_q = arena.take<uint8_t>(slab_bytes);
  scratch.decoded = arena.take<uint8_t>(engine.slab_blocks * engine.decoded_block_bytes);
  const int64_t c_floats = blocking.pairs * (blocking.rows + kMaxHeight) * kCTileN;
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
  for (int64_t slab = 0; slab < work.slabs(); ++slab)
    work.engine->pack_activation(source, rows, group.height, slab * work.engine->slab_blocks,
                                 slab_blocks(work, slab),
                                 work.activation + activation_at(work, group, slab, tile));
}

RowBlock row_block(const Work& work, int64_t index) noexcept {
  const GroupWork& group = group_of(work, index, &GroupWork::first_row_block);
  const int64_t row = (index - group.first_row_block) * work.blocking.rows;
  return {&group, row, std::min(work.blocking.rows, group.rows.rows - row)};
}

void multiply_pairs(const Work& work, const RowBlock& rows, const PanelPair* pairs, int count,
                    const Scratch& scratch, float* c) noexcept {
  const Engine& engine = *work.engine;
  const GroupWork& group = *rows.group;
  const int64_t c_stride = work.blocking.rows * kCTileN;
  if (uses_gemv(engine, group.rows.rows)) {
    for (int i = 0; i < count; ++i)
      engine.gemv(work.activation + activation_at(work, group, 0, 0), pairs[i],
                  i + 1 < count ? &pairs[i + 1] : nullptr, static_cast<int>(rows.rows),
                  c + i * c_stride);
    return;
  }
  const int64_t tile_begin = rows.row / group.height;
  for (int64_t slab = 0; slab < work.slabs(); ++slab) {
    const int blocks = slab_blocks(work, slab);
    for (int i = 0; i < count; ++i) {
      engine.decode(slab_of(work, pairs[i].p, slab, scratch.slab_p),
                    slab_of(work, pairs[i].q, slab, scratch.slab_q), blocks, scratch.decoded);
      for (int64_t row = 0; row < rows.rows; row += group.height) {
        const int here = static_cast<int>(std::min<int64_t>(group.height, rows.rows - row));
        engine.multiply(
            work.activation + activation_at(work, group, slab, tile_begin + row / group.height),
            group.height, scratch.decoded, blocks, here, slab > 0,
            c + i * c_stride + row * kCTileN);
      }
    }
  }
}

}  // namespace dualgemm::cpu
