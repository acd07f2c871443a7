// Which pixels a copy in an im2col mode takes (PTX ISA 9.0, "Im2col mode", "im2col::w and
// im2col::w::128 modes").
#include <fmt/format.h>

#include <array>

#include "machine/execution.hpp"
#include "machine/tensor_map/rows.hpp"

namespace ptxsim {
namespace {

[[noreturn]] void refuse(std::string message) {
  throw Fault(std::move(message), ErrorKind::kFault);
}

// The pixel box of one image, moved by the copy's offsets, and a pixel that goes through it: along
// W, then H, then D, then to the next image.
class PixelWalk {
 public:
  // `walked`: dimensions that the walk goes along, from W on; it stays where it is in the others.
  PixelWalk(const TensorMap& map, std::span<const int32_t> coordinates, uint32_t walked)
      : map_(map), walked_(walked) {
    for (uint32_t i = 0; i < map.rank; ++i) at_[i] = coordinates[i];
  }

  void set_bounds(uint32_t i, uint32_t offset) {
    lower_[i] = int64_t{map_.pixels.lower[i]} + offset;
    upper_[i] = static_cast<int64_t>(map_.extents[i + 1]) - 1 + map_.pixels.upper[i] + offset;
    at_[i + 1] += offset;
  }

  void check_inside(uint32_t i, bool may_begin_before) const {
    const int64_t at = at_[i + 1];
    if (at <= upper_[i] && (at >= lower_[i] || may_begin_before)) return;
    refuse(
        fmt::format("coordinate {} with its offset is {}; the pixel box goes from {} to {} (R14)",
                    i + 1, at, lower_[i], upper_[i]));
  }

  void add_to(Box& box) const {
    uint64_t address = map_.address;
    bool in_bounds = true;
    for (uint32_t i = 1; i < map_.rank; ++i) {
      in_bounds = in_bounds && at_[i] >= 0 && static_cast<uint64_t>(at_[i]) < map_.extents[i];
      address += static_cast<uint64_t>(at_[i]) * map_.stride_bytes[i - 1];
    }
    add_row(box, map_, address, at_[0], in_bounds);
  }

  // The traversal stride is that of D, H and W alone ("Traversal Stride").
  bool is_last_of_row() const { return at_[1] + map_.element_strides[1] > upper_[0]; }
  void advance() {
    for (uint32_t i = 0; i < walked_; ++i) {
      at_[i + 1] += map_.element_strides[i + 1];
      if (at_[i + 1] <= upper_[i]) return;
      at_[i + 1] = lower_[i];
    }
    ++at_[map_.rank - 1];
  }

 private:
  const TensorMap& map_;
  uint32_t walked_;
  std::array<int64_t, 5> at_{};  // C, W, H, D, N, as many as there are
  std::array<int64_t, 3> lower_{}, upper_{};
};

}  // namespace

Box walk_pixels(const TensorMap& map, std::span<const int32_t> coordinates,
                std::span<const uint16_t> offsets) {
  check_mode(map, TensorMapMode::kIm2col);
  refuse_interleave(map);
  check_first_coordinate(map, coordinates[0]);
  const uint32_t dimensions = pixel_dimensions(map);
  PixelWalk walk(map, coordinates, dimensions);
  const uint32_t most_offset = (1u << corner_bits(map)) - 1;
  for (uint32_t i = 0; i < dimensions; ++i) {
    const uint32_t offset = i < offsets.size() ? offsets[i] : 0;
    if (offset > most_offset)
      refuse(fmt::format("im2col offset {}; must be 0 .. {} with {} dimensions (R14)", offset,
                         most_offset, map.rank));
    walk.set_bounds(i, offset);
    walk.check_inside(i, false);
  }
  Box box;
  box.runs.reserve(map.pixels.count);
  for (uint32_t pixel = 0; pixel < map.pixels.count; ++pixel, walk.advance()) walk.add_to(box);
  return box;
}

Box walk_wide_pixels(const TensorMap& map, std::span<const int32_t> coordinates,
                     const WidePixels& wide) {
  check_mode(map, TensorMapMode::kIm2colWide);
  check_first_coordinate(map, coordinates[0]);
  constexpr uint32_t kMostHalo = 511, kMostOffset = 31, kMostHaloOf128 = 31;
  const uint32_t most_halo = wide.always_128 ? kMostHaloOf128 : kMostHalo;
  if (wide.halo > most_halo || wide.offset > kMostOffset)
    refuse(fmt::format("wHalo {} and wOffset {}; must be at most {} and {} (R14)", wide.halo,
                       wide.offset, most_halo, kMostOffset));
  if (wide.always_128 && wide.halo != 0)
    refuse(fmt::format(
        "im2col::w::128 with wHalo {}: where halo pixels lie is not modelled: the manual has it in "
        "figures alone",
        wide.halo));
  PixelWalk walk(map, coordinates, 1);
  walk.set_bounds(0, wide.offset);
  walk.check_inside(0, true);
  const uint32_t pixels = wide.always_128 ? kWidePixels : map.pixels.count;
  Box box;
  box.runs.reserve(pixels + wide.halo);
  for (uint32_t pixel = 0; pixel < pixels + wide.halo; ++pixel) {
    walk.add_to(box);
    if (pixel + 1 < pixels + wide.halo && pixel + 1 >= pixels && walk.is_last_of_row())
      refuse(
          "im2col::w with halo pixels beyond the right edge of the pixel box, which is not "
          "modelled: the manual has "
          "them in figures alone");
    walk.advance();
  }
  return box;
}

}  // namespace ptxsim
