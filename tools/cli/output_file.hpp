// Tensors to a file, the format by the name's end.
#pragma once

#include <string>

#include "tools/checkpoint/tensor.hpp"

namespace dualgemm::cli {

bool is_npy(const std::string& path);
bool is_folder(const std::string& path);

// Is `path` .npy or .safetensors? Asked before any work is done.
Status check_output_name(const std::string& path);

// Not a folder, and not the name of another format. For what writes safetensors under any name.
Status check_safetensors_name(const std::string& path);

// .npy takes exactly one tensor. Atomic.
Status write_tensors(const std::string& path, const checkpoint::TensorFile& file);

// Could a file be made there? For reports that come after minutes of work. Leaves nothing; "-" is
// always right.
Status check_writable(const std::string& path);

// Text, atomic; "-" is stdout.
Status write_text(const std::string& path, const std::string& text);

}  // namespace dualgemm::cli
