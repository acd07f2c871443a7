// safetensors: 8 bytes header length (little-endian), JSON header, data. docs/formats.md names what
// is checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "checkpoint/atomic_file.hpp"
#include "checkpoint/tensor.hpp"
#include "dualgemm/status.hpp"

namespace dualgemm::checkpoint {

inline constexpr int64_t kMaxSafetensorsHeaderBytes =
    100'000'000;  // as the reference implementation

// Views into `file`, which must outlive the result. Refused (kCorruptFile): a header longer than
// the file or the limit, bad JSON or UTF-8, duplicate names or keys, unknown dtypes, offsets that
// leave the data, overlap, leave holes or contradict the shape. F4 tensors whose shape counts bytes
// get their last extent doubled, so that shapes count values here.
Expected<TensorFile> parse_safetensors(std::span<const std::byte> file, const std::string& origin);

// "NAME-00002-of-00005.safetensors", of more than one: a part that means nothing alone.
bool is_shard_name(std::string_view path);

// Refused besides (kCorruptFile): a shard without its index, NAME.safetensors.index.json, beside
// it. It is what an interrupted download or copy leaves, and would pass for a whole model.
Expected<TensorFile> open_safetensors(const std::string& path);
// The same where an index, by whatever name, is what led here.
Expected<TensorFile> open_safetensors_shard(const std::string& path);

// *.safetensors.index.json: tensor name -> file name inside the same directory (any other path is
// refused).
Expected<std::map<std::string, std::string>> parse_safetensors_index(
    std::span<const std::byte> json, const std::string& origin);
Expected<TensorFile> open_safetensors_index(const std::string& path);

// Same tensors and metadata -> same bytes: order is larger elements first, then by name, so every
// tensor is aligned to its element size; the header is padded with spaces to 8 bytes. Atomic, see
// AtomicFile.
Status write_safetensors(const std::string& path, const TensorFile& file);
// The same bytes to a file that its owner commits.
Status write_safetensors(AtomicFile& out, const TensorFile& file);

}  // namespace dualgemm::checkpoint
