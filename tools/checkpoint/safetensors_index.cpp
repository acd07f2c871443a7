#include <fmt/format.h>

#include "tools/checkpoint/guard.hpp"
#include "tools/checkpoint/json_events.hpp"
#include "tools/checkpoint/mapped_file.hpp"
#include "tools/checkpoint/safetensors.hpp"

namespace dualgemm::checkpoint {
namespace {

constexpr int kMaxSkippedDepth = 64;

// A file beside the index; anything that could lead elsewhere is refused.
bool is_plain_file_name(const std::string& name) {
  return !name.empty() && name.size() <= 255 && name.find('/') == std::string::npos &&
         !has_control_characters(name) && name.ends_with(".safetensors");
}

class IndexEvents final : public JsonEvents {
 public:
  using JsonEvents::JsonEvents;
  std::map<std::string, std::string> take() { return std::move(map_); }
  bool has_map() const { return has_map_; }

  bool start_object(size_t) override {
    if (depth_ == 1 && root_key_ == "weight_map" && !in_map_)
      in_map_ = true;
    else if (in_map_)
      return refuse("an object");
    return deeper();
  }
  bool end_object() override {
    if (in_map_ && depth_ == 2) in_map_ = false;
    --depth_;
    return true;
  }
  bool start_array(size_t) override { return skippable("an array") && deeper(); }
  bool end_array() override {
    --depth_;
    return true;
  }
  bool null() override { return skippable("null"); }
  bool boolean(bool) override { return skippable("a boolean"); }
  bool number_integer(number_integer_t) override { return skippable("a number"); }
  bool number_unsigned(number_unsigned_t) override { return skippable("a number"); }
  bool number_float(number_float_t, const string_t&) override { return skippable("a number"); }

  bool key(string_t& text) override {
    if (depth_ == 1) {
      root_key_ = text;
      if (text != "weight_map") return true;
      if (has_map_) return fail("weight_map", "appears twice", "must be unique");
      has_map_ = true;
    } else if (in_map_) {
      if (map_.count(text) != 0 || has_control_characters(text)) {
        return fail("weight_map, " + printable(text), "a repeated name or control characters",
                    "tensor names must be unique and printable");
      }
      tensor_ = text;
    }
    return true;
  }
  bool string(string_t& text) override {
    if (!in_map_) return skippable("a string");
    if (!is_plain_file_name(text)) {
      return fail("weight_map, " + printable(tensor_), printable(text),
                  "must name a .safetensors file in the same directory");
    }
    map_.emplace(tensor_, text);
    return true;
  }

 private:
  std::string place() const override { return "index"; }
  // Everything outside weight_map is of no interest, but the root must be an object and weight_map
  // one, too.
  bool skippable(const char* observed) {
    return depth_ == 0 || in_map_ || (depth_ == 1 && root_key_ == "weight_map") ? refuse(observed)
                                                                                : true;
  }
  bool deeper() {
    return ++depth_ <= kMaxSkippedDepth ? true : fail("index", "nested too deeply", "depth <= 64");
  }

  int depth_ = 0;
  bool in_map_ = false, has_map_ = false;
  std::string root_key_, tensor_;
  std::map<std::string, std::string> map_;
};

// Metadata of one shard. Where the keys that change the meaning of bytes (checkpoint.hpp) differ,
// the shards do not belong together.
Status merge_metadata(const TensorFile& shard, bool is_first, TensorFile& result) {
  const auto ours = [](const TensorFile& file) {
    std::map<std::string, std::string> keys;
    for (const auto& [key, value] : file.metadata()) {
      if (key.starts_with("dualgemm.")) keys.emplace(key, value);
    }
    return keys;
  };
  if (!is_first && ours(shard) != ours(result)) {
    return Status::error(StatusCode::kCorruptFile, shard.origin(),
                         "dualgemm.* metadata unlike that of the other shards",
                         "all shards must have the same scale layout and nibble order");
  }
  result.metadata().insert(shard.metadata().begin(), shard.metadata().end());
  return {};
}

}  // namespace

Expected<std::map<std::string, std::string>> parse_safetensors_index(
    std::span<const std::byte> json, const std::string& origin) {
  using Map = std::map<std::string, std::string>;
  return guarded(origin, [&]() -> Expected<Map> {
    if (json.size() > static_cast<size_t>(kMaxSafetensorsHeaderBytes)) {
      return Status::error(StatusCode::kCorruptFile, origin, fmt::format("{} bytes", json.size()),
                           fmt::format("must be at most {}", kMaxSafetensorsHeaderBytes));
    }
    IndexEvents events(origin);
    DUALGEMM_TRY(events.read({reinterpret_cast<const char*>(json.data()), json.size()}));
    if (events.has_map()) return events.take();
    return Status::error(StatusCode::kCorruptFile, origin, "no weight_map",
                         "an index maps tensor names to files");
  });
}

Expected<TensorFile> open_safetensors_index(const std::string& path) {
  const Expected<std::shared_ptr<const MappedFile>> mapped = MappedFile::open(path);
  if (!mapped) return mapped.status();
  const Expected<std::map<std::string, std::string>> index =
      parse_safetensors_index((*mapped)->bytes(), path);
  if (!index) return index.status();
  const std::string directory = path.substr(0, path.rfind('/') + 1);  // npos + 1 = 0: empty
  return guarded(path, [&]() -> Expected<TensorFile> {
    TensorFile result;
    result.set_origin(path);
    result.add_path(path);
    std::map<std::string, TensorFile> shards;
    for (const auto& [name, shard_name] : *index) {
      auto shard = shards.find(shard_name);
      if (shard == shards.end()) {
        Expected<TensorFile> opened = open_safetensors_shard(directory + shard_name);
        if (!opened) return opened.status();
        result.share_memory_of(*opened);
        result.add_path(directory + shard_name);
        DUALGEMM_TRY(merge_metadata(*opened, shards.empty(), result));
        shard = shards.emplace(shard_name, *std::move(opened)).first;
      }
      const Expected<TensorView> tensor = shard->second.get(name);
      if (!tensor) return tensor.status();
      DUALGEMM_TRY(result.add(*tensor));
    }
    return result;
  });
}

}  // namespace dualgemm::checkpoint
