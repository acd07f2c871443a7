// What texture and surface instructions are refused for, and fetches at places that programs seldom
// ask for. What a program gets is compared in ptxsim/tests/exec/program/texture.cu and surface.cu.
#include "ptxsim/machine/image.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "unit/small_kernel.hpp"

namespace {

using namespace ptxsim;
using ptxsim_test::error_of;
using ptxsim_test::ErrorCase;

class ImageError : public testing::TestWithParam<ErrorCase> {};

TEST_P(ImageError, SaysWhatAndWhere) {
  const ErrorCase& c = GetParam();
  const std::string error = error_of({c.body, c.block, c.cluster});
  EXPECT_NE(error.find(c.message), std::string::npos) << "got: " << error;
}

const std::vector<ErrorCase> kErrors = {
    {"NoTexture", "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];",
     "0x100000000 is no texture or surface object"},
    {"NoSurface", "suld.b.1d.b32.trap {%r1}, [%rd1, {%r0}];",
     "0x100000000 is no texture or surface object"},
    {"NothingToAsk", "txq.width.b32 %r1, [%rd1];", "0x100000000 is no texture or surface object"},
    {"OneCoordinate", "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5}];",
     "1 coordinates; .2d needs 2"},
    {"Sampler", "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, %rd2, {%f5, %f6}];",
     "samplers apart from their texture"},
    {"Depth", "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}], %f7;",
     "depth textures are not modelled"},
    {"OffsetOfACube",
     "tex.cube.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6, %f7, %f7}], {%r1, %r2, %r3};",
     "cubes have none"},
    {"CubeByTexel", "tex.cube.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd1, {%r1, %r2, %r3, %r3}];",
     "needs coordinates of type .f32"},
    {"TooFewResults", "tex.1d.v4.f32.f32 {%f1, %f2}, [%rd1, {%f5}];", "destination of four"},
    {"GatherOfALine", "tld4.r.1d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5}];",
     "needs a geometry: .2d .a2d .cube .acube"},
    {"WideSurface", "suld.b.2d.v4.b64.trap {%rd4, %rd5, %rd6, %rd7}, [%rd1, {%r1, %r2}];",
     "at most 16 bytes"},
    {"ReductionOfAFloat", "sured.b.add.1d.f32.trap [%rd1, {%r1}], %f1;",
     "this reduction does not exist for type .f32"},
    {"QueryOfASurface", "suq.filter_mode.b32 %r1, [%rd1];", "this query does not exist here"},
    {"AWordAsObject", "txq.width.b32 %r1, [%r0];", "the object must be a 64-bit register"},
};

INSTANTIATE_TEST_SUITE_P(Images, ImageError, testing::ValuesIn(kErrors),
                         [](const auto& info) { return std::string(info.param.name); });

// A row of four floats, 1, 2, 3 and 4, at address 0.
Image line() {
  Image image;
  image.shape = ImageShape::k1d;
  image.levels = {{0, {4, 1, 1}, 1, 16, 16}};
  image.sampler.address.fill(AddressMode::kClamp);
  return image;
}

float fetched(const Image& image, float at, int32_t offset = 0) {
  FetchPlace place;
  place.at[0] = at;
  place.offset[0] = offset;
  const Texel texel =
      fetch(image, place, std::nullopt, [](uint64_t address, uint32_t, std::byte* to) {
        const float value = static_cast<float>(address / 4 + 1);
        std::memcpy(to, &value, sizeof value);
      });
  return std::bit_cast<float>(texel[0]);
}

TEST(Fetch, NumbersThatAreNoPlaceAreSomePlace) {
  Image image = line();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const bool linear : {false, true}) {
    image.sampler.filters_linearly = linear;
    EXPECT_EQ(fetched(image, infinity), 4);
    EXPECT_EQ(fetched(image, -infinity), 1);
    EXPECT_EQ(fetched(image, 3e38f), 4);
    EXPECT_EQ(fetched(image, std::nanf("")), 1);
  }
}

TEST(Fetch, OffsetsCountTexels) {
  Image image = line();
  EXPECT_EQ(fetched(image, 0.5f, 2), 3);
  image.sampler.normalized_coordinates = true;
  EXPECT_EQ(fetched(image, 0.625f, -1), 2);
}

// As an H100 has it (driver 580.159).
TEST(Fetch, NormalizedCoordinatesAreCutTo21Bits) {
  Image image = line();
  image.levels = {{0, {17, 1, 1}, 1, 68, 68}};
  image.sampler.normalized_coordinates = true;
  EXPECT_EQ(fetched(image, 1.0f / 17), 1);  // a float above 1/17
  EXPECT_EQ(fetched(image, 3.0f / 17), 3);
  EXPECT_EQ(fetched(image, 1.0f / 17 + 0x1p-21f), 2);
  image.levels = {{0, {16, 1, 1}, 1, 64, 64}};
  EXPECT_EQ(fetched(image, 1.0f / 16), 2);
  image.sampler.address[0] = AddressMode::kWrap;
  EXPECT_EQ(fetched(image, -0x1p-22f), 16);
  EXPECT_EQ(fetched(image, 1 - 0x1p-24f), 16);
}

TEST(Fetch, FractionsAreRoundedToEightBits) {
  Image image = line();
  image.sampler.filters_linearly = true;
  EXPECT_EQ(fetched(image, 1.5f), 2);
  EXPECT_EQ(fetched(image, 1.5f + 1.0f / 512), 2 + 1.0f / 256);  // a half of the last bit goes up
  EXPECT_EQ(fetched(image, 1.5f + 0.9f / 512), 2);
  EXPECT_EQ(fetched(image, 2.5f - 0.9f / 512), 3);
}

TEST(Fetch, RepeatedCoordinatesNeedToBeNormalized) {
  Image image = line();
  image.sampler.address[0] = AddressMode::kWrap;
  EXPECT_EQ(fetched(image, 5.5f), 4);
  image.sampler.normalized_coordinates = true;
  EXPECT_EQ(fetched(image, 1.375f), 2);
  image.sampler.address[0] = AddressMode::kMirror;
  EXPECT_EQ(fetched(image, 1.375f), 3);
}

}  // namespace
