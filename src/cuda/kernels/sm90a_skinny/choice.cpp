// Which problems the kernel takes, with which instance.
#include <fmt/format.h>

#include <algorithm>

#include "core/scale_padding.hpp"
#include "cuda/device/from_problem.hpp"
#include "cuda/kernels/common/group_tiles.hpp"
#include "cuda/kernels/convert/tma_operand.hpp"
#include "cuda/kernels/hopper/checks.hpp"
#include "cuda/kernels/sm90a_skinny/launch.hpp"
#include "cuda/kernels/sm90a_skinny/operand_a.hpp"

namespace dualgemm::cuda::sm90a_skinny {
namespace {

constexpr int64_t kMaxRowBytes = int64_t{1} << 30;  // four rows are counted in 32 bits
constexpr int64_t kMaxScaleBytes = int64_t{1} << 32;
constexpr int64_t kMaxTiles = (int64_t{1} << 31) - 1;

Status check_stride(const char* name, int64_t bytes, int64_t alignment) {
  if (bytes % alignment == 0) return {};
  return Status::unsupported(name, fmt::format("a stride of {} bytes", bytes),
                             fmt::format("must be a multiple of {} for this kernel", alignment));
}

// Scales of one batch are addressed with 32 bits.
Status check_scale_extent(const char* name, const core::ResolvedMatrix& matrix) {
  const bool swizzled = matrix.scale_layout == ScaleLayout::kSwizzled128x4;
  const int64_t rows = swizzled ? core::ceil_div(matrix.rows, 128) : matrix.rows;
  const int64_t ld =
      swizzled ? core::ceil_div(matrix.sf_cols, 4) * kScaleTileBytes : matrix.scale_ld;
  int64_t bytes = 0;
  if (!__builtin_mul_overflow(rows, ld, &bytes) && bytes < kMaxScaleBytes) return {};
  return Status::unsupported(name, fmt::format("{} rows, {} bytes apart", rows, ld),
                             "must be below 2^32 bytes for this kernel");
}

Status check_weight(const char* name, const char* scales_name, const core::ResolvedMatrix& matrix) {
  DUALGEMM_TRY(check_stride(name, matrix.ld / 2, kCodeAlignment));
  DUALGEMM_TRY(check_stride(name, matrix.batch_stride / 2, kCodeAlignment));
  DUALGEMM_TRY(check_stride(scales_name, matrix.scale_batch_stride, kScaleAlignment));
  DUALGEMM_TRY(check_scale_extent(scales_name, matrix));
  if (matrix.ld / 2 >= kMaxRowBytes) {
    return Status::unsupported(name, fmt::format("a stride of {} bytes", matrix.ld / 2),
                               "must be below 2^30 for this kernel");
  }
  if (matrix.scale_layout == ScaleLayout::kSwizzled128x4) return {};
  return check_stride(scales_name, matrix.scale_ld, kScaleAlignment);
}

Status check_group_tiles(const Problem& problem) {
  int64_t tiles = most_listed_tiles(problem, kGroupRows);
  if (!__builtin_mul_overflow(tiles, core::ceil_div(problem.n, kUnitCols), &tiles) &&
      tiles <= kMaxTiles) {
    return {};
  }
  return Status::unsupported("m, n, l", fmt::format("{}, {}, {}", problem.m, problem.n, problem.l),
                             "experts must have at most 2^31 - 1 tiles of 8 x 8");
}

}  // namespace

Status supports(const Problem& problem, bool prepared) {
  DUALGEMM_TRY(hopper::check_problem(problem));
  const bool grouped = problem.grouping != Grouping::kNone;
  if (!grouped && problem.m > most_rows(prepared)) {
    return Status::unsupported(
        "m", std::to_string(problem.m),
        fmt::format("must be at most {} for this kernel", most_rows(prepared)));
  }
  if (problem.k % kStepK != 0) {
    return Status::unsupported("k", std::to_string(problem.k),
                               fmt::format("must be a multiple of {} for this kernel", kStepK));
  }
  if (grouped) DUALGEMM_TRY(check_group_tiles(problem));
  core::ResolvedProblem resolved = core::resolve(problem);
  if (problem.grouping == Grouping::kContiguous && problem.a_rows == 0 &&
      problem.a.scale_layout == ScaleLayout::kSwizzled128x4)
    resolved.a.rows = core::most_padded_rows(problem.m, problem.l);
  const int64_t alignment = a_alignment(problem.a.type);
  DUALGEMM_TRY(check_stride("a", core::bytes_of(problem.a.type, resolved.a.ld), alignment));
  DUALGEMM_TRY(
      check_stride("a", core::bytes_of(problem.a.type, resolved.a.batch_stride), alignment));
  if (problem.a.type == DataType::kE2M1) DUALGEMM_TRY(check_scale_extent("a_scales", resolved.a));
  if (prepared) return {};
  DUALGEMM_TRY(check_weight("gate", "gate_scales", resolved.gate));
  return check_weight("up", "up_scales", resolved.up);
}

std::span<const Instance> instances_for(const Problem& problem) {
  return problem.grouping == Grouping::kNone ? instances() : group_instances();
}

namespace {

// Whether an instance is for the type of A, such weights and D.
bool is_for(const Config& config, const Problem& problem, bool prepared) {
  if (problem.d.type == DataType::kE2M1 && !writes_nvfp4(config)) return false;
  return config.a_type == a_type_of(problem.a.type) && config.prepared == prepared;
}

// Rows of the tile for the rows of A; groups have one kind.
int64_t tile_m_for(const Problem& problem) {
  return problem.grouping != Grouping::kNone || problem.m <= kGroupRows ? kGroupRows
                                                                        : 2 * kGroupRows;
}

// With groups: the tiles that there are if every expert has its usual rows.
int64_t tiles_of(const Problem& problem, const Config& config) {
  int64_t tiles_m = problem.l;
  if (problem.grouping == Grouping::kContiguous) tiles_m = std::min(problem.l, problem.m);
  if (problem.grouping == Grouping::kMasked) tiles_m = most_group_tiles(problem, config.tile_m);
  return core::ceil_div(problem.n, tile_n_of(config)) * tiles_m;
}

// What the busiest CTA has to do, in twentieths of a unit: its units, and for each tile after the
// first two thirds of one, with prepared weights 1.1, as their units take less, or 0.4 where warps
// may be a tile apart (fitted to four shapes and four widths on an H200, bench_sm90a --all).
int64_t cost_of(const Problem& problem, const Instance& given, int num_sms) {
  const Config& config = launched_instance(problem, given, num_sms).config;
  const Split split = split_of(problem, config, num_sms);
  int64_t waves = core::ceil_div(tiles_of(problem, config), num_sms);
  int64_t units = waves * config.units;
  if (split.narrow_units > 0) {
    waves = split.wide_tiles / num_sms + 1;
    units = (waves - 1) * config.units + split.narrow_units;
  }
  const int64_t tile = config.many ? 8 : config.prepared ? 22 : 13;
  return 20 * units + tile * (waves - 1);
}

}  // namespace

const Instance& launched_instance(const Problem& problem, const Instance& instance, int64_t ctas) {
  if (problem.grouping != Grouping::kNone || tiles_of(problem, instance.config) <= ctas)
    return instance;
  Config many = instance.config;
  many.many = true;
  for (const Instance& other : many_instances()) {
    if (other.config == many) return other;
  }
  return instance;
}

Split split_of(const Problem& problem, const Config& config, int64_t ctas) {
  const int64_t tiles = core::ceil_div(problem.n, tile_n_of(config));
  const Split whole{.tiles = tiles, .wide_tiles = tiles, .narrow_units = 0};
  if (!has_narrow_tiles(config) || problem.l != 1 || tiles <= ctas) return whole;
  const int64_t units = core::ceil_div(problem.n, kUnitCols);
  const int64_t wide = units / (config.units * ctas) * ctas;
  const int64_t left = units - wide * config.units;
  int64_t narrow = core::ceil_div(left, ctas);
  if (problem.d.type == DataType::kE2M1) narrow += narrow % 2;  // a block is two units
  if (left == 0 || narrow >= config.units) return whole;
  return {.tiles = wide + core::ceil_div(left, narrow), .wide_tiles = wide, .narrow_units = narrow};
}

const Instance* find_instance(const Problem& problem, int64_t cols, bool prepared) {
  return find_instance(problem, tile_m_for(problem), cols, prepared);
}

const Instance* find_instance(const Problem& problem, int64_t rows, int64_t cols, bool prepared) {
  if (problem.grouping == Grouping::kNone && rows != tile_m_for(problem)) return nullptr;
  for (const Instance& instance : instances_for(problem)) {
    const Config& config = instance.config;
    if (is_for(config, problem, prepared) && config.tile_m == rows && tile_n_of(config) == cols)
      return &instance;
  }
  return nullptr;
}

// The tile that leaves the least to the busiest CTA, among equal ones the widest: A is decoded once
// for a tile.
const Instance& choose_instance(const Problem& problem, int num_sms, bool prepared) {
  const Instance* best = nullptr;
  int64_t least = 0;
  for (const Instance& instance : instances_for(problem)) {
    const bool suits = instance.config.tile_m == tile_m_for(problem);
    if (!suits || !is_for(instance.config, problem, prepared)) continue;
    const int64_t cost = cost_of(problem, instance, num_sms);
    if (best == nullptr || cost <= least) best = &instance, least = cost;
  }
  return *best;
}

namespace {

// Up to how many rows of an expert, on average, this kernel is the faster one of the two: measured
// on an H200 for the experts of DeepSeek-V3, Qwen3-30B-A3B, gpt-oss-120b and Mixtral
// (docs/performance.md, "Groups of experts"). Prepared, 6 rows: Qwen3-30B-A3B 70 and 85 us,
// gpt-oss-120b 365 and 416; 8 rows: 87 and 86, 435 and 420 (30 November 2026). Unpacked, with
// little of k the other one is faster at any number (K = 2048, 1 to 6 rows: 128 and 87 us), but it
// copies linear scales that the TMA unit cannot read, those of all experts.
int64_t most_group_rows(const Problem& problem, bool prepared) {
  if (prepared) return 6;
  const bool copies_scales = problem.gate.scale_layout == ScaleLayout::kLinear &&
                             !linear_scales_suit(core::resolve(problem).gate, problem.l);
  return copies_scales ? 6 : problem.k > 2048 ? 3 : 0;
}

}  // namespace

bool is_faster(const Problem& problem, int num_sms, bool prepared) {
  if (problem.grouping != Grouping::kNone)
    return usual_rows(problem) <= most_group_rows(problem, prepared);
  const Instance& instance = choose_instance(problem, num_sms, prepared);
  const Config& config = instance.config;
  const int64_t tiles = tiles_of(problem, config);
  if (tiles <= num_sms) return true;
  // However unequal the work: at (4232, 7168), one unit too many for a wave, 15.6 us and 16.7 of
  // the other kernel (m = 8, NVFP4), at (14336, 4096) 23.2 and 28.1, at (18432, 7168) 43.8 and 51.5
  // (H200).
  if (prepared && problem.m <= kGroupRows) return true;
  // Every tile decodes a again. Prepared, 16 rows of NVFP4 and of fp16, this kernel and the other
  // one: 2.6 tiles a CTA (11008, 4096) 21.8 and 23.9 us, 20.2 and 23.7; 3.4 (14336, 4096) 25.7 and
  // 26.9, 24.1 and 26.9; 6.8 (28672, 8192) 88 and 87. Unpacked, 5 tiles, (14336, 4096): m = 1 26.5
  // here, m = 8 25.8 there.
  constexpr int64_t kMostTiles = 4;
  if (tiles > kMostTiles * num_sms) return false;
  // At most 1.4 times the mean, 28 twentieths of a unit for each of n * l / 8 units; with prepared
  // weights 1.45.
  const int64_t most = prepared ? 29 : 28;
  return cost_of(problem, instance, num_sms) * num_sms * kUnitCols <= most * problem.n * problem.l;
}

int64_t ctas_for(const Problem& problem, const Config& config, int64_t most) {
  if (problem.grouping == Grouping::kNone) return std::min(tiles_of(problem, config), most);
  const int64_t tiles_n = core::ceil_div(problem.n, tile_n_of(config));
  return std::min(most_group_tiles(problem, config.tile_m) * tiles_n, most);
}

}  // namespace dualgemm::cuda::sm90a_skinny
