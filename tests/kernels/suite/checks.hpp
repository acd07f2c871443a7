// What may be asked of a kernel in its cases, by the name that stands behind a test's in cases.txt.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kernels/suite/case.hpp"

namespace dualgemm::test {

using Limits = std::map<std::string, int64_t>;  // a section's
using Check = void (*)(const KernelRow& row, const std::vector<TestCase>& cases,
                       const Limits& limits);

// null: no such check.
Check find_check(const std::string& name);

}  // namespace dualgemm::test
