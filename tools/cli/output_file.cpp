#include "tools/cli/output_file.hpp"

#include <array>
#include <filesystem>
#include <span>

#include "tools/checkpoint/atomic_file.hpp"
#include "tools/checkpoint/npy.hpp"
#include "tools/checkpoint/safetensors.hpp"
#include "tools/cli/report.hpp"

namespace dualgemm::cli {
namespace {

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// Extensions of formats that are not written; any other name is the user's business.
constexpr std::array kOtherFormats = {".npy", ".npz", ".gguf", ".ggml", ".bin", ".pt",
                                      ".pth", ".h5",  ".onnx", ".ckpt", ".json"};

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

Status write_tensors(const std::string& path, const checkpoint::TensorFile& file) {
  DUALGEMM_TRY(check_output_name(path));
  if (ends_with(path, ".safetensors")) return checkpoint::write_safetensors(path, file);
  if (file.tensors().size() != 1) {
    return Status::invalid(path, std::to_string(file.tensors().size()) + " tensors",
                           "npy holds one; use .safetensors");
  }
  return checkpoint::write_npy(path, file.tensors().begin()->second);
}

Status check_writable(const std::string& path) {
  if (path == "-") return {};
  return checkpoint::AtomicFile::create(path).status();  // destroyed without commit
}

Status write_text(const std::string& path, const std::string& text) {
  if (path != "-") return checkpoint::write_file(path, std::as_bytes(std::span(text)));
  print(text);
  return {};
}

}  // namespace dualgemm::cli
