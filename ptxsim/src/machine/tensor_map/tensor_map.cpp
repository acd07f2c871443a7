#include "machine/tensor_map/tensor_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "machine/execution.hpp"
#include "machine/tensor_map/rows.hpp"

namespace ptxsim {
namespace {

[[noreturn]] void refuse(std::string message, int lane = -1) {
  throw Fault(std::move(message), ErrorKind::kFault, lane);
}

const std::byte* bytes_of_bank(const std::byte* data, size_t size, uint64_t offset,
                               const char* what, int lane) {
  if (offset > size || size - offset < sizeof(TensorMapRecord))
    refuse(fmt::format("tensor map at offset 0x{:x} of {} memory, which has {} bytes", offset, what,
                       size),
           lane);
  return data + offset;
}

const std::byte* bytes_at(Machine& machine, uint64_t generic, int lane) {
  if (generic % 64 != 0)
    refuse(fmt::format("tensor map at 0x{:x}; the address must be a multiple of 64 (R14)", generic),
           lane);
  const auto inside = [&](uint64_t window) {
    return generic >= window && generic - window < kWindowBytes;
  };
  if (inside(kParamWindow)) {
    const auto& params = machine.params();
    return bytes_of_bank(reinterpret_cast<const std::byte*>(params.data()), params.size(),
                         generic - kParamWindow, "parameter", lane);
  }
  if (inside(kConstWindow))
    return bytes_of_bank(machine.const_bank().data(), machine.const_bank().size(),
                         generic - kConstWindow, "constant", lane);
  if (inside(kSharedWindow) || inside(kLocalWindow))
    refuse(fmt::format("tensor map at 0x{:x}; must be in parameter, constant or global memory",
                       generic),
           lane);
  return machine.global().read(generic, sizeof(TensorMapRecord));
}

// The part of a row that lies inside the tensor, in elements of the row.
struct Inside {
  int64_t begin, end;
};
Inside inside_part(const TensorMap& map, int64_t start) {
  const int64_t extent = static_cast<int64_t>(map.extents[0]);
  const int64_t begin = std::clamp<int64_t>(-start, 0, map.box[0]);
  return {begin, std::clamp<int64_t>(extent - start, begin, map.box[0])};
}

// Packed types lie in groups of 16 values: 8 or 12 bytes in global memory, 16 in shared memory. A
// row of them is wholly inside or outside, since extents and coordinates are multiples of 128.
void add_packed_row(Box& box, const TensorMap& map, uint64_t row, int64_t start, bool in_bounds) {
  const uint32_t group_bytes = 2 * element_bits(map.type);
  const bool inside = in_bounds && start >= 0 && start < static_cast<int64_t>(map.extents[0]);
  const uint64_t first = row + static_cast<uint64_t>(start) / 16 * group_bytes;
  for (uint32_t group = 0; group < map.box[0] / 16; ++group)
    box.runs.push_back({first + uint64_t{group} * group_bytes, box.shared_bytes + 16 * group,
                        group_bytes, inside});
  box.copied_bytes += map.box[0] / 16 * group_bytes;
}

}  // namespace

void add_row(Box& box, const TensorMap& map, uint64_t row, int64_t start, bool in_bounds) {
  const uint32_t row_bytes = static_cast<uint32_t>(shared_row_bytes(map.type, map.box[0]));
  if (is_packed_with_gaps(map.type)) {
    add_packed_row(box, map, row, start, in_bounds);
  } else {
    const uint32_t bits = element_bits(map.type);
    const Inside inside = in_bounds ? inside_part(map, start) : Inside{0, 0};
    const auto bytes = [&](int64_t elements) { return static_cast<uint32_t>(elements * bits / 8); };
    const auto run = [&](int64_t begin, int64_t end, bool is_inside) {
      if (begin == end) return;
      const uint64_t global = is_inside ? row + static_cast<uint64_t>(start + begin) * bits / 8 : 0;
      box.runs.push_back({global, box.shared_bytes + bytes(begin), bytes(end - begin), is_inside});
    };
    run(0, inside.begin, false);
    run(inside.begin, inside.end, true);
    run(inside.end, map.box[0], false);
    box.copied_bytes += row_bytes;
  }
  box.shared_bytes += std::max(row_bytes, swizzle_span_bytes(map.swizzle));
}

// The address of a box must be a multiple of 16 bytes ("Bounding Box"); an H200 stops with an
// illegal instruction where the first coordinate breaks that.
void check_first_coordinate(const TensorMap& map, int32_t coordinate) {
  if (is_packed_with_gaps(map.type) && coordinate % 128 != 0)
    refuse(
        fmt::format("first coordinate {}; must be a multiple of 128 with the ALIGN16B types (R14)",
                    coordinate));
  const int64_t bits = int64_t{coordinate} * element_bits(map.type);
  if (!is_packed_with_gaps(map.type) && bits % 128 != 0)
    refuse(fmt::format(
        "first coordinate {} of elements of {} bits; the box must begin at a multiple of "
        "16 bytes (R14)",
        coordinate, element_bits(map.type)));
}

void refuse_interleave(const TensorMap& map) {
  if (map.interleave != TensorMapInterleave::kNone)
    refuse(fmt::format("tensor map with interleave {}B; interleaved layouts are not modelled",
                       map.interleave == TensorMapInterleave::k16 ? 16 : 32));
}

void check_mode(const TensorMap& map, TensorMapMode mode) {
  static constexpr const char *kCopies[] = {"tiled", "im2col", "im2col::w"},
                              *kMaps[] = {"a tiled tensor map", "a tensor map for im2col",
                                          "a tensor map for im2col::w"};
  if (map.mode == mode) return;
  refuse(fmt::format("a copy in {} mode with {} (R14)", kCopies[static_cast<int>(mode)],
                     kMaps[static_cast<int>(map.mode)]));
}

TensorMap read_tensor_map(Machine& machine, uint64_t generic, int lane) {
  TensorMapRecord record;
  std::memcpy(&record, bytes_at(machine, generic, lane), sizeof record);
  const Result<TensorMap> map = decode_record(record);
  if (!map.ok())  // the launch's mistake, not the kernel's
    throw Fault(fmt::format("tensor map at 0x{:x} {}", generic, map.error().message),
                map.error().kind, lane);
  // What an encoder wrote is legal; what tensormap.replace left may not be.
  const Result<TensorMapRecord> legal = encode_tensor_map(map.value());
  if (!legal.ok())
    refuse(fmt::format("tensor map at 0x{:x}: {} (R14)", generic, legal.error().message), lane);
  return map.value();
}

uint32_t swizzle_address(TensorMapSwizzle swizzle, uint32_t address) {
  switch (swizzle) {
    case TensorMapSwizzle::kNone:
      return address;
    case TensorMapSwizzle::k32:
      return address ^ (address >> 3 & 0x10);
    case TensorMapSwizzle::k64:
      return address ^ (address >> 3 & 0x30);
    case TensorMapSwizzle::k128:
      return address ^ (address >> 3 & 0x70);
    case TensorMapSwizzle::k128Atom32:
      return address ^ (address >> 2 & 0x60);
    case TensorMapSwizzle::k128Atom32Flip8:
      return address ^ (address >> 2 & 0x60) ^ (address >> 4 & 0x08);
    case TensorMapSwizzle::k128Atom64:
      return address ^ (address >> 1 & 0x40);
  }
  return address;
}

uint32_t swizzle_atom_bytes(TensorMapSwizzle swizzle) {
  return swizzle == TensorMapSwizzle::k128Atom32Flip8 ? 8 : 16;
}

Box walk_box(const TensorMap& map, std::span<const int32_t> coordinates) {
  check_mode(map, TensorMapMode::kTiled);
  refuse_interleave(map);
  check_first_coordinate(map, coordinates[0]);
  std::array<uint32_t, 5> count{1, 1, 1, 1, 1};
  uint32_t rows = 1;
  for (uint32_t i = 1; i < map.rank; ++i) {
    count[i] = (map.box[i] + map.element_strides[i] - 1) / map.element_strides[i];
    rows *= count[i];
  }
  Box box;
  box.runs.reserve(rows);
  for (uint32_t row = 0; row < rows; ++row) {
    uint64_t address = map.address;
    bool in_bounds = true;
    uint32_t rest = row;
    for (uint32_t i = 1; i < map.rank; ++i) {
      const int64_t at =
          int64_t{coordinates[i]} + int64_t{rest % count[i]} * map.element_strides[i];
      rest /= count[i];
      in_bounds = in_bounds && at >= 0 && static_cast<uint64_t>(at) < map.extents[i];
      address += static_cast<uint64_t>(at) * map.stride_bytes[i - 1];
    }
    add_row(box, map, address, coordinates[0], in_bounds);
  }
  return box;
}

Box walk_four_rows(const TensorMap& map, int32_t column, std::span<const int32_t, 4> rows) {
  check_mode(map, TensorMapMode::kTiled);
  refuse_interleave(map);
  check_first_coordinate(map, column);
  if (map.rank != 2 || map.box[1] != 1)
    refuse(fmt::format(
        "gather4 or scatter4 with a tensor map of rank {} and box[1] {}; needs rank 2 and box[1] 1 "
        "(R14)",
        map.rank, map.box[1]));
  Box box;
  for (const int32_t row : rows) {
    const bool in_bounds = row >= 0 && static_cast<uint64_t>(row) < map.extents[1];
    add_row(box, map, map.address + static_cast<uint64_t>(int64_t{row}) * map.stride_bytes[0],
            column, in_bounds);
  }
  return box;
}

void fill_out_of_bounds(const TensorMap& map, std::byte* data, uint32_t bytes) {
  if (map.fill == TensorMapFill::kZero) {
    std::memset(data, 0, bytes);
    return;
  }
  constexpr uint16_t kNan = 0x7ff7;  // in every 16 bits, whatever the type: read from an H200
  for (uint32_t i = 0; i < bytes; i += 2) std::memcpy(data + i, &kNan, 2);
}

// Read from an H200: TF32 maps round to nearest even and NaN becomes 0x7fffe000; .FTZ maps flush
// nothing on a load.
void convert_loaded(const TensorMap& map, std::byte* data, uint32_t bytes) {
  if (map.type != TensorMapType::kTf32 && map.type != TensorMapType::kTf32Ftz) return;
  for (uint32_t i = 0; i < bytes; i += 4) {
    uint32_t word;
    std::memcpy(&word, data + i, 4);
    const bool is_nan = (word & 0x7fffffff) > 0x7f800000;
    word = is_nan ? 0x7fffe000 : (word + 0xfff + (word >> 13 & 1)) & 0xffffe000;
    std::memcpy(data + i, &word, 4);
  }
}

}  // namespace ptxsim
