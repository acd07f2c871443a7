// The pieces of work of a described launch: the same pieces, servers and waits that the recorder
// makes of a kernel.
#include <fmt/format.h>

#include <utility>
#include <vector>

#include "timing/description.hpp"

namespace ptxsim::timing {
namespace {

constexpr double kCopyBytes = 512;  // of one tcgen05.cp

class Build {
 public:
  explicit Build(const Description& d) : d_(d) {
    for (uint32_t cta = 0; cta < d.ctas_per_cluster; ++cta) add_actors(cta);
  }

  Work run() {
    for (uint32_t tile = 0; tile < d_.tiles; ++tile) {
      for (uint32_t stage = 0; stage < d_.stages_per_tile; ++stage) {
        load_stage();
        if (d_.mma_sync)
          share_stage(stage == 0 && tile > 0);
        else if (d_.consumers > 0)
          consume_stage(stage == 0 && tile > 0);
        else
          multiply_stage(stage == 0 && tile > 0);
      }
      const uint32_t done =
          d_.consumers > 0
              ? freed_.back()
              : work_.add({.actor = tensor_, .what = "commit", .delay = Delay::kMma}, {}, {});
      for (uint32_t cta = 0; cta < d_.ctas_per_cluster; ++cta) epilogue(cta, done);
      last_tile_ = done;
    }
    return std::move(work_);
  }

 private:
  struct CtaActors {
    uint32_t producer, loads;
    std::vector<uint32_t> epilogue, tmem;
  };

  void add_actors(uint32_t cta) {
    CtaActors a{};
    a.producer = work_.add_actor(fmt::format("CTA {} load", cta), "load", Sequence::kSerial);
    a.loads = work_.add_actor(fmt::format("CTA {} TMA", cta), "TMA", Sequence::kFree);
    if (cta == 0) {
      mma_ = work_.add_actor("CTA 0 mma", "mma", Sequence::kSerial);
      tensor_ = work_.add_actor("tensor cores", "tensor cores", Sequence::kPipelined);
    }
    if (cta == 0)
      for (uint32_t c = 0; c < d_.consumers; ++c)
        consumers_.push_back(
            work_.add_actor(fmt::format("CTA 0 consumer {}", c), "consumer", Sequence::kSerial));
    if (d_.mma_sync) a.epilogue = consumers_;
    for (uint32_t w = 0; w < d_.epilogue_warps && !d_.mma_sync; ++w) {
      a.epilogue.push_back(work_.add_actor(fmt::format("CTA {} epilogue {}", cta, w), "epilogue",
                                           Sequence::kSerial));
      a.tmem.push_back(work_.add_actor(fmt::format("CTA {} TMEM loads {}", cta, w), "TMEM loads",
                                       Sequence::kFree));
    }
    work_.add({.actor = a.producer,
               .what = "setup",
               .delay = Delay::kSetup,
               .least_us = d_.setup_extra_us},
              {}, {});
    ctas_.push_back(std::move(a));
  }

  // All loads of the stage, when the MMAs that read its buffer before have ended.
  void load_stage() {
    const auto stage = static_cast<int32_t>(filled_ % d_.stages);
    arrivals_.clear();
    std::vector<After> after;
    if (filled_ >= d_.stages) after.push_back({freed_[filled_ - d_.stages], Delay::kBarrierHop});
    const double loads = static_cast<double>(d_.loads_per_stage) * d_.ctas_per_cluster;
    const double fills = static_cast<double>(d_.clusters) * d_.tiles * d_.stages_per_tile;
    for (uint32_t cta = 0; cta < d_.ctas_per_cluster; ++cta) {
      for (uint32_t i = 0; i < d_.loads_per_stage; ++i) {
        const Demand issue[] = {{Server::kTma, cta, 1}};
        const uint32_t issued = work_.add(
            {.actor = ctas_[cta].producer, .what = "issue load", .stage = stage}, issue, after);
        const Demand bytes[] = {{Server::kIngest, cta, d_.stage_bytes / d_.loads_per_stage},
                                {Server::kL2, 0, d_.l2_bytes / d_.loads_per_stage},
                                {Server::kHbm, 0, d_.unique_bytes / fills / loads}};
        const After when[] = {{issued}};
        const bool first = filled_ == 0 && i == 0;
        arrivals_.push_back(work_.add({.actor = ctas_[cta].loads,
                                       .what = "load",
                                       .stage = stage,
                                       .delay = first ? Delay::kFirstLoad : Delay::kLoad,
                                       .delay_first = true},
                                      bytes, when));
      }
    }
    ++filled_;
  }

  void multiply_stage(bool switches) {
    const auto stage = static_cast<int32_t>((filled_ - 1) % d_.stages);
    std::vector<After> after;
    for (const uint32_t load : arrivals_) after.push_back({load, Delay::kBarrierHop});
    if (switches) after.push_back({last_tile_, Delay::kTileSwitch});
    const uint32_t issued =
        work_.add({.actor = mma_, .what = "issue mma", .stage = stage}, {}, after);
    const After when[] = {{issued}};
    for (uint32_t i = 0; i < d_.copies_per_stage; ++i) {
      const Demand bytes[] = {{Server::kShared, 0, kCopyBytes}};
      work_.add({.actor = tensor_, .what = "copy scales", .stage = stage}, bytes, when);
    }
    for (uint32_t i = 0; i < d_.mmas_per_stage; ++i) {
      const double macs = d_.mma_m / d_.ctas_per_cluster * d_.mma_n * d_.mma_k * d_.bits / 16;
      const double rows_of_a = d_.shares_a && i % 2 == 1 ? 0 : d_.mma_m / d_.ctas_per_cluster;
      const Demand needs[] = {
          {Server::kTensor, 0, macs},
          {Server::kShared, 0, shared_bytes_of_mma(rows_of_a, d_.mma_n, d_.ctas_per_cluster == 2)}};
      work_.add({.actor = tensor_, .what = "mma", .stage = stage}, needs, when);
    }
    freed_.push_back(work_.add(
        {.actor = tensor_, .what = "commit", .stage = stage, .delay = Delay::kMma}, {}, when));
  }

  // The MMAs of a step run while the next one is decoded.
  void consume_stage(bool switches) {
    const auto stage = static_cast<int32_t>((filled_ - 1) % d_.stages);
    std::vector<After> after;
    for (const uint32_t load : arrivals_) after.push_back({load, Delay::kBarrierHop});
    if (switches) after.push_back({last_tile_, Delay::kTileSwitch});
    std::vector<Demand> needs;
    for (uint32_t scheduler = 0; scheduler < kSchedulers; ++scheduler)
      needs.push_back({Server::kIssue, scheduler, d_.consumer_slots});
    needs.push_back(
        {Server::kTensor, 0, d_.mmas_per_stage * d_.mma_m * d_.mma_n * d_.mma_k * d_.bits / 16});
    freed_.push_back(work_.add({.actor = consumers_[(filled_ - 1) % d_.consumers],
                                .what = "decode and mma",
                                .stage = stage,
                                .delay = Delay::kMma},
                               needs, after));
  }

  // Every warp reads its fragments and multiplies them; the stage is free when all of them have.
  void share_stage(bool switches) {
    const auto stage = static_cast<int32_t>((filled_ - 1) % d_.stages);
    std::vector<After> after, parts;
    for (const uint32_t load : arrivals_) after.push_back({load, Delay::kBarrierHop});
    if (switches) after.push_back({last_tile_, Delay::kTileSwitch});
    const double macs = d_.mmas_per_stage * d_.mma_m * d_.mma_n * d_.mma_k * d_.bits / 16;
    const double warps_of_scheduler = static_cast<double>(d_.consumers) / kSchedulers;
    for (uint32_t w = 0; w < d_.consumers; ++w) {
      const Demand needs[] = {
          {Server::kIssue, scheduler_of(0, w), d_.consumer_slots / warps_of_scheduler},
          {Server::kMmaSync, 0, macs / d_.consumers},
          {Server::kShared, 0, d_.fragment_bytes / d_.consumers}};
      parts.push_back({work_.add({.actor = consumers_[w],
                                  .what = "mma.sync",
                                  .stage = stage,
                                  .chain = Chain{}.add(Latency::kShared).add(Latency::kMmaSync)},
                                 needs, after)});
    }
    freed_.push_back(work_.add({.actor = tensor_, .what = "release", .stage = stage}, {}, parts));
  }

  void epilogue(uint32_t cta, uint32_t done) {
    const CtaActors& actors = ctas_[cta];
    const double elements = d_.elements / d_.epilogue_warps / d_.epilogue_steps;
    for (uint32_t w = 0; w < d_.epilogue_warps; ++w) {
      const uint32_t warp = actors.epilogue[w];
      if (d_.mma_sync) {  // its accumulators are in its registers
        for (uint32_t step = 0; step < d_.epilogue_steps; ++step)
          compute(warp, scheduler_of(cta, w), elements * d_.epilogue_scale / 32, {});
        work_.add({.actor = warp, .what = "last stores", .delay = Delay::kEpilogueTail}, {}, {});
        continue;
      }
      const After finished[] = {{done, Delay::kBarrierHop}};
      uint32_t loaded = load_accumulators(cta, w, elements, finished);
      for (uint32_t step = 0; step < d_.epilogue_steps; ++step) {
        const After loads[] = {{loaded}};
        // The next step's accumulators are on their way while this one computes.
        if (step + 1 < d_.epilogue_steps) loaded = load_accumulators(cta, w, elements, {});
        compute(warp, scheduler_of(cta, w), elements * d_.epilogue_scale / 32, loads);
      }
      work_.add({.actor = warp, .what = "last stores", .delay = Delay::kEpilogueTail}, {}, {});
    }
  }

  uint32_t load_accumulators(uint32_t cta, uint32_t w, double elements,
                             std::span<const After> after) {
    const uint32_t issued =
        work_.add({.actor = ctas_[cta].epilogue[w], .what = "issue TMEM load"}, {}, after);
    const Demand bytes[] = {{Server::kTmem, cta, elements * 4 * d_.accumulators}};
    const After when[] = {{issued}};
    return work_.add({.actor = ctas_[cta].tmem[w], .what = "TMEM load", .delay = Delay::kTmemLoad},
                     bytes, when);
  }

  // First the instructions, then the functions: what of both is hidden is
  // Parameter::kEpilogueFactor's business.
  void compute(uint32_t warp, uint32_t scheduler, double warps_of_elements,
               std::span<const After> after) {
    const Demand slots[] = {{Server::kIssue, scheduler, warps_of_elements * d_.slots_per_element}};
    work_.add({.actor = warp, .what = "epilogue"}, slots, after);
    const Demand mufu[] = {{Server::kMufu, scheduler, warps_of_elements * d_.mufu_per_element}};
    work_.add({.actor = warp, .what = "epilogue"}, mufu, {});
  }

  const Description& d_;
  Work work_;
  std::vector<CtaActors> ctas_;
  std::vector<uint32_t> consumers_;
  uint32_t mma_ = 0, tensor_ = 0, last_tile_ = 0;
  uint32_t filled_ = 0;             // stages so far
  std::vector<uint32_t> freed_;     // the commit of each
  std::vector<uint32_t> arrivals_;  // loads of the one under way
};

}  // namespace

LaunchWork work_of(const Description& d) {
  LaunchWork launch;
  launch.name = d.name;
  launch.classes.push_back({d.name, Build(d).run()});
  launch.clusters = d.clusters;
  launch.ctas_per_cluster = d.ctas_per_cluster;
  launch.ctas_per_sm = d.ctas_per_sm;
  launch.dependent_launch = d.dependent_launch;
  launch.other_us = d.other_us;
  launch.is_narrow = d.bits == 4;
  launch.footprint_bytes = d.unique_bytes;
  return launch;
}

}  // namespace ptxsim::timing
