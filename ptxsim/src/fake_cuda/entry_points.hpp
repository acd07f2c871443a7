// The functions of this library by name.
#pragma once

#include <string>

namespace ptxsim::cuda {

// "cudaMalloc", "cuMemAlloc", or nullptr: there is none.
void* find_entry_point(const std::string& name);

}  // namespace ptxsim::cuda
