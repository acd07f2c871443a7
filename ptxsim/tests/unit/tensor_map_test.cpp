// The stand-in for cuTensorMapEncodeTiled, and how boxes lie in global and shared memory.
#include "machine/tensor_map/tensor_map.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace ptxsim {
namespace {

TensorMap legal_map() {
  TensorMap map;
  map.type = TensorMapType::kF16;
  map.rank = 3;
  map.address = 0x1000;
  map.extents = {256, 32, 4, 1, 1};
  map.stride_bytes = {512, 16384, 0, 0};
  map.box = {64, 8, 1, 1, 1};
  map.swizzle = TensorMapSwizzle::k128;
  return map;
}

struct Refusal {
  const char* name;
  std::function<void(TensorMap&)> change;
  const char* message;
};

// One for each check of the driver's manual.
const std::vector<Refusal>& refusals() {
  static const std::vector<Refusal> kRefusals = {
      {"type", [](auto& m) { m.type = TensorMapType(16); }, "tensorDataType: 16; must be 0 .. 15"},
      {"interleave", [](auto& m) { m.interleave = TensorMapInterleave(3); },
       "interleave: 3; must be 0 .. 2"},
      {"swizzle", [](auto& m) { m.swizzle = TensorMapSwizzle(7); }, "swizzle: 7; must be 0 .. 6"},
      {"l2", [](auto& m) { m.l2_promotion = TensorMapL2Promotion(4); },
       "l2Promotion: 4; must be 0 .. 3"},
      {"fill", [](auto& m) { m.fill = TensorMapFill(2); }, "oobFill: 2; must be 0 .. 1"},
      {"rank0", [](auto& m) { m.rank = 0; }, "tensorRank: 0; must be 1 .. 5"},
      {"rank6", [](auto& m) { m.rank = 6; }, "tensorRank: 6; must be 1 .. 5"},
      {"interleaved_rank",
       [](auto& m) {
         m.rank = 2;
         m.interleave = TensorMapInterleave::k16;
       },
       "tensorRank: 2; must be at least 3 with an interleaved layout"},
      {"address", [](auto& m) { m.address = 0x1008; },
       "globalAddress: 4104; must be a multiple of 16"},
      {"address32",
       [](auto& m) {
         m.interleave = TensorMapInterleave::k32;
         m.swizzle = TensorMapSwizzle::k32;
         m.address = 0x1010;
       },
       "globalAddress: 4112; must be a multiple of 32"},
      {"extent0", [](auto& m) { m.extents[1] = 0; }, "globalDim[1]: 0; must be 1 .. 2^32"},
      {"extent", [](auto& m) { m.extents[2] = (uint64_t{1} << 32) + 1; },
       "globalDim[2]: 4294967297; must be 1 .. 2^32"},
      {"extent_u6",
       [](auto& m) {
         m.type = TensorMapType::k16U6Align16;
         m.box[0] = 128;
         m.extents[0] = 200;
       },
       "globalDim[0]: 200; must be a multiple of 128"},
      {"extent_u4",
       [](auto& m) {
         m.type = TensorMapType::k16U4Align8;
         m.extents[0] = 255;
       },
       "globalDim[0]: 255; must be even"},
      {"stride", [](auto& m) { m.stride_bytes[0] = 520; },
       "globalStrides[0]: 520; must be a multiple of 16"},
      {"stride32",
       [](auto& m) {
         m.type = TensorMapType::k16U4Align16;
         m.box[0] = 128;
         m.stride_bytes[1] = 48;
       },
       "globalStrides[1]: 48; must be a multiple of 32"},
      {"stride_size", [](auto& m) { m.stride_bytes[1] = uint64_t{1} << 40; },
       "globalStrides[1]: 1099511627776; must be below 2^40"},
      {"box0", [](auto& m) { m.box[1] = 0; }, "boxDim[1]: 0; must be 1 .. 256"},
      {"box257", [](auto& m) { m.box[2] = 257; }, "boxDim[2]: 257; must be 1 .. 256"},
      {"box_u4",
       [](auto& m) {
         m.type = TensorMapType::k16U4Align16;
         m.box[0] = 64;
       },
       "boxDim[0]: 64; must be 128 with the ALIGN16B types"},
      {"box_bytes", [](auto& m) { m.box[0] = 12; },
       "boxDim[0]: 12; times 16 bits must be a multiple of 16 bytes"},
      {"box_span", [](auto& m) { m.box[0] = 72; },
       "boxDim[0]: 72; takes 144 bytes; at most the swizzle's span of 128 bytes"},
      {"box_span64",
       [](auto& m) {
         m.swizzle = TensorMapSwizzle::k64;
         m.box[0] = 64;
       },
       "boxDim[0]: 64; takes 128 bytes; at most the swizzle's span of 64 bytes"},
      {"element_stride0", [](auto& m) { m.element_strides[0] = 0; },
       "elementStrides[0]: 0; must be 1 .. 8"},
      {"element_stride9", [](auto& m) { m.element_strides[2] = 9; },
       "elementStrides[2]: 9; must be 1 .. 8"},
      {"interleave32", [](auto& m) { m.interleave = TensorMapInterleave::k32; },
       "swizzle: 3; must be 1 (32B) with interleave 32B"},
      {"u6_interleave",
       [](auto& m) {
         m.type = TensorMapType::k16U6Align16;
         m.box[0] = 128;
         m.interleave = TensorMapInterleave::k16;
       },
       "interleave: 1; must be 0 (none) with type 16U6_ALIGN16B"},
      {"u6_swizzle",
       [](auto& m) {
         m.type = TensorMapType::k16U6Align16;
         m.box[0] = 128;
         m.swizzle = TensorMapSwizzle::k128Atom32Flip8;
       },
       "swizzle: 5; must be 0 (none), 3 (128B), 4 (128B_ATOM_32B) or 6 (128B_ATOM_64B)"},
      {"u4_swizzle",
       [](auto& m) {
         m.type = TensorMapType::k16U4Align16;
         m.box[0] = 128;
         m.swizzle = TensorMapSwizzle::k128Atom64;
       },
       "swizzle: 6; must be 0 (none), 3 (128B) or 4 (128B_ATOM_32B) with type 16U4_ALIGN16B"},
      {"nan",
       [](auto& m) {
         m.type = TensorMapType::kU16;
         m.fill = TensorMapFill::kNan;
       },
       "oobFill: 1; NaN needs a floating-point type; tensorDataType is 1"},
  };
  return kRefusals;
}

TEST(EncodeTiled, EveryDocumentedCheckRefusesWithItsMessage) {
  for (const Refusal& refusal : refusals()) {
    TensorMap map = legal_map();
    refusal.change(map);
    const auto record = encode_tensor_map(map);
    ASSERT_FALSE(record.ok()) << refusal.name;
    EXPECT_EQ(record.error().kind, ErrorKind::kInput);
    EXPECT_NE(record.error().message.find(refusal.message), std::string::npos)
        << refusal.name << ": " << record.error().message;
  }
}

TEST(EncodeTiled, TakesTheLimits) {
  TensorMap map = legal_map();
  map.extents[1] = uint64_t{1} << 32;
  map.box[1] = 256;
  map.element_strides[1] = 8;
  map.stride_bytes[1] = (uint64_t{1} << 40) - 16;
  map.stride_bytes[0] = 0;  // as CUTLASS gives for an extent of 1
  map.address = 0;
  EXPECT_TRUE(encode_tensor_map(map).ok());
  map.type = TensorMapType::kF64;
  map.box[0] = 16;
  map.fill = TensorMapFill::kNan;
  EXPECT_TRUE(encode_tensor_map(map).ok());
}

TEST(EncodeTiled, RecordGivesTheArgumentsBack) {
  TensorMap map = legal_map();
  map.extents[1] = uint64_t{1} << 32;
  map.element_strides[1] = 3;
  map.fill = TensorMapFill::kNan;
  map.l2_promotion = TensorMapL2Promotion::k256;
  auto record = encode_tensor_map(map);
  ASSERT_TRUE(record.ok());
  auto back = decode_record(*record);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->type, map.type);
  EXPECT_EQ(back->rank, map.rank);
  EXPECT_EQ(back->address, map.address);
  EXPECT_EQ(back->extents, map.extents);
  EXPECT_EQ(back->stride_bytes, map.stride_bytes);
  EXPECT_EQ(back->box, map.box);
  EXPECT_EQ(back->element_strides, map.element_strides);
  EXPECT_EQ(back->swizzle, map.swizzle);
  EXPECT_EQ(back->fill, map.fill);
  EXPECT_EQ(back->l2_promotion, map.l2_promotion);
}

struct AbiCall {
  alignas(64) std::array<unsigned char, 192> object{};
  std::array<uint64_t, 2> extents{64, 8};
  std::array<uint64_t, 1> strides{128};
  std::array<uint32_t, 2> box{64, 8};
  std::array<uint32_t, 2> element_strides{1, 1};
  int call(void* object_at) {
    return encode_tiled_abi(object_at, 6, 2, reinterpret_cast<void*>(0x2000), extents.data(),
                            strides.data(), box.data(), element_strides.data(), 0, 3, 0, 0);
  }
};

TEST(EncodeTiledAbi, WritesTheRecord) {
  AbiCall abi;
  ASSERT_EQ(abi.call(abi.object.data()), 0) << last_encode_error();
  TensorMapRecord record;
  std::memcpy(&record, abi.object.data(), sizeof record);
  auto map = decode_record(record);
  ASSERT_TRUE(map.ok());
  EXPECT_EQ(map->type, TensorMapType::kF16);
  EXPECT_EQ(map->address, 0x2000u);
  EXPECT_EQ(map->box, (std::array<uint32_t, 5>{64, 8, 1, 1, 1}));
  for (size_t i = sizeof record; i < abi.object.size(); ++i) EXPECT_EQ(abi.object[i], 0);
}

TEST(EncodeTiledAbi, RefusesAndSaysWhy) {
  constexpr int kInvalidValue = 1;
  AbiCall abi;
  EXPECT_EQ(abi.call(nullptr), kInvalidValue);
  EXPECT_NE(last_encode_error().find("tensorMap is a null pointer"), std::string::npos);
  EXPECT_EQ(abi.call(abi.object.data() + 16), kInvalidValue);
  EXPECT_NE(last_encode_error().find("the address must be a multiple of 64"), std::string::npos);
  abi.box[0] = 7;
  EXPECT_EQ(abi.call(abi.object.data()), kInvalidValue);
  EXPECT_NE(last_encode_error().find("boxDim[0]: 7"), std::string::npos);
  EXPECT_EQ(encode_tiled_abi(abi.object.data(), 6, 2, nullptr, abi.extents.data(), nullptr,
                             abi.box.data(), abi.element_strides.data(), 0, 3, 0, 0),
            kInvalidValue);
  EXPECT_NE(last_encode_error().find("globalStrides is a null pointer"), std::string::npos);
}

// The tables of "Swizzling Modes" (PTX ISA 9.0), written down: for each line of 128 bytes, which
// 16-byte chunk of the source stands at each place. Lines repeat.
using Line = std::array<int, 8>;
std::vector<Line> table_of(TensorMapSwizzle swizzle) {
  switch (swizzle) {
    case TensorMapSwizzle::k32:
      return {{0, 1, 2, 3, 4, 5, 6, 7}, {1, 0, 3, 2, 5, 4, 7, 6}};
    case TensorMapSwizzle::k64:
      return {{0, 1, 2, 3, 4, 5, 6, 7},
              {1, 0, 3, 2, 5, 4, 7, 6},
              {2, 3, 0, 1, 6, 7, 4, 5},
              {3, 2, 1, 0, 7, 6, 5, 4}};
    case TensorMapSwizzle::k128:
      return {{0, 1, 2, 3, 4, 5, 6, 7}, {1, 0, 3, 2, 5, 4, 7, 6}, {2, 3, 0, 1, 6, 7, 4, 5},
              {3, 2, 1, 0, 7, 6, 5, 4}, {4, 5, 6, 7, 0, 1, 2, 3}, {5, 4, 7, 6, 1, 0, 3, 2},
              {6, 7, 4, 5, 2, 3, 0, 1}, {7, 6, 5, 4, 3, 2, 1, 0}};
    case TensorMapSwizzle::k128Atom32:
    case TensorMapSwizzle::k128Atom32Flip8:
      return {{0, 1, 2, 3, 4, 5, 6, 7},
              {2, 3, 0, 1, 6, 7, 4, 5},
              {4, 5, 6, 7, 0, 1, 2, 3},
              {6, 7, 4, 5, 2, 3, 0, 1}};
    case TensorMapSwizzle::k128Atom64:
      return {{0, 1, 2, 3, 4, 5, 6, 7}, {4, 5, 6, 7, 0, 1, 2, 3}};
    default:
      return {{0, 1, 2, 3, 4, 5, 6, 7}};
  }
}

TEST(Swizzle, MatchesTheTablesOfTheManual) {
  for (uint32_t mode = 0; mode <= 6; ++mode) {
    const auto swizzle = static_cast<TensorMapSwizzle>(mode);
    const auto table = table_of(swizzle);
    for (uint32_t place = 0; place < 4096; ++place) {
      const uint32_t line = place / 128;
      const Line& chunks = table[line % table.size()];
      uint32_t within = place % 16;
      if (swizzle == TensorMapSwizzle::k128Atom32Flip8 && line % 2 == 1) within ^= 8;
      const uint32_t source =
          line * 128 + static_cast<uint32_t>(chunks[place % 128 / 16]) * 16 + within;
      ASSERT_EQ(swizzle_address(swizzle, source), place) << "mode " << mode << " source " << source;
    }
  }
}

TEST(Swizzle, IsAnInvolutionThatKeepsItsAtomsTogether) {
  for (uint32_t mode = 0; mode <= 6; ++mode) {
    const auto swizzle = static_cast<TensorMapSwizzle>(mode);
    const uint32_t atom = swizzle_atom_bytes(swizzle);
    std::set<uint32_t> images;
    for (uint32_t a = 0; a < 228 * 1024; a += 4) {
      const uint32_t image = swizzle_address(swizzle, a);
      EXPECT_EQ(swizzle_address(swizzle, image), a);
      EXPECT_EQ(image % atom, a % atom);
      EXPECT_EQ(image / 128, a / 128);
      images.insert(image);
    }
    EXPECT_EQ(images.size(), 228u * 1024 / 4);
  }
}

struct RandomBox {
  TensorMap map;
  std::array<int32_t, 5> at{};
};

RandomBox random_box(std::mt19937_64& random) {
  const auto below = [&](uint64_t n) { return random() % n; };
  static constexpr TensorMapType kTypes[] = {TensorMapType::kU8, TensorMapType::kF16,
                                             TensorMapType::kF32, TensorMapType::kU64,
                                             TensorMapType::k16U4Align8};
  RandomBox r;
  r.map.type = kTypes[below(5)];
  r.map.rank = static_cast<uint32_t>(1 + below(5));
  r.map.address = 0x4000 + 16 * below(8);
  const uint32_t per_16 = 128 / element_bits(r.map.type);
  r.map.box[0] = static_cast<uint32_t>(per_16 * (1 + below(256 / per_16 / 2)));
  r.map.extents[0] = (1 + below(3 * per_16)) * 2;
  r.at[0] = static_cast<int32_t>(per_16 * (static_cast<int64_t>(below(6)) - 3));
  uint64_t stride = (r.map.extents[0] * element_bits(r.map.type) / 8 + 31) / 16 * 16;
  for (uint32_t i = 1; i < r.map.rank; ++i) {
    r.map.extents[i] = 1 + below(5);
    r.map.box[i] = static_cast<uint32_t>(1 + below(4));
    r.map.element_strides[i] = static_cast<uint32_t>(1 + below(3));
    r.map.stride_bytes[i - 1] = stride;
    stride *= r.map.extents[i] + below(2);
    r.at[i] = static_cast<int32_t>(below(7)) - 3;
  }
  return r;
}

// Byte by byte, from the definition: row r of the box at its coordinates, `offset` bytes into the
// row.
struct Source {
  bool in_bounds = true;
  uint64_t address = 0;
};
Source source_of(const RandomBox& r, uint32_t row, uint32_t offset) {
  const uint32_t bits = element_bits(r.map.type);
  Source s;
  const int64_t first_bit = int64_t{r.at[0]} * bits + 8 * int64_t{offset};
  s.in_bounds = first_bit >= 0 && first_bit < static_cast<int64_t>(r.map.extents[0] * bits);
  s.address = r.map.address + static_cast<uint64_t>(first_bit / 8);
  for (uint32_t i = 1; i < r.map.rank; ++i) {
    const uint32_t step = r.map.element_strides[i];
    const uint32_t count = (r.map.box[i] + step - 1) / step;
    const int64_t at = r.at[i] + int64_t{row % count} * step;
    row /= count;
    s.in_bounds = s.in_bounds && at >= 0 && at < static_cast<int64_t>(r.map.extents[i]);
    s.address += static_cast<uint64_t>(at) * r.map.stride_bytes[i - 1];
  }
  return s;
}

TEST(WalkBox, CoversEveryByteOnceFromWhereTheDefinitionSays) {
  constexpr uint64_t kSeed = 20240611;
  std::mt19937_64 random(kSeed);
  for (int round = 0; round < 2000; ++round) {
    const RandomBox r = random_box(random);
    ASSERT_TRUE(encode_tensor_map(r.map).ok()) << encode_tensor_map(r.map).error().message;
    const Box box = walk_box(r.map, std::span(r.at).first(r.map.rank));
    const uint32_t row_bytes = r.map.box[0] * element_bits(r.map.type) / 8;
    EXPECT_EQ(box.shared_bytes, box.copied_bytes);
    std::vector<int> covered(box.shared_bytes, 0);
    for (const BoxRun& run : box.runs)
      for (uint32_t i = 0; i < run.bytes; ++i) {
        const uint32_t dense = run.dense + i;
        ASSERT_LT(dense, box.shared_bytes);
        ++covered[dense];
        const Source expected = source_of(r, dense / row_bytes, dense % row_bytes);
        ASSERT_EQ(run.in_bounds, expected.in_bounds) << "seed " << kSeed << " round " << round;
        if (run.in_bounds) {
          ASSERT_EQ(run.global + i, expected.address) << "round " << round;
        }
      }
    for (const int times : covered) ASSERT_EQ(times, 1) << "round " << round;
  }
}

TEST(WalkBox, RowsShorterThanTheSwizzleTakeAWholeSpan) {
  TensorMap map = legal_map();
  map.box = {16, 8, 1, 1, 1};  // 32 bytes of a span of 128
  const std::array<int32_t, 3> at{0, 0, 0};
  const Box box = walk_box(map, at);
  EXPECT_EQ(box.shared_bytes, 8u * 128);
  EXPECT_EQ(box.copied_bytes, 8u * 32);  // what complete_tx counts
  ASSERT_EQ(box.runs.size(), 8u);
  for (uint32_t row = 0; row < 8; ++row) EXPECT_EQ(box.runs[row].dense, 128 * row);
}

TEST(WalkBox, BoxMustBeginAt16Bytes) {
  const TensorMap map = legal_map();
  const std::array<int32_t, 3> at{4, 0, 0};
  EXPECT_THROW(walk_box(map, at), Fault);
  const std::array<int32_t, 3> aligned{-8, 0, 0};
  EXPECT_NO_THROW(walk_box(map, aligned));
}

TEST(WalkFourRows, GathersRowsInTheirOrder) {
  TensorMap map = legal_map();
  map.rank = 2;
  map.box = {64, 1, 1, 1, 1};
  map.extents = {256, 32, 1, 1, 1};
  const std::array<int32_t, 4> rows{7, -1, 31, 32};
  const Box box = walk_four_rows(map, 64, rows);
  ASSERT_EQ(box.runs.size(), 4u);
  EXPECT_EQ(box.copied_bytes, 4u * 128);
  EXPECT_EQ(box.runs[0].global, 0x1000u + 7 * 512 + 128);
  EXPECT_FALSE(box.runs[1].in_bounds);
  EXPECT_EQ(box.runs[2].global, 0x1000u + 31 * 512 + 128);
  EXPECT_FALSE(box.runs[3].in_bounds);
  map.box[1] = 2;
  EXPECT_THROW(walk_four_rows(map, 64, rows), Fault);
}

}  // namespace
}  // namespace ptxsim
