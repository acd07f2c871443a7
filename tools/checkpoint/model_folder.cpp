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

Status io_error(const std::string& path, const std::error_code& error, const char* rule) {
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
    return Shards{{name.ends_with(".safetensors") ? name : "model.safetensors", std::move(names)}};
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

Status check_model_folder(const std::string& folder) {
  std::error_code error;
  const fs::file_status there = fs::status(folder, error);
  if (!fs::exists(there)) return {};
  if (!fs::is_directory(there))
    return Status::invalid("--out", folder, "is a file; a model needs a new or an empty folder");
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (name[0] == '.') continue;
    return Status::invalid("--out", folder, "holds " + name + "; name a new or an empty folder");
  }
  return error ? io_error(folder, error, "must be a readable folder") : Status();
}

Status create_model_folder(const std::string& folder) {
  DUALGEMM_TRY(check_model_folder(folder));
  std::error_code error;
  fs::create_directory(folder, error);
  return error ? io_error(folder, error, "its parent must exist and be writable") : Status();
}

Status copy_model_files(const std::string& from, const std::string& to) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(from, error)) {
    const std::string name = entry.path().filename();
    std::error_code ignored;
    if (name[0] == '.' || holds_weights(name) || name == "config.json" ||
        name == "hf_quant_config.json" || !entry.is_regular_file(ignored)) {
      continue;
    }
    std::error_code failed;
    fs::copy_file(entry.path(), fs::path(to) / name, fs::copy_options::overwrite_existing, failed);
    if (failed) return io_error(to + "/" + name, failed, "must be writable");
  }
  return error ? io_error(from, error, "must be a readable folder") : Status();
}

Expected<std::string> read_small_file(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return std::string();
  const Expected<std::shared_ptr<const MappedFile>> mapped = MappedFile::open(path);
  if (!mapped) return mapped.status();
  const std::span<const std::byte> bytes = (*mapped)->bytes();
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace dualgemm::checkpoint
