// Every strategy, on every instruction set of this machine, against the oracle's bound and against
// the others. Operands have poisoned padding; D, workspace and operands lie between canaries.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/problem.hpp"
#include "dualgemm/dualgemm.hpp"
#include "support/bound.hpp"
#include "support/every_activation.hpp"
#include "support/inputs.hpp"
#include "support/sanitizers.hpp"

namespace dualgemm {
namespace {

using test::Guarded;
using test::RandomCase;
using test::Rng;
using test::Values;

std::string describe(const Plan& plan) {
  const Problem& p = plan.problem;
  return plan.config() + ": m " + std::to_string(p.m) + " n " + std::to_string(p.n) + " k " +
         std::to_string(p.k) + " l " + std::to_string(p.l) + " a " + name_of(p.a.type) + " d " +
         name_of(p.d.type) + " " + name_of(p.act.kind) + " " + name_of(p.grouping);
}

// Runs with a poisoned workspace of exactly the size asked for; D's bytes and scales afterwards.
std::vector<uint8_t> run_plan(const Plan& plan, RandomCase& data, const PreparedWeights* prepared) {
  data.poison_d();
  Guarded<uint8_t> workspace(plan.workspace_bytes);
  Buffers buffers = data.buffers();
  if (prepared != nullptr) {
    buffers.prepared = prepared;
    buffers = test::without_weights(buffers);
  }
  RunInfo info;
  const Status status = run(plan, buffers, workspace.data(), workspace.size(), &info);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(info.isa, plan.isa);
  EXPECT_TRUE(workspace.intact());
  std::vector<uint8_t> bytes(data.d.data.begin(), data.d.data.end());
  bytes.insert(bytes.end(), data.d.scales.begin(), data.d.scales.end());
  return bytes;
}

// Bytes of D that belong to no element must still be poison: they must agree with what the oracle,
// whose own test proves it, leaves.
void expect_same_padding(const std::vector<uint8_t>& got, const std::vector<uint8_t>& oracle,
                         const std::vector<uint8_t>& oracle_on_zeros) {
  for (size_t i = 0; i < got.size(); ++i) {
    const bool untouched = oracle[i] == test::kPoison && oracle_on_zeros[i] == test::kPoison;
    ASSERT_TRUE(!untouched || got[i] == test::kPoison) << "byte " << i;
  }
}

Problem random_problem(Rng& rng) {
  Problem p;
  p.m = rng.chance(0.5) ? rng.integer(1, 8) : rng.integer(1, 70);
  p.k = 16 * (rng.chance(0.7) ? rng.integer(1, 12) : rng.integer(12, 80));
  p.l = rng.chance(0.6) ? 1 : rng.integer(2, 4);
  p.a.type = rng.chance(0.6) ? DataType::kE2M1 : static_cast<DataType>(rng.integer(1, 3));
  p.d.type = static_cast<DataType>(rng.integer(0, 3));
  p.n = p.d.type == DataType::kE2M1 ? 16 * rng.integer(1, 5) : rng.integer(1, 70);
  p.act = test::any_activation(rng);
  p.grouping = p.l == 1 ? Grouping::kNone : static_cast<Grouping>(rng.integer(0, 2));
  p.batch_invariant = rng.chance(0.2);
  p.bias = test::any_bias(rng);
  for (Matrix* matrix : {&p.a, &p.gate, &p.up, &p.d}) {
    if (rng.chance(0.4)) matrix->scale_layout = ScaleLayout::kSwizzled128x4;
  }
  if (rng.chance(0.3)) {
    p.a.ld = p.k + 2 * rng.integer(0, 20);
    p.gate.ld = p.k + 2 * rng.integer(0, 20);
    p.d.ld = p.n + 2 * rng.integer(0, 20);
    if (p.grouping != Grouping::kContiguous) p.d.batch_stride = p.m * p.d.ld + 2;
    p.up.batch_stride = p.n * p.k + 2 * rng.integer(0, 20);
  }
  return p;
}

RandomCase random_operands(const Problem& p, Rng& rng) {
  RandomCase data(p, rng, rng.chance(0.8) ? Values::kRandom : Values::kChallenge);
  data.d_global_scale = 0.05f;
  const float unit =
      (p.a.type == DataType::kE2M1 ? 0.3f : 0.6f) / std::sqrt(static_cast<float>(p.k));
  data.alpha_gate *= unit;
  data.alpha_up *= unit;
  if (rng.chance(0.4)) {
    for (int64_t i = 0; i < p.l * p.m; ++i) data.a_row_scale.push_back(rng.uniform(0.5f, 2.0f));
  }
  if (rng.chance(0.4)) {
    for (int64_t i = 0; i < p.l; ++i) data.alpha_gate_per_batch.push_back(rng.uniform(0.1f, 1.0f));
    for (int64_t i = 0; i < p.l; ++i) data.alpha_up_per_batch.push_back(-rng.uniform(0.1f, 1.0f));
  }
  return data;
}

// How often each strategy really ran on each instruction set, so that a test of refusals only
// shows.
using Runs = std::map<std::pair<StrategyId, Isa>, int>;

void expect_all_ran(const Runs& runs, int least) {
  for (const StrategyId id : all_strategies()) {
    if (id == StrategyId::kFp8 || id == StrategyId::kReference) continue;
    for (const Isa isa : device_caps().isas) {
      const auto found = runs.find({id, isa});
      EXPECT_GE(found == runs.end() ? 0 : found->second, least)
          << name_of(id) << " on " << name_of(isa);
    }
  }
}

void try_strategy(StrategyId id, Isa isa, bool use_prepared, int threads, RandomCase& data,
                  const std::vector<uint8_t>& oracle, const std::vector<uint8_t>& oracle_on_zeros,
                  std::vector<uint8_t>& canonical, Runs& runs) {
  const auto plan = make_plan(
      data.problem, {.strategy = id, .isa = isa, .threads = threads, .prepared = use_prepared});
  if (!plan) {  // a legal answer, if it says why
    EXPECT_EQ(plan.status().code(), StatusCode::kUnsupported) << plan.status().message();
    return;
  }
  SCOPED_TRACE(describe(*plan));
  PreparedWeights prepared;
  if (plan->prepared) {  // asked for, or the strategy insists
    auto made = prepare(*plan, data.buffers());
    ASSERT_TRUE(made.ok()) << made.status().message();
    prepared = *std::move(made);
  }
  const auto got = run_plan(*plan, data, plan->prepared ? &prepared : nullptr);
  ++runs[{id, plan->isa}];
  EXPECT_TRUE(test::within_bound(data.problem, data.buffers(), plan->isa));
  expect_same_padding(got, oracle, oracle_on_zeros);
  if (id == StrategyId::kReference || !core::has_shared_order(data.problem, plan->isa)) return;
  if (canonical.empty()) canonical = got;
  EXPECT_TRUE(got == canonical) << "differs in its bits from another strategy or instruction set";
}

void try_all(RandomCase& data, Rng& rng, Runs& runs) {
  const Plan oracle_plan = *make_plan(data.problem, {.strategy = StrategyId::kReference});
  const auto oracle = run_plan(oracle_plan, data, nullptr);
  const float alpha = data.alpha_gate;
  std::vector<float> alphas;
  std::swap(alphas, data.alpha_gate_per_batch);
  data.alpha_gate = 0.0f;
  const BiasType bias = std::exchange(data.problem.bias, BiasType::kNone);
  const auto oracle_on_zeros =
      run_plan(*make_plan(data.problem, {.strategy = StrategyId::kReference}), data, nullptr);
  data.problem.bias = bias;
  data.alpha_gate = alpha;
  std::swap(alphas, data.alpha_gate_per_batch);

  std::vector<uint8_t> canonical;
  for (const Isa isa : device_caps().isas) {
    for (const StrategyId id : all_strategies()) {
      if (id == StrategyId::kFp8) continue;  // not exact, tested apart
      for (const bool prepared : {false, true}) {
        try_strategy(id, isa, prepared, static_cast<int>(rng.integer(1, 3)), data, oracle,
                     oracle_on_zeros, canonical, runs);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(Strategies, AllAgreeOnRandomProblems) {
  Rng rng;
  Runs runs;
  const int rounds = test::kSanitized ? 6 : 60;
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    const Problem problem = random_problem(rng);
    ASSERT_TRUE(validate(problem).ok()) << validate(problem).message();
    RandomCase data = random_operands(problem, rng);
    SCOPED_TRACE("round " + std::to_string(round));
    try_all(data, rng, runs);
  }
  expect_all_ran(runs, test::kSanitized ? 1 : 20);
}

// m 1 .. 70 meets every regime and every remainder of the row tiles.
TEST(Strategies, AllAgreeForEveryRowCount) {
  Rng rng;
  Runs runs;
  const int64_t step = test::kSanitized ? 5 : 1;  // 5: every remainder, still
  for (int64_t m = 1; m <= 70 && !HasFailure(); m += step) {
    RandomCase data = random_operands({.m = m, .n = 34, .k = 80}, rng);
    SCOPED_TRACE("m " + std::to_string(m));
    try_all(data, rng, runs);
  }
  expect_all_ran(runs, test::kSanitized ? 3 : 20);
}

// Exact operands and an identity epilogue: no rounding anywhere, so every strategy and every
// instruction set, AMX too, must equal the oracle bit for bit.
TEST(Strategies, ExactArithmeticIsExact) {
  Rng rng;
  for (const int64_t m : {1, 3, 17, 40}) {
    Problem p{.m = m, .n = 40, .k = 512, .act = {.kind = ActivationKind::kIdentity}};
    p.d.type = DataType::kF32;
    RandomCase data(p, rng, Values::kExact);
    data.alpha_gate = 1.0f;
    data.alpha_up = 0.0625f;
    const Plan oracle = *make_plan(p, {.strategy = StrategyId::kReference});
    const auto want = run_plan(oracle, data, nullptr);
    for (const Isa isa : device_caps().isas) {
      for (const StrategyId id : all_strategies()) {
        if (id == StrategyId::kFp8) continue;
        const auto plan = make_plan(p, {.strategy = id, .isa = isa});
        if (!plan || plan->prepared) continue;
        EXPECT_TRUE(run_plan(*plan, data, nullptr) == want) << describe(*plan);
      }
    }
  }
}

// The promise of batch_invariant: a row's bits depend on neither m nor the instruction set.
TEST(Strategies, BatchInvariantRows) {
  Rng rng;
  Problem p{.m = 64, .n = 48, .k = 256, .batch_invariant = true};
  RandomCase data = random_operands(p, rng);
  data.a_row_scale.clear();
  const auto whole = run_plan(*make_plan(p), data, nullptr);
  for (const int64_t m : {1, 2, 4, 5, 31, 33}) {
    Problem part = p;
    part.m = m;
    for (const Isa isa : device_caps().isas) {
      const auto plan = make_plan(part, {.isa = isa});
      if (!plan) continue;
      data.poison_d();
      Guarded<uint8_t> workspace(plan->workspace_bytes);
      ASSERT_TRUE(run(*plan, data.buffers(), workspace.data(), workspace.size()).ok());
      EXPECT_EQ(std::memcmp(data.d.data.data(), whole.data(), static_cast<size_t>(m * 48 * 2)), 0)
          << describe(*plan);
    }
  }
}

// Each says for itself what it does, how exact it is and what prepare() is to it.
TEST(Strategies, EveryOneIsExplained) {
  for (const StrategyId id : all_strategies(DeviceKind::kCpu)) {
    const auto plan = make_plan(Problem{.m = 3, .n = 32, .k = 64}, {.strategy = id});
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    EXPECT_GT(plan->how_it_works.size(), 20u) << name_of(id);
    EXPECT_GT(plan->numerics.size(), 20u) << name_of(id);
    EXPECT_FALSE(plan->kernel.empty()) << name_of(id);
    EXPECT_EQ(plan->preparation == Preparation::kNone, plan->prepared_bytes == 0) << name_of(id);
    EXPECT_EQ(plan->preparation == Preparation::kRequired, plan->prepared) << name_of(id);
    const std::string text = plan->explain();
    EXPECT_NE(text.find(std::string("strategy   ") + name_of(id) + ": " + plan->how_it_works),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("numerics   " + plan->numerics), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace dualgemm
