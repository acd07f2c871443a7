#include "bench/cpu/reads_in_turn.hpp"

#include <chrono>
#include <string_view>
#include <utility>

#include "core/team.hpp"

namespace dualgemm::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Bytes {
  const uint8_t* data;
  int64_t size;
};

// Plain loads as wide as they come; their best is among the fastest reads on all machines seen.
const measure::ReadLoop* widest_plain_loop() {
  const measure::ReadLoop* widest = nullptr;
  for (const measure::ReadLoop& loop : measure::supported_read_loops())
    for (const std::string_view name : {"read_xmm", "read_ymm", "read_zmm"})
      if (loop.name == name) widest = &loop;
  return widest;
}

}  // namespace

std::shared_ptr<ReadsInTurn> ReadsInTurn::make(Operands& operands, std::shared_ptr<GemmCase> gemm,
                                               int threads) {
  const measure::ReadLoop* const loop = widest_plain_loop();
  if (loop == nullptr) return nullptr;
  return std::shared_ptr<ReadsInTurn>(new ReadsInTurn(operands, std::move(gemm), *loop, threads));
}

// Each thread its slice of each array; what is left over of a slice is less than a granule.
void ReadsInTurn::read(int set) const {
  const Buffers at = operands_.inputs(DataType::kE2M1, set);
  const int64_t values = operands_.n() * operands_.k();
  const Bytes arrays[] = {{static_cast<const uint8_t*>(at.gate), values / 2},
                          {static_cast<const uint8_t*>(at.up), values / 2},
                          {static_cast<const uint8_t*>(at.gate_scales), values / kSfVec},
                          {static_cast<const uint8_t*>(at.up_scales), values / kSfVec}};
  core::Team(threads_).run(threads_, [&](int64_t thread, int) {
    for (const Bytes& array : arrays) {
      const int64_t slice = array.size / threads_ / measure::kReadGranule * measure::kReadGranule;
      loop_.run(reinterpret_cast<const char*>(array.data + thread * slice), slice);
    }
  });
}

Status ReadsInTurn::run() {
  const int sets = operands_.weight_sets();
  const auto begin = Clock::now();
  const int set = gemm_->next_set();
  DUALGEMM_TRY(gemm_->run());
  const auto between = Clock::now();
  read((set + sets / 2) % sets);
  const auto end = Clock::now();
  shares_.push_back(std::chrono::duration<double>(end - between) /
                    std::chrono::duration<double>(between - begin));
  return {};
}

measure::Estimate ReadsInTurn::share() const { return measure::estimate(shares_); }

}  // namespace dualgemm::bench
