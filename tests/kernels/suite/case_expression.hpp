// Whole numbers with + - * / % and parentheses, and names.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "dualgemm/status.hpp"

namespace dualgemm::test {

// The value of `text`; a name is what `lookup` says, if anything.
Expected<int64_t> evaluate(
    const std::string& text,
    const std::function<std::optional<int64_t>(const std::string& name)>& lookup);

}  // namespace dualgemm::test
