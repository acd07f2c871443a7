// Random numbers for tests: one seed for each test, printed when the test fails.
//
//   Rng rng;  // seed = global seed xor hash(name of the running test)
//   const int64_t m = rng.integer(1, 70);
//
// DUALGEMM_TEST_SEED=<number> in the environment replaces the global seed. Not <random>: its
// distributions differ between standard libraries, and a failure has to repeat everywhere.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>

namespace dualgemm::test {

inline uint64_t global_seed() {
  const char* text = std::getenv("DUALGEMM_TEST_SEED");
  return text == nullptr ? 20260119u : std::strtoull(text, nullptr, 0);
}

constexpr uint64_t fnv1a(std::string_view text) noexcept {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

inline std::string current_test_name() {
  const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
  return info == nullptr ? std::string()
                         : std::string(info->test_suite_name()) + "." + info->name();
}

// xoshiro256** (Blackman, Vigna), seeded by splitmix64.
class Rng {
 public:
  Rng() : Rng(global_seed() ^ fnv1a(current_test_name())) {}
  explicit Rng(uint64_t seed) {
    for (uint64_t& word : state_) {
      seed += 0x9E3779B97F4A7C15u;
      uint64_t mixed = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9u;
      mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EBu;
      word = mixed ^ mixed >> 31;
    }
  }

  uint64_t bits() noexcept {
    const uint64_t result = rotate(state_[1] * 5, 7) * 9, shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = rotate(state_[3], 45);
    return result;
  }
  uint8_t byte() noexcept { return static_cast<uint8_t>(bits() >> 56); }

  // low .. high, both included. The bias of the remainder is below 2^-32 for ranges a test uses.
  int64_t integer(int64_t low, int64_t high) noexcept {
    return low + static_cast<int64_t>((bits() >> 1) % static_cast<uint64_t>(high - low + 1));
  }
  template <class Container>
  const auto& pick(const Container& from) noexcept {
    return from[static_cast<size_t>(integer(0, static_cast<int64_t>(std::size(from)) - 1))];
  }
  bool chance(double probability) noexcept { return uniform() < probability; }

  double uniform() noexcept { return static_cast<double>(bits() >> 11) * 0x1p-53; }  // [0, 1)
  float uniform(float low, float high) noexcept {
    return low + (high - low) * static_cast<float>(uniform());
  }
  // Mean 0, variance 1 (Box, Muller).
  float normal() noexcept {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return static_cast<float>(radius * std::cos(6.283185307179586 * uniform()));
  }
  // Any finite float: all exponents, subnormals included, equally likely.
  float any_finite() noexcept {
    for (;;) {
      const float value = std::bit_cast<float>(static_cast<uint32_t>(bits() >> 32));
      if (std::isfinite(value)) return value;
    }
  }

 private:
  static constexpr uint64_t rotate(uint64_t x, int by) noexcept { return x << by | x >> (64 - by); }
  uint64_t state_[4];
};

// Says how to repeat a failed test. Registers itself in every executable that includes this file.
class SeedReporter : public ::testing::EmptyTestEventListener {
 public:
  void OnTestEnd(const ::testing::TestInfo& info) override {
    if (!info.result()->Failed()) return;
    std::fprintf(
        stderr, "repeat with: DUALGEMM_TEST_SEED=%llu <this executable> --gtest_filter=%s.%s\n",
        static_cast<unsigned long long>(global_seed()), info.test_suite_name(), info.name());
  }
  static bool append() {
    ::testing::UnitTest::GetInstance()->listeners().Append(new SeedReporter);
    return true;
  }
};
inline const bool kSeedReporterAppended = SeedReporter::append();

}  // namespace dualgemm::test
