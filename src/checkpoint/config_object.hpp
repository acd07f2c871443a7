// One object of a config, with its place for messages: members by name and kind. A member that is
// missing or null leaves what the caller has; one of another kind is kCorruptFile.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/json_text.hpp"
#include "dualgemm/status.hpp"

namespace dualgemm::checkpoint {

class ConfigObject {
 public:
  // None: exists() is false.
  ConfigObject() = default;
  // Views into `text`, which must stay.
  static Expected<ConfigObject> parse(std::string_view text, std::string where);

  bool exists() const noexcept { return exists_; }
  const std::string& where() const noexcept { return where_; }
  // As it stands in the text; empty: there is none.
  std::string_view raw(std::string_view key) const;
  // Neither missing nor null.
  bool has(std::string_view key) const;

  Status object(std::string_view key, ConfigObject& out) const;
  Status text(std::string_view key, std::string& out) const;
  Status integer(std::string_view key, int64_t& out) const;
  Status integers(std::string_view key, std::vector<int64_t>& out) const;

  // Every string of the array `key`, with its place.
  using TextVisitor = std::function<Status(const std::string& text, const std::string& where)>;
  Status each_text(std::string_view key, const TextVisitor& visit) const;
  // Every object of the array `key`.
  Status each_element(std::string_view key,
                      const std::function<Status(const ConfigObject&)>& visit) const;
  // Every member in the order of the text; of a repeated key the last one.
  Status each(
      const std::function<Status(const std::string& key, std::string_view value)>& visit) const;
  // The same, of objects.
  Status each_object(
      const std::function<Status(const std::string& key, const ConfigObject&)>& visit) const;

  // The error about the member `key`.
  Status wrong(std::string_view key, std::string_view observed, std::string rule) const;

 private:
  std::string place(std::string_view key) const;

  bool exists_ = false;
  std::string where_;
  std::vector<JsonMember> members_;
};

}  // namespace dualgemm::checkpoint
