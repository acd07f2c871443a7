// One case of cases.txt: what is computed, how, and on which values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/suite/case_table.hpp"
#include "kernels/suite/kernel.hpp"
#include "support/inputs.hpp"

namespace dualgemm::test {

struct TestCase {
  Problem problem;
  Setting setting;
  Values values = Values::kRandom;
  bool factors = false;  // alphas for each batch, and row scales

  int64_t bits = 0;  // cases of a problem that must have the same bits: those with one number

  // D as NVFP4.
  int extreme = 0;    // make_extreme()'s
  bool gaps = false;  // with_nvfp4_output()'s

  // NaN at these places, counted row by row, the scales of a row k/16.
  std::optional<int64_t> nan_a;           // a scale, or of 16 bits an element
  std::vector<int64_t> nan_gate, nan_up;  // scales

  // side_by_side_problems()'s, and what becomes of its problems.
  int types = 0;  // of A: bits
  int64_t rows = 0, columns = 0;
  bool groups = false;         // their grouping stays
  int64_t wrap_m = 0;          // at most so many rows, 0: any; by the remainder
  int64_t clamp_m = 0;         // or so many without groups
  bool dense_d = false;        // D without gaps
  bool any_misalign = false;   // misalign 0 to 3
  bool changing_ctas = false;  // 1 to 5 CTAs
};

// All cases of a section.
Expected<std::vector<TestCase>> cases_of(const CaseSection& section, const KernelRow& row);

// As a test's message says it.
std::string describe(const TestCase& c);

}  // namespace dualgemm::test
