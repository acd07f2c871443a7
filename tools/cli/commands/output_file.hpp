// The files that a command writes: their names, which are judged before any work, and their bytes.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/tensor.hpp"
#include "tools/checkpoint_jobs/output_set.hpp"

namespace dualgemm::cli {

bool is_npy(const std::string& path);
bool is_folder(const std::string& path);

// Is `path` .npy or .safetensors? Asked before any work is done.
Status check_output_name(const std::string& path);

// Not a folder, and not the name of another format. For what writes safetensors under any name.
Status check_safetensors_name(const std::string& path);

// A file by the option that names it.
struct NamedFile {
  const char* option;
  std::string path;  // empty: not given
};

// Do two of `outputs` name one file, or one of them an input: by whatever spelling, link or folder?
// An input that is a folder or an index stands for every file that is read through it.
Status check_different_files(const std::vector<NamedFile>& outputs,
                             const std::vector<std::string>& inputs = {});

// The format by the name's end; .npy takes exactly one tensor. Atomic.
Status write_tensors(const std::string& path, const checkpoint::TensorFile& file);
Status write_tensors(checkpoint::OutputSet& outputs, const std::string& path,
                     const checkpoint::TensorFile& file);

// Could a file be made there? For reports that come after minutes of work. Leaves nothing; "-" is
// always right.
Status check_writable(const std::string& path);

// --dry-run: says what would be written, having asked whether it could be; the exit code.
int end_dry_run(const std::vector<std::string>& paths, bool json);

}  // namespace dualgemm::cli
