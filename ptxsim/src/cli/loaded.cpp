#include "cli/loaded.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <utility>

#include "cli/kernel_file.hpp"
#include "cli/stop_signal.hpp"
#include "printable.hpp"

namespace ptxsim::cli {

namespace {

constexpr size_t kMostTextBytes = ParseLimits{}.text_bytes;

Error refusal(const std::string& path, std::string message) {
  return {ErrorKind::kInput, std::move(message), Place{path, 0, 0, "", 0}};
}

}  // namespace

Result<std::string> read_text(const std::string& path) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) return refusal(path, "is a directory");
  std::ifstream file(path, std::ios::binary);
  if (!file) return refusal(path, fmt::format("cannot read: {}", std::strerror(errno)));
  std::string text;
  char piece[1 << 16];
  do {
    file.read(piece, sizeof piece);
    text.append(piece, static_cast<size_t>(file.gcount()));
    if (text.size() > kMostTextBytes)
      return refusal(path, fmt::format("more than {} bytes", kMostTextBytes));
  } while (file);
  if (!file.eof()) return refusal(path, "cannot read");
  return text;
}

Result<std::string> read_kernel(const std::string& path) {
  Result<std::string> text = read_text(path);
  if (!text.ok()) return text;
  const std::string reason = why_not_ptx(*text);
  return reason.empty() ? text : Result<std::string>(refusal(path, reason));
}

int print_error(const Error& error) {
  std::cerr << printable(to_string(error), kLongestLine) << "\n";
  if (error.kind == ErrorKind::kStopped) return kExitStopped;
  return error.kind == ErrorKind::kInput || error.kind == ErrorKind::kBudget ? 2 : 1;
}

Result<Loaded> load_files(const std::string& kernel, const std::string& case_file,
                          const std::string& entry) {
  Result<std::string> text = read_kernel(kernel);
  if (!text.ok()) return text.error();
  std::string json = case_text(*text);
  std::string name = kernel;
  std::string folder = std::filesystem::path(kernel).parent_path().string();
  if (!case_file.empty()) {
    Result<std::string> file = read_text(case_file);
    if (!file.ok()) return file.error();
    json = std::move(*file);
    name = case_file;
    folder = std::filesystem::path(case_file).parent_path().string();
  }
  if (case_file.empty() && json.empty())
    return refusal(kernel, "no case: give --case, or lines that begin with //! in the PTX file");
  Result<Case> description = parse_case(json, folder.empty() ? "." : folder, nullptr, name);
  if (!description.ok()) return description.error();
  auto module = load(*text, kernel);
  if (!module.ok()) return module.error();
  if (!entry.empty())
    if (auto refused = choose_entry(*description, entry)) return *refused;
  auto program = decode(*module, description->entry);
  if (!program.ok()) return program.error();
  if (auto refused = load_launches(*description, *module)) return *refused;
  return Loaded{*program, std::move(*text), std::move(*description)};
}

}  // namespace ptxsim::cli
