// What drivers get wrong about tensor maps of small tensors is put right, and nothing else of them.
#include "cuda/runtime/small_tensor.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "cuda/runtime/tensor_map.hpp"

namespace dualgemm::cuda {
namespace {

// A driver that sets every bit, so that a bit that is clear was cleared afterwards.
CUresult set_all_bits(CUtensorMap* map, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                      const cuuint64_t*, const cuuint32_t*, const cuuint32_t*,
                      CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                      CUtensorMapFloatOOBfill) {
  std::memset(map, 0xFF, sizeof *map);
  return CUDA_SUCCESS;
}

// (128, rows, batches) elements, `row` bytes from row to row.
TensorView view_of(CUtensorMapDataType type, uint64_t rows, uint64_t row, uint64_t batches = 1,
                   uint64_t batch = 16) {
  return {.name = "t",
          .type = type,
          .swizzle = CU_TENSOR_MAP_SWIZZLE_NONE,
          .rank = 3,
          .address = nullptr,
          .dims = {128, rows, batches},
          .stride_bytes = {row, batch},
          .box = {16, 1, 1}};
}

constexpr uint64_t kOnes = ~uint64_t{0};

uint64_t second_word(const TensorView& view) {
  TensorMap map;
  EXPECT_TRUE(encode(view, &set_all_bits, &map).ok());
  const uint64_t second = std::exchange(map.opaque[1], kOnes);
  for (const uint64_t word : map.opaque) EXPECT_EQ(word, kOnes);
  return second;
}

TEST(SmallTensor, Bit85IsClearedBelow128KiB) {
  constexpr uint64_t kCleared = kOnes & ~(uint64_t{1} << 21);
  constexpr auto kBytes = CU_TENSOR_MAP_DATA_TYPE_UINT8;
  EXPECT_EQ(second_word(view_of(kBytes, 1, 128)), kCleared);
  // 128 bytes 1024 times are 128 KiB; one row less is not, and gaps between rows count.
  EXPECT_EQ(second_word(view_of(kBytes, 1023, 128)), kCleared);
  EXPECT_EQ(second_word(view_of(kBytes, 1024, 128)), kOnes);
  EXPECT_EQ(second_word(view_of(kBytes, 512, 256)), kCleared);
  EXPECT_EQ(second_word(view_of(kBytes, 513, 256)), kOnes);
  // The last byte decides: 128 + 130'928 bytes, then 16 more.
  EXPECT_EQ(second_word(view_of(kBytes, 2, 130'928)), kCleared);
  EXPECT_EQ(second_word(view_of(kBytes, 2, 130'944)), kOnes);
  // Batches, and strides whose product would not fit in 64 bits.
  EXPECT_EQ(second_word(view_of(kBytes, 3, 128, 4, 40'000)), kCleared);
  EXPECT_EQ(second_word(view_of(kBytes, 3, 128, 5, 40'000)), kOnes);
  EXPECT_EQ(second_word(view_of(kBytes, uint64_t{1} << 32, uint64_t{1} << 39)), kOnes);
  // A stride that is never used.
  EXPECT_EQ(second_word(view_of(kBytes, 3, 128, 1, uint64_t{1} << 39)), kCleared);
}

TEST(SmallTensor, ElementsHaveTheirSize) {
  const auto is_small = [](CUtensorMapDataType type, cuuint64_t elements) {
    return is_small_tensor(type, 1, &elements, nullptr);
  };
  EXPECT_TRUE(is_small(CU_TENSOR_MAP_DATA_TYPE_UINT16, 65535));
  EXPECT_FALSE(is_small(CU_TENSOR_MAP_DATA_TYPE_UINT16, 65536));
  EXPECT_TRUE(is_small(CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 32767));
  EXPECT_FALSE(is_small(CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 32768));
  EXPECT_TRUE(is_small(CU_TENSOR_MAP_DATA_TYPE_FLOAT64, 16383));
  EXPECT_FALSE(is_small(CU_TENSOR_MAP_DATA_TYPE_FLOAT64, 16384));
  EXPECT_TRUE(is_small(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 65535));
  EXPECT_FALSE(is_small(CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 65536));
  EXPECT_TRUE(is_small(CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B, 262142));
  EXPECT_FALSE(is_small(CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B, 262144));
  EXPECT_FALSE(is_small(static_cast<CUtensorMapDataType>(16), 1)) << "not known: left alone";
}

}  // namespace
}  // namespace dualgemm::cuda
