#include "plan/prepared_bytes.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "core/enum_table.hpp"
#include "core/int_math.hpp"
#include "plan/strategy.hpp"

namespace dualgemm {
namespace plan {
namespace {

// A part as it lies in memory. Whatever a later version adds must find zeros here today, so that
// this one refuses it.
struct Header {
  char magic[8];
  int32_t format;
  int32_t version;
  int64_t n, k;
  int64_t expert_bytes;
  int64_t columns;
  uint8_t zeros[kPreparedHeaderBytes - 48];
};
static_assert(sizeof(Header) == kPreparedHeaderBytes && std::endian::native == std::endian::little,
              "the numbers of a header are little-endian");

constexpr char kMagic[sizeof(Header::magic) + 1] = "DUALGEMM";
constexpr int64_t kPartMultiple = 256;  // so that every part is as aligned as the first

// The version of each format, by its number; one more when its bytes change.
constexpr int32_t kVersions[] = {0, 1, 1, 2, 2, 1, 1, 1, 1, 1, 1, 1};
static_assert(std::size(kVersions) == core::kEnumCount<PreparedFormat>);

int32_t version_of(PreparedFormat format) noexcept {
  return kVersions[static_cast<size_t>(format)];
}

bool is_prepared(PreparedFormat format) noexcept {
  return core::is_enumerator(format) && format != PreparedFormat::kNone;
}

int64_t alignment_of(PreparedFormat format) noexcept {
  return device_of(format) == DeviceKind::kCpu ? 64 : 256;
}

std::string describe(const PreparedDescriptor& d) {
  const std::string text =
      fmt::format("{} version {}, n {}, k {}, l {}", name_of(d.format), d.version, d.n, d.k, d.l);
  return d.columns == 0 ? text : text + fmt::format(", cut from {} rows", d.columns);
}

Status check_format(PreparedFormat format, int32_t version) {
  if (!is_prepared(format)) {
    return Status::invalid(
        "prepared", fmt::format("format {}", static_cast<int32_t>(format)),
        fmt::format("this library knows 1 .. {}", core::kEnumCount<PreparedFormat> - 1));
  }
  if (version == version_of(format)) return {};
  return Status::invalid("prepared", fmt::format("{} version {}", name_of(format), version),
                         fmt::format("this library knows version {}", version_of(format)));
}

Status check_alignment(const void* memory, int64_t alignment) {
  const auto excess = reinterpret_cast<uintptr_t>(memory) % static_cast<uintptr_t>(alignment);
  if (excess == 0) return {};
  return Status::invalid("prepared", fmt::format("address % {} = {}", alignment, excess),
                         fmt::format("must be aligned to {} bytes", alignment));
}

Status check_size(int64_t bytes, int64_t needed) {
  if (bytes >= needed) return {};
  return Status::invalid("prepared", fmt::format("{} bytes", bytes),
                         fmt::format("must be at least {}", needed));
}

// The numbers that do not follow from the format.
bool is_consistent(const PreparedDescriptor& d) noexcept {
  int64_t bytes = 0;
  return d.n >= 1 && d.k >= kSfVec && d.k % kSfVec == 0 && d.l >= 1 &&
         d.expert_bytes > kPreparedHeaderBytes && d.expert_bytes % kPartMultiple == 0 &&
         !__builtin_mul_overflow(d.l, d.expert_bytes, &bytes) && bytes == d.bytes &&
         d.alignment == alignment_of(d.format) &&
         (d.columns == 0 || (d.columns >= d.n && d.columns - d.n <= d.n));
}

Status inconsistent(const PreparedDescriptor& d) {
  return Status::invalid("prepared",
                         fmt::format("{}, {} bytes in parts of {}, aligned to {}", describe(d),
                                     d.bytes, d.expert_bytes, d.alignment),
                         "must be a descriptor of prepared_descriptor() or of a header");
}

}  // namespace

DeviceKind device_of(PreparedFormat format) noexcept {
  switch (format) {
    case PreparedFormat::kNone:
      return DeviceKind::kAuto;
    case PreparedFormat::kCpuPanels:
    case PreparedFormat::kCpuFp8:
      return DeviceKind::kCpu;
    default:
      return DeviceKind::kCuda;
  }
}

PreparedDescriptor describe_prepared(PreparedFormat format, const Problem& problem,
                                     int64_t part_bytes) noexcept {
  PreparedDescriptor d{
      .format = format,
      .version = version_of(format),
      .n = problem.n,
      .k = problem.k,
      .l = problem.l,
      .expert_bytes = core::round_up(kPreparedHeaderBytes + part_bytes, kPartMultiple),
      .alignment = alignment_of(format),
      .columns = problem.combine == Combine::kGlu ? 0 : problem.up_column + problem.n};
  d.bytes = d.l * d.expert_bytes;
  return d;
}

void write_header(const PreparedDescriptor& descriptor, uint8_t* header) noexcept {
  Header bytes{};
  std::memcpy(bytes.magic, kMagic, sizeof bytes.magic);
  bytes.format = static_cast<int32_t>(descriptor.format);
  bytes.version = descriptor.version;
  bytes.n = descriptor.n;
  bytes.k = descriptor.k;
  bytes.expert_bytes = descriptor.expert_bytes;
  bytes.columns = descriptor.columns;
  std::memcpy(header, &bytes, sizeof bytes);
}

void frame_parts(const PreparedDescriptor& descriptor, int64_t part_bytes,
                 uint8_t* memory) noexcept {
  const int64_t used = kPreparedHeaderBytes + part_bytes;
  for (int64_t expert = 0; expert < descriptor.l; ++expert) {
    uint8_t* const part = memory + descriptor.expert_offset(expert);
    write_header(descriptor, part);
    std::memset(part + used, 0, static_cast<size_t>(descriptor.expert_bytes - used));
  }
}

const PreparedView* view_of(const Buffers& buffers) noexcept {
  if (buffers.prepared == nullptr || buffers.prepared->empty()) return buffers.prepared_view;
  return &buffers.prepared->impl()->view;
}

Status check_memory_for(const PreparedDescriptor& wanted, const void* memory, int64_t bytes) {
  DUALGEMM_TRY(check_size(bytes, wanted.bytes));
  if (memory == nullptr) return Status::invalid("prepared", "null", "is required");
  return check_alignment(memory, wanted.alignment);
}

Status check_view(const PreparedView& view) {
  const PreparedDescriptor& d = view.descriptor;
  DUALGEMM_TRY(check_format(d.format, d.version));
  if (!is_consistent(d)) return inconsistent(d);
  return check_memory_for(d, view.memory, view.bytes);
}

Status check_view_fits(const PreparedDescriptor& wanted, const PreparedView& view) {
  const PreparedDescriptor& d = view.descriptor;
  DUALGEMM_TRY(check_format(d.format, d.version));
  if (device_of(d.format) != device_of(wanted.format)) {
    return Status::invalid(
        "prepared", std::string("made on ") + name_of(device_of(d.format)),
        std::string("must be made on the plan's device, ") + name_of(device_of(wanted.format)));
  }
  if (d.format != wanted.format || d.n != wanted.n || d.k != wanted.k || d.l != wanted.l ||
      d.columns != wanted.columns) {
    return Status::invalid("prepared", describe(d),
                           "must be made for the plan's " + describe(wanted));
  }
  if (d != wanted) return inconsistent(d);
  return check_memory_for(d, view.memory, view.bytes);
}

Status check_headers(const PreparedView& view) {
  const PreparedDescriptor& wanted = view.descriptor;
  uint8_t header[kPreparedHeaderBytes];
  write_header(wanted, header);
  for (int64_t expert = 0; expert < wanted.l; ++expert) {
    const uint8_t* const part =
        static_cast<const uint8_t*>(view.memory) + wanted.expert_offset(expert);
    if (std::memcmp(part, header, sizeof header) == 0) continue;
    const Expected<PreparedDescriptor> found = read_header(part, wanted.expert_bytes);
    const std::string where = fmt::format("the header of expert {}: ", expert);
    if (!found) {
      return Status::invalid("prepared", where + found.status().observed(), found.status().rule());
    }
    PreparedDescriptor one = wanted;
    one.l = 1;
    return Status::invalid("prepared", where + describe(*found), "must be " + describe(one));
  }
  return {};
}

Expected<PreparedDescriptor> read_header(const void* header, int64_t bytes) {
  DUALGEMM_TRY(check_size(bytes, kPreparedHeaderBytes));
  if (header == nullptr) return Status::invalid("prepared", "null", "is required");
  Header found;
  std::memcpy(&found, header, sizeof found);
  if (std::memcmp(found.magic, kMagic, sizeof found.magic) != 0) {
    return Status::invalid("prepared", "other bytes", fmt::format("must begin with {}", kMagic));
  }
  PreparedDescriptor d{.format = static_cast<PreparedFormat>(found.format),
                       .version = found.version,
                       .n = found.n,
                       .k = found.k,
                       .expert_bytes = found.expert_bytes,
                       .bytes = bytes,
                       .columns = found.columns};
  DUALGEMM_TRY(check_format(d.format, d.version));
  for (const uint8_t byte : found.zeros) {
    if (byte == 0) continue;
    return Status::invalid("prepared", "a header with more in it than this library knows",
                           "its rest must be 0");
  }
  if (d.expert_bytes > 0) {
    if (bytes % d.expert_bytes != 0) {
      return Status::invalid("prepared", fmt::format("{} bytes", bytes),
                             fmt::format("must be whole parts of {} bytes", d.expert_bytes));
    }
    d.l = bytes / d.expert_bytes;
  }
  d.alignment = alignment_of(d.format);
  if (!is_consistent(d)) return inconsistent(d);
  return d;
}

Expected<PreparedView> some_experts(const PreparedView& view, int64_t first, int64_t count) {
  DUALGEMM_TRY(check_view(view));
  PreparedDescriptor some = view.descriptor;
  if (first < 0 || first >= some.l) {
    return Status::invalid("first", std::to_string(first),
                           fmt::format("must be 0 .. {}", some.l - 1));
  }
  if (count < 1 || count > some.l - first) {
    return Status::invalid("count", std::to_string(count),
                           fmt::format("must be 1 .. {}", some.l - first));
  }
  const int64_t offset = some.expert_offset(first);
  some.l = count;
  some.bytes = count * some.expert_bytes;
  return PreparedView{some, static_cast<const uint8_t*>(view.memory) + offset, some.bytes};
}

}  // namespace plan
}  // namespace dualgemm
