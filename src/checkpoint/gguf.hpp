// GGUF, llama.cpp's file format: header, key-value pairs, tensor infos, data. Little-endian,
// versions 2 and 3, in one file or in several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "checkpoint/tensor.hpp"
#include "dualgemm/status.hpp"

namespace dualgemm::checkpoint {

// What the key-value pairs say about the other files of a model.
struct GgufSplit {
  uint64_t number = 0, count = 1;   // this one, from 0; of so many
  std::optional<uint64_t> tensors;  // of all of them
  uint64_t tensors_here = 0;        // those left out, too
};

// One file, or one part of a model in several. Views into `file`, which must outlive the result.
// Shapes are row-major: GGUF's extents reversed. NVFP4 tensors become U8 [..., K/64*36] and the
// metadata say so (kFormatKey); F32, F16, BF16, F64 and the integers are themselves; tensors of any
// other quantisation are in left_out(). general.alignment is used, general.architecture and
// general.name are kept as metadata, other key-value pairs are not. Refused (kCorruptFile): lengths
// and counts beyond the file, unknown value types, nested arrays, duplicate names, more than four
// extents, sizes that overflow, data that is not aligned, leaves the file or overlaps.
Expected<TensorFile> parse_gguf(std::span<const std::byte> file, const std::string& origin,
                                GgufSplit* split = nullptr);

// The model that the file is, or any part of: where its keys say that there are several, all of
// them, NAME-00001-of-00003.gguf and so on beside each other. kCorruptFile where they do not belong
// together.
Expected<TensorFile> open_gguf(const std::string& path);

}  // namespace dualgemm::checkpoint
