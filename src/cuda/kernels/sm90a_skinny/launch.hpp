// From a problem of few rows to the launches that solve it on Hopper. Nothing here calls the CUDA
// runtime: plain functions, whose results a GPU and an interpreter run alike.
#pragma once

#include <cstdint>

#include "core/problem.hpp"
#include "cuda/kernels/sm90a_skinny/instances.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "dualgemm/dualgemm.hpp"

namespace dualgemm::cuda::sm90a_skinny {

// ok, or what the kernel does not do: more than 8 rows, k that is no multiple of 64, and what
// is no multiple apart of the bytes that it reads at a time: rows and batches of codes of weights
// 16, of a 8, of halves 16, of linear scales of weights 4; rows of 2^30 bytes and more, scales of
// 2^32 bytes and more.
Status supports(const Problem& problem);

// The compiled instance for (validated, supported) `problem` on a GPU of `num_sms` SMs.
const Instance& choose_instance(const Problem& problem, int num_sms);

// Whether it is the quicker one of the two kernels of this GPU, as far as was measured: its tiles
// keep the SMs about equally busy (one for each CTA, or so many that the busiest has at most 1.4
// times the mean; the wgmma kernel's CTAs share tiles), and a, which every tile decodes again, is
// at most two rows where there are more than four tiles for each CTA.
bool is_quicker(const Problem& problem, int num_sms);

// null: not compiled.
const Instance* find_instance(DataType a_type, int64_t cols);

// CTAs of a launch: one a tile, at most `most`.
int64_t ctas_for(const Problem& problem, const Config& config, int64_t most);

// The launch. All pointers of `buffers` are device memory and are not read. Operands that begin at
// an address which the kernel cannot read are an error.
Expected<KernelLaunch> build_launch(const core::ResolvedProblem& problem, const Buffers& buffers,
                                    const Instance& instance, int64_t ctas);

}  // namespace dualgemm::cuda::sm90a_skinny
