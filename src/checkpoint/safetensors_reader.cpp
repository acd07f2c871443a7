#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

#include "checkpoint/corrupt.hpp"
#include "checkpoint/guard.hpp"
#include "checkpoint/mapped_file.hpp"
#include "checkpoint/safetensors.hpp"
#include "checkpoint/safetensors_header.hpp"

namespace dualgemm::checkpoint {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read as they lie");

constexpr uint64_t kLengthBytes = 8;

Expected<std::span<const std::byte>> header_bytes(std::span<const std::byte> file,
                                                  const std::string& origin) {
  if (file.size() < kLengthBytes) {
    return corrupt(origin, fmt::format("{} bytes", file.size()),
                   "a safetensors file starts with 8 bytes of header length");
  }
  const auto length = load_element<uint64_t>(file, 0);
  if (length > static_cast<uint64_t>(kMaxSafetensorsHeaderBytes)) {
    return corrupt(origin, fmt::format("header of {} bytes", length),
                   fmt::format("must be at most {}", kMaxSafetensorsHeaderBytes));
  }
  if (length > file.size() - kLengthBytes) {
    return corrupt(origin, fmt::format("header of {} bytes in a file of {}", length, file.size()),
                   "the header must lie inside the file");
  }
  if (length == 0 || file[kLengthBytes] != std::byte{'{'}) {
    return corrupt(origin, "no '{' after the header length", "the header must be a JSON object");
  }
  return file.subspan(kLengthBytes, length);
}

Status check_entry(HeaderEntry& entry, uint64_t data_size, const std::string& origin) {
  const std::string where = fmt::format("{}, tensor '{}'", origin, entry.name);
  if (entry.begin > entry.end || entry.end > data_size) {
    return corrupt(where, fmt::format("data_offsets [{}, {}]", entry.begin, entry.end),
                   fmt::format("must be ordered and inside the {} bytes of data", data_size));
  }
  const uint64_t held = entry.end - entry.begin;
  const Expected<int64_t> needed = checked_bytes(entry.dtype, entry.shape, where);
  if (needed && static_cast<uint64_t>(*needed) == held) return {};
  if (entry.dtype == ElementType::kF4 && !entry.shape.empty()) {  // the shape may count bytes
    const Expected<int64_t> packed = checked_bytes(ElementType::kU8, entry.shape, where);
    if (packed && static_cast<uint64_t>(*packed) == held) {
      // held fits in 63 bits, but doubling an extent beside an extent of 0 may overflow
      if (__builtin_mul_overflow(entry.shape.back(), int64_t{2}, &entry.shape.back())) {
        return corrupt(where, "shape beyond 63 bits", "extents must be below 2^63");
      }
      return checked_bytes(entry.dtype, entry.shape, where).status();
    }
  }
  if (!needed) return corrupt(where, needed.status().observed(), needed.status().rule());
  return corrupt(where, fmt::format("{} bytes", held),
                 fmt::format("shape {} of {} needs {}", format_shape(entry.shape),
                             name_of(entry.dtype), *needed));
}

// The format demands that the tensors cover the data without holes or overlap.
Status check_cover(const std::vector<HeaderEntry>& entries, uint64_t data_size,
                   const std::string& origin) {
  std::vector<const HeaderEntry*> order;
  for (const HeaderEntry& entry : entries) order.push_back(&entry);
  std::sort(order.begin(), order.end(), [](const HeaderEntry* a, const HeaderEntry* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  uint64_t covered = 0;
  for (const HeaderEntry* entry : order) {
    if (entry->begin != covered) {
      return corrupt(fmt::format("{}, tensor '{}'", origin, entry->name),
                     fmt::format("starts at byte {} of the data", entry->begin),
                     fmt::format("must start where the tensor before it ends, at {}", covered));
    }
    covered = entry->end;
  }
  if (covered == data_size) return {};
  return corrupt(origin, fmt::format("{} bytes of data", data_size),
                 fmt::format("the tensors end at {}", covered));
}

// What stands before "-00002-of-00005.safetensors"; empty where the name has no such end, or is of
// one shard that is all.
std::string_view shard_stem(std::string_view path) {
  constexpr std::string_view kExtension = ".safetensors", kOf = "-of-";
  constexpr size_t kDigits = 5, kEnd = 1 + kDigits + kOf.size() + kDigits;  // "-00002-of-00005"
  if (!path.ends_with(kExtension)) return {};
  path.remove_suffix(kExtension.size());
  if (path.size() <= kEnd) return {};
  const std::string_view end = path.substr(path.size() - kEnd);
  const std::string_view number = end.substr(1, kDigits), count = end.substr(kEnd - kDigits);
  const auto is_number = [](std::string_view text) {
    return text.find_first_not_of("0123456789") == text.npos;
  };
  const bool named_so = end[0] == '-' && end.substr(1 + kDigits, kOf.size()) == kOf &&
                        is_number(number) && is_number(count);
  return named_so && count != "00001" ? path.substr(0, path.size() - kEnd) : std::string_view();
}

}  // namespace

Expected<TensorFile> parse_safetensors(std::span<const std::byte> file, const std::string& origin) {
  return guarded(origin, [&]() -> Expected<TensorFile> {
    const Expected<std::span<const std::byte>> json = header_bytes(file, origin);
    if (!json) return json.status();
    Expected<SafetensorsHeader> header =
        parse_header_json({reinterpret_cast<const char*>(json->data()), json->size()}, origin);
    if (!header) return header.status();
    const std::span<const std::byte> data = file.subspan(kLengthBytes + json->size());
    for (HeaderEntry& entry : header->entries) {
      DUALGEMM_TRY(check_entry(entry, data.size(), origin));
    }
    DUALGEMM_TRY(check_cover(header->entries, data.size(), origin));
    TensorFile result;
    result.set_origin(origin);
    result.metadata() = std::move(header->metadata);
    for (HeaderEntry& entry : header->entries) {
      DUALGEMM_TRY(result.add({std::move(entry.name), entry.dtype, std::move(entry.shape),
                               data.subspan(entry.begin, entry.end - entry.begin)}));
    }
    return result;
  });
}

bool is_shard_name(std::string_view path) { return !shard_stem(path).empty(); }

Expected<TensorFile> open_safetensors(const std::string& path) {
  if (const std::string_view stem = shard_stem(path); !stem.empty()) {
    const std::string index = std::string(stem) + ".safetensors.index.json";
    // A file that is not there is not found, index or no index.
    if (access(path.c_str(), F_OK) == 0 && access(index.c_str(), F_OK) != 0) {
      return corrupt(path, "one shard of several, without " + index,
                     "an interrupted copy? the index and all shards must lie in one folder");
    }
  }
  return open_safetensors_shard(path);
}

Expected<TensorFile> open_safetensors_shard(const std::string& path) {
  Expected<std::shared_ptr<const MappedFile>> mapped = MappedFile::open(path);
  if (!mapped) return mapped.status();
  Expected<TensorFile> file = parse_safetensors((*mapped)->bytes(), path);
  if (!file) return file;
  file->keep_alive(*mapped);
  file->add_path(path);
  return file;
}

}  // namespace dualgemm::checkpoint
