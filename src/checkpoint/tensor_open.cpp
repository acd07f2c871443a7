#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "checkpoint/gguf.hpp"
#include "checkpoint/guard.hpp"
#include "checkpoint/mapped_file.hpp"
#include "checkpoint/npy.hpp"
#include "checkpoint/safetensors.hpp"

namespace dualgemm::checkpoint {
namespace {

constexpr const char* kIndexName = "model.safetensors.index.json";

Expected<std::vector<std::string>> list_directory(const std::string& path) {
  DIR* directory = opendir(path.c_str());
  if (directory == nullptr) {
    return Status::error(StatusCode::kIoError, path, std::strerror(errno),
                         "must be a readable directory");
  }
  const std::unique_ptr<DIR, int (*)(DIR*)> closer(directory, closedir);
  std::vector<std::string> names;
  while (const dirent* item = readdir(directory)) names.emplace_back(item->d_name);
  return names;
}

// The index if there is one, else the only safetensors file.
Expected<std::string> checkpoint_in(const std::string& path) {
  const Expected<std::vector<std::string>> names = list_directory(path);
  if (!names) return names.status();
  std::vector<std::string> files;
  for (const std::string& name : *names) {
    if (name == kIndexName) return path + "/" + name;
    if (name.ends_with(".safetensors") && name[0] != '.') files.push_back(name);
  }
  if (files.size() == 1) return path + "/" + files[0];
  return Status::error(StatusCode::kNotFound, path,
                       fmt::format("a directory with {} .safetensors files", files.size()),
                       fmt::format("must hold {} or exactly one .safetensors file", kIndexName));
}

bool starts_with(std::span<const std::byte> bytes, std::string_view magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

}  // namespace

Expected<TensorFile> TensorFile::open(const std::string& path) {
  return guarded(path, [&]() -> Expected<TensorFile> {
    struct stat info = {};
    if (stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
      const Expected<std::string> inside = checkpoint_in(path);
      return inside ? open(*inside) : Expected<TensorFile>(inside.status());
    }
    if (path.ends_with(".safetensors")) return open_safetensors(path);
    if (path.ends_with(".npy")) return open_npy(path);
    if (path.ends_with(".gguf")) return open_gguf(path);
    if (path.ends_with(".index.json")) return open_safetensors_index(path);
    const Expected<std::shared_ptr<const MappedFile>> mapped = MappedFile::open(path);
    if (!mapped) return mapped.status();
    const std::span<const std::byte> bytes = (*mapped)->bytes();
    if (starts_with(bytes, "\x93NUMPY")) return open_npy(path);
    if (starts_with(bytes, "GGUF")) return open_gguf(path);
    if (bytes.size() > 8 && bytes[8] == std::byte{'{'}) return open_safetensors(path);
    return Status::invalid(path, "neither its name nor its content tells the format",
                           "must be a .safetensors, .gguf or .npy file or a checkpoint directory");
  });
}

}  // namespace dualgemm::checkpoint
