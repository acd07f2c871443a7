// "did you mean": the name that a misspelt one was probably meant to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dualgemm::cli {

// Insertions, deletions, replacements and swaps of neighbours that lead from one text to the other;
// letters count alike in both cases, '-' like '_'.
int edit_distance(std::string_view x, std::string_view y);

// The nearest of `names`; empty when none is near: at most one edit in three letters. A name that
// `text` begins, or that begins with it, is near as well, and so is one whose part before a '_' is
// misspelt, or which others call `text`.
std::string nearest(std::string_view text, const std::vector<std::string>& names);

// "; did you mean two_pass?", or nothing, as where `text` is one of the names.
std::string did_you_mean(std::string_view text, const std::vector<std::string>& names);

}  // namespace dualgemm::cli
