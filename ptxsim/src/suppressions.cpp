#include "ptxsim/suppressions.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>

namespace ptxsim {
namespace {

std::string as_cpp(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      ::abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? std::string(text.get()) : name;
}

}  // namespace

std::string kernel_as_cpp(const std::string& entry) {
  const std::string name = as_cpp(entry);
  return name.starts_with("void ") ? name.substr(5) : name;  // what templates return
}

bool names_kernel(const std::string& pattern, const std::string& entry) {
  if (pattern.empty() || pattern == entry) return true;
  const std::string name = kernel_as_cpp(entry);
  return name.starts_with(pattern) && (name.size() == pattern.size() ||
                                       name[pattern.size()] == '(' || name[pattern.size()] == '<');
}

bool names_file(const std::string& file, const std::string& path) {
  if (!path.ends_with(file)) return false;
  return path.size() == file.size() || path[path.size() - file.size() - 1] == '/';
}

bool is_suppressed(const Suppression& suppression, const Report& report) {
  if (suppression.rule != report.rule || !names_kernel(suppression.kernel, report.kernel))
    return false;
  const Place& place = report.place;
  return suppression.file.empty() ||
         (suppression.line == place.source_line &&
          names_file(suppression.file, place.source_file)) ||
         (suppression.line == place.ptx_line && names_file(suppression.file, place.ptx_name));
}

void suppress(Reports& reports, const std::vector<Suppression>& list) {
  std::erase_if(reports.list, [&](Report& report) {
    const auto found = std::find_if(list.begin(), list.end(), [&](const Suppression& suppression) {
      return is_suppressed(suppression, report);
    });
    if (found == list.end()) return false;
    reports.suppressed.emplace_back(std::move(report), static_cast<size_t>(found - list.begin()));
    return true;
  });
}

}  // namespace ptxsim
