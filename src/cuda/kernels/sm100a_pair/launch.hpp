// From a problem to the launches that solve it by pairs of CTAs. What must be copied first:
// blackwell/copies.hpp.
#pragma once

#include <cstdint>
#include <vector>

#include "core/problem.hpp"
#include "cuda/kernels/blackwell/copies.hpp"
#include "cuda/kernels/sm100a_pair/config.hpp"
#include "cuda/kernels/sm100a_pair/instances.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "cuda/runtime/tensor_map.hpp"
#include "dualgemm/dualgemm.hpp"

namespace dualgemm::cuda::sm100a_pair {

// ok, or what the kernel does not do.
Status supports(const Problem& problem);

// null: not compiled.
const Instance* find_instance(int64_t tile_n, DataType output, bool prepared = false,
                              bool persistent = false);

// The name of the PTX file that has the kernel.
const char* module_of(const Config& config);

// The launches in stream order: the copies, then the kernel. All pointers of `buffers` and
// `workspace` are device memory and are not read. An operand that must be copied and has no room
// among `copies` is an error. `packed`: prepared weights behind the first header, for instances
// that take them; null for the others. `most_ctas`: of the grid of persistent ones.
Expected<std::vector<KernelLaunch>> build_launches(
    const core::ResolvedProblem& problem, const Buffers& buffers, const blackwell::Copies& copies,
    void* workspace, const Instance& instance, EncodeTiled encode_tiled,
    const uint8_t* packed = nullptr, int64_t most_ctas = kPairCtas);

}  // namespace dualgemm::cuda::sm100a_pair
