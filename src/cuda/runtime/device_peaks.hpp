// What the current GPU does at best with everything at hand, measured: denominators for benchmarks.
#pragma once

#include "dualgemm/status.hpp"

namespace dualgemm::cuda {

struct DevicePeaks {
  // Of cuBLASLt, 8192^3 on random values, median of 20 in a row; 0: it has none here.
  double f16_gflops = 0.0, e4m3_gflops = 0.0;
  double copy_gbps = 0.0;  // 1 GiB copied within the device, bytes read and written
};

// Takes less than a second.
Expected<DevicePeaks> measure_device_peaks();

}  // namespace dualgemm::cuda
