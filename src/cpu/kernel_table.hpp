// What one instruction set gives to the CPU backend: kernels over shared layouts. The loops,
// threads and strategies are written once against this table; src/cpu/isa/ fills it.
//
// Layouts. A "panel" is kPanelN = 16 columns of one weight matrix; a tile pairs a panel P with a
// panel Q: for the fused product P is of Gate and Q of Up, for a plain product both are of one
// matrix.
//
//   packed panel  groups of 4 blocks (64 k): 4 x 128 code bytes, then 64 scale bytes; 0.5625 bytes
//                 a value, the same for every instruction set. Code bytes of a block: two rows of
//                 16 dwords; dword c of row j holds bytes 4j .. 4j+3 of column c's 8 bytes, so its
//                 low nibbles are k = 8j + 0,2,4,6 and its high nibbles k = 8j + 1,3,5,7. Scale
//                 bytes: dword c = the 4 blocks' E4M3 scales of column c. What lies beyond k in the
//                 last group is 0.
//   activation    row tiles of `height` rows; per block activation_bytes * height bytes, private to
//                 the engine (which may permute k as the nibbles are).
//   k-tile        some blocks of a panel pair, decoded for the multiply kernel; private to the
//                 engine and sized for the L1 cache.
//   c tile        rows x kCTileN floats: 16 accumulators of P, then 16 of Q.
//
// Every engine but AMX's and those for bf16 adds the 16-blocks of k in ascending order with one
// rounding a block, so that all of them give the same bits (docs/numerics.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/resolved_activation.hpp"
#include "dualgemm/types.hpp"

namespace dualgemm::cpu {

inline constexpr int kPanelN = 16;
inline constexpr int kCTileN = 2 * kPanelN;
inline constexpr int kGroupBlocks = 4;  // blocks whose scales share a dword
inline constexpr int kBlockCodeBytes = kPanelN * 8;
inline constexpr int kPackedGroupBytes = kGroupBlocks * (kBlockCodeBytes + kPanelN);
inline constexpr int kMaxHeight = 32;  // upper bound of Engine::mr and Engine::gemv_rows

// Where one weight panel lies: packed, or as rows in the caller's memory. Rows at and beyond `cols`
// repeat the last valid one; nothing is read past a row's k values or past a scale that exists.
struct PanelSource {
  const uint8_t* packed =
      nullptr;  // all groups of the panel; if set, only `blocks` counts beside it
  const uint8_t* codes = nullptr;  // first byte of the panel's first row
  int64_t row_bytes = 0;
  const uint8_t* scales = nullptr;  // of the panel's first row, block 0
  int64_t scale_row_stride = 0;     // bytes from one row to the next (swizzled_128x4: 16)
  int64_t scale_group_stride = 0;   // bytes from 4 blocks to the next 4 (linear: 4, swizzled: 512)
  int cols = kPanelN;               // 1 .. 16
  int64_t blocks = 0;               // k / 16
};

struct PanelPair {
  PanelSource p, q;
};

// The same for one row tile of the activation. It may begin at any row of a swizzled tile, because
// the rows of one expert may (Buffers::row_experts).
struct ActivationSource {
  DataType type = DataType::kE2M1;
  const uint8_t* data = nullptr;   // first row
  const int32_t* index = nullptr;  // the row of A that each row is; null: they follow each other
  int64_t row_bytes = 0;
  const uint8_t* scales = nullptr;  // kE2M1: of the first row, block 0
  int64_t scale_row_stride = 0;     // linear: bytes from one row to the next
  int64_t scale_tile_stride = 0;    // swizzled: bytes from 128 rows to the next 128; linear: 0
  int scale_tile_row = 0;           // swizzled: the first row, counted from one that begins a tile
  int64_t scale_group_stride = 0;
  int64_t blocks = 0;  // k / 16

  // Rows of A from the first one to row r of the tile.
  int64_t rows_to(int r) const { return index != nullptr ? int64_t{index[r]} - index[0] : r; }
  const uint8_t* row(int r) const { return data + rows_to(r) * row_bytes; }
};

// How one kind of activation is multiplied with packed weights.
struct Engine {
  int mr;             // rows of a tile
  int tile_k_blocks;  // of a k-tile, what is decoded at a time; a multiple of kGroupBlocks
  int block_step;     // multiply's block counts are padded (with zeros) to a multiple of this
  int64_t decoded_block_bytes;  // of a panel pair
  int64_t activation_bytes;     // per row and block

  // Blocks [block_begin, block_begin + blocks) of `rows` <= height rows; rows beyond are zero.
  void (*pack_activation)(const ActivationSource& source, int rows, int height, int64_t block_begin,
                          int blocks, uint8_t* packed);
  // p, q: packed groups that start at the same block.
  void (*decode)(const uint8_t* p, const uint8_t* q, int blocks, uint8_t* decoded);
  // c (+)= activation tile x decoded k-tile; `accumulate` false starts from 0.
  void (*multiply)(const uint8_t* activation, int height, const uint8_t* decoded, int blocks,
                   int rows, bool accumulate, float* c);
  // All blocks for rows <= gemv_rows without the detour through a decoded k-tile; the same bits as
  // multiply. Null: not offered. The activation has height `rows`. next: the pair that follows,
  // whose bytes are asked for on the way; null: none.
  void (*gemv)(const uint8_t* activation, const PanelPair& pair, const PanelPair* next, int rows,
               float* c);
  int gemv_rows = 4;  // at the most kMaxHeight
  // Rows of weights are packed and decoded so many blocks at a time, a multiple of kGroupBlocks and
  // block_step; block b's decoded bytes must begin at b * decoded_block_bytes. 0: a whole k-tile.
  int blocks_packed = 0;
  int64_t most_c_bytes = int64_t{1} << 40;  // of the c tiles that share a k-tile of rows
};

// What the sums of one operand's panel become before the activation: alpha * row scale * sum +
// bias.
struct PanelFactors {
  float alpha;
  const float* bias;  // 16 columns; -0 adds nothing
};

struct KernelTable {
  Isa isa;
  const Engine* e2m1;            // NVFP4 activations
  const Engine* f32;             // fp16, bf16, fp32 activations
  const Engine* bf16 = nullptr;  // bf16 activations, in an order of its own; null: f32

  // Row-major panel -> packed groups, blocks [block_begin, block_begin + blocks) rounded up to
  // whole groups; block_begin is a multiple of kGroupBlocks.
  void (*pack_panel)(const PanelSource& source, int64_t block_begin, int64_t blocks,
                     uint8_t* packed);

  // out[r*16 + c] = act(g) * u with g = alpha_p * s_r * p[r][c] + bias_p[c] and u likewise from q,
  // 16 columns; row strides in floats.
  void (*activate)(const core::ResolvedActivation& act, const float* p, int64_t stride_p,
                   const float* q, int64_t stride_q, int rows, const PanelFactors& factors_p,
                   const PanelFactors& factors_q, const float* row_scale, float* out);

  // out[r*16 + c] = alpha * s_r * sums[r][c] + bias[c]: one product without an activation.
  void (*apply_factors)(const float* sums, int64_t stride, int rows, const PanelFactors& factors,
                        const float* row_scale, float* out);

  void (*f32_to_f16)(const float* in, uint16_t* out, int count);
};

// Null when this build lacks the instruction set (another architecture).
const KernelTable* kernel_table(Isa isa) noexcept;

}  // namespace dualgemm::cpu
