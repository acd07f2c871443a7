// The current GPU.
#pragma once

#include "dualgemm/types.hpp"

namespace dualgemm::cuda {

// What it offers; no instruction set if no kernel of this library runs on it. An error says why
// there is no GPU. Never starts a context.
Expected<DeviceCaps> detect_device_caps();

}  // namespace dualgemm::cuda
