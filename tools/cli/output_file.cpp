#include "tools/cli/output_file.hpp"

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

}  // namespace

bool is_npy(const std::string& path) { return ends_with(path, ".npy"); }

Status check_output_name(const std::string& path) {
  if (is_npy(path) || ends_with(path, ".safetensors")) return {};
  return Status::invalid("output", "'" + path + "'", "must end in .npy or .safetensors");
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
