// From a problem with few rows to the launches that solve it on Blackwell. Nothing here calls the
// CUDA runtime: all is decided and filled in by plain functions, whose results a GPU and an
// interpreter run alike.
#pragma once

#include <cstdint>
#include <vector>

#include "core/problem.hpp"
#include "cuda/kernels/blackwell/copies.hpp"
#include "cuda/kernels/sm100a_skinny/config.hpp"
#include "cuda/kernels/sm100a_skinny/instances.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "cuda/runtime/tensor_map.hpp"
#include "dualgemm/dualgemm.hpp"

namespace dualgemm::cuda::sm100a_skinny {

// ok, or what the kernel does not do: blackwell/checks.hpp, and more than kMaxRows rows; groups of
// any number.
Status supports(const Problem& problem);

// The instances for groups, which also serve problems without them (`persistent`), or the others.
// Among the others those for prepared weights have fewer rows.
std::span<const Instance> instances_for(const Problem& problem, bool prepared = false,
                                        bool persistent = false);

// The compiled instance for (validated, supported) `problem` on a GPU of `num_sms` SMs. Without
// groups: the fewest rows that hold A's, the width that modelled_us() calls faster, among equal
// ones the wider; with prepared weights the narrower, whose rings hold more of them before A is
// there; or persistent CTAs, if it calls them faster still. With groups: the rows whose tiles, as
// many as the usual rows of an expert make, keep an SM the shortest; one number of rows where bits
// must not depend on m.
const Instance& choose_instance(const Problem& problem, int num_sms, bool prepared = false);

// Without groups: the tile that modelled_us() calls the fastest, or null where none has the rows;
// and the persistent instance of the fewest rows.
const Instance* fastest_tile(const Problem& problem, int num_sms, bool prepared);
const Instance& persistent_instance(const Problem& problem);

// Time of a launch without groups, but for the gap in front of it, as blackwell/stream_model.hpp
// has it, and of the copies before it.
double modelled_us(const Problem& problem, const Instance& instance, int num_sms, bool prepared);

// Clocks of a launch for groups, of the instance that choose_instance() takes:
// blackwell/group_model.hpp.
double modelled_group_clocks(const Problem& problem, int num_sms);

// For a (supported) problem; null: not compiled, or fewer rows than the problem has without groups,
// or bits would depend on m where they must not.
const Instance* find_instance(const Problem& problem, int64_t tile_m, int64_t tile_n,
                              bool prepared = false, bool persistent = false);

// CTAs of a grid, at most `most` persistent ones: those that have work; with groups, if the
// experts' rows make as many tiles as can be while each one's follow each other.
int64_t ctas_for(const Problem& problem, const Config& config, int64_t most);

// The copies that the TMA unit makes necessary. Persistent CTAs, as those of groups, read linear
// scales where they lie if their rows do so at multiples of 16 bytes.
blackwell::Copies plan_copies(const core::ResolvedProblem& problem, bool unaligned,
                              bool prepared = false, bool persistent = false);

// Copies first, behind them the table of groups.
int64_t workspace_bytes(const Problem& problem, const blackwell::Copies& copies,
                        const Instance& instance);

// The launches in stream order: the copies, of groups the table, then the kernel on `ctas` CTAs.
// All pointers of `buffers` and `workspace` are device memory and are not read. An operand that
// must be copied and has no room among `copies` is an error, and so is an instance of fewer rows,
// or one that is not for groups with them. `packed`: prepared weights behind the first header
// (blackwell/packed_weights.hpp), which instances for them need; persistent ones take both.
Expected<std::vector<KernelLaunch>> build_launches(const core::ResolvedProblem& problem,
                                                   const Buffers& buffers,
                                                   const blackwell::Copies& copies, void* workspace,
                                                   const Instance& instance, int64_t ctas,
                                                   EncodeTiled encode_tiled,
                                                   const uint8_t* packed = nullptr);

}  // namespace dualgemm::cuda::sm100a_skinny
