#include "checkpoint/json_events.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/printable.hpp"

namespace dualgemm::checkpoint {
namespace {

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

}  // namespace

bool has_control_characters(std::string_view text) {
  return std::any_of(text.begin(), text.end(), is_control);
}

std::string printable(std::string_view text) {
  constexpr size_t kLongest = 120;
  return "'" + core::printable(text, kLongest) + "'";
}

Status JsonEvents::read(std::string_view json) {
  // The parser takes a zero byte for the end of its input and would not look at what follows.
  if (const size_t zero = json.find('\0'); zero != json.npos) {
    fail("JSON", fmt::format("byte {} is zero", zero), "must be valid JSON in UTF-8");
    return status_;
  }
  const bool complete = nlohmann::json::sax_parse(json.begin(), json.end(), this);
  if (!status_.ok()) return status_;
  if (!complete) fail("JSON", "unreadable", "must be valid JSON");
  return status_;
}

bool JsonEvents::parse_error(size_t position, const std::string&,
                             const nlohmann::detail::exception&) {
  return fail(place(), fmt::format("byte {} is not valid JSON", position),
              "must be valid JSON in UTF-8");
}

bool JsonEvents::fail(const std::string& where, const std::string& observed,
                      const std::string& rule) {
  if (status_.ok()) {
    status_ = Status::error(StatusCode::kCorruptFile, origin_ + ", " + where, observed, rule);
  }
  return false;
}

}  // namespace dualgemm::checkpoint
