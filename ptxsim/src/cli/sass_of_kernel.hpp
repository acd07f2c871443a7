// What ptxas makes of a kernel, for `ptxsim time --sass`.
#pragma once

#include <string>
#include <vector>

#include "ptxsim/ptxsim.hpp"
#include "timing/sass_listing.hpp"

namespace ptxsim::cli {

struct Sass {
  std::vector<timing::SassSection> sections;  // empty: the table
  std::string from;                           // "table", "ptxas", "listing"
  std::string note;                           // why there are none, of "auto"
};

// `how`: "off", "auto", "ptxas", or a file that `nvdisasm -c -gp` wrote of what `ptxas -lineinfo`
// made of the same text. ptxas and nvdisasm are looked for in bin/ of $CUDA_HOME and $CUDA_PATH, in
// $PATH and in /usr/local/cuda/bin, and are run with the PTX's own target. A tool that is missing
// or fails is an error that says what was run and its status; with "auto" it is the note.
Result<Sass> sass_of(const std::string& how, const std::string& kernel, const Program& program);

}  // namespace ptxsim::cli
