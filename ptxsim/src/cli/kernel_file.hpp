// What a file is that was given as a kernel and is not PTX.
#pragma once

#include <string>
#include <string_view>

namespace ptxsim::cli {

// What it is and how to get PTX instead, in one line; empty when it may be PTX, of which the parser
// says what is wrong with it.
std::string why_not_ptx(std::string_view contents);

}  // namespace ptxsim::cli
