// Reads the containers of nvcc's fat binaries: what `.nv_fatbin` and `nvcc -fatbin` hold. NVIDIA
// does not document the format; this is what nvcc 11 to 13 and cuobjdump agree on:
//
//   container  u32 magic 0xba55ed50, u16 version 1, u16 bytes of this header (16), u64 bytes of
//              all entries
//   entry      u16 kind (1 PTX, 2 ELF), u16, u32 bytes of this header, u64 bytes of the payload
//              with its padding, u32 bytes of the compressed payload, u32, u16 minor, u16 major of
//              the PTX version, u32 architecture (100), at 40: u64 flags (0x2000: LZ4, 0x8000:
//              zstd), at 56: u64 bytes when decompressed
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ptxsim/error.hpp"

namespace ptxsim::cuda {

inline constexpr uint32_t kFatbinMagic = 0xba55ed50;

enum class FatbinKind : uint16_t { kPtx = 1, kElf = 2, kOther = 0 };
enum class FatbinCompression : uint8_t { kNone, kLz4, kZstd };

struct FatbinEntry {
  FatbinKind kind = FatbinKind::kOther;
  uint32_t architecture = 0;  // 100 for sm_100, sm_100a and sm_100f
  FatbinCompression compression = FatbinCompression::kNone;
  uint64_t text_bytes = 0;  // when decompressed
  std::span<const std::byte> payload;
};

// Bytes of the container that begins at `header`, its header included; 0: this is none. For images
// that come as a pointer alone.
uint64_t fatbin_bytes(const void* header);

// The entries of one container. An Error (kInput) names the byte at which `bytes` is not one.
Result<std::vector<FatbinEntry>> read_fatbin(std::span<const std::byte> bytes);

// The PTX of an entry of that kind, without the zeros behind it.
Result<std::string> ptx_of(const FatbinEntry& entry);

}  // namespace ptxsim::cuda
