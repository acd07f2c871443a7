// Operands that own their memory: seeded random ones for verification, benchmarks and
// demonstrations, and outputs to run into.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/aligned_bytes.hpp"
#include "dualgemm/status.hpp"
#include "dualgemm/types.hpp"

namespace dualgemm::verify {

using core::AlignedBytes;

// Every byte is `fill`.
Expected<AlignedBytes> allocate_filled(int64_t size, uint8_t fill);

enum class RandomKind {
  kUniform,  // all 16 codes alike, scales uniform in [0, 1) rounded to E4M3 as in the challenge
  kEdges,  // also zero, subnormal, negative and large scales; all-zero blocks; row scales (for odd
           // seeds)
};

// How the rows of a problem with groups fall to its experts.
enum class ExpertRows {
  kRagged,     // any numbers; of three experts or more one has none
  kOneExpert,  // all are one expert's
  kNobody,     // all are no expert's; offsets cannot say so
};
struct RandomGroups {
  bool row_experts = false;  // kContiguous: Buffers::row_experts instead of offsets
  ExpertRows rows = ExpertRows::kRagged;
};
const char* name_of(ExpertRows rows) noexcept;

// Everything that a run reads. Alphas are chosen so that both products have a deviation of about 2:
// activations bend, fp16 does not overflow.
struct Operands {
  AlignedBytes a, a_scales, gate, gate_scales, up, up_scales;
  std::vector<float> a_row_scale;
  float alpha_gate = 1.0f, alpha_up = 1.0f;
  AlignedBytes bias_gate, bias_up;                                // deviation 1
  AlignedBytes residual;                                          // likewise, as D lies
  std::vector<int32_t> expert_offsets, expert_rows, row_experts;  // of groups

  Buffers buffers() const noexcept;  // without D
};

inline constexpr uint8_t kUnwritten = 0xFF;  // what an Output begins as

// D and its scales, filled with kUnwritten: NaN in every type and in every scale, so that an
// unwritten element shows.
struct Output {
  AlignedBytes d, d_scales;
  float d_global_scale = 1.0f;

  void attach_to(Buffers& buffers) noexcept;
  void poison() noexcept;
};

// The same (problem, kind, seed, groups) gives the same bytes on every machine and for any number
// of threads. `groups` counts where the problem has some.
Expected<Operands> random_operands(const Problem& problem, RandomKind kind, uint64_t seed,
                                   const RandomGroups& groups = {});

// d_global_scale fits the magnitudes that random_operands gives.
Expected<Output> allocate_output(const Problem& problem);

// values[i] = deviation * normal(seed, i), stored as f32, f16 or bf16. When `columns` > 0, about
// one column in 64 is `outlier` times larger.
Status random_normal(DataType type, int64_t count, double deviation, int64_t columns,
                     double outlier, uint64_t seed, void* values);

// `count` seeded shapes that hit edges: m in 1 .. 70 around the tile sizes, small n, k from 16 with
// short last k-tiles. n % 16 == 0 when D is E2M1. `groups`: up to 9 experts instead of batches.
struct RandomShape {
  int64_t m, n, k, l;
  uint64_t seed;  // for random_operands
};
std::vector<RandomShape> random_shapes(DataType d_type, int64_t count, uint64_t seed,
                                       bool groups = false);

}  // namespace dualgemm::verify
