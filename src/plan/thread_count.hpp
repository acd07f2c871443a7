// How many threads a call on the CPU is worth: a pure function.
#pragma once

#include "dualgemm/types.hpp"

namespace dualgemm::plan {

// What a thread must find to do at least. To wake it costs the caller some 5 us, and 50 us pass
// before it has begun; a call for which that does not pay has one thread, which cannot be held up
// by another.
inline constexpr double kThreadMicroseconds = 20.0;

// About how long one thread takes for the whole call; within a factor of two on the processors of
// docs/performance.md, which is enough to tell small calls from large ones.
double one_thread_microseconds(const Problem& problem, StrategyId strategy, Isa isa) noexcept;

// 1 .. cores.
int worthwhile_threads(const Problem& problem, StrategyId strategy, Isa isa, int cores) noexcept;

}  // namespace dualgemm::plan
