#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "tools/checkpoint/checkpoint.hpp"
#include "tools/checkpoint/corrupt.hpp"
#include "tools/checkpoint/guard.hpp"
#include "tools/checkpoint/json_events.hpp"
#include "tools/checkpoint/json_text.hpp"
#include "tools/checkpoint/mapped_file.hpp"
#include "tools/checkpoint/safetensors.hpp"

namespace dualgemm::checkpoint {
namespace {

// A file beside the index; anything that could lead elsewhere is refused.
bool is_plain_file_name(const std::string& name) {
  return !name.empty() && name.size() <= 255 && name.find('/') == std::string::npos &&
         !has_control_characters(name) && name.ends_with(".safetensors");
}

using Map = std::map<std::string, std::string>;

// Everything but weight_map is of no interest.
Expected<Map> read_weight_map(std::string_view json, const std::string& origin) {
  const auto root = json_members(json, origin);
  if (!root) return root.status();
  const auto is_map = [](const JsonMember& member) { return member.key == "weight_map"; };
  const auto count = std::count_if(root->begin(), root->end(), is_map);
  if (count == 0) return corrupt(origin, "no weight_map", "an index maps tensor names to files");
  if (count > 1) return corrupt(origin + ", weight_map", "appears twice", "must be unique");
  const auto tensors =
      json_members(find_member(*root, "weight_map")->value, origin + ", weight_map");
  if (!tensors) return tensors.status();
  Map map;
  for (const auto& [tensor, value] : *tensors) {
    const std::string where = fmt::format("{}, weight_map, {}", origin, printable(tensor));
    const Expected<std::string> file = json_string(value, where);
    if (!file) return file.status();
    if (!is_plain_file_name(*file)) {
      return corrupt(where, printable(*file),
                     "must name a .safetensors file in the same directory");
    }
    if (has_control_characters(tensor) || !map.emplace(tensor, *file).second) {
      return corrupt(where, "a repeated name or control characters",
                     "tensor names must be unique and printable");
    }
  }
  return map;
}

constexpr const char* kMeaningKeys[] = {kScaleLayoutKey, kNibbleOrderKey, kConventionKey,
                                        kFormatKey};

// What the keys that change the meaning of bytes (checkpoint.hpp) say; one that is left out says
// what a reader takes then.
using Meaning = std::map<std::string, std::string>;

Meaning meaning_of(const std::map<std::string, std::string>& metadata) {
  Meaning meaning = {{kScaleLayoutKey, name_of(ScaleLayout::kLinear)},
                     {kNibbleOrderKey, name_of(NibbleOrder::kLowEven)}};
  for (const char* key : kMeaningKeys) {
    if (const auto found = metadata.find(key); found != metadata.end())
      meaning[key] = found->second;
  }
  return meaning;
}

// Only codes and scales have a meaning that those keys change. A shard without any (embeddings,
// norms) has no such keys and belongs to every model.
bool holds_codes_or_scales(const TensorFile& shard) {
  return std::any_of(shard.tensors().begin(), shard.tensors().end(), [](const auto& entry) {
    const ElementType type = entry.second.dtype;
    return bits_of(type) <= 8 && type != ElementType::kBool;
  });
}

// Adds the metadata of one shard to those of all. Where the shards' codes or scales mean different
// things, or a key about a tensor (kMultiplierKey) says two things, they do not belong together.
Status merge_metadata(const TensorFile& shard, std::optional<Meaning>& meaning,
                      TensorFile& result) {
  const bool has_meaning = holds_codes_or_scales(shard);
  if (has_meaning) {
    const Meaning ours = meaning_of(shard.metadata());
    if (meaning.has_value() && *meaning != ours) {
      return Status::error(StatusCode::kCorruptFile, shard.origin(),
                           "dualgemm.* metadata unlike that of the other shards",
                           "all shards must have the same scale layout and nibble order");
    }
    meaning = ours;
  }
  for (const auto& [key, value] : shard.metadata()) {
    const bool is_meaning =
        std::find(std::begin(kMeaningKeys), std::end(kMeaningKeys), key) != std::end(kMeaningKeys);
    if (is_meaning && !has_meaning) continue;
    const auto [kept, is_new] = result.metadata().emplace(key, value);
    if (!is_new && kept->second != value && key.starts_with("dualgemm.") && !is_meaning) {
      return Status::error(StatusCode::kCorruptFile, shard.origin(),
                           "metadata " + printable(key) + " unlike that of another shard",
                           "all shards must say the same of a tensor");
    }
  }
  return {};
}

}  // namespace

Expected<std::map<std::string, std::string>> parse_safetensors_index(
    std::span<const std::byte> json, const std::string& origin) {
  return guarded(origin, [&]() -> Expected<Map> {
    if (json.size() > static_cast<size_t>(kMaxSafetensorsHeaderBytes)) {
      return Status::error(StatusCode::kCorruptFile, origin, fmt::format("{} bytes", json.size()),
                           fmt::format("must be at most {}", kMaxSafetensorsHeaderBytes));
    }
    return read_weight_map({reinterpret_cast<const char*>(json.data()), json.size()}, origin);
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
    std::optional<Meaning> meaning;
    for (const auto& [name, shard_name] : *index) {
      auto shard = shards.find(shard_name);
      if (shard == shards.end()) {
        Expected<TensorFile> opened = open_safetensors_shard(directory + shard_name);
        if (!opened) return opened.status();
        result.share_memory_of(*opened);
        result.add_path(directory + shard_name);
        DUALGEMM_TRY(merge_metadata(*opened, meaning, result));
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
