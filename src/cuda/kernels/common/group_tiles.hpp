// The launch that makes the table of tiles of a grouped problem, and what kernels are told that
// make their own: device/group_tiles.hpp. Nothing here calls the CUDA runtime or reads an expert's
// rows.
#pragma once

#include <cstdint>

#include "core/problem.hpp"
#include "cuda/device/group_tiles.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "dualgemm/types.hpp"

namespace dualgemm::cuda {

// ok, or what no kernel does of groups: rows that are too many to be counted in 32 bits.
Status check_groups(const Problem& problem);

// The most tiles of tile_m rows that the experts can have, whatever their rows, if each one's
// follow each other.
int64_t most_group_tiles(const Problem& problem, int64_t tile_m);

// The most there can be where rows name their experts, too: each row may then have one of its own.
int64_t most_listed_tiles(const Problem& problem, int64_t tile_m);

// Bytes of the table.
int64_t group_tiles_bytes(const Problem& problem, int64_t tile_m);

// What the kernel that makes the table reads.
GroupRows group_rows_of(const Problem& problem, const Buffers& buffers, int64_t tile_m);

// Fills `table` (device memory, at a multiple of 16 bytes). The kernel behind it may overlap with
// it; whether it overlaps with the one in front is left to the caller.
KernelLaunch group_tiles_launch(const Problem& problem, const Buffers& buffers, int64_t tile_m,
                                void* table);

// The filled table, as the kernel behind gets it; without groups, or for a kernel that makes its
// own (null): none.
GroupTiles group_tiles_of(const Problem& problem, const Buffers& buffers, const void* table);

}  // namespace dualgemm::cuda
