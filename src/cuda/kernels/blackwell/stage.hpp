// What the Blackwell kernels have in common of a stage along K, of an SM and of their epilogues.
// Host and device.
#pragma once

#include <cstdint>

namespace dualgemm::cuda::blackwell {

inline constexpr int kTileK = 256;  // elements along K per stage: 128 bytes, one swizzle atom
inline constexpr int kMmaK = 64;    // elements along K per MMA
inline constexpr int kMmaSteps = kTileK / kMmaK;
inline constexpr int kRowBytes = kTileK / 2;  // of one row of a stage
inline constexpr int kRowScaleBytes =
    kTileK / 16;                             // of one row of a stage, where scales lie in rows
inline constexpr int kScaleTileBytes = 512;  // 128 rows x 4 scales: K = 64
inline constexpr int kScaleTileRows = 128;   // rows that share a scale tile
inline constexpr int kScaleTileCols = 4;     // TMEM columns of a scale tile
inline constexpr int kSmemBytes =
    227 * 1024;  // of one CTA (cudaDevAttrMaxSharedMemoryPerBlockOptin)
inline constexpr int kSwizzleAlignment = 1024;                // of a 128-byte swizzle atom
inline constexpr int kSmemReserve = kSwizzleAlignment + 256;  // aligning by hand; barriers
inline constexpr int kTmemCols = 512;                         // of one SM

inline constexpr int kCtaRows = 128;      // of D and A per CTA, where A's rows are the MMA's M
inline constexpr int kPairCtas = 2;       // of a cluster whose two tensor cores share MMAs
inline constexpr int kEpilogueCols = 16;  // of each accumulator that a thread holds at a time

}  // namespace dualgemm::cuda::blackwell
