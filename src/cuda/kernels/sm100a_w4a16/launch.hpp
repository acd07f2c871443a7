// From a problem with 16-bit A to the launches that solve it on Blackwell. Nothing here calls the
// CUDA runtime: all is decided and filled in by plain functions, whose results a GPU and an
// interpreter run alike.
#pragma once

#include <cstdint>
#include <vector>

#include "core/problem.hpp"
#include "cuda/kernels/blackwell/copies.hpp"
#include "cuda/kernels/sm100a_w4a16/config.hpp"
#include "cuda/kernels/sm100a_w4a16/instances.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "cuda/runtime/tensor_map.hpp"
#include "dualgemm/dualgemm.hpp"

namespace dualgemm::cuda::sm100a_w4a16 {

// ok, or what the kernel does not do.
Status supports(const Problem& problem);

// Tiles of D, each computed by a cluster.
int64_t num_tiles(const Problem& problem, int tile_m);

// Those for groups, which do without them, too (`persistent`), or the others.
std::span<const Instance> instances_for(const Problem& problem, bool persistent = false);

// Whether the instance, one of these, multiplies A's type and has rows enough: all of the
// problem's, or as many as any has, which batch_invariant demands: the same MMA whatever m is. For
// groups each has enough, but for batch_invariant.
bool is_for(const Config& config, const Problem& problem);

// A compiled instance for a (supported) problem; null: not compiled, or not for it.
const Instance* find_instance(const Problem& problem, int64_t tile_m, bool persistent = false);

// The instance of the fewest rows among those for a problem without groups.
const Instance& fewest_rows(const Problem& problem, bool persistent);

// For a (validated, supported) problem on a GPU of `num_sms` SMs: the fewest rows, persistent if
// modelled_us(), with the copies in front, calls that faster than the best split. With groups: the
// rows whose tiles, as many as the usual rows of an expert make, keep an SM the shortest.
const Instance& choose_instance(const Problem& problem, int num_sms, bool prepared = false);

// How many CTAs share the tiles of k of each tile of D on a GPU of `num_sms` SMs: 1, 2, 4 or 8, the
// fewest among those that modelled_us() calls fastest. batch_invariant, persistent: 1.
int choose_split(const Problem& problem, const Instance& instance, int num_sms);

// The largest of 1, 2, 4 and 8 CTAs that can share the tiles of k, with `ctas` CTAs for all tiles
// of D at the most; 0: there are more tiles of D.
int largest_split(const Problem& problem, int tile_m, int64_t ctas);

// Time of a launch without groups from bytes, decoding and MMAs, as blackwell/stream_model.hpp has
// it.
double modelled_us(const Problem& problem, const Instance& instance, int split, int num_sms);

// CTAs of a persistent grid, at most `most`: those that have work; with groups, if the experts'
// rows make as many tiles as can be while each one's follow each other.
int64_t persistent_ctas(const Problem& problem, int tile_m, int64_t most);

// The copies that the TMA unit makes necessary. Persistent CTAs, as those of groups, read linear
// scales where they lie if their rows do so at multiples of 16 bytes.
blackwell::Copies plan_copies(const core::ResolvedProblem& problem, bool unaligned, bool prepared,
                              bool persistent = false);

// Copies first, behind them the table of groups.
int64_t workspace_bytes(const Problem& problem, const blackwell::Copies& copies,
                        const Instance& instance);

// One tile for a cluster: the launches in stream order, the copies, then the kernel. All pointers
// of `buffers` and `workspace` are device memory and are not read. An operand that must be copied
// and has no room among `copies` is an error, and so is a split that leaves a CTA nothing.
// `packed`: prepared weights behind the first header (blackwell/packed_weights.hpp), or null.
Expected<std::vector<KernelLaunch>> build_launches(const core::ResolvedProblem& problem,
                                                   const Buffers& buffers,
                                                   const blackwell::Copies& copies, void* workspace,
                                                   const Instance& instance, int split,
                                                   EncodeTiled encode_tiled,
                                                   const uint8_t* packed = nullptr);

// The same for `ctas` persistent CTAs: the copies, with groups the table, then the kernel.
Expected<std::vector<KernelLaunch>> build_persistent_launches(
    const core::ResolvedProblem& problem, const Buffers& buffers, const blackwell::Copies& copies,
    void* workspace, const Instance& instance, int64_t ctas, EncodeTiled encode_tiled,
    const uint8_t* packed = nullptr);

}  // namespace dualgemm::cuda::sm100a_w4a16
