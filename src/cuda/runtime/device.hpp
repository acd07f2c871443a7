// The current GPU.
#pragma once

#include "dualgemm/types.hpp"

namespace dualgemm::cuda {

// What it offers; no instruction set if no kernel of this library runs on it. An error says why
// there is no GPU. Never starts a context.
Expected<DeviceCaps> detect_device_caps();

// The instruction sets of a GPU of compute capability 10 * major + minor, best first.
std::vector<Isa> isas_of(int compute_capability);

}  // namespace dualgemm::cuda
