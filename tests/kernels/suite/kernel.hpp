// A kernel under test: one row of the suite. tests/kernels/<kernel>/row.cpp defines it, and
// cases.txt beside it lists the cases (case_table.hpp has the language, case.cpp the keys).
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "reference/bound.hpp"
#include "support/inputs.hpp"

namespace dualgemm::test {

// How a launch is set up, in terms of all kernels; each reads those that it has. 0: its default.
struct Setting {
  int tile_m = 0, tile_n = 0;  // of an instance
  int split = 0;               // CTAs or warpgroups that share k
  int max_ctas = 0;
  int passes = 0;             // sm80: number of the strategy's launches in kPasses
  bool prepared = false;      // weights, packed in a launch before
  bool other_kernel = false;  // by the kernel that must leave the same bits
  int64_t misalign = 0;       // Simulation's
  int64_t misalign_a_scales = 0;
  uint64_t seed = 0;          // of the random schedule; 0: everything completes at once
  bool shares_tiles = false;  // filled in: whether CTAs shared a tile, through memory
  bool pairs_ctas = false;    // filled in: or in clusters of two
};

struct KernelRow {
  const char* cases;                     // path of cases.txt
  reference::Accumulation accumulation;  // by which the bound of docs/numerics.md is taken
  // Runs `data`'s problem and stores D in data.d, whose other bytes stay as they are. Fails on an
  // error of the interpreter and on any report of the sanitizer at severity error.
  ::testing::AssertionResult (*simulate)(RandomCase& data, Setting& setting);
  // What `instance=every` goes through: keys of cases.txt with their numbers, and names that only
  // expressions use.
  std::vector<std::map<std::string, int64_t>> (*instances)() = nullptr;
};

// The row of the kernel whose executable this is.
const KernelRow& kernel_row();

}  // namespace dualgemm::test
