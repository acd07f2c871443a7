// The subcommand that was asked for.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ptxsim/error.hpp"

namespace ptxsim::cli {

// That of `names` which is at most two letters (a third of the word) from `word`; empty: none.
std::string nearest_name(const std::string& word, const std::vector<std::string>& names);

// Refuses what is no subcommand of the app, or no word at all.
std::optional<Error> check_subcommand(CLI::App& app, int argc, const char* const* argv);

}  // namespace ptxsim::cli
