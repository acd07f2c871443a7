// What the Hopper kernels have in common of a stage along k. Host and device.
#pragma once

namespace dualgemm::cuda::hopper {

inline constexpr int kTileK = 256;  // elements along k of a stage of weights: 128 bytes of a row

}  // namespace dualgemm::cuda::hopper
