#include "ptxsim/cli/loaded.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

namespace ptxsim::cli {

Result<std::string> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file || !text) return Error{ErrorKind::kInput, fmt::format("cannot read '{}'", path), {}};
  return text.str();
}

int print_error(const Error& error) {
  std::cerr << to_string(error) << "\n";
  return error.kind == ErrorKind::kInput ? 2 : 1;
}

Result<Loaded> load_files(const std::string& kernel, const std::string& case_file,
                          const std::string& entry) {
  Result<std::string> text = read_text(kernel);
  if (!text.ok()) return text.error();
  std::string json = case_text(*text);
  std::string folder = std::filesystem::path(kernel).parent_path().string();
  if (!case_file.empty()) {
    Result<std::string> file = read_text(case_file);
    if (!file.ok()) return file.error();
    json = *file;
    folder = std::filesystem::path(case_file).parent_path().string();
  }
  if (json.empty())
    return Error{ErrorKind::kInput,
                 "no case: give --case, or lines that begin with //! in the PTX file",
                 {}};
  Result<Case> description = parse_case(json, folder.empty() ? "." : folder);
  if (!description.ok()) return description.error();
  auto module = load(*text, kernel);
  if (!module.ok()) return module.error();
  auto program = decode(*module, entry.empty() ? description->entry : entry);
  if (!program.ok()) return program.error();
  return Loaded{*program, std::move(*description)};
}

}  // namespace ptxsim::cli
