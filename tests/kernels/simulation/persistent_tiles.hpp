// Persistent CTAs that go through all rows and columns without groups, by the instances that are
// for groups: what such a kernel's tests try. Every D must have the bits of the kernel's other
// CTAs, which do a tile each, and lie within the bound.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/simulation/overlap.hpp"
#include "kernels/simulation/results.hpp"
#include "kernels/simulation/schedules.hpp"
#include "kernels/simulation/simulation.hpp"
#include "support/bound.hpp"
#include "support/every_activation.hpp"
#include "support/factors.hpp"
#include "support/nvfp4_output.hpp"

namespace dualgemm::test {

// What is tested of one kernel; Run: that of its simulate().
struct PersistentTiles {
  std::vector<DataType> types;  // of A
  std::vector<int> tiles_m;
  int64_t most_m;  // more are several tiles, or none
  reference::Accumulation accumulation;
};

template <class Run>
void expect_tiles_right(const PersistentTiles& kernel, const Problem& p, Run run,
                        Values values = Values::kRandom, bool per_batch = false) {
  run.persistent = true;
  SCOPED_TRACE(describe(p, run));
  Rng rng;
  RandomCase data(p, rng, values);
  if (per_batch) add_alphas_and_row_scales(data, rng);
  const std::vector<uint8_t> bits = simulated_bits(data, run);
  EXPECT_TRUE(within_bound(p, data.buffers(), kernel.accumulation));
  Run one_tile{};
  one_tile.misalign = run.misalign;
  EXPECT_EQ(bits, simulated_bits(data, one_tile));
}

// The shape of case `number`: rows that fill a tile, one less, one; columns and ends of k anywhere
// in theirs; scales in rows that lie 16 bytes apart, in others, and in tiles.
inline Problem tiles_problem(const PersistentTiles& kernel, int tile_m, int64_t k, int number) {
  constexpr int64_t kColumns[] = {9, 64, 200, 130, 33};
  const int64_t rows[] = {tile_m, tile_m - 1, 1, kernel.most_m};
  Problem p{.m = rows[number % 4], .n = kColumns[number % 5], .k = k, .l = 1 + number % 3};
  p.a.type = kernel.types[static_cast<size_t>(number) % kernel.types.size()];
  if (p.m > tile_m && tile_m != kernel.tiles_m.back()) p.m = tile_m;  // several: of the largest
  if (number % 3 != 0) p.up.scale_layout = ScaleLayout::kSwizzled128x4;
  if (number % 3 == 1) p.gate.scale_ld = core::round_up(k / 16, 16);
  if (number % 2 == 0 && p.a.type == DataType::kE2M1)
    p.a.scale_layout = ScaleLayout::kSwizzled128x4;
  return p;
}

// CTAs: one, several tiles each, and more than there are tiles.
template <class Run>
void expect_every_shape(const PersistentTiles& kernel) {
  int number = 0;
  for (const int tile_m : kernel.tiles_m) {
    for (const int64_t k : {16, 80, 336, 512, 256 * 9 + 32}) {
      for (const bool prepared : {false, true}) {
        Run run{};
        run.tile_m = tile_m, run.max_ctas = 1 + number % 4, run.prepared = prepared;
        expect_tiles_right(kernel, tiles_problem(kernel, tile_m, k, number), run, Values::kWide,
                           number % 5 == 0);
        ++number;
      }
    }
  }
}

template <class Run>
void expect_strides_and_misalignment(const PersistentTiles& kernel) {
  int number = 0;
  for (const int64_t misalign : {0, 1, 9}) {
    for (const int tile_m : kernel.tiles_m) {
      Problem p = tiles_problem(kernel, tile_m, 272, number);
      p.gate.ld = 304, p.up.ld = 276;  // in place; copied
      p.a.ld = 272 + 32 * (number % 2);
      p.d.ld = p.n + 7;
      p.d.batch_stride = p.d.ld * p.m + 3;
      p.up.scale_batch_stride = 4096 * 3 + 7;  // copied
      Run run{};
      run.tile_m = tile_m, run.misalign = misalign, run.prepared = number++ % 3 == 2;
      expect_tiles_right(kernel, p, run, Values::kRandom, true);
    }
  }
}

template <class Run>
void expect_every_activation_and_output(const PersistentTiles& kernel) {
  int number = 0;
  for (const Activation& act : every_activation()) {
    for (const DataType type : {DataType::kF16, DataType::kBF16, DataType::kF32}) {
      Run run{};
      run.tile_m = kernel.tiles_m[static_cast<size_t>(number) % kernel.tiles_m.size()];
      run.prepared = number % 2 == 1;
      Problem p = tiles_problem(kernel, run.tile_m, 272, number);
      p.act = act;
      p.d.type = type;
      p.bias = static_cast<BiasType>(number++ % 3);
      expect_tiles_right(kernel, p, run);
    }
  }
}

// D as NVFP4: the same kernel's FP32, quantised.
template <class Run>
void expect_nvfp4_output(const PersistentTiles& kernel) {
  int number = 0;
  for (const int tile_m : kernel.tiles_m) {
    for (const bool is_swizzled : {false, true}) {
      Run run{};
      run.tile_m = tile_m, run.persistent = true, run.prepared = number % 2 == 1;
      Problem p = tiles_problem(kernel, tile_m, 272, number);
      p.n = 48 + number % 3 * 48;
      p.bias = static_cast<BiasType>(number % 3);
      p = with_nvfp4_output(p, is_swizzled, number % 3 == 0);
      SCOPED_TRACE(describe(p, run));
      TwoOutputs both(p);
      both.change([number](RandomCase& data) { make_extreme(data, number); });
      ASSERT_TRUE(simulate(both.wide, run));
      ASSERT_TRUE(simulate(both.narrow, run));
      EXPECT_TRUE(both.agree());
      ++number;
    }
  }
}

// Two CTAs, several tiles each; rings that end anywhere in a tile, and go around in one.
template <class Run>
void expect_same_tiles_in_every_schedule(const PersistentTiles& kernel, uint64_t seeds) {
  int number = 0;
  for (const int64_t k : {256 * 2 - 64, 256 * 9}) {
    for (const bool prepared : {false, true}) {
      Problem p{.m = 20, .n = 260, .k = k, .d = {.type = DataType::kF32}};
      p.a.type = kernel.types[static_cast<size_t>(number++) % kernel.types.size()];
      p.gate.scale_layout = ScaleLayout::kSwizzled128x4;
      Rng rng;
      RandomCase data(p, rng, Values::kWide);
      Run run{};
      run.persistent = true, run.max_ctas = 2, run.prepared = prepared;
      expect_same_bits_in_schedules(data, run, seeds, kernel.accumulation);
    }
  }
}

// The prologue's wait for the grid before is for a table, and there is none here. Each of the other
// waits is needed; prepared weights, which are not the grid's before, are read earlier.
template <class Run>
void expect_every_wait_but_the_tables_is_needed(const PersistentTiles& kernel,
                                                const std::string& module) {
  Problem p{.m = 5, .n = 200, .k = 320, .a = {.type = kernel.types.front()}};
  p.bias = BiasType::kF32;
  Rng rng;
  RandomCase data(p, rng, Values::kRandom);
  for (const bool prepared : {false, true}) {
    Run run{};
    run.persistent = true, run.prepared = prepared;
    const Waits waits(module, instance_of(p, run).entry);
    ASSERT_EQ(waits.count(), 3u);
    size_t reported = 0;
    for (size_t i = 0; i < waits.count(); ++i) {
      run.mutant = waits.without(i);
      if (simulate(data, run)) continue;
      ++reported;
      for (const ptxsim::Report& report : run.result.reports.list) EXPECT_EQ(report.rule, 21);
    }
    EXPECT_EQ(reported, 2u);
  }
}

}  // namespace dualgemm::test
