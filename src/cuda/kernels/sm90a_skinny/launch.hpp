// From a problem of few rows to the launches that solve it on Hopper. Nothing here calls the CUDA
// runtime: plain functions, whose results a GPU and an interpreter run alike.
#pragma once

#include <cstdint>
#include <vector>

#include "core/problem.hpp"
#include "cuda/kernels/sm90a_skinny/instances.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "dualgemm/dualgemm.hpp"

namespace dualgemm::cuda::sm90a_skinny {

// ok, or what the kernel does not do: more than 8 rows (16) without groups, k that is no multiple
// of 64, and what is no multiple apart of the bytes that it reads at a time: rows and batches of
// codes of weights 16, of a 8, of halves 16, of linear scales of weights 4; rows of 2^30 bytes and
// more, scales of 2^32 bytes and more. `prepared`: the limit in brackets; of weights as
// packed/packed_weights.hpp has them only n and k count.
Status supports(const Problem& problem, bool prepared);

// instances() or group_instances().
std::span<const Instance> instances_for(const Problem& problem);

// The compiled instance for (validated, supported) `problem` on a GPU of `num_sms` SMs.
const Instance& choose_instance(const Problem& problem, int num_sms, bool prepared);

// Whether it is the faster of the two kernels of this GPU, as far as was measured: its tiles
// keep the SMs about equally busy (one for each CTA, or so many that the busiest has at most 1.4
// times the mean, with prepared weights 1.5; the wgmma kernel's CTAs share tiles), and A, which
// every tile decodes again, does not meet more than four tiles for each CTA where weights are not
// prepared or 9 to 16 rows are halves, three where those are NVFP4; prepared up to 8 rows always.
// With groups: if experts usually have so few rows.
bool is_faster(const Problem& problem, int num_sms, bool prepared);

// For so many columns of D and `problem`'s type and rows of A; groups may have any tile's rows.
// null: not compiled.
const Instance* find_instance(const Problem& problem, int64_t cols, bool prepared);
const Instance* find_instance(const Problem& problem, int64_t rows, int64_t cols, bool prepared);

// CTAs of a launch: one a tile (of groups: that there may be), at most `most`.
int64_t ctas_for(const Problem& problem, const Config& config, int64_t most);

// The instance that a launch of so many CTAs is: where they have more than one tile, the one of
// many_instances() with the same tile, if there is one.
const Instance& launched_instance(const Problem& problem, const Instance& instance, int64_t ctas);

// How the units of 8 columns of a batch are dealt out: in whole waves of tiles as wide as the
// Config says, and what is left for less than such a tile a CTA in narrower ones, one a CTA, where
// the kernel has them and there is one batch.
struct Split {
  int64_t tiles, wide_tiles;  // of one batch
  int64_t narrow_units;       // of those after the wide ones; 0: there are none
};
Split split_of(const Problem& problem, const Config& config, int64_t ctas);

// For the table of groups' tiles, unless they are so few that CTAs find them by themselves
// (kOwnTiles, kOwnExperts) even where rows name their experts; without groups nothing.
int64_t workspace_bytes(const Problem& problem, const Instance& instance);

// The launches in stream order: with groups their table, in the workspace, if they need one, then
// the kernel. All pointers of `buffers` and `workspace` are device memory and are not read.
// Operands that begin at an address which the kernel cannot read are an error. `prepared`: instead
// of the weights of `buffers`, if the instance is for that.
Expected<std::vector<KernelLaunch>> build_launches(const core::ResolvedProblem& problem,
                                                   const Buffers& buffers, void* workspace,
                                                   const Instance& instance, int64_t ctas,
                                                   const uint8_t* prepared);

}  // namespace dualgemm::cuda::sm90a_skinny
