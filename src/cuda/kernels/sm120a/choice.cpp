#include "cuda/kernels/sm120a/choice.hpp"

#include <algorithm>

#include "core/int_math.hpp"
#include "cuda/device/from_problem.hpp"
#include "cuda/machine/gb10.hpp"
#include "cuda/machine/rtx5090.hpp"

namespace dualgemm::cuda::sm120a {
namespace {

using core::ceil_div;

constexpr double kMacsPerClock = 2048;  // of an SM, at 4 bits: twice as many FLOP
// The share of the tensor cores' rate that is reached with operands from shared memory: 1897 of
// 2117 TFLOP/s on the same card (Neroued/ninfer, issue 160, RTX 5090).
constexpr double kFedShare = 0.896;
// Where L2 is what takes longest, by ptxsim's clock: 58 us in 84 at 256 rows, (17408, 5120).
constexpr double kCacheShare = 0.85;
constexpr double kStartUs = 3;       // a launch, the first stage, the last store
constexpr double kEpilogueUs = 1;    // of a tile, behind its last stage
constexpr int kBlackwellGB10 = 121;  // compute capability

int64_t sms_of(const DeviceCaps& caps) { return std::max(caps.num_sms, 1); }

int64_t usual_tiles(const Problem& p, const Config& config) {
  return tiles_of(p, config, usual_rows(p), 0).of_batch() * most_batches_read(p);
}

// Tiles are of one size, or halves: an SM that has one more than the others is waited for.
double rounds_of(const Problem& p, const Config& config, int64_t sms) {
  const int64_t ctas = ctas_for(p, config, sms);
  if (ctas == 0) return static_cast<double>(ceil_div(usual_tiles(p, config), sms));
  const Tiles tiles = tiles_of(p, config, p.m, ctas);
  if (p.l > 1) return static_cast<double>(ceil_div(tiles.of_batch() * p.l, ctas));
  return static_cast<double>(tiles.halves_of_cta(ctas)) / 2;
}

int64_t stages_of_k(const Problem& p) { return ceil_div(p.k, kStageK); }

}  // namespace

const machine::Gpu& machine_of(const DeviceCaps& caps) {
  return caps.compute_capability == kBlackwellGB10 ? machine::kGb10 : machine::kRtx5090;
}

double modelled_us(const Problem& p, const Config& config, const DeviceCaps& caps) {
  const machine::Gpu& gpu = machine_of(caps);
  const double share = static_cast<double>(sms_of(caps)) / gpu.sms.value;
  const auto tiles = static_cast<double>(usual_tiles(p, config));
  const auto stages = static_cast<double>(stages_of_k(p));
  // Warps whose rows do not exist multiply nothing.
  const int64_t of_tile = ceil_div(usual_rows(p), tiles_of(p, config, usual_rows(p), 0).tiles_m);
  const int64_t tile_rows = core::round_up(of_tile, int64_t{config.groups} * kGroupRows);
  const double stage_macs = static_cast<double>(tile_rows) * kWeightRows * kStageK;
  const double rounds = rounds_of(p, config, sms_of(caps));
  const double tile_us =
      stages * stage_macs / (kMacsPerClock * kFedShare * gpu.clocks_per_us.value) + kEpilogueUs;
  const double cache_us =
      tiles * stages * stage_bytes_of(config) / (gpu.l2_bytes_per_us.value * share * kCacheShare);
  const auto batches = static_cast<double>(most_batches_read(p));
  const double rows = static_cast<double>(usual_rows(p)) * batches;
  const auto n = static_cast<double>(p.n), k = static_cast<double>(p.k);
  const double row_bytes = k / 2 + k / 16;
  const double memory_us = (2 * n * batches * row_bytes + rows * row_bytes + rows * n * 2) /
                           (gpu.hbm_bytes_per_us.value *
                            (gpu.compute_capability == caps.compute_capability ? 1 : share));
  return kStartUs + std::max({memory_us, cache_us, rounds * tile_us});
}

double least_us(const Problem& p, const DeviceCaps& caps) {
  const machine::Gpu& gpu = machine_of(caps);
  const double macs_us = weights_read(p) * static_cast<double>(usual_rows(p)) /
                         (kMacsPerClock * gpu.clocks_per_us.value * gpu.sms.value);
  return machine::least_us(gpu, weights_read(p) * kBytesOfWeight, macs_us);
}

// Among tiles that take the same time the lowest that holds all rows: it reads shared memory least.
const Instance& choose_instance(const Problem& problem, const DeviceCaps& caps) {
  const Instance* chosen = nullptr;
  double least = 0;
  for (const Instance& instance : instances()) {  // in the order of rows
    const double us = modelled_us(problem, instance.config, caps);
    const bool higher_for_free =
        chosen != nullptr && us == least && tile_m_of(chosen->config) < usual_rows(problem);
    if (chosen == nullptr || us < least || higher_for_free) {
      chosen = &instance;
      least = us;
    }
  }
  return *chosen;
}

int64_t ctas_for(const Problem& problem, const Config& config, int64_t most) {
  if (problem.grouping != Grouping::kNone || min_ctas_of(config) > 1) return 0;
  return std::min(most, usual_tiles(problem, config));
}

// With two stages the latency of each is seen: fewer CTAs an SM then do better.
int stages_for(const Problem& problem, const Config& config, const DeviceCaps& caps) {
  const int64_t wanted = ceil_div(usual_tiles(problem, config), sms_of(caps));
  auto ctas = static_cast<int>(std::clamp<int64_t>(wanted, 1, min_ctas_of(config)));
  while (ctas > 1 && most_stages(config, ctas) == kMinStages) --ctas;
  return most_stages(config, ctas);
}

int most_stages(const Config& config, int ctas) {
  int most = kMinStages;
  while (most < kMaxStages && smem_bytes_of(config, most + 1) + kSmemOfSystem <= kSmemOfSm / ctas)
    ++most;
  return most;
}

}  // namespace dualgemm::cuda::sm120a
