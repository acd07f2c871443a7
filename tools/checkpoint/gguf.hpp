// GGUF, llama.cpp's file format: header, key-value pairs, tensor infos, data. Little-endian,
// versions 2 and 3, one file (a model in several is not read).
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "dualgemm/status.hpp"
#include "tools/checkpoint/tensor.hpp"

namespace dualgemm::checkpoint {

// Views into `file`, which must outlive the result. Shapes are row-major: GGUF's extents reversed.
// NVFP4 tensors become U8 [..., K/64*36] and the metadata say so (kFormatKey); F32, F16, BF16, F64
// and the integers are themselves; tensors of any other quantisation are in left_out(). Of the
// key-value pairs general.alignment is used, general.architecture and general.name are kept as
// metadata. Refused (kCorruptFile): lengths and counts beyond the file, unknown value types, nested
// arrays, duplicate names, more than four extents, sizes that overflow, data that is not aligned,
// leaves the file or overlaps.
Expected<TensorFile> parse_gguf(std::span<const std::byte> file, const std::string& origin);

Expected<TensorFile> open_gguf(const std::string& path);

}  // namespace dualgemm::checkpoint
