// A value of a JSON document together with its place in the text, so that whatever is refused can
// be found: "case.json:7:14: error: case: buffers[1].type: ...".
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "ptxsim/error.hpp"

namespace ptxsim {

// The text, the name that messages give it and what was read from it.
struct JsonDocument {
  JsonDocument(std::string_view text, std::string name);  // throws Fault with the place
  ~JsonDocument();
  JsonDocument(const JsonDocument&) = delete;
  JsonDocument& operator=(const JsonDocument&) = delete;

  std::string_view text;
  std::string name;
  std::unique_ptr<const nlohmann::json> root;
};

// All of these throw Fault (kInput) with the place of the value and its path when it is not what is
// asked for. A JsonNode points into its document.
class JsonNode {
 public:
  explicit JsonNode(const JsonDocument& document);

  [[noreturn]] void fail(const std::string& message) const;
  Place place() const;

  const nlohmann::json& json() const { return *json_; }
  bool is_list() const;
  bool is_text() const;
  bool is_null() const;

  void only_keys(std::string_view what, std::initializer_list<std::string_view> known) const;
  bool has(std::string_view key) const;
  JsonNode at(std::string_view key) const;  // of an object that must have it
  std::vector<JsonNode> list() const;       // of an array
  const std::string& text() const;
  uint64_t integer(uint64_t most) const;  // 0 .. most
  int64_t signed_integer(int64_t least, int64_t most) const;
  double number() const;
  bool flag() const;
  // The same, of a member that may be missing.
  std::string text_or(std::string_view key, std::string_view otherwise) const;
  uint64_t integer_or(std::string_view key, uint64_t most, uint64_t otherwise) const;
  bool flag_or(std::string_view key, bool otherwise) const;

 private:
  struct Step {
    bool in_list;
    size_t index;     // of an array
    std::string key;  // of an object
  };
  JsonNode child(Step step, const nlohmann::json& value) const;
  std::string path() const;

  const JsonDocument* document_;
  const nlohmann::json* json_;
  std::vector<Step> steps_;
};

}  // namespace ptxsim
