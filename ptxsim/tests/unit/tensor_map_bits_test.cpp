// Tensor maps that other encoders made (ptxsim/tests/tensor_maps/record.py): CuTe DSL's host code,
// 64 of the 128 bytes, and NVIDIA's driver 580.65, as github.com/cicuvc/nvidia-sass-document
// publishes what it encoded.
#include "tensor_map_encoder/bits.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace ptxsim {
namespace {

struct Recorded {
  std::string encoder, line;
  TensorMap map;
  std::vector<uint8_t> bytes;
};

// "1,2,3", or "-" for none.
template <class Values>
uint32_t read_list(std::istream& in, Values& values) {
  std::string text, value;
  in >> text;
  if (text == "-") return 0;
  std::istringstream list(text);
  uint32_t count = 0;
  while (std::getline(list, value, ','))
    values.at(count++) = static_cast<typename Values::value_type>(std::stoll(value));
  return count;
}

template <class Enum>
Enum read_enum(std::istream& in) {
  uint32_t value = 0;
  in >> value;
  return static_cast<Enum>(value);
}

Recorded read_recorded(const std::string& line) {
  Recorded one;
  one.line = line;
  std::istringstream in(line);
  std::string address, hex;
  in >> one.encoder;
  one.map.type = read_enum<TensorMapType>(in);
  in >> address;
  one.map.address = std::stoull(address, nullptr, 16);
  one.map.rank = read_list(in, one.map.extents);
  read_list(in, one.map.stride_bytes);
  read_list(in, one.map.box);
  read_list(in, one.map.element_strides);
  one.map.interleave = read_enum<TensorMapInterleave>(in);
  one.map.swizzle = read_enum<TensorMapSwizzle>(in);
  one.map.l2_promotion = read_enum<TensorMapL2Promotion>(in);
  one.map.fill = read_enum<TensorMapFill>(in);
  in >> hex;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    one.bytes.push_back(static_cast<uint8_t>(std::stoul(hex.substr(i, 2), nullptr, 16)));
  return one;
}

std::vector<Recorded> all_recorded() {
  std::ifstream file(PTXSIM_TEST_FOLDER "/tensor_maps/recorded.txt");
  std::vector<Recorded> all;
  for (std::string line; std::getline(file, line);) all.push_back(read_recorded(line));
  return all;
}

TensorMapRecord record_of(const Recorded& one, uint8_t rest) {
  TensorMapRecord record;
  record.words.fill(rest * 0x01010101u);
  std::memcpy(&record, one.bytes.data(), one.bytes.size());
  return record;
}

TEST(TensorMapBits, RecordedMapsAreDecoded) {
  const std::vector<Recorded> all = all_recorded();
  ASSERT_GE(all.size(), 64u);
  for (const Recorded& one : all) {
    auto map = decode_record(record_of(one, 0x5a));  // CuTe DSL leaves what was there
    ASSERT_TRUE(map.ok()) << one.line << ": " << map.error().message;
    EXPECT_EQ(map->type, one.map.type) << one.line;
    EXPECT_EQ(map->rank, one.map.rank) << one.line;
    EXPECT_EQ(map->address, one.map.address) << one.line;
    EXPECT_EQ(map->extents, one.map.extents) << one.line;
    EXPECT_EQ(map->stride_bytes, one.map.stride_bytes) << one.line;
    EXPECT_EQ(map->box, one.map.box) << one.line;
    EXPECT_EQ(map->element_strides, one.map.element_strides) << one.line;
    EXPECT_EQ(map->interleave, one.map.interleave) << one.line;
    EXPECT_EQ(map->swizzle, one.map.swizzle) << one.line;
    EXPECT_EQ(map->l2_promotion, one.map.l2_promotion) << one.line;
    EXPECT_EQ(map->fill, one.map.fill) << one.line;
  }
}

TEST(TensorMapBits, TheStandInEncodesTheSameBytes) {
  for (const Recorded& one : all_recorded()) {
    auto record = encode_tensor_map(one.map);
    ASSERT_TRUE(record.ok()) << one.line << ": " << record.error().message;
    std::vector<uint8_t> bytes(one.bytes.size());
    std::memcpy(bytes.data(), &*record, bytes.size());
    if (one.encoder == "cute") bytes.at(8) |= 2;  // CuTe DSL sets a bit that the driver does not
    EXPECT_EQ(bytes, one.bytes) << one.line;
  }
}

// Maps for im2col: ptxsim/tests/tensor_maps/cute_im2col_maps.py.
struct RecordedIm2col {
  std::string line;
  TensorMap map;
  TensorMapRecord record;
};

RecordedIm2col read_im2col(const std::string& line) {
  RecordedIm2col one{line, {}, {}};
  TensorMap& map = one.map;
  std::istringstream in(line);
  std::string address, hex;
  map.mode = TensorMapMode::kIm2col;
  map.type = read_enum<TensorMapType>(in);
  in >> address;
  map.address = std::stoull(address, nullptr, 16);
  map.rank = read_list(in, map.extents);
  read_list(in, map.stride_bytes);
  read_list(in, map.pixels.lower);
  read_list(in, map.pixels.upper);
  in >> map.box[0] >> map.pixels.count;
  read_list(in, map.element_strides);
  map.swizzle = read_enum<TensorMapSwizzle>(in);
  in >> hex;
  map.l2_promotion = TensorMapL2Promotion::k128;  // as CuTe DSL always has it
  auto* bytes = reinterpret_cast<uint8_t*>(&one.record);
  for (size_t i = 0; i < hex.size() / 2; ++i)
    bytes[i] = static_cast<uint8_t>(std::stoul(hex.substr(2 * i, 2), nullptr, 16));
  return one;
}

TEST(TensorMapBits, RecordedIm2colMapsAreTheStandIns) {
  std::ifstream file(PTXSIM_TEST_FOLDER "/tensor_maps/im2col.txt");
  size_t count = 0;
  for (std::string line; std::getline(file, line); ++count) {
    const RecordedIm2col one = read_im2col(line);
    auto map = decode_record(one.record);
    ASSERT_TRUE(map.ok()) << line << ": " << map.error().message;
    EXPECT_EQ(map->mode, one.map.mode) << line;
    EXPECT_EQ(map->extents, one.map.extents) << line;
    EXPECT_EQ(map->stride_bytes, one.map.stride_bytes) << line;
    EXPECT_EQ(map->box, one.map.box) << line;
    EXPECT_EQ(map->element_strides, one.map.element_strides) << line;
    EXPECT_EQ(map->pixels.lower, one.map.pixels.lower) << line;
    EXPECT_EQ(map->pixels.upper, one.map.pixels.upper) << line;
    EXPECT_EQ(map->pixels.count, one.map.pixels.count) << line;
    auto record = encode_tensor_map(one.map);
    ASSERT_TRUE(record.ok()) << line << ": " << record.error().message;
    record->words[2] |= 2;  // CuTe DSL sets a bit that the driver does not
    for (uint32_t word = 0; word < 16; ++word)
      EXPECT_EQ(record->words[word], one.record.words[word]) << line << ", word " << word;
  }
  EXPECT_EQ(count, 16u);
}

struct Foreign {
  uint32_t word, bits;
  const char* message;
};

TEST(TensorMapBits, WhatIsNoMapIsRefused) {
  const TensorMapRecord good = record_of(all_recorded().back(), 0);
  ASSERT_TRUE(decode_record(good).ok());
  constexpr Foreign kForeign[] = {
      {2, 0x400000, "96B swizzling is not modelled"},
      {2, 0x4, "bits 2 .. 3 of word 2 are 0x1; must be 0"},
      {2, 0x80000000, "bits 23 .. 31 of word 2 are 0x100; must be 0"},
      {2, 0x50, "rank 6; must be 1 .. 5"},
      {2, 0x400, "type 14; must be 0 .. 13, with TF32 7 or 8"},
      {2, 0x10000, "type 6 with TF32; must be 0 .. 13, with TF32 7 or 8"},
      {7, 0x10000, "bits 16 .. 31 of word 7 are 0x1; must be 0"},
      {13, 0x8000, "bits 15 .. 23 of word 13 are 0x1; must be 0"},
      {15, 0x400, "bits 10 .. 31 of word 15 are 0x1; must be 0"},
      {15, 0x40, "bits 0 .. 9 of word 15 are 0x40; must be 0"},
  };
  for (const Foreign& foreign : kForeign) {
    TensorMapRecord record = good;
    record.words.at(foreign.word) |= foreign.bits;
    auto map = decode_record(record);
    ASSERT_FALSE(map.ok()) << foreign.message;
    EXPECT_EQ(map.error().message, std::string("is no tensor map: ") + foreign.message);
  }
}

}  // namespace
}  // namespace ptxsim
