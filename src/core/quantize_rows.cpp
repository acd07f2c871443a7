#include "core/quantize_rows.hpp"

#include <algorithm>
#include <atomic>
#include <bit>

#include "core/int_math.hpp"
#include "core/quantize_block.hpp"
#include "core/row_transform.hpp"
#include "core/usable_cores.hpp"
#include "core/wide_block.hpp"

namespace dualgemm::core {
namespace {

// A unit, and what a thread must find to do at least: below, waking it costs more than it saves.
constexpr int64_t kUnitBlocks = 256;

// One row of a run, in all three arrays.
struct RowPlace {
  int64_t x, codes, scales;  // bytes; scales: of the batch
  int64_t scale_row;
};
RowPlace place_of(const TensorPlaces& places, const RowRun& run, int64_t row) noexcept {
  return {run.batch * places.x_batch_bytes + (run.row + row) * places.x_row_bytes,
          run.batch * places.code_batch_bytes + (run.row + row) * places.code_row_bytes,
          run.batch * places.scale_batch_bytes, run.scale_row + row};
}

int64_t rows_of(std::span<const RowRun> runs) noexcept {
  return runs.empty() ? 0 : runs.back().rows_before + runs.back().rows;
}

// The run that holds row `row` of all.
size_t run_of(std::span<const RowRun> runs, int64_t row) noexcept {
  const auto after =
      std::upper_bound(runs.begin(), runs.end(), row,
                       [](int64_t at, const RowRun& run) { return at < run.rows_before; });
  return static_cast<size_t>(after - runs.begin() - 1);
}

// Blocks of rows of x, transformed where that is wanted.
template <DataType kType>
class BlockReader {
 public:
  explicit BlockReader(const TensorPlaces& places) noexcept
      : factors_(places.column_factors),
        hadamard_(places.hadamard),
        step_(std::max<int64_t>(1, places.hadamard / kSfVec)) {}

  // Blocks that are transformed together come in turn, the first of them first.
  void read(const uint8_t* row, int64_t block, float* out) noexcept {
    if (factors_ == nullptr && hadamard_ == 0) return load_block<kType>(row, block, out);
    if (block % step_ == 0) {
      const int64_t begin = block * kSfVec;
      transform_row(kType, row + bytes_of(kType, begin), step_ * kSfVec,
                    factors_ == nullptr ? nullptr : factors_ + begin, hadamard_, transformed_);
    }
    load_block<kType>(transformed_, block % step_, out);
  }

 private:
  const float* factors_;
  int64_t hadamard_, step_;
  uint8_t transformed_[kMostHadamard * 4];
};
static_assert(kUnitBlocks * kSfVec % kMostHadamard == 0);  // a unit begins where a transform does

// make() gives each unit its body(run, row of the run, block), for every block in turn. Units may
// begin and end inside a row, since rows may be few and long or many and short.
template <class MakeBody>
void for_blocks(Team& team, const TensorPlaces& places, std::span<const RowRun> runs,
                const MakeBody& make) noexcept {
  const int64_t blocks = blocks_of(places, runs);
  team.run(ceil_div(blocks, kUnitBlocks), [&](int64_t unit, int) {
    auto body = make();
    const int64_t begin = unit * kUnitBlocks, end = std::min(begin + kUnitBlocks, blocks);
    int64_t row = begin / places.blocks_per_row, block = begin % places.blocks_per_row;
    size_t at = run_of(runs, row);
    row -= runs[at].rows_before;
    for (int64_t i = begin; i < end; ++i) {
      body(runs[at], row, block);
      if (++block < places.blocks_per_row) continue;
      block = 0;
      if (++row == runs[at].rows) row = 0, ++at;
    }
  });
}

template <DataType kType>
int32_t row_amax_bits(BlockReader<kType>& reader, const uint8_t* row, int64_t blocks) noexcept {
  int32_t largest = 0;
  for (int64_t block = 0; block < blocks; ++block) {
    float x[kSfVec];
    reader.read(row, block, x);
    largest = std::max(largest, std::bit_cast<int32_t>(detail::block_amax(x)));
  }
  return largest;
}

template <DataType kType, bool kFourOverSix>
void encode_block(const TensorPlaces& places, BlockReader<kType>& reader, const uint8_t* x,
                  const RowPlace& at, int64_t block, float quantize) noexcept {
  float values[kSfVec];
  reader.read(x + at.x, block, values);
  uint8_t* const codes = places.codes + at.codes + block * (kSfVec / 2);
  places.scales[at.scales + places.map(at.scale_row, block)] =
      kFourOverSix ? quantize_block_four_over_six(values, quantize, codes)
                   : quantize_block(values, quantize, codes);
}

float of(std::span<const float> factors, int64_t expert) noexcept {
  return factors.size() == 1 ? factors[0] : factors[static_cast<size_t>(expert)];
}

// call(integral constant of the type, integral constant of four_over_six)
template <class Call>
void with_type(DataType type, bool four_over_six, const Call& call) {
  with_wide_type(type, [&](auto known) {
    if (four_over_six) {
      call(known, std::true_type());
    } else {
      call(known, std::false_type());
    }
  });
}

}  // namespace

Expected<int> threads_for_blocks(int requested, int64_t blocks) {
  const Expected<int> wanted = requested == 0 ? default_threads() : Expected<int>(requested);
  if (!wanted) return wanted;
  return static_cast<int>(std::clamp<int64_t>(blocks / kUnitBlocks, 1, *wanted));
}

int64_t blocks_of(const TensorPlaces& places, std::span<const RowRun> runs) noexcept {
  return rows_of(runs) * places.blocks_per_row;
}

int32_t amax_bits(Team& team, const TensorPlaces& places, const void* x,
                  std::span<const RowRun> runs) noexcept {
  std::atomic<int32_t> amax{0};
  const auto* const from = static_cast<const uint8_t*>(x);
  with_wide_type(places.x_type, [&](auto type) {
    for_blocks(team, places, runs, [&] {
      return [&, reader = BlockReader<type()>(places)](const RowRun& run, int64_t row,
                                                       int64_t block) mutable {
        float values[kSfVec];
        reader.read(from + place_of(places, run, row).x, block, values);
        const auto largest = std::bit_cast<int32_t>(detail::block_amax(values));
        int32_t known = amax.load(std::memory_order_relaxed);
        while (known < largest &&
               !amax.compare_exchange_weak(known, largest, std::memory_order_relaxed)) {
        }
      };
    });
  });
  return amax.load(std::memory_order_relaxed);
}

void quantize_runs(Team& team, const TensorPlaces& places, const void* x,
                   std::span<const RowRun> runs, bool four_over_six,
                   std::span<const float> factors) noexcept {
  const auto* const from = static_cast<const uint8_t*>(x);
  with_type(places.x_type, four_over_six, [&](auto type, auto four) {
    for_blocks(team, places, runs, [&] {
      return [&, reader = BlockReader<type()>(places)](const RowRun& run, int64_t row,
                                                       int64_t block) mutable {
        encode_block<type(), four()>(places, reader, from, place_of(places, run, row), block,
                                     of(factors, run.expert));
      };
    });
  });
}

void quantize_rows(Team& team, const TensorPlaces& places, const void* x,
                   std::span<const RowRun> runs, bool four_over_six, float* found_scale,
                   int64_t rows_a_batch) noexcept {
  const int64_t count = rows_of(runs);
  const int64_t unit_rows = std::max<int64_t>(1, kUnitBlocks / places.blocks_per_row);
  const auto* const from = static_cast<const uint8_t*>(x);
  with_type(places.x_type, four_over_six, [&](auto type, auto four) {
    team.run(ceil_div(count, unit_rows), [&](int64_t unit, int) {
      const int64_t end = std::min(count, (unit + 1) * unit_rows);
      BlockReader<type()> reader(places);
      for (int64_t i = unit * unit_rows; i < end; ++i) {
        const RowRun& run = runs[run_of(runs, i)];
        const int64_t row = i - run.rows_before;
        const RowPlace at = place_of(places, run, row);
        const GlobalScale global =
            global_scale_of_bits(row_amax_bits(reader, from + at.x, places.blocks_per_row));
        found_scale[run.batch * rows_a_batch + run.row + row] = global.dequantize;
        for (int64_t block = 0; block < places.blocks_per_row; ++block)
          encode_block<type(), four()>(places, reader, from, at, block, global.quantize);
      }
    });
  });
}

void dequantize_runs(Team& team, const TensorPlaces& places, void* x, std::span<const RowRun> runs,
                     std::span<const float> global_scale, int64_t rows_a_batch) noexcept {
  auto* const to = static_cast<uint8_t*>(x);
  with_wide_type(places.x_type, [&](auto type) {
    const auto decode = [&](const RowRun& run, int64_t row, int64_t block) {
      const RowPlace at = place_of(places, run, row);
      const float scale = decode_scale(places.scales[at.scales + places.map(at.scale_row, block)]);
      const float global =
          rows_a_batch > 0
              ? global_scale[static_cast<size_t>(run.batch * rows_a_batch + run.row + row)]
              : of(global_scale, run.expert);
      const uint8_t* const pairs = places.codes + at.codes + block * (kSfVec / 2);
      float values[kSfVec];
      for (int i = 0; i < kSfVec; ++i) {
        const float exact = decode_e2m1(static_cast<uint8_t>(pairs[i / 2] >> (i % 2 * 4))) * scale;
        values[i] = exact * global;
        if (values[i] != values[i]) values[i] = std::bit_cast<float>(0x7FC00000u);
      }
      store_block<type()>(to + at.x, block, values);
    };
    for_blocks(team, places, runs, [&] { return decode; });
  });
}

}  // namespace dualgemm::core
