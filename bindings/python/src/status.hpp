// The library's statuses as C++ exceptions. Torch hands their text on as a RuntimeError, which
// dualgemm/_errors.py takes apart again: "dualgemm: <status>: <argument>: <observed>; <rule>".
#pragma once

#include <stdexcept>
#include <string>

#include "dualgemm/dualgemm.h"

namespace dualgemm::python {

[[noreturn]] inline void refuse(const std::string& status, const std::string& message) {
  throw std::runtime_error("dualgemm: " + status + ": " + message);
}

// invalid_argument, with what was seen and what must hold.
[[noreturn]] inline void refuse(const std::string& argument, const std::string& observed,
                                const std::string& rule) {
  refuse("invalid_argument", argument + ": " + observed + "; " + rule);
}

inline void check(dualgemm_status status) {
  if (status != DUALGEMM_OK) refuse(dualgemm_status_name(status), dualgemm_last_error_message());
}

}  // namespace dualgemm::python
