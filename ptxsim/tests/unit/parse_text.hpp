// Small PTX texts for the parser's tests.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "ptxsim/parse/parser.hpp"

namespace ptxsim::test {

inline constexpr std::string_view kHeader = ".version 9.0\n.target sm_100a\n.address_size 64\n";
inline constexpr int kHeaderLines = 3;

// The module of `text` after the header; a failure of the test and an empty module when it is
// refused.
inline Module parse_module(std::string_view text) {
  Result<Module> result = parse(std::string(kHeader) + std::string(text), "test.ptx");
  if (!result.ok()) {
    ADD_FAILURE() << to_string(result.error());
    return {};
  }
  return std::move(result.value());
}

// The entry of one body; without statements when it is refused.
inline Entry parse_body(std::string_view body) {
  Module module = parse_module(".visible .entry k()\n{\n" + std::string(body) + "\n}\n");
  return module.entries.empty() ? Entry{} : std::move(module.entries.front());
}

// The only statement of a body after declarations of %r0-%r9 (b32), %rd0-%rd9 (b64), %p0-%p9, and
// .shared buf[64].
inline constexpr std::string_view kNames =
    ".reg .b32 %r<10>; .reg .b64 %rd<10>; .reg .pred %p<10>; .shared .align 16 .b8 buf[64];";
inline Statement parse_statement(std::string_view text) {
  Entry entry = parse_body(std::string(kNames) + std::string(text));
  return entry.statements.empty() ? Statement{} : std::move(entry.statements.front());
}

// The refusal of a text, as "line:column: message"; empty when it is accepted.
inline std::string refusal(std::string_view text, const ParseLimits& limits = {}) {
  const Result<Module> result = parse(text, "test.ptx", limits);
  if (result.ok()) return {};
  EXPECT_EQ(result.error().kind, ErrorKind::kInput);
  EXPECT_EQ(result.error().place.ptx_name, "test.ptx");
  return std::to_string(result.error().place.ptx_line) + ":" +
         std::to_string(result.error().place.ptx_column) + ": " + result.error().message;
}

}  // namespace ptxsim::test
