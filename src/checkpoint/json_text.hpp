// JSON as Python's json module writes and reads it, which is what config.json of a model is: text
// in UTF-8 by RFC 8259, and the numbers Infinity, -Infinity and NaN. Values are found, not
// converted: what is copied or edited keeps every byte of theirs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dualgemm/status.hpp"

namespace dualgemm::checkpoint {

// Arrays and objects inside each other, at most. Real files have below 10, Python's json module
// stops near 1000; more would let a file choose how deep a program calls itself.
inline constexpr size_t kMostJsonLevels = 500;

struct JsonMember {
  std::string key;         // unescaped
  std::string_view value;  // as it stands in the text
};

// The members of the object that `text` is, in their order, repeated keys too. kCorruptFile: text
// that is no such JSON, is nested too deeply, or is no object.
Expected<std::vector<JsonMember>> json_members(std::string_view text, const std::string& origin);

// The elements of the array that `text` is, in their order; errors as above.
Expected<std::vector<std::string_view>> json_elements(std::string_view text,
                                                      const std::string& origin);

// The member that counts: the last one of that name, as in Python. Null: there is none.
const JsonMember* find_member(const std::vector<JsonMember>& members, std::string_view key);

// ok where `text` is JSON of any kind; errors as above.
Status check_json(std::string_view text, const std::string& origin);

// What a value that is a string says; kCorruptFile where it is another value.
Expected<std::string> json_string(std::string_view value, const std::string& where);

// What a value that is an integer says; kCorruptFile where it is another value.
Expected<int64_t> json_integer(std::string_view value, const std::string& where);

// `text`, whose members these are, with `value` under `key`: in the place of the member that
// counts, else behind the last one. Every other byte stays.
std::string with_json_member(std::string_view text, const std::vector<JsonMember>& members,
                             std::string_view key, std::string_view value);

}  // namespace dualgemm::checkpoint
