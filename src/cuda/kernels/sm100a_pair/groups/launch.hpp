// From groups of experts to the launches that solve them by pairs of CTAs. Nothing here calls the
// CUDA runtime. Operands and their copies: blackwell/group_operands.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "core/problem.hpp"
#include "cuda/kernels/blackwell/copies.hpp"
#include "cuda/kernels/sm100a_pair/groups/config.hpp"
#include "cuda/kernels/sm100a_pair/groups/instances.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "cuda/runtime/tensor_map.hpp"
#include "dualgemm/dualgemm.hpp"

namespace dualgemm::cuda::sm100a_pair_groups {

// ok, or what the kernel does not do: no groups, more than it can count, bits that must not depend
// on m, which are the other kernel's.
Status supports(const Problem& problem);

const Instance& instance_for(DataType output);

// CTAs of a grid, at most `most`, but one pair: those that have work if the experts' rows make as
// many tiles as can be while each one's follow each other.
int64_t ctas_for(const Problem& problem, int64_t most);

// Copies first, behind them the table of groups.
int64_t workspace_bytes(const Problem& problem, const blackwell::Copies& copies);

// The launches in stream order: the copies, the table, then the kernel on `ctas` CTAs. All pointers
// of `buffers` and `workspace` are device memory and are not read. `packed`: prepared weights
// behind the first header (blackwell/packed_weights.hpp), or null.
Expected<std::vector<KernelLaunch>> build_launches(const core::ResolvedProblem& problem,
                                                   const Buffers& buffers,
                                                   const blackwell::Copies& copies, void* workspace,
                                                   const Instance& instance, int64_t ctas,
                                                   EncodeTiled encode_tiled, const uint8_t* packed);

// Clocks of a launch on a GPU that runs `pairs` pairs at once, from the rows of an expert that the
// host knows of: blackwell/group_model.hpp.
double modelled_clocks(const Problem& problem, int64_t pairs);

}  // namespace dualgemm::cuda::sm100a_pair_groups
