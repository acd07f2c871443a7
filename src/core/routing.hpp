// Rows of tokens to their experts and back: the rules of experts.hpp, and what the CPU does.
#pragma once

#include <cstdint>
#include <vector>

#include "core/memory_range.hpp"
#include "core/problem.hpp"
#include "dualgemm/experts.hpp"

namespace dualgemm::core {

// The arrays of a call, the outputs last, `outputs` of them.
struct RoutingArrays {
  std::vector<MemoryRange> all;
  size_t outputs;
};
// Precondition: validate(problem).
RoutingArrays arrays_of(const RoutingProblem& problem, const RoutingBuffers& buffers);
RoutingArrays arrays_of(const CombineProblem& problem, const CombineBuffers& buffers);

// Nulls, alignment, the outputs apart from all else. Reads nothing but addresses.
Status check_arrays(const RoutingProblem& problem, const RoutingBuffers& buffers);
Status check_arrays(const CombineProblem& problem, const CombineBuffers& buffers);

// Rows of experts, one for each id.
inline int64_t routed_rows(const RoutingProblem& p) noexcept { return p.tokens * p.top_k; }
inline int64_t routed_rows(const CombineProblem& p) noexcept { return p.tokens * p.top_k; }

// Preconditions: validate() and check_arrays().
Status route_on_cpu(const RoutingProblem& problem, const RoutingBuffers& buffers);
Status combine_on_cpu(const CombineProblem& problem, const CombineBuffers& buffers, int threads);

}  // namespace dualgemm::core
