// What the current GPU does at best with everything at hand, measured: denominators for benchmarks.
#pragma once

#include "dualgemm/status.hpp"

namespace dualgemm::cuda {

struct DevicePeaks {
  // What cuBLASLt reaches, 8192^3 on random values, the fastest of a few; 0: it has no such product
  // here.
  double f16_gflops = 0.0, e4m3_gflops = 0.0;
  double read_gbps = 0.0;  // of 2 GiB
};

// Takes less than a second.
Expected<DevicePeaks> measure_device_peaks();

}  // namespace dualgemm::cuda
