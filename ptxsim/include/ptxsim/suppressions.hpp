// Findings that are known and no news, each with a reason: what `--suppress` and a case's key
// "suppress" list.
#pragma once

#include <string>
#include <vector>

#include "ptxsim/report.hpp"

namespace ptxsim {

struct Suppression {
  int rule = 0;
  std::string
      kernel;  // the entry, mangled or as C++ writes it, with or without its parameters; empty: any
  std::string file;  // of the finding's source or PTX line, or the end of its path; empty: any, and
  int line = 0;      // in it
  std::string reason;
  bool is_of_baseline = false;  // a finding that is gone is then a stale entry
};

// The entry as C++ writes it, with its parameters.
std::string kernel_as_cpp(const std::string& entry);
// Whether `pattern` names this entry.
bool names_kernel(const std::string& pattern, const std::string& entry);
// Whether `file` is `path` or the end of it, from a folder on.
bool names_file(const std::string& file, const std::string& path);
bool is_suppressed(const Suppression& suppression, const Report& report);

// Puts aside the reports that one of the list is about.
void suppress(Reports& reports, const std::vector<Suppression>& list);

}  // namespace ptxsim
