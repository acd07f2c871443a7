// From a problem with few rows to the launches that solve it on Blackwell. Nothing here calls the
// CUDA runtime: all is decided and filled in by plain functions, whose results a GPU and an
// interpreter run alike.
#pragma once

#include <cstdint>
#include <vector>

#include "core/problem.hpp"
#include "cuda/kernels/sm100a/launch.hpp"
#include "cuda/kernels/sm100a_skinny/config.hpp"
#include "cuda/kernels/sm100a_skinny/instances.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "cuda/runtime/tensor_map.hpp"
#include "dualgemm/dualgemm.hpp"

namespace dualgemm::cuda::sm100a_skinny {

// ok, or what the kernel does not do: as sm100a::supports(), and up to kMaxRows rows.
Status supports(const Problem& problem);

// The compiled instance for (validated, supported) `problem` on a GPU of `num_sms` SMs: the fewest
// rows that hold A's, the width that modelled_us() calls faster, of equal ones the wider.
const Instance& choose_instance(const Problem& problem, int num_sms);

// Whether modelled_us() calls that instance no slower than the sm_100a kernel's for the problem.
bool is_faster(const Problem& problem, int num_sms);

// For a (supported) problem; null: not compiled, or fewer rows than the problem has.
const Instance* find_instance(const Problem& problem, int64_t tile_m, int64_t tile_n);

// The launches in stream order: the copies, then the kernel. All pointers of `buffers` and
// `workspace` are device memory and are not read. An operand that must be copied and has no room
// among `copies` (sm100a::plan_copies()) is an error, and so is an instance of fewer rows.
Expected<std::vector<KernelLaunch>> build_launches(const core::ResolvedProblem& problem,
                                                   const Buffers& buffers,
                                                   const sm100a::Copies& copies, void* workspace,
                                                   const Instance& instance,
                                                   EncodeTiled encode_tiled);

}  // namespace dualgemm::cuda::sm100a_skinny
