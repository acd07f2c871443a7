// Tensor maps for im2col copies: their arguments, their bytes, and which pixels a copy takes.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "machine/tensor_map/tensor_map.hpp"
#include "tensor_map_encoder/bits.hpp"

namespace ptxsim {
namespace {

// 64 channels of 16 bits, 14 x 9 pixels, 8 images.
TensorMap legal_map(TensorMapMode mode = TensorMapMode::kIm2col) {
  TensorMap map;
  map.mode = mode;
  map.type = TensorMapType::kF16;
  map.rank = 4;
  map.address = 0x1000;
  map.extents = {64, 14, 9, 8, 1};
  map.stride_bytes = {128, 128 * 14, 128 * 14 * 9, 0};
  map.box[0] = 64;
  map.swizzle = TensorMapSwizzle::k128;
  map.pixels = {{-1, mode == TensorMapMode::kIm2col ? -1 : 0, 0}, {-1, 0, 0}, 128};
  return map;
}

struct Refusal {
  TensorMapMode mode;
  std::function<void(TensorMap&)> change;
  const char* message;
};

constexpr auto kIm2col = TensorMapMode::kIm2col, kWide = TensorMapMode::kIm2colWide;

const std::vector<Refusal>& refusals() {
  static const std::vector<Refusal> kRefusals = {
      {kIm2col, [](auto& m) { m.rank = 2; }, "tensorRank: 2; must be 3 .. 5 with an im2col map"},
      {kIm2col, [](auto& m) { m.pixels.lower[0] = -129; },
       "pixelBoxLowerCorner[0]: -129; must be -128 .. 127"},
      {kIm2col, [](auto& m) { m.pixels.upper[1] = 128; },
       "pixelBoxUpperCorner[1]: 128; must be -128 .. 127"},
      {kIm2col,
       [](auto& m) {
         m.rank = 5;
         m.pixels.lower[2] = -17;
       },
       "pixelBoxLowerCorner[2]: -17; must be -16 .. 15"},
      {kIm2col,
       [](auto& m) {
         m.rank = 3;
         m.pixels.upper[0] = 32768;
       },
       "pixelBoxUpperCorner[0]: 32768; must be -32768 .. 32767"},
      {kIm2col, [](auto& m) { m.pixels.upper[1] = -10; },
       "pixelBoxUpperCorner[1]: -10; the box begins at -1 and ends before -1; must hold a pixel"},
      {kIm2col, [](auto& m) { m.box[0] = 0; }, "channelsPerPixel: 0; must be 1 .. 256"},
      {kIm2col, [](auto& m) { m.box[0] = 257; }, "channelsPerPixel: 257; must be 1 .. 256"},
      {kIm2col, [](auto& m) { m.box[0] = 60; },
       "channelsPerPixel: 60; times 16 bits must be a multiple of 16 bytes"},
      {kIm2col, [](auto& m) { m.box[0] = 72; },
       "channelsPerPixel: 72; takes 144 bytes; at most the swizzle's span of 128 bytes"},
      {kIm2col, [](auto& m) { m.pixels.count = 0; }, "pixelsPerColumn: 0; must be 1 .. 1024"},
      {kIm2col, [](auto& m) { m.pixels.count = 1025; }, "pixelsPerColumn: 1025; must be 1 .. 1024"},
      {kIm2col, [](auto& m) { m.element_strides[2] = 9; }, "elementStrides[2]: 9; must be 1 .. 8"},
      {kIm2col, [](auto& m) { m.address = 0x1008; },
       "globalAddress: 4104; must be a multiple of 16"},
      {kWide, [](auto& m) { m.pixels.lower[0] = -32769; },
       "pixelBoxLowerCornerWidth: -32769; must be -32768 .. 32767"},
      {kWide, [](auto& m) { m.swizzle = TensorMapSwizzle::k128Atom64; },
       "swizzle: 6; must be 2 (64B), 3 (128B) or 4 (128B_ATOM_32B)"},
      {kWide, [](auto& m) { m.interleave = TensorMapInterleave::k16; },
       "interleave: 1; must be 0 (none) with an im2col map of wide mode"},
  };
  return kRefusals;
}

TEST(EncodeIm2col, EveryDocumentedCheckRefusesWithItsMessage) {
  for (const Refusal& refusal : refusals()) {
    TensorMap map = legal_map(refusal.mode);
    ASSERT_TRUE(encode_tensor_map(map).ok()) << encode_tensor_map(map).error().message;
    refusal.change(map);
    auto record = encode_tensor_map(map);
    ASSERT_FALSE(record.ok()) << refusal.message;
    EXPECT_EQ(record.error().kind, ErrorKind::kInput);
    EXPECT_NE(record.error().message.find(refusal.message), std::string::npos)
        << record.error().message;
  }
}

// Where the driver puts what im2col maps have of their own, as
// github.com/cicuvc/nvidia-sass-document found it (notes/sm90/arch/cutensormap.md).
TEST(EncodeIm2col, CornersLieInWord14) {
  TensorMap map = legal_map();
  map.pixels = {{-2, 3, 0}, {5, -2, 0}, 256};
  auto four = encode_tensor_map(map);
  ASSERT_TRUE(four.ok());
  EXPECT_EQ(four->words[2] & 1, 1u);
  EXPECT_EQ(four->words[13] >> 24, 63u);
  EXPECT_EQ(four->words[14], 0xfe0503feu);
  EXPECT_EQ(four->words[15], 255u);
  EXPECT_EQ(four->words[16], 64u * 256 * 2);
  map.rank = 3;
  map.pixels = {{-300, 0, 0}, {300, 0, 0}, 1};
  EXPECT_EQ(encode_tensor_map(map)->words[14], 0x012cfed4u);
  map.rank = 5;
  map.pixels = {{-1, 2, -3}, {4, -5, 6}, 1};
  const uint32_t lower = 31 | 2 << 5 | 29 << 10, upper = 4 | 27 << 5 | 6 << 10;
  EXPECT_EQ(encode_tensor_map(map)->words[14], lower | upper << 16);
}

TensorMap random_map(std::mt19937& random) {
  const auto below = [&](uint32_t n) { return static_cast<uint32_t>(random() % n); };
  TensorMap map = legal_map(below(3) == 0 ? kWide : kIm2col);
  map.rank = 3 + below(3);
  map.pixels = {};
  map.pixels.count = 1 + below(1024);
  map.box[0] = 8 * (1 + below(8));
  map.extents = {1 + below(1000), 40 + below(100), 40 + below(100), 40 + below(9), 1 + below(9)};
  for (uint32_t i = 1; i < map.rank; ++i) {
    map.element_strides[i] = 1 + below(8);
    map.stride_bytes[i - 1] = 16 * below(1 << 20);
  }
  for (uint32_t i = map.rank - 1; i < map.stride_bytes.size(); ++i) map.stride_bytes[i] = 0;
  for (uint32_t i = map.rank; i < 5; ++i) map.extents[i] = 1;
  const int32_t half = 1 << (corner_bits(map) - 1);
  for (uint32_t i = 0; i < pixel_dimensions(map); ++i) {
    map.pixels.lower[i] = static_cast<int32_t>(below(static_cast<uint32_t>(half + 16))) - half;
    map.pixels.upper[i] = static_cast<int32_t>(below(24)) - 12;
  }
  return map;
}

TEST(EncodeIm2col, RecordsGiveTheArgumentsBack) {
  std::mt19937 random(20261124);
  for (int round = 0; round < 500; ++round) {
    const TensorMap map = random_map(random);
    auto record = encode_tensor_map(map);
    ASSERT_TRUE(record.ok()) << record.error().message;
    auto back = decode_record(*record);
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(back->mode, map.mode);
    EXPECT_EQ(back->rank, map.rank);
    EXPECT_EQ(back->extents, map.extents);
    EXPECT_EQ(back->stride_bytes, map.stride_bytes);
    EXPECT_EQ(back->box, map.box);
    EXPECT_EQ(back->element_strides, map.element_strides);
    EXPECT_EQ(back->pixels.lower, map.pixels.lower);
    EXPECT_EQ(back->pixels.upper, map.pixels.upper);
    EXPECT_EQ(back->pixels.count, map.pixels.count);
  }
}

TEST(EncodeIm2col, BitsThatTheMapDoesNotHaveAreRefused) {
  TensorMap map = legal_map();
  TensorMapRecord record = *encode_tensor_map(map);
  record.words[15] |= 0x400;
  EXPECT_EQ(decode_record(record).error().message,
            "is no tensor map: bits 10 .. 31 of word 15 are 0x1; must be 0");
  record = *encode_tensor_map(map);
  record.words[2] &= ~0x70u;
  EXPECT_EQ(decode_record(record).error().message,
            "is no tensor map: rank 1 with im2col; must be 3 .. 5");
  map.rank = 5;
  record = *encode_tensor_map(map);
  record.words[14] |= 0x80000000;
  EXPECT_EQ(decode_record(record).error().message,
            "is no tensor map: bits 31 .. 31 of word 14 are 0x1; must be 0");
}

TEST(EncodeIm2colAbi, WritesTheRecordOrSaysWhyNot) {
  constexpr int kInvalidValue = 1;
  const std::array<uint64_t, 4> extents{64, 14, 9, 8};
  const std::array<uint64_t, 3> strides{128, 128 * 14, 128 * 14 * 9};
  const std::array<int32_t, 2> lower{-1, -2}, upper{-3, 0};
  const std::array<uint32_t, 4> element_strides{1, 2, 3, 1};
  alignas(64) TensorMapRecord record;
  const auto encode = [&](const int32_t* corner, uint32_t pixels) {
    return encode_im2col_abi(&record, 6, 4, reinterpret_cast<void*>(0x2000), extents.data(),
                             strides.data(), corner, upper.data(), 64, pixels,
                             element_strides.data(), 0, 3, 0, 0);
  };
  ASSERT_EQ(encode(lower.data(), 128), 0) << last_encode_error();
  auto map = decode_record(record);
  ASSERT_TRUE(map.ok());
  EXPECT_EQ(map->mode, kIm2col);
  EXPECT_EQ(map->pixels.lower, (std::array<int32_t, 3>{-1, -2, 0}));
  EXPECT_EQ(map->pixels.upper, (std::array<int32_t, 3>{-3, 0, 0}));
  EXPECT_EQ(map->element_strides, (std::array<uint32_t, 5>{1, 2, 3, 1, 1}));
  EXPECT_EQ(encode(nullptr, 128), kInvalidValue);
  EXPECT_EQ(last_encode_error(),
            "tensor map: pixelBoxLowerCorner or pixelBoxUpperCorner is a null pointer");
  EXPECT_EQ(encode(lower.data(), 2000), kInvalidValue);
  EXPECT_EQ(last_encode_error(), "tensor map: pixelsPerColumn: 2000; must be 1 .. 1024");
  const auto encode_wide = [&](uint32_t mode) {
    return encode_im2col_wide_abi(&record, 6, 4, reinterpret_cast<void*>(0x2000), extents.data(),
                                  strides.data(), -4, 2, 64, 2000, element_strides.data(), 0, mode,
                                  3, 0, 0);
  };
  EXPECT_EQ(encode_wide(0), kInvalidValue);
  EXPECT_EQ(encode_wide(2), kInvalidValue);
  ASSERT_EQ(encode_wide(1), 0) << last_encode_error();  // W128: the number of pixels is ignored
  EXPECT_EQ(decode_record(record)->mode, kWide);
  EXPECT_EQ(decode_record(record)->pixels.lower[0], -4);
}

// A convolution by its usual definition, of one to three dimensions.
struct Convolution {
  uint32_t dimensions;
  std::array<int, 3> extent, filter, pad_before, pad_after, stride, dilation, outputs;
  int images;
};

Convolution random_convolution(std::mt19937& random) {
  const auto from_to = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<uint32_t>(most - least + 1));
  };
  Convolution c{};
  c.dimensions = static_cast<uint32_t>(from_to(1, 3));
  c.images = from_to(1, 3);
  for (uint32_t i = 0; i < c.dimensions; ++i) {
    c.filter[i] = from_to(1, 3);
    c.dilation[i] = from_to(1, 3);
    c.stride[i] = from_to(1, 3);
    c.pad_before[i] = from_to(0, 3);
    c.pad_after[i] = from_to(0, 3);
    c.extent[i] = (c.filter[i] - 1) * c.dilation[i] + from_to(1, 6);
    const int reach =
        c.extent[i] + c.pad_before[i] + c.pad_after[i] - (c.filter[i] - 1) * c.dilation[i];
    c.outputs[i] = (reach - 1) / c.stride[i] + 1;
  }
  return c;
}

// As CUTLASS's convolutions have it: the corners of where the filter's first element goes.
TensorMap map_of(const Convolution& c, uint32_t pixels) {
  TensorMap map = legal_map();
  map.rank = c.dimensions + 2;
  map.extents = {64, 1, 1, 1, 1};
  uint64_t stride = 128;
  for (uint32_t i = 0; i < c.dimensions; ++i) {
    map.extents[i + 1] = static_cast<uint64_t>(c.extent[i]);
    map.element_strides[i + 1] = static_cast<uint32_t>(c.stride[i]);
    map.pixels.lower[i] = -c.pad_before[i];
    map.pixels.upper[i] = c.pad_after[i] - (c.filter[i] - 1) * c.dilation[i];
    map.stride_bytes[i] = stride;
    stride *= map.extents[i + 1];
  }
  map.extents[c.dimensions + 1] = static_cast<uint64_t>(c.images);
  map.stride_bytes[c.dimensions] = stride;
  map.pixels.count = pixels;
  return map;
}

// Place `index` in a list of places, the first dimension fastest; what is left over are images.
std::array<int, 4> place_of(int index, const std::array<int, 3>& counts, uint32_t dimensions) {
  std::array<int, 4> place{};
  for (uint32_t i = 0; i < dimensions; ++i) {
    place[i] = index % counts[i];
    index /= counts[i];
  }
  place[3] = index;
  return place;
}

// Row m of the matrix that the convolution is with: output m, and the filter's element `tap`.
void expect_row(const Convolution& c, const TensorMap& map, int m, const std::array<int, 4>& tap,
                const BoxRun& run, int pixel) {
  const std::array<int, 4> output = place_of(m, c.outputs, c.dimensions);
  bool inside = output[3] < c.images;
  uint64_t address =
      map.address + static_cast<uint64_t>(output[3]) * map.stride_bytes[c.dimensions];
  for (uint32_t i = 0; i < c.dimensions; ++i) {
    const int at = output[i] * c.stride[i] - c.pad_before[i] + tap[i] * c.dilation[i];
    inside = inside && at >= 0 && at < c.extent[i];
    address += static_cast<uint64_t>(at) * map.stride_bytes[i];
  }
  ASSERT_EQ(run.in_bounds, inside) << "output " << m;
  if (inside) {
    ASSERT_EQ(run.global, address) << "output " << m;
  }
  ASSERT_EQ(run.dense, 128u * static_cast<uint32_t>(pixel));
}

TEST(WalkPixels, ColumnsAreRowsOfTheConvolutionsMatrix) {
  std::mt19937 random(7);
  for (int round = 0; round < 600; ++round) {
    const Convolution c = random_convolution(random);
    const uint32_t pixels = 1 + random() % 64;
    const TensorMap map = map_of(c, pixels);
    ASSERT_TRUE(encode_tensor_map(map).ok()) << encode_tensor_map(map).error().message;
    int outputs = c.images, taps = 1;
    for (uint32_t i = 0; i < c.dimensions; ++i) {
      outputs *= c.outputs[i];
      taps *= c.filter[i];
    }
    const int first = static_cast<int>(random() % static_cast<uint32_t>(outputs));
    const auto tap =
        place_of(static_cast<int>(random() % static_cast<uint32_t>(taps)), c.filter, c.dimensions);
    const auto from = place_of(first, c.outputs, c.dimensions);
    std::array<int32_t, 5> at{};
    std::array<uint16_t, 3> offsets{};
    for (uint32_t i = 0; i < c.dimensions; ++i) {
      at[i + 1] = from[i] * c.stride[i] - c.pad_before[i];
      offsets[i] = static_cast<uint16_t>(tap[i] * c.dilation[i]);
    }
    at[c.dimensions + 1] = from[3];
    const Box box = walk_pixels(map, std::span(at).first(map.rank), offsets);
    ASSERT_EQ(box.runs.size(), pixels);
    EXPECT_EQ(box.copied_bytes, pixels * 128);
    for (uint32_t pixel = 0; pixel < pixels; ++pixel)
      ASSERT_NO_FATAL_FAILURE(expect_row(c, map, first + static_cast<int>(pixel), tap,
                                         box.runs[pixel], static_cast<int>(pixel)));
  }
}

// What Triton's tutorial of im2col (python/tutorials/gluon, 13) prints on Hopper and Blackwell: two
// images of 4 x 4, numbered from 1 on, 0 outside.
std::vector<uint64_t> loaded(int32_t corner, std::array<int32_t, 4> at,
                             std::array<uint16_t, 2> offsets) {
  TensorMap map = legal_map();
  map.type = TensorMapType::kF32;
  map.address = 0;
  map.extents = {32, 4, 4, 2, 1};
  map.stride_bytes = {128, 512, 2048, 0};
  map.box[0] = 32;
  map.pixels = {{corner, corner, 0}, {corner, corner, 0}, 16};
  std::vector<uint64_t> numbers;
  for (const BoxRun& run : walk_pixels(map, at, offsets).runs)
    numbers.push_back(run.in_bounds ? run.global / 128 + 1 : 0);
  return numbers;
}

TEST(WalkPixels, AreThoseThatTritonSaw) {
  using Numbers = std::vector<uint64_t>;
  const Numbers image{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  EXPECT_EQ(loaded(0, {0, 0, 0, 0}, {0, 0}), image);
  EXPECT_EQ(loaded(-1, {0, -1, -1, 0}, {0, 0}),
            (Numbers{0, 0, 0, 0, 0, 1, 2, 3, 0, 5, 6, 7, 0, 9, 10, 11}));
  EXPECT_EQ(loaded(-1, {0, -1, -1, 0}, {1, 1}), image);
  EXPECT_EQ(loaded(0, {0, 3, 1, 0}, {0, 0}),
            (Numbers{8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}));
  EXPECT_EQ(loaded(-1, {0, 2, 1, 0}, {0, 0}),
            (Numbers{7, 0, 9, 10, 11, 0, 0, 0, 0, 0, 17, 18, 19, 0, 21, 22}));
}

TEST(WalkPixels, FirstPixelsOutsideTheBoxAreErrors) {
  const TensorMap map = legal_map();  // -1 .. 12 and -1 .. 8
  const auto walk = [&](int32_t w, int32_t h, uint16_t offset) {
    const std::array<int32_t, 4> at{0, w, h, 0};
    const std::array<uint16_t, 2> offsets{offset, offset};
    return walk_pixels(map, at, offsets);
  };
  EXPECT_NO_THROW(walk(12, 7, 0));
  EXPECT_NO_THROW(walk(12, 7, 255));
  EXPECT_THROW(walk(13, 0, 0), Fault);
  EXPECT_THROW(walk(-2, 0, 5), Fault);
  EXPECT_THROW(walk(0, -2, 0), Fault);
  EXPECT_THROW(walk(0, 0, 256), Fault);
}

// Rows of the images are taken one after the other, in D and H where the copy says.
TEST(WalkWidePixels, GoAlongOneRowOfEachImage) {
  TensorMap map = legal_map(kWide);
  map.pixels = {{-1, 0, 0}, {0, 0, 0}, 39};
  map.element_strides = {1, 2, 1, 1, 1};
  const std::array<int32_t, 4> at{0, -3, 4, 6};
  const Box box = walk_wide_pixels(map, at, {2, 1, false});
  ASSERT_EQ(box.runs.size(), 41u);
  EXPECT_EQ(box.copied_bytes, 41u * 128);
  std::vector<int> image, place;  // of all pixels, from the definition: the box is 0 .. 14
  for (int w = -2; w <= 14; w += 2) image.push_back(6), place.push_back(w);
  for (int n = 7; place.size() < 41; ++n)
    for (int w = 0; w <= 14; w += 2) image.push_back(n), place.push_back(w);
  for (size_t i = 0; i < box.runs.size(); ++i) {
    const bool inside = place[i] >= 0 && place[i] < 14 && image[i] < 8;
    ASSERT_EQ(box.runs[i].in_bounds, inside) << i;
    if (inside) {
      EXPECT_EQ(box.runs[i].global, 0x1000u + 128u * static_cast<uint64_t>(place[i]) +
                                        4 * map.stride_bytes[1] +
                                        static_cast<uint64_t>(image[i]) * map.stride_bytes[2]);
    }
  }
  const std::array<int32_t, 4> behind{0, 15, 0, 0};
  EXPECT_THROW(walk_wide_pixels(map, behind, {}), Fault);
  EXPECT_THROW(walk_wide_pixels(map, at, {512, 0, false}), Fault);
  EXPECT_THROW(walk_wide_pixels(map, at, {0, 32, false}), Fault);
  EXPECT_EQ(walk_wide_pixels(map, at, {0, 1, true}).runs.size(), 128u);
  EXPECT_THROW(walk_wide_pixels(legal_map(), at, {}), Fault);
}

}  // namespace
}  // namespace ptxsim
