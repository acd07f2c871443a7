// Machine instructions as `nvdisasm -c -gp` prints them: of which statement of PTX each is, by the
// lines that `ptxas -lineinfo` keeps.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ptxsim/error.hpp"

namespace ptxsim::timing {

struct SassInsn {
  std::string opcode;   // with its modifiers: "IMAD.WIDE.U32"
  int line = 0;         // of the PTX text; 0: none is known
  int64_t target = -1;  // of a jump or call: index into the section's instructions; -1: no label
  bool is_guarded = false;  // @P0, @!P0
};

// The code of an entry or of a function.
struct SassSection {
  std::string name;
  std::vector<SassInsn> insns;
  size_t own = 0;  // how many are its own: behind them stand ptxas's subroutines, such as divisions
};

// `file`: for messages. What has no instruction with a line of PTX is refused.
Result<std::vector<SassSection>> parse_sass(std::string_view text, const std::string& file);

}  // namespace ptxsim::timing
