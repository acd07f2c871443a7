// What a call pays on the host for asking the driver where its arrays and its stream belong.
#pragma once

#include "dualgemm/status.hpp"

namespace dualgemm::bench {

// What the pointer checks of one call take, with 8 arrays and a stream, the usual number: the mean
// over many calls.
Expected<double> microseconds_of_pointer_checks();

}  // namespace dualgemm::bench
