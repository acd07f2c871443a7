#include "fake_cuda/fatbin/container.hpp"

#include <fmt/format.h>

#include <cstring>

#include "fake_cuda/fatbin/decompress.hpp"

namespace ptxsim::cuda {
namespace {

constexpr uint64_t kHeaderBytes = 16;
constexpr uint64_t kEntryBytes = 64;
constexpr uint64_t kLz4Flag = 0x2000;
constexpr uint64_t kZstdFlag = 0x8000;
constexpr uint64_t kMostTextBytes = uint64_t{1} << 30;  // what a broken size may ask for

template <class T>
T load_at(std::span<const std::byte> bytes, uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

Error refusal(uint64_t offset, const std::string& message) {
  return {ErrorKind::kInput, fmt::format("fat binary: at byte {}: {}", offset, message), {}};
}

FatbinKind kind_of(uint16_t kind) {
  if (kind == 1) return FatbinKind::kPtx;
  return kind == 2 ? FatbinKind::kElf : FatbinKind::kOther;
}

FatbinCompression compression_of(uint64_t flags) {
  if ((flags & kZstdFlag) != 0) return FatbinCompression::kZstd;
  return (flags & kLz4Flag) != 0 ? FatbinCompression::kLz4 : FatbinCompression::kNone;
}

}  // namespace

uint64_t fatbin_bytes(const void* header) {
  uint32_t magic = 0;
  std::memcpy(&magic, header, sizeof magic);
  if (magic != kFatbinMagic) return 0;
  uint64_t entries = 0;
  std::memcpy(&entries, static_cast<const std::byte*>(header) + 8, sizeof entries);
  return kHeaderBytes + entries;
}

Result<std::vector<FatbinEntry>> read_fatbin(std::span<const std::byte> bytes) {
  if (bytes.size() < kHeaderBytes)
    return refusal(0, fmt::format("{} bytes; a header has {}", bytes.size(), kHeaderBytes));
  if (load_at<uint32_t>(bytes, 0) != kFatbinMagic)
    return refusal(0, fmt::format("magic 0x{:08x}; must be 0x{:08x}", load_at<uint32_t>(bytes, 0),
                                  kFatbinMagic));
  const uint64_t first = load_at<uint16_t>(bytes, 6);
  const uint64_t body = load_at<uint64_t>(bytes, 8);
  if (first < kHeaderBytes || first > bytes.size() || body > bytes.size() - first)
    return refusal(6, fmt::format("a header of {} bytes and entries of {}; there are {}", first,
                                  body, bytes.size()));
  std::vector<FatbinEntry> entries;
  const uint64_t end = first + body;
  for (uint64_t at = first; at < end;) {
    if (end - at < kEntryBytes)
      return refusal(at, fmt::format("{} bytes; an entry has {}", end - at, kEntryBytes));
    const uint64_t header = load_at<uint32_t>(bytes, at + 4);
    const uint64_t padded = load_at<uint64_t>(bytes, at + 8);
    if (header < kEntryBytes || header > end - at || padded > end - at - header)
      return refusal(
          at, fmt::format("an entry of {} and {} bytes; there are {}", header, padded, end - at));
    FatbinEntry entry;
    entry.kind = kind_of(load_at<uint16_t>(bytes, at));
    entry.architecture = load_at<uint32_t>(bytes, at + 28);
    entry.compression = compression_of(load_at<uint64_t>(bytes, at + 40));
    uint64_t stored = padded;
    if (entry.compression != FatbinCompression::kNone) {
      stored = load_at<uint32_t>(bytes, at + 16);
      entry.text_bytes = load_at<uint64_t>(bytes, at + 56);
      if (stored > padded)
        return refusal(at + 16,
                       fmt::format("{} compressed bytes in a payload of {}", stored, padded));
      if (entry.text_bytes > kMostTextBytes)
        return refusal(at + 56, fmt::format("{} bytes when decompressed; at most {}",
                                            entry.text_bytes, kMostTextBytes));
    } else {
      entry.text_bytes = padded;
    }
    entry.payload = bytes.subspan(at + header, stored);
    entries.push_back(entry);
    at += header + padded;
  }
  return entries;
}

Result<std::string> ptx_of(const FatbinEntry& entry) {
  Result<std::string> text = decompress(entry);
  if (!text.ok()) return text;
  text->resize(std::strlen(text->c_str()));
  return text;
}

}  // namespace ptxsim::cuda
