#include "checkpoint/config_object.hpp"

#include <fmt/format.h>

#include <map>

#include "checkpoint/corrupt.hpp"
#include "checkpoint/json_events.hpp"

namespace dualgemm::checkpoint {

Expected<ConfigObject> ConfigObject::parse(std::string_view text, std::string where) {
  Expected<std::vector<JsonMember>> members = json_members(text, where);
  if (!members) return members.status();
  ConfigObject object;
  object.exists_ = true;
  object.where_ = std::move(where);
  object.members_ = *std::move(members);
  return object;
}

std::string_view ConfigObject::raw(std::string_view key) const {
  const JsonMember* member = find_member(members_, key);
  return member == nullptr ? std::string_view() : member->value;
}

bool ConfigObject::has(std::string_view key) const {
  const std::string_view value = raw(key);
  return !value.empty() && value != "null";
}

std::string ConfigObject::place(std::string_view key) const {
  return fmt::format("{}, {}", where_, printable(key));
}

Status ConfigObject::wrong(std::string_view key, std::string_view observed,
                           std::string rule) const {
  return corrupt(place(key), printable(observed), std::move(rule));
}

Status ConfigObject::object(std::string_view key, ConfigObject& out) const {
  if (!has(key)) return {};
  Expected<ConfigObject> found = parse(raw(key), place(key));
  if (!found) return found.status();
  out = *std::move(found);
  return {};
}

Status ConfigObject::text(std::string_view key, std::string& out) const {
  if (!has(key)) return {};
  Expected<std::string> found = json_string(raw(key), place(key));
  if (!found) return found.status();
  out = *std::move(found);
  return {};
}

Status ConfigObject::integer(std::string_view key, int64_t& out) const {
  if (!has(key)) return {};
  const Expected<int64_t> found = json_integer(raw(key), place(key));
  if (!found) return found.status();
  out = *found;
  return {};
}

Status ConfigObject::integers(std::string_view key, std::vector<int64_t>& out) const {
  if (!has(key)) return {};
  const auto elements = json_elements(raw(key), place(key));
  if (!elements) return elements.status();
  for (const std::string_view element : *elements) {
    const Expected<int64_t> found = json_integer(element, place(key));
    if (!found) return found.status();
    out.push_back(*found);
  }
  return {};
}

Status ConfigObject::each_text(std::string_view key, const TextVisitor& visit) const {
  if (!has(key)) return {};
  const auto elements = json_elements(raw(key), place(key));
  if (!elements) return elements.status();
  for (const std::string_view element : *elements) {
    const Expected<std::string> found = json_string(element, place(key));
    if (!found) return found.status();
    DUALGEMM_TRY(visit(*found, place(key)));
  }
  return {};
}

Status ConfigObject::each_element(std::string_view key,
                                  const std::function<Status(const ConfigObject&)>& visit) const {
  if (!has(key)) return {};
  const auto elements = json_elements(raw(key), place(key));
  if (!elements) return elements.status();
  for (const std::string_view element : *elements) {
    const Expected<ConfigObject> found = parse(element, place(key));
    if (!found) return found.status();
    DUALGEMM_TRY(visit(*found));
  }
  return {};
}

Status ConfigObject::each(
    const std::function<Status(const std::string&, std::string_view)>& visit) const {
  std::map<std::string_view, const JsonMember*> counts;  // of a key, the last
  for (const JsonMember& member : members_) counts[member.key] = &member;
  for (const JsonMember& member : members_) {
    if (counts[member.key] == &member) DUALGEMM_TRY(visit(member.key, member.value));
  }
  return {};
}

Status ConfigObject::each_object(
    const std::function<Status(const std::string&, const ConfigObject&)>& visit) const {
  return each([&](const std::string& key, std::string_view value) -> Status {
    if (value == "null") return {};
    const Expected<ConfigObject> found = parse(value, place(key));
    return found ? visit(key, *found) : found.status();
  });
}

}  // namespace dualgemm::checkpoint
