#include "tools/cli/commands/output_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "checkpoint/npy.hpp"
#include "checkpoint/safetensors.hpp"
#include "tools/cli/exit_codes.hpp"
#include "tools/cli/print/json.hpp"
#include "tools/cli/print/report.hpp"

namespace dualgemm::cli {
namespace {

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Extensions of formats that are not written; any other name is the user's business.
constexpr std::array kOtherFormats = {".npy", ".npz", ".gguf", ".ggml", ".bin", ".pt",
                                      ".pth", ".h5",  ".onnx", ".ckpt", ".json"};

bool is_there(const std::string& path) {
  std::error_code ignored;
  return path != "-" && std::filesystem::exists(path, ignored);
}

// Where the bytes of `path` go: the file that is there, or a name in a folder that is there.
struct Place {
  dev_t device = 0;
  ino_t number = 0;
  std::string name;  // in the folder
  bool operator==(const Place&) const = default;
};

Place place_of(const std::string& path) {
  const std::filesystem::path file = checkpoint::resolve_links(path);
  struct stat info = {};
  if (stat(file.c_str(), &info) == 0) return {info.st_dev, info.st_ino, {}};
  const std::string folder = file.has_parent_path() ? file.parent_path().string() : ".";
  if (stat(folder.c_str(), &info) == 0) return {info.st_dev, info.st_ino, file.filename()};
  return {0, 0, file.lexically_normal()};
}

// `input` may lead to several files. One that cannot be read is reported where it is read.
Status check_is_not(const NamedFile& output, const std::string& input) {
  std::vector<std::string> files = {input};
  if (is_folder(input) || ends_with(input, ".index.json")) {
    if (const Expected<checkpoint::TensorFile> opened = checkpoint::TensorFile::open(input))
      files = opened->paths();
  }
  for (const std::string& file : files) {
    if (file.empty() || place_of(file) != place_of(output.path)) continue;
    return Status::invalid(output.option, output.path,
                           "is the input '" + file + "'; name another file");
  }
  return {};
}

Status refuse_folder(const std::string& path) {
  return Status::invalid("--out", path, "is a folder; name a file in it");
}

}  // namespace

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

bool is_npy(const std::string& path) { return ends_with(path, ".npy"); }

Status check_output_name(const std::string& path) {
  if (is_folder(path)) return refuse_folder(path);
  if (is_npy(path) || ends_with(path, ".safetensors")) return {};
  return Status::invalid("output", "'" + path + "'", "must end in .npy or .safetensors");
}

Status check_safetensors_name(const std::string& path) {
  if (is_folder(path)) return refuse_folder(path);
  for (const char* ending : kOtherFormats) {
    if (!ends_with(path, ending)) continue;
    return Status::invalid("--out", "'" + path + "'",
                           "safetensors are written: must end in .safetensors");
  }
  return {};
}

Status check_different_files(const std::vector<NamedFile>& outputs,
                             const std::vector<std::string>& inputs) {
  for (auto output = outputs.begin(); output != outputs.end(); ++output) {
    if (output->path.empty() || output->path == "-") continue;
    for (auto other = outputs.begin(); other != output; ++other) {
      if (other->path.empty() || other->path == "-") continue;
      if (place_of(output->path) != place_of(other->path)) continue;
      return Status::invalid(std::string(other->option) + ", " + output->option, output->path,
                             "one would replace the other; name two files");
    }
    if (!is_there(output->path)) continue;  // what is not there is no input
    for (const std::string& input : inputs) DUALGEMM_TRY(check_is_not(*output, input));
  }
  return {};
}

Status write_tensors(checkpoint::OutputSet& outputs, const std::string& path,
                     const checkpoint::TensorFile& file) {
  DUALGEMM_TRY(check_output_name(path));
  const bool npy = is_npy(path);
  if (npy && file.tensors().size() != 1) {
    return Status::invalid(path, std::to_string(file.tensors().size()) + " tensors",
                           "npy holds one; use .safetensors");
  }
  const Expected<checkpoint::AtomicFile*> out = outputs.create(path);
  if (!out) return out.status();
  return npy ? checkpoint::write_npy(**out, file.tensors().begin()->second)
             : checkpoint::write_safetensors(**out, file);
}

Status write_tensors(const std::string& path, const checkpoint::TensorFile& file) {
  checkpoint::OutputSet outputs;
  DUALGEMM_TRY(write_tensors(outputs, path, file));
  return outputs.commit();
}

Status check_writable(const std::string& path) {
  if (path == "-") return {};
  if (!is_folder(path) && path.back() != '/')
    return checkpoint::AtomicFile::create(path).status();  // destroyed without commit
  const std::string place = is_folder(path) ? path : path + "..";
  if (access(place.c_str(), W_OK) == 0) return {};
  return Status::error(StatusCode::kIoError, path, std::strerror(errno),
                       "its parent must exist and be writable");
}

int end_dry_run(const std::vector<std::string>& paths, bool json) {
  Json would_write = Json::array();
  for (const std::string& path : paths) {
    if (path.empty() || path == "-") continue;
    if (const Status status = check_writable(path); !status.ok()) return fail(status);
    would_write.push_back(path);
    talk("dry run: would write " + path + (is_there(path) ? ", in place of what is there" : ""));
  }
  if (would_write.empty()) talk("dry run: would write nothing");
  if (json) print(dump({{"dry_run", true}, {"would_write", would_write}, {"build", provenance()}}));
  return kExitOk;
}

}  // namespace dualgemm::cli
