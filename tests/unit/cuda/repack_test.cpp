// The copies that tensor copies need, on the GPU, against loops on the host. (The interpreter runs
// the same kernels in tests/kernels/sm100a.)
#include "cuda/kernels/convert/repack.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "cuda/runtime/device_memory.hpp"
#include "cuda/runtime/kernel_launch.hpp"
#include "dualgemm/formats.hpp"
#include "unit/cuda/on_gpu.hpp"

namespace dualgemm::cuda {
namespace {

// Bytes that no two neighbours share and none of which is 0.
std::vector<uint8_t> pattern(int64_t bytes) {
  std::vector<uint8_t> values(static_cast<size_t>(bytes));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<uint8_t>(1 + i * 37 % 251);
  return values;
}

DeviceMemory upload(const std::vector<uint8_t>& values) {
  auto memory = DeviceMemory::allocate(static_cast<int64_t>(values.size()), "test");
  EXPECT_TRUE(memory.ok() && memory->upload(values.data()).ok());
  return memory ? *std::move(memory) : DeviceMemory();
}

// What `launch` leaves in `destination`, which was full of 0xEE.
std::vector<uint8_t> run(const KernelLaunch& launch, const DeviceMemory& destination) {
  const Status status = enqueue(launch, nullptr);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(synchronize(nullptr).ok());
  std::vector<uint8_t> values(static_cast<size_t>(destination.size()));
  EXPECT_TRUE(destination.download(values.data()).ok());
  return values;
}

TEST(Repack, RowsOfAnyAlignment) {
  DUALGEMM_NEEDS_GPU();
  constexpr int64_t kRows = 37, kBatches = 3, kRowBytes = 56, kTo = 64;
  for (const int64_t stride : {56, 57, 64, 70}) {
    for (const int64_t shift : {0, 1, 8, 13}) {
      const int64_t batch = stride * kRows + 5;
      const std::vector<uint8_t> source = pattern(shift + batch * kBatches);
      const DeviceMemory from = upload(source);
      DeviceMemory to = upload(std::vector<uint8_t>(kTo * kRows * kBatches, 0xEE));
      const auto got = run(repack_rows_launch({.source = from.data() + shift,
                                               .destination = to.data(),
                                               .source_row_bytes = stride,
                                               .source_batch_bytes = batch,
                                               .row_bytes = kRowBytes,
                                               .destination_row_bytes = kTo,
                                               .rows = kRows,
                                               .batches = kBatches}),
                           to);
      for (int64_t i = 0; i < kTo * kRows * kBatches; ++i) {
        const int64_t row = i / kTo % kRows, byte = i % kTo, l = i / (kTo * kRows);
        const auto at = static_cast<size_t>(shift + l * batch + row * stride + byte);
        ASSERT_EQ(got[static_cast<size_t>(i)], byte < kRowBytes ? source[at] : 0)
            << "stride " << stride << " shift " << shift << " byte " << i;
      }
    }
  }
}

TEST(Repack, ScalesOfBothLayouts) {
  DUALGEMM_NEEDS_GPU();
  constexpr int64_t kBatches = 2, kShift = 3;
  for (const auto& [rows, cols] :
       {std::pair<int64_t, int64_t>{1, 1}, {130, 5}, {256, 8}, {7, 67}}) {
    const ScaleMap to_map(ScaleLayout::kSwizzled128x4, rows, cols);
    for (const bool linear : {true, false}) {
      const ScaleMap map = linear ? ScaleMap(ScaleLayout::kLinear, rows, cols, cols + 2) : to_map;
      const int64_t batch = map.required_span_size() + 9, bytes = swizzled_scale_bytes(rows, cols);
      const std::vector<uint8_t> source = pattern(kShift + batch * kBatches);
      std::vector<uint8_t> want(static_cast<size_t>(bytes * kBatches), 0);
      for (int64_t l = 0; l < kBatches; ++l) {
        for (int64_t row = 0; row < rows; ++row) {
          for (int64_t col = 0; col < cols; ++col) {
            want[static_cast<size_t>(l * bytes + to_map(row, col))] =
                source[static_cast<size_t>(kShift + l * batch + map(row, col))];
          }
        }
      }
      const DeviceMemory from = upload(source);
      DeviceMemory to = upload(std::vector<uint8_t>(want.size(), 0xEE));
      const auto got = run(repack_scales_launch({.source = from.data() + kShift,
                                                 .destination = to.data(),
                                                 .source_ld = linear ? cols + 2 : 0,
                                                 .source_batch_bytes = batch,
                                                 .rows = rows,
                                                 .sf_cols = cols,
                                                 .batches = kBatches}),
                           to);
      EXPECT_EQ(got, want) << rows << " x " << cols << (linear ? " linear" : " swizzled");
    }
  }
}

}  // namespace
}  // namespace dualgemm::cuda
