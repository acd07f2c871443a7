// A kernel and its case, read from files.
#pragma once

#include <memory>
#include <string>

#include "ptxsim/case/case.hpp"

namespace ptxsim::cli {

struct Loaded {
  std::shared_ptr<const Program> program;
  std::string ptx;  // the text of its module
  Case description;
};

// `case_file` empty: the "//! " lines of the kernel's file. `entry` empty: the case's.
Result<Loaded> load_files(const std::string& kernel, const std::string& case_file,
                          const std::string& entry);

Result<std::string> read_text(const std::string& path);
// The same of a PTX file; what is no PTX at all is refused with what it is.
Result<std::string> read_kernel(const std::string& path);
int print_error(const Error& error);  // to stderr; the exit code

}  // namespace ptxsim::cli
