// Where the block-scaled mma.sync of E2M1 has its operands, as src/cuda/ptx/mma_nvf4.cuh says it,
// after the tables of the PTX ISA: "Matrix Fragments for mma.m16n8k64 with .e2m1 type", "Block
// Scaling for mma.sync".
#pragma once

namespace dualgemm::test {

struct Place {
  int row, k;  // of A a row, of B and of D a column for it, as the function says
};

// Element i (of eight) of register j of lane `lane`.
constexpr Place place_in_a(int lane, int j, int i) {
  return {lane / 4 + 8 * (j % 2), 32 * (j / 2) + 8 * (lane % 4) + i};
}
constexpr Place place_in_b(int lane, int j, int i) {
  return {lane / 4, 32 * j + 8 * (lane % 4) + i};
}
// Row and, in k, column of D's register j.
constexpr Place place_in_d(int lane, int j) {
  return {lane / 4 + 8 * (j / 2), 2 * (lane % 4) + j % 2};
}
// Whose scales a lane must have, if its thread-id is the one that counts.
constexpr int row_of_sfa(int lane) { return lane / 4 + 8 * (lane % 2); }
constexpr int col_of_sfb(int lane) { return lane / 4; }

}  // namespace dualgemm::test
