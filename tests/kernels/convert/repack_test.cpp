// Copies of scales and rows for the TMA unit, in the interpreter, against loops over single bytes.
// (A GPU runs them in tests/unit/cuda/repack_test.cpp.) What lies between rows and behind them is
// unwritten.
#include "cuda/kernels/convert/repack.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "dualgemm/formats.hpp"
#include "kernels/simulation/simulation.hpp"

namespace dualgemm::test {
namespace {

using cuda::RowCopy;
using cuda::ScaleCopy;

// Memory of the interpreter, each buffer far from the others.
class Memory {
 public:
  // `shift`: from a multiple of 256. Bytes for which exists(i) is false are unwritten.
  template <class Exists>
  uint8_t* source(int64_t bytes, int64_t shift, const Exists& exists) {
    std::vector<std::byte> data(static_cast<size_t>(bytes));
    for (int64_t i = 0; i < bytes; ++i)
      data[static_cast<size_t>(i)] = static_cast<std::byte>(1 + (i * 37 + added_) % 251);
    const auto address = add(std::move(data), shift, true);
    ptxsim::GlobalBuffer& buffer = *memory_.find(reinterpret_cast<uint64_t>(address));
    buffer.written.resize(static_cast<size_t>(bytes));
    for (int64_t i = 0; i < bytes; ++i) buffer.written[static_cast<size_t>(i)] = exists(i);
    return address;
  }
  uint8_t* destination(int64_t bytes) {
    return add(std::vector<std::byte>(static_cast<size_t>(bytes)), 0, false);
  }

  // 0xEE: it is unwritten.
  uint8_t byte(const uint8_t* address) {
    const ptxsim::GlobalBuffer& buffer = *memory_.find(reinterpret_cast<uint64_t>(address));
    const auto at = static_cast<size_t>(reinterpret_cast<uint64_t>(address) - buffer.address);
    return buffer.written[at] ? static_cast<uint8_t>(buffer.data[at]) : 0xEE;
  }

  ::testing::AssertionResult run(const cuda::KernelLaunch& launch) {
    ptxsim::Launch grid;
    grid.grid = {launch.ctas, 1, 1};
    grid.block = {launch.threads, 1, 1};
    grid.params.assign(launch.params.begin(), launch.params.begin() + launch.param_bytes);
    // The grid before is at work on all of it.
    if (launch.overlaps_previous) grid.previous_grid = {.writes = names_, .reads = names_};
    const ptxsim::RunResult result = ptxsim::run(program_of(launch.kernel), grid, memory_, {});
    if (result.clean()) return ::testing::AssertionSuccess();
    ::testing::AssertionResult failure = ::testing::AssertionFailure();
    if (result.error) failure << ptxsim::to_string(*result.error) << "\n";
    for (const ptxsim::Report& report : result.reports.list)
      failure << ptxsim::to_string(report) << "\n";
    return failure;
  }

 private:
  uint8_t* add(std::vector<std::byte> data, int64_t shift, bool read_only) {
    const uint64_t address =
        (uint64_t{1} << 40) + (uint64_t{1} << 24) * ++added_ + static_cast<uint64_t>(shift);
    names_.push_back("buffer " + std::to_string(added_));
    memory_.add(names_.back(), address, std::move(data), read_only, read_only);
    return reinterpret_cast<uint8_t*>(address);
  }

  ptxsim::GlobalMemory memory_;
  std::vector<std::string> names_;
  int64_t added_ = 0;
};

struct Scales {
  int64_t rows, cols;
  int64_t padding = -1;  // of a row of linear ones; -1: swizzled
  int64_t batches = 1, shift = 0, batch_padding = 0;

  ScaleMap map() const {
    return padding < 0 ? ScaleMap(ScaleLayout::kSwizzled128x4, rows, cols)
                       : ScaleMap(ScaleLayout::kLinear, rows, cols, cols + padding);
  }
  int64_t batch_bytes() const { return map().required_span_size() + batch_padding; }
};

ScaleCopy copy_of(const Scales& s, Memory& memory) {
  const ScaleMap map = s.map();
  const int64_t bytes = (s.batches - 1) * s.batch_bytes() + map.required_span_size();
  std::vector<bool> exists(static_cast<size_t>(bytes));
  for (int64_t l = 0; l < s.batches; ++l) {
    for (int64_t row = 0; row < s.rows; ++row) {
      for (int64_t col = 0; col < s.cols; ++col)
        exists[static_cast<size_t>(l * s.batch_bytes() + map(row, col))] = true;
    }
  }
  return {.source = memory.source(bytes, s.shift,
                                  [&](int64_t i) { return exists[static_cast<size_t>(i)]; }),
          .destination = memory.destination(cuda::swizzled_scale_bytes(s.rows, s.cols) * s.batches),
          .source_ld = s.padding < 0 ? 0 : s.cols + s.padding,
          .source_batch_bytes = s.batch_bytes(),
          .rows = s.rows,
          .sf_cols = s.cols,
          .batches = s.batches};
}

// Each scale in its place, zeros around them.
void expect_copied(const Scales& s, const ScaleCopy& copy, Memory& memory) {
  const ScaleMap from = s.map(), to(ScaleLayout::kSwizzled128x4, s.rows, s.cols);
  const int64_t bytes = cuda::swizzled_scale_bytes(s.rows, s.cols);
  for (int64_t l = 0; l < s.batches; ++l) {
    std::vector<uint8_t> want(static_cast<size_t>(bytes), 0), got;
    for (int64_t row = 0; row < s.rows; ++row) {
      for (int64_t col = 0; col < s.cols; ++col)
        want[static_cast<size_t>(to(row, col))] =
            memory.byte(copy.source + l * s.batch_bytes() + from(row, col));
    }
    for (int64_t i = 0; i < bytes; ++i)
      got.push_back(memory.byte(copy.destination + l * bytes + i));
    ASSERT_EQ(got, want) << s.rows << " x " << s.cols << ", batch " << l;
  }
}

void expect_copied(const Scales& s) {
  SCOPED_TRACE(std::to_string(s.rows) + " x " + std::to_string(s.cols) + ", padding " +
               std::to_string(s.padding) + ", shift " + std::to_string(s.shift));
  Memory memory;
  const ScaleCopy copy = copy_of(s, memory);
  ASSERT_TRUE(memory.run(cuda::repack_scales_launch(copy)));
  expect_copied(s, copy, memory);
}

TEST(Repack, EveryEndOfARowOfScales) {
  for (const int64_t padding : {0, -1}) {
    for (int64_t cols = 1; cols <= 70; ++cols)
      expect_copied({.rows = 5, .cols = cols, .padding = padding});
  }
}

TEST(Repack, EveryAlignmentOfScales) {
  for (const int64_t cols : {16, 36, 37, 180, 181}) {
    for (const int64_t padding : {0, 1, 2, 4, 12}) {
      for (const int64_t shift : {0, 1, 3, 4, 8, 15})
        expect_copied({.rows = 3, .cols = cols, .padding = padding, .shift = shift});
    }
    for (const int64_t shift : {0, 1, 4}) expect_copied({.rows = 3, .cols = cols, .shift = shift});
  }
}

TEST(Repack, RaggedRowsOfScales) {
  for (const int64_t rows : {1, 15, 17, 31, 33, 97, 127, 128, 129, 300}) {
    for (const int64_t padding : {0, 3, -1}) {
      expect_copied({.rows = rows, .cols = 36, .padding = padding});
      expect_copied({.rows = rows, .cols = 19, .padding = padding});
    }
  }
}

TEST(Repack, BatchesOfScales) {
  for (const int64_t padding : {0, 5, -1}) {
    for (const int64_t between : {0, 4, 9, 16})
      expect_copied(
          {.rows = 130, .cols = 40, .padding = padding, .batches = 3, .batch_padding = between});
  }
}

TEST(Repack, ScalesOfAllOperandsAreOneLaunch) {
  const Scales operands[] = {{.rows = 20, .cols = 180, .padding = 0},
                             {.rows = 130, .cols = 33, .padding = -1, .batches = 2},
                             {.rows = 260, .cols = 5, .padding = 2, .shift = 7},
                             {.rows = 1, .cols = 1, .padding = 0}};
  Memory memory;
  std::vector<cuda::KernelLaunch> launches;
  std::vector<ScaleCopy> copies;
  for (const Scales& s : operands) {
    copies.push_back(copy_of(s, memory));
    cuda::add_repack_scales(copies.back(), launches);
  }
  ASSERT_EQ(launches.size(), 2u) << "three a launch";
  for (const cuda::KernelLaunch& launch : launches) {
    EXPECT_TRUE(launch.overlaps_previous);
    ASSERT_TRUE(memory.run(launch));
  }
  for (size_t i = 0; i < copies.size(); ++i) expect_copied(operands[i], copies[i], memory);
}

// More pieces than a grid has warps: some are taken in turn.
TEST(Repack, AGridOfOneCtaCopiesEverything) {
  const Scales s{.rows = 300, .cols = 70, .padding = 0, .batches = 2};
  Memory memory;
  const ScaleCopy copy = copy_of(s, memory);
  cuda::KernelLaunch launch = cuda::repack_scales_launch(copy);
  ASSERT_GT(launch.ctas, 1u);
  launch.ctas = 1;
  ASSERT_TRUE(memory.run(launch));
  expect_copied(s, copy, memory);
}

TEST(Repack, RowsOfTwoOperandsAreOneLaunch) {
  struct Rows {
    int64_t rows, bytes, to_bytes, stride, shift;
  };
  const Rows operands[] = {{3, 1496, 1504, 1496, 0}, {7, 56, 64, 57, 5}};
  Memory memory;
  std::vector<cuda::KernelLaunch> launches;
  std::vector<RowCopy> copies;
  for (const Rows& r : operands) {
    const int64_t batch = r.stride * r.rows + 3;
    const auto exists = [&](int64_t i) {
      return i % batch % r.stride < r.bytes && i % batch < r.stride * r.rows;
    };
    copies.push_back({.source = memory.source(2 * batch, r.shift, exists),
                      .destination = memory.destination(2 * r.rows * r.to_bytes),
                      .source_row_bytes = r.stride,
                      .source_batch_bytes = batch,
                      .row_bytes = r.bytes,
                      .destination_row_bytes = r.to_bytes,
                      .rows = r.rows,
                      .batches = 2});
    cuda::add_repack_rows(copies.back(), launches);
  }
  ASSERT_EQ(launches.size(), 1u);
  ASSERT_TRUE(memory.run(launches[0]));
  for (const RowCopy& copy : copies) {
    for (int64_t i = 0; i < 2 * copy.rows * copy.destination_row_bytes; ++i) {
      const int64_t row = i / copy.destination_row_bytes, byte = i % copy.destination_row_bytes;
      const uint8_t* const from = copy.source + row / copy.rows * copy.source_batch_bytes +
                                  row % copy.rows * copy.source_row_bytes + byte;
      ASSERT_EQ(memory.byte(copy.destination + i), byte < copy.row_bytes ? memory.byte(from) : 0)
          << i;
    }
  }
}

}  // namespace
}  // namespace dualgemm::test
