// What `ptxsim speed` runs, as PTX.
#pragma once

#include <cstdint>
#include <string>

namespace ptxsim::cli {

// A loop of integer, logic, compare, select and FP32 instructions, as compilers emit for address
// and epilogue code: scalar(u64 out, u32 count, u32 lanes).
extern const char* const kScalarPtx;

// The inner part of a tiled SGEMM: square tiles of as many columns as the block has, written, then
// read by rows and by columns between barriers: tiled(u64 out, u32 rounds).
extern const char* const kTiledPtx;

// A whole tiled SGEMM, its loop statement for statement as nvcc 13.0 makes it: sgemm(u64 a, u64 b,
// u64 c, u32 n), square tiles of `side` columns, a thread for each element of C. The matrices are
// square, n a multiple of `side`.
std::string sgemm_ptx(uint32_t side);

// Eight K = 64 steps of one 128x128 tile: tile(u32 repeats). Operands: any codes and scales do, as
// the time does not depend on them; shared memory is filled with a pattern of finite scales.
extern const char* const kTilePtx;

}  // namespace ptxsim::cli
