// A model on disk: weights in one file or in shards, with what lies beside them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "checkpoint/tensor.hpp"
#include "dualgemm/status.hpp"
#include "tools/checkpoint_jobs/staged_folder.hpp"

namespace dualgemm::checkpoint {

// Error when `out` is one of the files that `in` was read from, or the folder of one: by whatever
// path or link it is named.
Status check_not_input(const std::string& out, const TensorFile& in);

// The folder of the files of `in`; "." where the path has none.
std::string folder_of(const TensorFile& in);

// File name -> the tensors of `in` that lie in it; one entry unless `in` is sharded.
Expected<std::map<std::string, std::vector<std::string>>> shards_of(const TensorFile& in);

// The tensors of `in` with these names; shares its memory.
Expected<TensorFile> part_of(const TensorFile& in, const std::vector<std::string>& names);

// model.safetensors.index.json: `shards` as shards_of() gives them.
Status write_safetensors_index(const std::string& path,
                               const std::map<std::string, std::vector<std::string>>& shards,
                               int64_t total_bytes);

// May a model be written to `folder`? It is not there, or holds hidden files only; kReplaced:
// another model may be in it, of which `obsolete` gets the files that go: its index, configs and
// weights, in this order. Error (kInvalidArgument) otherwise, for a file, and for a folder that
// holds something else than a model.
enum class OldModel { kRefused, kReplaced };
Status check_model_folder(const std::string& folder, OldModel old = OldModel::kRefused,
                          std::vector<std::string>* obsolete = nullptr);

// Copies what a model needs besides weights and config.json (tokenizer, templates, generation
// config): every regular file of `from` that is neither hidden nor weights nor their index.
Status copy_model_files(const std::string& from, StagedFolder& to);

// The text of a small file; empty when there is none.
Expected<std::string> read_small_file(const std::string& path);

}  // namespace dualgemm::checkpoint
