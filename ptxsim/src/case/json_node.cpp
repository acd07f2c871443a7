#include "case/json_node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "case/json_text.hpp"
#include "printable.hpp"

namespace ptxsim {
namespace {

using Json = nlohmann::json;

// Walks through text that is known to be JSON.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) { blanks(); }
  size_t offset() const { return at_; }

  // From the beginning of an object to the value of `key`.
  void enter(const std::string& key) {
    size_t found = at_;
    ++at_;
    for (blanks(); !ends('}'); separator()) {
      const size_t begin = at_;
      value();
      const bool same = Json::parse(text_.substr(begin, at_ - begin)) == Json(key);
      blanks();
      ++at_;  // ':'
      blanks();
      if (same) found = at_;
      value();
    }
    at_ = found;
  }

  // From the beginning of an array to its element.
  void enter(size_t index) {
    ++at_;
    for (blanks(); index > 0 && !ends(']'); --index, separator()) value();
  }

 private:
  bool ends(char close) const { return at_ >= text_.size() || text_[at_] == close; }
  void blanks() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }
  void separator() {
    blanks();
    if (at_ < text_.size() && text_[at_] == ',') ++at_;
    blanks();
  }
  void string() {
    for (++at_; !ends('"'); ++at_)
      if (text_[at_] == '\\') ++at_;
    ++at_;
  }
  void value() {
    int depth = 0;
    do {
      const char c = at_ < text_.size() ? text_[at_] : ']';
      if (c == '"') {
        string();
      } else if (c == '{' || c == '[') {
        ++depth;
        ++at_;
      } else if (c == '}' || c == ']') {
        --depth;
        ++at_;
      } else if (depth > 0) {
        ++at_;
      } else {
        at_ = std::min(text_.find_first_of(",]} \t\r\n", at_), text_.size());
      }
    } while (depth > 0 && at_ < text_.size());
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

JsonDocument::JsonDocument(std::string_view json_text, std::string json_name)
    : text(json_text), name(std::move(json_name)) {
  try {
    root = std::make_unique<const Json>(read_json(text));
  } catch (Fault& fault) {
    fault.error().message = "case: " + fault.error().message;
    fault.error().place.ptx_name = name;
    throw;
  }
}

JsonDocument::~JsonDocument() = default;

JsonNode::JsonNode(const JsonDocument& document)
    : document_(&document), json_(document.root.get()) {}

std::string JsonNode::path() const {
  std::string text;
  for (const Step& step : steps_) {
    if (step.in_list)
      text += fmt::format("[{}]", step.index);
    else
      text += (text.empty() ? "" : ".") + step.key;
  }
  return text;
}

Place JsonNode::place() const {
  Scanner scanner(document_->text);
  for (const Step& step : steps_) {
    if (step.in_list)
      scanner.enter(step.index);
    else
      scanner.enter(step.key);
  }
  Place place = place_in(document_->text, scanner.offset());
  place.ptx_name = document_->name;
  return place;
}

void JsonNode::fail(const std::string& message) const {
  const std::string where = path();
  const std::string text =
      where.empty() ? message : printable(where, kLongestName) + ": " + message;
  throw Fault(Error{ErrorKind::kInput, "case: " + printable(text, kLongestLine), place()});
}

bool JsonNode::is_list() const { return json_->is_array(); }
bool JsonNode::is_text() const { return json_->is_string(); }
bool JsonNode::is_null() const { return json_->is_null(); }

void JsonNode::only_keys(std::string_view what,
                         std::initializer_list<std::string_view> known) const {
  if (!json_->is_object()) fail(fmt::format("{} must be an object", what));
  for (const auto& item : json_->items())
    if (std::find(known.begin(), known.end(), item.key()) == known.end())
      child({false, 0, item.key()}, item.value())
          .fail(fmt::format("{} has the unknown key '{}'; it may have: {}", what, item.key(),
                            fmt::join(known, ", ")));
}

bool JsonNode::has(std::string_view key) const {
  return json_->is_object() && json_->contains(key);
}

JsonNode JsonNode::child(Step step, const Json& value) const {
  JsonNode node = *this;
  node.steps_.push_back(std::move(step));
  node.json_ = &value;
  return node;
}

JsonNode JsonNode::at(std::string_view key) const {
  if (!has(key)) fail(fmt::format("'{}' is missing", key));
  return child({false, 0, std::string(key)}, (*json_)[std::string(key)]);
}

std::vector<JsonNode> JsonNode::list() const {
  if (!is_list()) fail("must be a list");
  std::vector<JsonNode> nodes;
  nodes.reserve(json_->size());
  for (const Json& value : *json_) nodes.push_back(child({true, nodes.size(), ""}, value));
  return nodes;
}

const std::string& JsonNode::text() const {
  if (!is_text()) fail("must be a string");
  return json_->get_ref<const std::string&>();
}

uint64_t JsonNode::integer(uint64_t most) const {
  if (!json_->is_number_unsigned() || json_->get<uint64_t>() > most)
    fail(fmt::format("{}; must be an integer from 0 to {}",
                     json_->is_number() ? json_->dump() : json_->type_name(), most));
  return json_->get<uint64_t>();
}

int64_t JsonNode::signed_integer(int64_t least, int64_t most) const {
  const bool fits = json_->is_number_integer() &&
                    !(json_->is_number_unsigned() && json_->get<uint64_t>() > INT64_MAX) &&
                    json_->get<int64_t>() >= least && json_->get<int64_t>() <= most;
  if (!fits)
    fail(fmt::format("{}; must be an integer from {} to {}",
                     json_->is_number() ? json_->dump() : json_->type_name(), least, most));
  return json_->get<int64_t>();
}

double JsonNode::number() const {
  if (!json_->is_number()) fail("must be a number");
  return json_->get<double>();
}

bool JsonNode::flag() const {
  if (!json_->is_boolean()) fail("must be true or false");
  return json_->get<bool>();
}

std::string JsonNode::text_or(std::string_view key, std::string_view otherwise) const {
  return has(key) ? at(key).text() : std::string(otherwise);
}

uint64_t JsonNode::integer_or(std::string_view key, uint64_t most, uint64_t otherwise) const {
  return has(key) ? at(key).integer(most) : otherwise;
}

bool JsonNode::flag_or(std::string_view key, bool otherwise) const {
  return has(key) ? at(key).flag() : otherwise;
}

}  // namespace ptxsim
