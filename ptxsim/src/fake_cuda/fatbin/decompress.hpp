// The payload of an entry of a fat binary as it was before nvcc compressed it: LZ4 blocks (up to
// CUDA 12.7) or zstd frames.
#pragma once

#include <string>

#include "fake_cuda/fatbin/container.hpp"

namespace ptxsim::cuda {

// An Error (kInput) when the payload is broken or has another length than the entry says.
Result<std::string> decompress(const FatbinEntry& entry);

}  // namespace ptxsim::cuda
