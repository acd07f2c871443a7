// Images that hold machine code alone, as compilers hand them over while the program runs: bare
// (Triton), or in a fat binary (CuTe DSL).
#pragma once

#include <string>
#include <vector>

namespace ptxsim::cuda {

bool is_machine_code(const void* image);

// The PTX that the same compiler run has left: name.ptx beside a file name.cubin that has the
// image's bytes, anywhere below the folders among `places`. Empty: there is none.
std::string ptx_beside(const std::vector<std::string>& places, const void* image);

}  // namespace ptxsim::cuda
