// NumPy's .npy, versions 1.0, 2.0 and 3.0: one little-endian C-order array.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "checkpoint/atomic_file.hpp"
#include "checkpoint/tensor.hpp"
#include "dualgemm/status.hpp"

namespace dualgemm::checkpoint {

struct NpyOptions {
  bool u2_is_bf16 = false;  // NumPy has no bf16: such arrays are commonly stored as uint16
};

// A view into `file`, which must outlive the result. Fortran order, big-endian, structured and
// object arrays are kUnsupported.
Expected<TensorView> parse_npy(std::span<const std::byte> file, const std::string& origin,
                               const NpyOptions& options = {});

// One tensor, named by the file's stem: "dir/x.npy" -> "x".
Expected<TensorFile> open_npy(const std::string& path, const NpyOptions& options = {});

// Version 1.0. Types NumPy lacks are stored as raw integers: kBF16 as uint16; kF4, kF8E4M3 and
// kF8E5M2 as uint8 (kF4: the last extent counts bytes). Atomic, see AtomicFile.
Status write_npy(const std::string& path, const TensorView& tensor);
// The same bytes to a file that its owner commits.
Status write_npy(AtomicFile& out, const TensorView& tensor);

}  // namespace dualgemm::checkpoint
