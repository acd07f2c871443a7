// What the machine offers, asked from the operating system and the processor.
#pragma once

#include "dualgemm/types.hpp"

namespace dualgemm::cpu {

// Never fails: what cannot be found out keeps DeviceCaps' careful defaults. Its cores are those of
// core::usable_cores().
DeviceCaps detect_device_caps();

}  // namespace dualgemm::cpu
