#include "ptxsim/machine/image.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "number/formats.hpp"
#include "number/sign.hpp"

namespace ptxsim {
namespace {

// Coordinates of a linear filter have eight fractional bits; rounded to nearest, as the guide's
// example of a gather at 2.49805 needs it ("Texture Gather").
constexpr int64_t kFractions = 256;

int64_t whole(double value) {  // NaN and what no image has: some texel far outside
  constexpr double kFar = 1e15;
  return static_cast<int64_t>(std::floor(std::isnan(value) ? 0 : std::clamp(value, -kFar, kFar)));
}

int64_t modulo(int64_t value, int64_t count) { return (value % count + count) % count; }

AddressMode mode_of(const Image& image, uint32_t dimension) {
  if (image.is_cube()) return AddressMode::kClamp;
  const AddressMode mode = image.sampler.address[dimension];
  const bool repeats = mode == AddressMode::kWrap || mode == AddressMode::kMirror;
  // "... won't be supported and will be switched to cudaAddressModeClamp"
  return repeats && !image.sampler.normalized_coordinates ? AddressMode::kClamp : mode;
}

// The texel that stands for one that may lie outside; nothing: the border's color.
std::optional<int64_t> resolve(AddressMode mode, int64_t at, int64_t extent) {
  switch (mode) {
    case AddressMode::kWrap:
      return modulo(at, extent);
    case AddressMode::kMirror: {
      const int64_t place = modulo(at, 2 * extent);
      return place < extent ? place : 2 * extent - 1 - place;
    }
    case AddressMode::kClamp:
      return std::clamp<int64_t>(at, 0, extent - 1);
    case AddressMode::kBorder:
      break;
  }
  if (at < 0 || at >= extent) return std::nullopt;
  return at;
}

uint32_t channel_bits(const Image& image, const std::byte* texel, uint32_t channel) {
  const uint32_t bytes = image.format.bits / 8u;
  uint32_t bits = 0;
  std::memcpy(&bits, texel + channel * bytes, bytes);
  return bits;
}

double number_of(const Image& image, uint32_t bits) {
  const uint32_t count = image.format.bits;
  if (image.format.kind == ChannelKind::kFloat)
    return count == 16 ? double{f16_to_float(static_cast<uint16_t>(bits))}
                       : double{std::bit_cast<float>(bits)};
  if (image.format.kind == ChannelKind::kUnsigned)
    return bits / static_cast<double>((uint64_t{1} << count) - 1);
  return std::max(
      static_cast<double>(sign_extended(bits, count)) / static_cast<double>((1 << (count - 1)) - 1),
      -1.0);
}

// What a fetch gives for a channel of a texel that is read as it is.
uint32_t result_bits(const Image& image, uint32_t bits) {
  if (image.gives_floats())
    return std::bit_cast<uint32_t>(static_cast<float>(number_of(image, bits)));
  if (image.format.kind == ChannelKind::kSigned)
    return static_cast<uint32_t>(sign_extended(bits, image.format.bits));
  return bits;
}

using Place = std::array<int64_t, 3>;

// The bytes of a texel; false: it lies in the border.
bool read_texel(const Image& image, const ImageLevel& level, const Place& at, uint32_t layer,
                const ReadTexel& read, std::byte* bytes) {
  Place inside{};
  for (uint32_t i = 0; i < image.dimensions(); ++i) {
    const auto place = resolve(mode_of(image, i), at[i], level.extents[i]);
    if (!place) return false;
    inside[i] = *place;
  }
  const uint64_t slice = image.is_layered() ? layer : static_cast<uint64_t>(inside[2]);
  const uint32_t size = image.format.bytes();
  read(level.address + slice * level.slice_bytes +
           static_cast<uint64_t>(inside[1]) * level.row_bytes +
           static_cast<uint64_t>(inside[0]) * size,
       size, bytes);
  return true;
}

Texel nearest(const Image& image, const ImageLevel& level, const Place& at, uint32_t layer,
              const ReadTexel& read) {
  Texel result{};
  std::array<std::byte, 16> bytes;
  const bool is_inside = read_texel(image, level, at, layer, read, bytes.data());
  for (uint32_t c = 0; c < image.format.channels; ++c)
    result[c] = is_inside ? result_bits(image, channel_bits(image, bytes.data(), c))
                          : std::bit_cast<uint32_t>(image.sampler.border[c]);
  return result;
}

// Where the coordinates lie in a level, in texels.
struct Point {
  std::array<double, 3> at{};
  uint32_t layer = 0;
};

// The face that a direction meets, and where ("Cubemap Textures").
struct Face {
  uint32_t index;
  double s, t;  // of [0, 1]
};
Face face_of(const std::array<float, 3>& direction) {
  const double x = direction[0], y = direction[1], z = direction[2];
  const double ax = std::abs(x), ay = std::abs(y), az = std::abs(z);
  uint32_t index = 0;
  double m = 1, s = 0, t = 0;
  if (ax >= ay && ax >= az) {
    index = x >= 0 ? 0 : 1;
    m = ax, s = x >= 0 ? -z : z, t = -y;
  } else if (ay >= az) {
    index = y >= 0 ? 2 : 3;
    m = ay, s = x, t = y >= 0 ? z : -z;
  } else {
    index = z >= 0 ? 4 : 5;
    m = az, s = z >= 0 ? x : -x, t = -y;
  }
  if (m == 0) m = 1;
  return {index, (s / m + 1) / 2, (t / m + 1) / 2};
}

// Normalized coordinates keep 21 fractional bits, the others are cut off, before they count texels:
// an H100 reads texel 0 of 17 at the float next above 1/17 (all of 8112 point reads in one to three
// dimensions are as this has them).
double normalized_cut(float at) {
  constexpr double kSteps = 1 << 21;
  return std::floor(double{at} * kSteps) / kSteps;
}

Point point_of(const Image& image, const ImageLevel& level, const FetchPlace& place) {
  Point point;
  if (image.is_cube()) {
    const Face face = face_of(place.at);
    point.at = {face.s * level.extents[0], face.t * level.extents[1], 0};
    const uint32_t cubes = level.layers / 6;
    point.layer =
        6 * std::min(image.shape == ImageShape::kCubeLayered ? place.layer : 0, cubes - 1) +
        face.index;
    return point;
  }
  const bool normalized = image.sampler.normalized_coordinates;
  for (uint32_t i = 0; i < image.dimensions(); ++i)
    point.at[i] = (normalized ? normalized_cut(place.at[i]) * level.extents[i] : place.at[i]) +
                  place.offset[i];
  point.layer = std::min(place.layer, level.layers - 1);
  return point;
}

// Where a linear filter begins in one dimension: between this texel's middle and the next one's.
struct FilterStart {
  int64_t texel;
  double fraction;
};
FilterStart filter_start(double at) {
  const int64_t fixed = whole((at - 0.5) * kFractions + 0.5), rest = modulo(fixed, kFractions);
  return {(fixed - rest) / kFractions, static_cast<double>(rest) / kFractions};
}

// Sums of texels, weighted.
using Sum = std::array<double, 4>;

Sum interpolate(const Image& image, const ImageLevel& level, const Point& point,
                const ReadTexel& read) {
  Sum sum{};
  Place first{};
  std::array<double, 3> fraction{};
  for (uint32_t i = 0; i < image.dimensions(); ++i) {
    const FilterStart start = filter_start(point.at[i]);
    first[i] = start.texel;
    fraction[i] = start.fraction;
  }
  for (uint32_t corner = 0; corner < 1u << image.dimensions(); ++corner) {
    double weight = 1;
    Place at = first;
    for (uint32_t i = 0; i < image.dimensions(); ++i) {
      const bool second = (corner >> i & 1) != 0;
      weight *= second ? fraction[i] : 1 - fraction[i];
      at[i] += second;
    }
    if (weight == 0) continue;
    std::array<std::byte, 16> bytes;
    const bool is_inside = read_texel(image, level, at, point.layer, read, bytes.data());
    for (uint32_t c = 0; c < image.format.channels; ++c)
      sum[c] += weight * (is_inside ? number_of(image, channel_bits(image, bytes.data(), c))
                                    : double{image.sampler.border[c]});
  }
  return sum;
}

Place nearest_to(const Image& image, const Point& point) {
  Place at{};
  for (uint32_t i = 0; i < image.dimensions(); ++i) at[i] = whole(point.at[i]);
  return at;
}

Texel fetch_level(const Image& image, const ImageLevel& level, const FetchPlace& place,
                  const ReadTexel& read) {
  const Point point = point_of(image, level, place);
  if (!image.sampler.filters_linearly)
    return nearest(image, level, nearest_to(image, point), point.layer, read);
  const Sum sum = interpolate(image, level, point, read);
  Texel result{};
  for (uint32_t c = 0; c < image.format.channels; ++c)
    result[c] = std::bit_cast<uint32_t>(static_cast<float>(sum[c]));
  return result;
}

Texel fetch_by_texel(const Image& image, const FetchPlace& place, const ReadTexel& read) {
  const auto last = static_cast<int32_t>(image.levels.size() - 1);
  const ImageLevel& level =
      image.levels[static_cast<size_t>(std::clamp(place.texel_level, 0, last))];
  Place at{};
  for (uint32_t i = 0; i < image.dimensions(); ++i)
    at[i] = int64_t{place.texel[i]} + place.offset[i];
  // Outside of linear memory are zeros, whatever the address mode.
  if (image.shape == ImageShape::kLinear && (at[0] < 0 || at[0] >= level.extents[0])) return {};
  return nearest(image, level, at, std::min(place.layer, level.layers - 1), read);
}

Texel blended(const Texel& a, const Texel& b, double fraction) {
  Texel result{};
  for (uint32_t c = 0; c < result.size(); ++c)
    result[c] = std::bit_cast<uint32_t>(
        static_cast<float>((1 - fraction) * double{std::bit_cast<float>(a[c])} +
                           fraction * double{std::bit_cast<float>(b[c])}));
  return result;
}

}  // namespace

const char* name_of(ImageShape shape) {
  static constexpr const char* kNames[] = {
      "linear memory",    "one dimension",           "two dimensions",
      "three dimensions", "layers of one dimension", "layers of two dimensions",
      "a cube",           "layers of cubes"};
  return kNames[static_cast<int>(shape)];
}

uint32_t Image::dimensions() const {
  switch (shape) {
    case ImageShape::kLinear:
    case ImageShape::k1d:
    case ImageShape::k1dLayered:
      return 1;
    case ImageShape::k3d:
      return 3;
    default:
      return 2;
  }
}

Texel fetch(const Image& image, const FetchPlace& place, std::optional<float> level,
            const ReadTexel& read) {
  if (place.by_texel) return fetch_by_texel(image, place, read);
  const auto last = static_cast<float>(image.levels.size() - 1);
  if (!level || last == 0) return fetch_level(image, image.levels.front(), place, read);
  const Sampler& sampler = image.sampler;
  float at = std::isnan(*level) ? 0 : *level + sampler.level_bias;
  at = std::min(std::max(at, sampler.least_level), sampler.most_level);
  at = std::min(std::max(at, 0.0f), last);
  if (!sampler.levels_linearly)
    return fetch_level(image, image.levels[static_cast<size_t>(at + 0.5f)], place, read);
  const double fixed = std::floor(double{at} * kFractions + 0.5) / kFractions;
  const auto first = static_cast<size_t>(fixed);
  const Texel near = fetch_level(image, image.levels[first], place, read);
  const double fraction = fixed - static_cast<double>(first);
  if (fraction == 0) return near;
  return blended(near, fetch_level(image, image.levels[first + 1], place, read), fraction);
}

Texel gather(const Image& image, const FetchPlace& place, uint32_t component,
             const ReadTexel& read) {
  const ImageLevel& level = image.levels.front();
  const Point point = point_of(image, level, place);
  std::array<int64_t, 2> first;
  for (uint32_t i = 0; i < 2; ++i) first[i] = filter_start(point.at[i]).texel;
  static constexpr int kCorners[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
  Texel result{};
  for (uint32_t i = 0; i < 4; ++i)
    result[i] = nearest(image, level, {first[0] + kCorners[i][0], first[1] + kCorners[i][1], 0},
                        point.layer, read)[component];
  return result;
}

}  // namespace ptxsim
