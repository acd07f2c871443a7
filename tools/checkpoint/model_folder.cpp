#include "tools/checkpoint/model_folder.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tools/checkpoint/atomic_file.hpp"
#include "tools/checkpoint/guard.hpp"
#include "tools/checkpoint/mapped_file.hpp"
#include "tools/checkpoint/safetensors.hpp"

namespace dualgemm::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::array kWeightEndings = {".safetensors", ".bin",  ".pt",   ".pth", ".gguf",
                                       ".h5",          ".onnx", ".ckpt", ".npz", ".msgpack"};

bool is_same_file(const std::string& a, const std::string& b) {
  struct stat first = {}, second = {};
  return stat(a.c_str(), &first) == 0 && stat(b.c_str(), &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

bool holds_weights(const std::string& name) {
  return name.ends_with(".index.json") ||
         std::any_of(kWeightEndings.begin(), kWeightEndings.end(),
                     [&](const char* ending) { return name.ends_with(ending); });
}

std::string parent_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == path.npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string name_in_folder(const std::string& path) {
  return path.substr(path.rfind('/') + 1);  // npos + 1 = 0
}

Status folder_problem(const std::string& path, const std::error_code& error, const char* rule) {
  return Status::error(StatusCode::kIoError, path, error.message(), rule);
}

}  // namespace

Status check_not_input(const std::string& out, const TensorFile& in) {
  for (const std::string& path : in.paths()) {
    const bool is_file = is_same_file(out, path);
    if (!is_file && !is_same_file(out, parent_of(path))) continue;
    const bool is_folder = !is_file;
    return Status::invalid("--out", out,
                           is_folder ? "is the folder of the input; name another one"
                                     : "is the input '" + path + "'; name another file");
  }
  return {};
}

std::string folder_of(const TensorFile& in) {
  return in.paths().empty() ? "." : parent_of(in.paths().front());
}

Expected<std::map<std::string, std::vector<std::string>>> shards_of(const TensorFile& in) {
  using Shards = std::map<std::string, std::vector<std::string>>;
  const std::string path = in.paths().empty() ? std::string() : in.paths().front();
  if (!path.ends_with(".index.json")) {
    const std::string name = name_in_folder(path);
    std::vector<std::string> names;
    for (const auto& [tensor, view] : in.tensors()) names.push_back(tensor);
    // One shard of several becomes a model of its own.
    const bool keeps_name = name.ends_with(".safetensors") && !is_shard_name(name);
    return Shards{{keeps_name ? name : "model.safetensors", std::move(names)}};
  }
  const Expected<std::shared_ptr<const MappedFile>> mapped = MappedFile::open(path);
  if (!mapped) return mapped.status();
  const auto index = parse_safetensors_index((*mapped)->bytes(), path);
  if (!index) return index.status();
  Shards shards;
  for (const auto& [tensor, shard] : *index) shards[shard].push_back(tensor);
  return shards;
}

Expected<TensorFile> part_of(const TensorFile& in, const std::vector<std::string>& names) {
  TensorFile part;
  part.share_memory_of(in);
  part.set_origin(in.origin());
  part.metadata() = in.metadata();
  for (const std::string& name : names) {
    const Expected<TensorView> tensor = in.get(name);
    if (!tensor) return tensor.status();
    DUALGEMM_TRY(part.add(*tensor));
  }
  return part;
}

Status write_safetensors_index(const std::string& path,
                               const std::map<std::string, std::vector<std::string>>& shards,
                               int64_t total_bytes) {
  return guarded(path, [&]() -> Status {
    nlohmann::json json = {{"metadata", {{"total_size", total_bytes}}},
                           {"weight_map", nlohmann::json::object()}};
    for (const auto& [shard, names] : shards) {
      for (const std::string& name : names) json["weight_map"][name] = shard;
    }
    const std::string text = json.dump(2) + "\n";
    return write_file(path, std::as_bytes(std::span(text)));
  });
}

Status check_model_folder(const std::string& folder, OldModel old,
                          std::vector<std::string>* obsolete) {
  std::error_code error;
  const fs::file_status there = fs::status(folder, error);
  if (!fs::status_known(there)) return folder_problem(folder, error, "must be a readable folder");
  if (!fs::exists(there)) return {};
  if (!fs::is_directory(there))
    return Status::invalid("--out", folder, "is a file; a model needs a new or an empty folder");
  std::string other;  // something that is visible
  std::vector<std::string> configs, weights;
  bool has_model = false;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (name[0] == '.') continue;
    other = name;
    const bool is_config = name == "config.json" || name == "hf_quant_config.json";
    has_model = has_model || name == "config.json" || name.ends_with(".safetensors");
    if (name.ends_with(".index.json")) configs.insert(configs.begin(), name);
    if (is_config) configs.push_back(name);
    if (!is_config && !name.ends_with(".index.json") && holds_weights(name))
      weights.push_back(name);
  }
  if (error) return folder_problem(folder, error, "must be a readable folder");
  if (other.empty()) return {};
  if (old == OldModel::kRefused) {
    return Status::invalid("--out", folder,
                           "holds " + other + "; name a new or an empty folder" +
                               (has_model ? ", or replace the model in it with --force" : ""));
  }
  if (!has_model)
    return Status::invalid("--out", folder, "holds " + other + " and no model to replace");
  if (obsolete == nullptr) return {};
  *obsolete = std::move(configs);
  obsolete->insert(obsolete->end(), weights.begin(), weights.end());
  return {};
}

Status copy_model_files(const std::string& from, StagedFolder& to) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(from, error)) {
    const std::string name = entry.path().filename();
    if (name[0] == '.' || holds_weights(name) || name == "config.json" ||
        name == "hf_quant_config.json") {
      continue;
    }
    std::error_code failed;
    const fs::file_status status = entry.status(failed);
    if (failed && status.type() != fs::file_type::not_found)
      return folder_problem(entry.path(), failed, "must be readable");
    if (!fs::is_regular_file(status)) continue;
    const auto mapped = MappedFile::open(entry.path());
    if (!mapped) return mapped.status();
    const std::string path = to.path(name);
    DUALGEMM_TRY(write_file(path, (*mapped)->bytes()));
    fs::permissions(path, status.permissions(), failed);  // scripts stay executable
  }
  return error ? folder_problem(from, error, "must be a readable folder") : Status();
}

Expected<std::string> read_small_file(const std::string& path) {
  const Expected<std::shared_ptr<const MappedFile>> mapped = MappedFile::open(path);
  if (mapped.status().code() == StatusCode::kNotFound) return std::string();
  if (!mapped) return mapped.status();
  const std::span<const std::byte> bytes = (*mapped)->bytes();
  if (bytes.empty())  // of a copy that broke off; not to be taken for one that is not there
    return Status::error(StatusCode::kCorruptFile, path, "0 bytes", "must hold JSON");
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace dualgemm::checkpoint
