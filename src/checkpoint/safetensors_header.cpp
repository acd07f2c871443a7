#include "checkpoint/safetensors_header.hpp"

#include <fmt/format.h>

#include <limits>
#include <unordered_set>

#include "checkpoint/json_events.hpp"

namespace dualgemm::checkpoint {
namespace {

class HeaderEvents final : public JsonEvents {
 public:
  using JsonEvents::JsonEvents;
  SafetensorsHeader take() { return std::move(header_); }

  bool start_object(size_t) override;
  bool end_object() override;
  bool key(string_t& text) override;
  bool string(string_t& text) override;
  bool start_array(size_t) override;
  bool end_array() override;
  bool number_unsigned(number_unsigned_t value) override;

 private:
  enum class State {
    kStart,     // nothing yet
    kRoot,      // {NAME: ..}
    kMetadata,  // {"__metadata__": {KEY: VALUE}}
    kTensor,    // {NAME: {FIELD: ..}}
    kArray,     // {NAME: {"shape" or "data_offsets": [..]}}
    kDone,
  };
  std::string place() const override { return where_; }
  bool finish_tensor();

  State state_ = State::kStart;
  std::string where_ = "header";
  std::string root_key_, inner_key_;
  HeaderEntry entry_;
  std::vector<uint64_t> offsets_;
  bool has_dtype_ = false, has_shape_ = false, has_offsets_ = false, has_metadata_ = false;
  std::unordered_set<std::string> names_;
  SafetensorsHeader header_;
};

bool HeaderEvents::start_object(size_t) {
  if (state_ == State::kStart) {
    state_ = State::kRoot;
    return true;
  }
  if (state_ != State::kRoot) return refuse("an object");
  inner_key_.clear();
  if (root_key_ == "__metadata__") {
    state_ = State::kMetadata;
    return true;
  }
  state_ = State::kTensor;
  entry_ = {};
  entry_.name = root_key_;
  offsets_.clear();
  has_dtype_ = has_shape_ = has_offsets_ = false;
  return true;
}

bool HeaderEvents::key(string_t& text) {
  if (state_ == State::kRoot) {
    where_ = "tensor " + printable(text);
    root_key_ = text;
    if (text == "__metadata__") {
      if (has_metadata_) return fail("__metadata__", "appears twice", "must be unique");
      where_ = "__metadata__";
      has_metadata_ = true;
      return true;
    }
    if (has_control_characters(text)) {
      return fail(where_, "control characters", "names must not contain any");
    }
    if (!names_.insert(text).second) return fail(where_, "appears twice", "names must be unique");
    return true;
  }
  if (state_ == State::kMetadata) {
    if (header_.metadata.count(text) != 0) {
      return fail("__metadata__, key " + printable(text), "appears twice", "keys must be unique");
    }
    inner_key_ = text;
    return true;
  }
  bool* seen = text == "dtype"          ? &has_dtype_
               : text == "shape"        ? &has_shape_
               : text == "data_offsets" ? &has_offsets_
                                        : nullptr;
  if (seen == nullptr) {
    return fail(where_, "key " + printable(text), "must be dtype, shape or data_offsets");
  }
  if (*seen) return fail(where_, "key " + printable(text) + " twice", "keys must be unique");
  *seen = true;
  inner_key_ = text;
  return true;
}

bool HeaderEvents::string(string_t& text) {
  if (state_ == State::kMetadata) {
    header_.metadata.emplace(inner_key_, text);
    return true;
  }
  if (state_ != State::kTensor || inner_key_ != "dtype") return refuse("a string");
  const Expected<ElementType> dtype = parse_element_type(text);
  if (!dtype) return fail(where_, "dtype " + printable(text), dtype.status().rule());
  entry_.dtype = *dtype;
  return true;
}

bool HeaderEvents::start_array(size_t) {
  if (state_ != State::kTensor || inner_key_ == "dtype") return refuse("an array");
  state_ = State::kArray;
  return true;
}

bool HeaderEvents::number_unsigned(number_unsigned_t value) {
  if (state_ != State::kArray) return refuse("a number");
  if (inner_key_ == "data_offsets") {
    if (offsets_.size() == 2) return fail(where_, "more than two data_offsets", "must be two");
    offsets_.push_back(value);
    return true;
  }
  if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return fail(where_, fmt::format("extent {}", value), "must be below 2^63");
  }
  if (entry_.shape.size() == kMaxRank) {
    return fail(where_, fmt::format("more than {} extents", kMaxRank), "the rank is limited");
  }
  entry_.shape.push_back(static_cast<int64_t>(value));
  return true;
}

bool HeaderEvents::end_array() {
  state_ = State::kTensor;
  if (inner_key_ == "data_offsets" && offsets_.size() != 2) {
    return fail(where_, fmt::format("{} data_offsets", offsets_.size()), "must be two");
  }
  return true;
}

bool HeaderEvents::finish_tensor() {
  if (!has_dtype_ || !has_shape_ || !has_offsets_) {
    return fail(where_, "incomplete", "needs dtype, shape and data_offsets");
  }
  entry_.begin = offsets_[0];
  entry_.end = offsets_[1];
  header_.entries.push_back(std::move(entry_));
  return true;
}

bool HeaderEvents::end_object() {
  if (state_ == State::kTensor && !finish_tensor()) return false;
  state_ = state_ == State::kRoot ? State::kDone : State::kRoot;
  return true;
}

}  // namespace

Expected<SafetensorsHeader> parse_header_json(std::string_view json, const std::string& origin) {
  HeaderEvents events(origin);
  DUALGEMM_TRY(events.read(json));
  return events.take();
}

}  // namespace dualgemm::checkpoint
