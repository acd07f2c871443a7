#include "fake_cuda/fatbin/decompress.hpp"

#include <fmt/format.h>
#include <lz4.h>
#include <zstd.h>

namespace ptxsim::cuda {
namespace {

Error refusal(const char* method, const std::string& message) {
  return {ErrorKind::kInput, fmt::format("fat binary: {}: {}", method, message), {}};
}

Result<std::string> zstd_text(const FatbinEntry& entry) {
  std::string text(entry.text_bytes, '\0');
  const size_t bytes =
      ZSTD_decompress(text.data(), text.size(), entry.payload.data(), entry.payload.size());
  if (ZSTD_isError(bytes) != 0) return refusal("zstd", ZSTD_getErrorName(bytes));
  if (bytes != text.size())
    return refusal("zstd", fmt::format("{} bytes; the entry says {}", bytes, text.size()));
  return text;
}

Result<std::string> lz4_text(const FatbinEntry& entry) {
  std::string text(entry.text_bytes, '\0');
  const int bytes =
      LZ4_decompress_safe(reinterpret_cast<const char*>(entry.payload.data()), text.data(),
                          static_cast<int>(entry.payload.size()), static_cast<int>(text.size()));
  if (bytes < 0)
    return refusal("LZ4", fmt::format("broken after {} bytes", -static_cast<int64_t>(bytes)));
  if (static_cast<size_t>(bytes) != text.size())
    return refusal("LZ4", fmt::format("{} bytes; the entry says {}", bytes, text.size()));
  return text;
}

}  // namespace

Result<std::string> decompress(const FatbinEntry& entry) {
  switch (entry.compression) {
    case FatbinCompression::kZstd:
      return zstd_text(entry);
    case FatbinCompression::kLz4:
      return lz4_text(entry);
    case FatbinCompression::kNone:
      break;
  }
  return std::string(reinterpret_cast<const char*>(entry.payload.data()), entry.payload.size());
}

}  // namespace ptxsim::cuda
