// What our sm_100a kernel tells the hardware about its operands, bit for bit against what CuTe and
// CUTLASS tell it for the same tiles.
#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "cuda/device/descriptors.hpp"
#include "cuda/kernels/sm100a/config.hpp"
#include "cute_descriptors.hpp"
#include "dualgemm/formats.hpp"

namespace {

namespace gpu = dualgemm::cuda;
using dualgemm::ScaleLayout;
using dualgemm::ScaleMap;
using dualgemm::cuda::blackwell::kMmaK;
using dualgemm::cuda::blackwell::kMmaSteps;
using dualgemm::cuda::blackwell::kScaleTileBytes;
constexpr uint32_t kLastAddress = 227 * 1024;

template <int Rows>
void compare_rows() {
  for (uint32_t address = 1024; address + Rows * 128 <= kLastAddress; address += 1024) {
    const uint64_t stage =
        gpu::smem_descriptor(address, gpu::kSwizzledRows128B, gpu::SmemSwizzle::k128B);
    for (int step = 0; step < kMmaSteps; ++step) {
      EXPECT_EQ(gpu::advance_descriptor(stage, static_cast<uint32_t>(step * kMmaK / 2)),
                cutlass_case::cute_rows_descriptor<Rows>(address, step))
          << "address " << address << " step " << step;
    }
  }
}

TEST(Descriptors, SwizzledRowsAreCutes) {
  compare_rows<32>();  // a CTA's half of a pair's 64
  compare_rows<64>();
  compare_rows<128>();
}

TEST(Descriptors, ScaleTilesAreCutes) {
  for (uint32_t address = 1024; address + 2048 <= kLastAddress; address += 512) {
    const uint64_t stage =
        gpu::smem_descriptor(address, gpu::kScaleTileRows, gpu::SmemSwizzle::kNone);
    for (int step = 0; step < kMmaSteps; ++step) {
      const cutlass_case::ScaleCopy cute = cutlass_case::cute_scale_copy(address, step);
      EXPECT_EQ(gpu::advance_descriptor(stage, static_cast<uint32_t>(step * kScaleTileBytes)),
                cute.descriptor)
          << "address " << address << " step " << step;
      EXPECT_EQ(static_cast<uint32_t>(step * gpu::blackwell::kScaleTileCols), cute.tmem_col);
    }
  }
}

template <int M, int N, int Step>
void compare_instructions() {
  EXPECT_EQ(gpu::nvfp4_instruction_descriptor(M, N),
            (cutlass_case::cute_instruction_descriptor<M, N>()))
      << "M " << M << " N " << N;
  if constexpr (N + Step <= 256) compare_instructions<M, N + Step, Step>();
}

TEST(Descriptors, InstructionsAreCutes) {
  compare_instructions<128, 8, 8>();    // one CTA
  compare_instructions<256, 16, 16>();  // a pair
}

template <int M, int N>
void compare_half_instructions() {
  EXPECT_EQ(gpu::half_instruction_descriptor(M, N, false),
            (cutlass_case::cute_half_instruction_descriptor<cutlass::half_t, M, N>()));
  EXPECT_EQ(gpu::half_instruction_descriptor(M, N, true),
            (cutlass_case::cute_half_instruction_descriptor<cutlass::bfloat16_t, M, N>()));
}

TEST(Descriptors, HalfInstructionsAreCutes) {
  compare_half_instructions<128, 8>();
  compare_half_instructions<128, 16>();
  compare_half_instructions<128, 32>();
  compare_half_instructions<128, 64>();
  compare_half_instructions<64, 256>();
}

TEST(Descriptors, ScaleLayoutIsCutes) {
  for (const auto& [rows, k, batches] :
       std::vector<std::array<int, 3>>{{128, 64, 1}, {200, 544, 1}, {300, 1344, 3}, {1, 16, 2}}) {
    const ScaleMap map(ScaleLayout::kSwizzled128x4, rows, (k + 15) / 16);
    for (int l = 0; l < batches; ++l) {
      for (int row = 0; row < rows; ++row) {
        for (int i = 0; i < k; ++i) {
          ASSERT_EQ(l * map.required_span_size() + map(row, i / 16),
                    cutlass_case::cute_scale_offset(rows, k, batches, row, i, l))
              << "rows " << rows << " k " << k << ": row " << row << " k " << i << " l " << l;
        }
      }
    }
  }
}

// No kernel of ours uses wgmma yet; the fields as the ISA reference has them, section 13.
TEST(Descriptors, WgmmaRowsAreAsDocumented) {
  for (uint32_t address = 1024; address < kLastAddress - 16384; address += 1024) {
    for (int step = 0; step < 4; ++step) {
      const uint64_t start = (address + static_cast<uint32_t>(step) * 32) >> 4;
      EXPECT_EQ(start | uint64_t{1} << 16 | uint64_t{1024 >> 4} << 32 | uint64_t{1} << 62,
                cutlass_case::cute_wgmma_descriptor<128>(address, step));
    }
  }
}

}  // namespace
