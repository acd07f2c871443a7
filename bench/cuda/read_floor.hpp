// The floor of every kernel that reads the weights once: a plain read of the same packed bytes.
#pragma once

#include "bench/cuda/cold_sets.hpp"
#include "bench/cuda/stopwatch.hpp"
#include "cuda/kernels/common/read_bytes.hpp"

namespace dualgemm::bench {

struct ReadFloor {
  cuda::RecordedCalls recorded;  // one read of each set
  int64_t bytes = 0;             // of a set
  cuda::ReadShape shape;         // that was the fastest of several
};

// One launch reads a set whole: codes and scales of both weights lie one behind the other.
// `sum`: one word of device memory.
Expected<ReadFloor> make_read_floor(ColdSets& sets, uint8_t* sum, int num_sms,
                                    Stopwatch& stopwatch);

}  // namespace dualgemm::bench
