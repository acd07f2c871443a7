// Patterns for tensor names.
#pragma once

#include <string_view>

namespace dualgemm::checkpoint {

// `*` stands for any characters, dots too, or none; `?` for one. Everything else is itself. The
// whole of `text` must match. Linear in the text for each star.
bool matches_glob(std::string_view pattern, std::string_view text);

}  // namespace dualgemm::checkpoint
