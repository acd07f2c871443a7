// Fat binaries, written byte by byte as nvcc 13 does.
#pragma once

#include <lz4.h>
#include <zstd.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace ptxsim_test {

struct FatbinPart {
  uint16_t kind = 1;  // 1 PTX, 2 ELF
  uint32_t architecture = 90;
  std::string content;
  char method = 0;  // 'z' zstd, 'l' LZ4
};

inline std::string compressed(const FatbinPart& part) {
  if (part.method == 'z') {
    std::string bytes(ZSTD_compressBound(part.content.size()), '\0');
    bytes.resize(
        ZSTD_compress(bytes.data(), bytes.size(), part.content.data(), part.content.size(), 3));
    return bytes;
  }
  if (part.method == 'l') {
    std::string bytes(static_cast<size_t>(LZ4_compressBound(static_cast<int>(part.content.size()))),
                      '\0');
    bytes.resize(static_cast<size_t>(LZ4_compress_default(part.content.data(), bytes.data(),
                                                          static_cast<int>(part.content.size()),
                                                          static_cast<int>(bytes.size()))));
    return bytes;
  }
  return part.content;
}

template <class T>
void put(std::string& bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

inline std::string fatbin_of(const std::vector<FatbinPart>& parts) {
  std::string body;
  for (const FatbinPart& part : parts) {
    const std::string payload = compressed(part);
    std::string header(80, '\0');
    put<uint16_t>(header, 0, part.kind);
    put<uint16_t>(header, 2, 0x0101);
    put<uint32_t>(header, 4, 80);
    put<uint64_t>(header, 8, (payload.size() + 7) / 8 * 8);
    put<uint32_t>(header, 16, part.method == 0 ? 0 : static_cast<uint32_t>(payload.size()));
    put<uint32_t>(header, 28, part.architecture);
    put<uint64_t>(header, 40, part.method == 'z' ? 0x8011 : part.method == 'l' ? 0x2011 : 0x11);
    put<uint64_t>(header, 56, part.method == 0 ? 0 : part.content.size());
    body += header + payload + std::string((8 - payload.size() % 8) % 8, '\0');
  }
  std::string bytes(16, '\0');
  put<uint32_t>(bytes, 0, 0xba55ed50);
  put<uint16_t>(bytes, 4, 1);
  put<uint16_t>(bytes, 6, 16);
  put<uint64_t>(bytes, 8, body.size());
  return bytes + body;
}

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

inline std::string ptx_for(const std::string& target) {
  return "//\n.version 9.0\n.target " + target + "\n.address_size 64\n// " + std::string(200, 'x') +
         "\n";
}

}  // namespace ptxsim_test
