// What the clock wants to know of a statement, read once from its text.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ptxsim/ir/program.hpp"
#include "timing/expansion.hpp"
#include "timing/sass_listing.hpp"

namespace ptxsim::timing {

struct StatementCost {
  Expansion expansion;
  bool counts_up = false;             // an atomic that adds a constant: lanes of a word go at once
  bool adds_floats = false;           // an atomic of floating-point numbers
  bool is_constant = false;           // ld.global.nc: no store writes what it reads
  bool passes_l1 = false;             // a load of global memory that L1 does not keep
  bool is_pair = false;               // cta_group::2
  bool reuses_a = false;              // of the collector
  bool a_in_tmem = false;             // tcgen05.mma
  bool is_sparse = false;             // .sp: B has twice the bytes of what it meets
  bool is_weight_stationary = false;  // tcgen05.mma.ws: D may have fewer rows than lanes
  double operand_bits = 16;           // of an MMA; 32: TF32
  // wgmma with A in shared memory goes no faster with fewer than 64 columns, which take 32 clk: how
  // many times what its products need it takes (measured/h200_wgmma_2026_11_29.json).
  double columns_missing = 1;
  double warp_macs = 0;  // of mma and wmma: of a warp, elements that A stores
};

// By Insn::statement.
struct StatementCosts {
  std::vector<StatementCost> of;
  size_t told = 0;  // statements whose instructions are counted in `sass`, not the table's
};
// `sass`: what ptxas made of the kernel; empty: the table alone.
std::shared_ptr<const StatementCosts> costs_of(const Program& program,
                                               std::span<const SassSection> sass = {});

}  // namespace ptxsim::timing
