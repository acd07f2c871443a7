// From a problem to the launches that solve it on Hopper. Nothing here calls the CUDA runtime: all
// is decided and filled in by plain functions, whose results a GPU and an interpreter run alike.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/problem.hpp"
#include "cuda/kernels/convert/tma_operand.hpp"
#include "cuda/kernels/hopper/extents.hpp"
#include "cuda/kernels/packed/packed_weights.hpp"
#include "cuda/kernels/sm90a/config.hpp"
#include "cuda/kernels/sm90a/instances.hpp"
#include "cuda/kernels/sm90a/params.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "cuda/runtime/tensor_map.hpp"
#include "dualgemm/dualgemm.hpp"

namespace dualgemm::cuda::sm90a {

// ok, or what the kernel does not do.
Status supports(const Problem& problem);

// The compiled instance for (validated, supported) `problem` on a GPU of `num_sms` SMs, by
// tuning_table(). `prepared`: for weights as packed_weights.hpp has them.
const Instance& choose_instance(const Problem& problem, int num_sms, bool prepared);

// Likewise of sequential_instances(), for the halves of one of the two products.
const Instance& choose_sequential_instance(const Problem& problem, int num_sms);

// instances() or group_instances().
std::span<const Instance> instances_for(const Problem& problem);

// null: not compiled. Without a list: the instance among instances().
const Instance* find_instance(std::span<const Instance> compiled, int64_t tile_m, int64_t tile_n,
                              int64_t k_warpgroups, bool bf16, bool prepared);
const Instance* find_instance(int64_t tile_m, int64_t tile_n, int64_t k_warpgroups, bool bf16,
                              bool prepared);

// The instance can compute the problem, prepared weights or not.
bool is_for(const Config& config, const Problem& problem);

// How the work is dealt out to at most `max_ctas` CTAs; the same if called again with its `ctas`.
// With groups only ctas and k_tiles are set: the rest depends on what the experts have.
Schedule make_schedule(const Problem& problem, const Config& config, int64_t max_ctas);
// Whether CTAs may leave parts of a tile's sums to each other.
bool may_share(const Problem& problem, const Schedule& schedule);

// Pieces of the workspace, as offsets. Copies that the TMA unit makes necessary, or kDirect: the
// operand is read where it lies. Depends on the problem and the schedule alone.
//   data    rows or batches that are no multiple of 16 bytes apart
//   scales  linear ones in rows that are no multiple of 16 bytes apart; linear ones of one operand
//           where the other's are not; swizzled ones with k % 64 != 0, because a scale tile's
//           padding along k would be multiplied (0 * NaN is NaN); batches no multiple of 16 bytes
//           apart
// Prepared weights are never copied.
// `unaligned`: there is room for a copy of every operand; those that start at a multiple of 16
// bytes are read where they lie all the same, if nothing else forbids it.
struct WeightCopies {
  static constexpr int64_t kDirect = kNoCopy;
  int64_t gate = kDirect, up = kDirect;
  int64_t sf_gate = kDirect, sf_up = kDirect;
};
struct Workspace {
  WeightCopies weights, of_up;
  int64_t activations = 0, groups = 0, flags = 0, partials = 0;
  int64_t bytes = 0;
};
// of_up: for sequential instances; `problem` then has the halves of Gate, this one those of Up.
Workspace plan_workspace(const core::ResolvedProblem& problem, const Config& config,
                         const Schedule& schedule, bool unaligned,
                         const core::ResolvedProblem* of_up = nullptr);

// Both weights have linear scales that the TMA unit can read, if they begin at a multiple of 16
// bytes.
bool have_suitable_linear_scales(const core::ResolvedProblem& problem);

// Where Gate's product and Up's are not computed side by side, but one after the other.
struct OtherProduct {
  // For Up's halves: Gate's product, as Params::r1.
  const float* r1 = nullptr;
  // For sequential instances: the halves of Up.
  const core::ResolvedProblem* of_up = nullptr;
  const Buffers* up_buffers = nullptr;
};

// The launches in stream order: the copies, with groups their table, A's preparation, then the
// kernel, which begins while a is still being prepared. All pointers of `buffers` and `workspace`
// are device memory and are not read. An operand that must be copied and has no room in `pieces` is
// an error. `prepared`: what pack_weights_launch() has filled, if the instance is for that; the
// weights of `buffers` then do not count.
Expected<std::vector<KernelLaunch>> build_launches(
    const core::ResolvedProblem& problem, const Buffers& buffers, Workspace pieces, void* workspace,
    const Instance& instance, const Schedule& schedule, EncodeTiled encode_tiled,
    const uint8_t* prepared, const OtherProduct& other = {});

}  // namespace dualgemm::cuda::sm90a
