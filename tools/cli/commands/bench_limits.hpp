// What a strategy of `bench` could reach at best on one shape. Pure.
#pragma once

#include "tools/measure/peaks.hpp"
#include "tools/measure/throughput.hpp"
#include "tools/verify/device_run.hpp"

namespace dualgemm::cli {

// The runs of a shape take turns on so many sets of operands.
struct Rotation {
  int64_t sets = 1;
  bool from_memory = true;  // too much for the last cache: memory's bandwidth is a limit
};

// For few rows on a CPU (and always on a GPU) so many that the weights come from memory, up to a
// most. `cache_bytes`: the last cache; 0 = unknown.
Rotation rotation_for(const Problem& problem, const OperandSizes& sizes, int64_t cache_bytes,
                      bool gpu);

// The peak that limits this instruction set's arithmetic; null: none was measured for it.
double measure::Peaks::*arithmetic_peak(Isa isa, DataType a_type);

// 0 in a limit = unknown. Operands that lie in a cache are not held against memory's bandwidth.
// Whether `peak` is a limit of the problem with kernels of `isa`: the others need not be measured.
bool is_limit(double measure::Peaks::*peak, const Problem& problem, Isa isa, bool from_memory);

measure::MachineLimits limits_of(const measure::Peaks& peaks, const Problem& problem, Isa isa,
                                 bool from_memory);
measure::MachineLimits limits_of(const verify::DevicePeaks& peaks, StrategyId strategy, Isa isa,
                                 bool from_memory);

}  // namespace dualgemm::cli
