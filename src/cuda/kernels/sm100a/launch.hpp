// From a problem to the launches that solve it on Blackwell. Nothing here calls the CUDA runtime:
// all is decided and filled in by plain functions, whose results a GPU and an interpreter run
// alike.
#pragma once

#include <cstdint>
#include <vector>

#include "core/problem.hpp"
#include "cuda/kernels/blackwell/copies.hpp"
#include "cuda/kernels/sm100a/config.hpp"
#include "cuda/kernels/sm100a/instances.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "cuda/runtime/tensor_map.hpp"
#include "dualgemm/dualgemm.hpp"

namespace dualgemm::cuda::sm100a {

// ok, or what the kernel does not do.
Status supports(const Problem& problem);

// The compiled instance for (validated, supported) `problem` on a GPU of `num_sms` SMs.
const Instance& choose_instance(const Problem& problem, int num_sms);

const Instance* find_instance(int64_t tile_n, DataType output);  // null: not compiled

// The launches in stream order: the copies, then the kernel. All pointers of `buffers` and
// `workspace` are device memory and are not read. An operand that must be copied and has no room
// among `copies` is an error.
Expected<std::vector<KernelLaunch>> build_launches(const core::ResolvedProblem& problem,
                                                   const Buffers& buffers,
                                                   const blackwell::Copies& copies, void* workspace,
                                                   const Instance& instance,
                                                   EncodeTiled encode_tiled);

}  // namespace dualgemm::cuda::sm100a
