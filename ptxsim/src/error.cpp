#include "ptxsim/error.hpp"

#include <fmt/format.h>

#include "printable.hpp"

namespace ptxsim {

const char* name_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInput:
      return "input";
    case ErrorKind::kFault:
      return "fault";
    case ErrorKind::kDeadlock:
      return "deadlock";
    case ErrorKind::kBudget:
      return "budget";
    case ErrorKind::kStopped:
      return "stopped";
  }
  return "";
}

std::string to_string(const Place& place) {
  std::string text = printable(place.ptx_name, kLongestPath);
  if (place.ptx_line > 0) text += fmt::format("{}{}", text.empty() ? "line " : ":", place.ptx_line);
  if (place.ptx_line > 0 && place.ptx_column > 0) text += fmt::format(":{}", place.ptx_column);
  if (!place.source_file.empty()) {
    text += fmt::format("{}({}:{})", text.empty() ? "" : " ",
                        printable(place.source_file, kLongestPath), place.source_line);
  }
  if (!place.function.empty()) text += " in " + printable(place.function, kLongestName);
  return text;
}

std::string to_string(const Error& error) {
  const std::string place = to_string(error.place);
  return place.empty() ? "error: " + error.message : place + ": error: " + error.message;
}

}  // namespace ptxsim
