// What is no prepared weights, or not those of the plan, is refused before anything is written.
#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "core/int_math.hpp"
#include "dualgemm/linear.hpp"
#include "plan/prepared_bytes.hpp"
#include "unit/api/prepared_run.hpp"

namespace dualgemm {
namespace {

using test::Bytes;
using test::Guarded;
using test::kPoison;
using test::plan_of;
using test::prepared_of;
using test::RandomCase;
using test::Rng;
using test::run_with;
using test::Values;
using test::view_of;
using test::without_weights;

// A call that is right but for its prepared weights.
class PreparedRefusal : public ::testing::Test {
 protected:
  static constexpr Problem kProblem{.m = 3, .n = 20, .k = 64, .l = 2};
  Rng rng;
  RandomCase data{kProblem, rng, Values::kRandom};
  Plan plan = plan_of(kProblem, {.strategy = StrategyId::kFused});
  Guarded<uint8_t> memory = prepared_of(plan, data.buffers());
  PreparedView view = view_of(plan, memory);

  std::string answer(const Plan& to, const PreparedView* given) {
    data.poison_d();
    Guarded<uint8_t> workspace(to.workspace_bytes);
    Buffers buffers = without_weights(data.buffers());
    buffers.prepared_view = given;
    const Status status = run(to, buffers, workspace.data(), workspace.size());
    if (!status.ok()) {
      EXPECT_TRUE(data.d.data.all_bytes(kPoison)) << "written after: " << status.message();
      EXPECT_TRUE(workspace.all_bytes(kPoison)) << "written after: " << status.message();
    }
    return status.message();
  }
  std::string answer(const std::function<void(PreparedView&)>& change) {
    PreparedView changed = view;
    change(changed);
    return answer(plan, &changed);
  }
};

TEST_F(PreparedRefusal, AnotherDescriptor) {
  const std::string rule = "; must be made for the plan's cpu_panels version 1, n 20, k 64, l 2";
  EXPECT_EQ(answer(plan, &view), "ok");
  EXPECT_EQ(answer([](PreparedView& v) { v.descriptor.n = 21; }),
            "prepared: cpu_panels version 1, n 21, k 64, l 2" + rule);
  EXPECT_EQ(answer([](PreparedView& v) { v.descriptor.k = 80; }),
            "prepared: cpu_panels version 1, n 20, k 80, l 2" + rule);
  EXPECT_EQ(answer([](PreparedView& v) { v.descriptor.l = 1; }),
            "prepared: cpu_panels version 1, n 20, k 64, l 1" + rule);
  EXPECT_EQ(answer([](PreparedView& v) { v.descriptor.format = PreparedFormat::kCpuFp8; }),
            "prepared: cpu_fp8 version 1, n 20, k 64, l 2" + rule);
  EXPECT_EQ(answer([](PreparedView& v) {
              v.descriptor.format = PreparedFormat::kSm90aF16, v.descriptor.version = 2;
            }),
            "prepared: made on cuda; must be made on the plan's device, cpu");
  EXPECT_EQ(answer([](PreparedView& v) { v.descriptor.version = 2; }),
            "prepared: cpu_panels version 2; this library knows version 1");
  EXPECT_EQ(answer([](PreparedView& v) { v.descriptor = {}; }),
            "prepared: format 0; this library knows 1 .. 11");
  EXPECT_EQ(answer([](PreparedView& v) { v.descriptor.format = static_cast<PreparedFormat>(99); }),
            "prepared: format 99; this library knows 1 .. 11");
  EXPECT_EQ(answer([](PreparedView& v) { v.descriptor.columns = 40; }),
            "prepared: cpu_panels version 1, n 20, k 64, l 2, cut from 40 rows" + rule);
  for (const auto member : {&PreparedDescriptor::expert_bytes, &PreparedDescriptor::bytes,
                            &PreparedDescriptor::alignment}) {
    EXPECT_NE(answer([&](PreparedView& v) {
                v.descriptor.*member += 256;
              }).find("must be a descriptor of prepared_descriptor() or of a header"),
              std::string::npos);
  }
}

TEST_F(PreparedRefusal, AnotherMemory) {
  EXPECT_EQ(answer([](PreparedView& v) { v.memory = nullptr; }), "prepared: null; is required");
  const int64_t needed = view.descriptor.bytes;
  for (const int64_t bytes : {needed - 1, needed / 2, int64_t{0}, int64_t{-1}, INT64_MIN}) {
    EXPECT_EQ(answer([&](PreparedView& v) { v.bytes = bytes; }),
              "prepared: " + std::to_string(bytes) + " bytes; must be at least " +
                  std::to_string(needed));
  }
  EXPECT_EQ(answer([](PreparedView& v) { v.bytes += 1000; }), "ok");
  Guarded<uint8_t> shifted(needed + 64);
  for (const int64_t shift : {1, 4, 32, 63, 64}) {
    std::copy(memory.begin(), memory.end(), shifted.begin() + shift);
    EXPECT_EQ(answer([&](PreparedView& v) { v.memory = shifted.data() + shift; }),
              shift == 64 ? "ok"
                          : "prepared: address % 64 = " + std::to_string(shift) +
                                "; must be aligned to 64 bytes");
  }
}

// Halves of the same shape, from matrices that were not: their rows would go to the wrong columns.
TEST_F(PreparedRefusal, AMatrixThatWasCutElsewhere) {
  const auto plan_of_one = [](int64_t n) {
    return *make_plan(LinearProblem{.m = 3, .n = n, .k = 64, .l = 2}, {.prepared = true});
  };
  std::map<int64_t, Guarded<uint8_t>> all;
  std::map<int64_t, PreparedView> views;
  for (const int64_t n : {32, 48, 64}) {
    const Plan to = plan_of_one(n);
    const LinearProblem linear{.m = 3, .n = n, .k = 64, .l = 2};
    const Problem dual = *dual_problem(linear);
    RandomCase one(dual, rng, Values::kRandom);
    all[n] = prepared_of(to, one.buffers());
    views[n] = view_of(to, all[n]);
    EXPECT_EQ(*read_prepared_header(all[n].data(), all[n].size()), views[n].descriptor);
    EXPECT_EQ(views[n].descriptor.columns, n);
  }
  EXPECT_EQ(views[48].descriptor.n, views[64].descriptor.n);
  EXPECT_EQ(views[48].descriptor.bytes, views[64].descriptor.bytes);
  const auto refusal = [&](int64_t n, const PreparedView& given) {
    const Plan to = plan_of_one(n);
    RandomCase one(to.problem, rng, Values::kRandom);
    one.poison_d();
    Buffers buffers = without_weights(one.buffers());
    buffers.prepared_view = &given;
    Guarded<uint8_t> workspace(to.workspace_bytes);
    const Status status = run(to, buffers, workspace.data(), workspace.size());
    EXPECT_EQ(one.d.data.all_bytes(kPoison), !status.ok());
    return status.message();
  };
  EXPECT_EQ(refusal(48, views[48]), "ok");
  EXPECT_EQ(refusal(64, views[48]),
            "prepared: cpu_panels version 1, n 32, k 64, l 2, cut from 48 rows; must be made for "
            "the plan's cpu_panels version 1, n 32, k 64, l 2, cut from 64 rows");
  EXPECT_NE(refusal(48, views[64]), "ok");
  PreparedView lie = views[48];
  lie.descriptor.columns = 64;
  EXPECT_EQ(refusal(64, lie),
            "prepared: the header of expert 0: cpu_panels version 1, n 32, k 64, l 1, cut from 48 "
            "rows; must be cpu_panels version 1, n 32, k 64, l 1, cut from 64 rows");
  // Gate and Up of a gated product are no halves, and the other way round.
  const Problem gated{.m = 3, .n = 32, .k = 64, .l = 2};
  RandomCase one(gated, rng, Values::kRandom);
  const Plan to = plan_of(gated, {.strategy = StrategyId::kFused});
  const Guarded<uint8_t> bytes = prepared_of(to, one.buffers());
  EXPECT_NE(refusal(64, view_of(to, bytes)), "ok");
  EXPECT_FALSE(plan::check_view_fits(*prepared_descriptor(to), views[64]).ok());
}

// What the memory holds is not what the descriptor says.
TEST_F(PreparedRefusal, AnotherHeader) {
  for (const int64_t part : {0, 1}) {
    const int64_t begin = view.descriptor.expert_offset(part);
    for (int64_t at = 0; at < kPreparedHeaderBytes; ++at) {
      memory[begin + at] ^= 0x41;
      const std::string message = answer(plan, &view);
      EXPECT_EQ(message.rfind("prepared: the header of expert " + std::to_string(part) + ": ", 0),
                0u)
          << message << " for byte " << at;
      EXPECT_FALSE(open_prepared(memory.data(), memory.size()).ok()) << "byte " << at;
      memory[begin + at] ^= 0x41;
    }
  }
  EXPECT_EQ(answer(plan, &view), "ok");
  memory[16] = 21;
  EXPECT_EQ(answer(plan, &view),
            "prepared: the header of expert 0: cpu_panels version 1, n 21, k 64, l 1; must be "
            "cpu_panels version 1, n 20, k 64, l 1");
  memory.fill(0);
  EXPECT_EQ(answer(plan, &view),
            "prepared: the header of expert 0: other bytes; must begin with DUALGEMM");
}

TEST_F(PreparedRefusal, OtherMemoryOfTheCall) {
  data.poison_d();
  Buffers buffers = without_weights(data.buffers());
  buffers.prepared_view = &view;
  Guarded<uint8_t> workspace(plan.workspace_bytes + view.bytes);
  const auto refusal = [&](void* at) {
    return run(plan, buffers, at, plan.workspace_bytes).message();
  };
  buffers.d = memory.data() + 512;
  EXPECT_EQ(refusal(workspace.data()),
            "d: overlaps prepared; must not share bytes with any other operand");
  buffers.d = data.d.data.data();
  std::copy(memory.begin(), memory.end(), workspace.begin());
  view.memory = workspace.data();
  EXPECT_EQ(refusal(workspace.data()),
            "workspace: overlaps prepared; must not share bytes with any other operand");
  EXPECT_EQ(refusal(workspace.data() + core::round_up(view.bytes, 64)), "ok");
}

TEST_F(PreparedRefusal, OtherPlansAndBothWays) {
  const Plan raw = *make_plan(kProblem, {.strategy = StrategyId::kFused});
  EXPECT_EQ(answer(raw, &view),
            "prepared: not null; must be null: the plan was made without PlanOptions::prepared");
  EXPECT_EQ(answer(plan, nullptr),
            "prepared: null; is required: the plan was made with PlanOptions::prepared");
  const auto handle = PreparedWeights::borrow(view);
  ASSERT_TRUE(handle.ok()) << handle.status().message();
  Buffers buffers = data.buffers();
  buffers.prepared = &*handle, buffers.prepared_view = &view;
  Guarded<uint8_t> workspace(plan.workspace_bytes);
  EXPECT_EQ(run(plan, buffers, workspace.data(), workspace.size()).message(),
            "prepared: a handle and a view; must be one of them");
  Plan edited = plan;
  edited.strategy = StrategyId::kReference;
  EXPECT_EQ(answer(edited, &view), "plan.strategy: reference; has no weights to prepare");
  edited = plan;
  edited.problem.n = INT64_MAX / 2;
  EXPECT_NE(answer(edited, &view), "ok");
}

TEST_F(PreparedRefusal, Prepare) {
  Guarded<uint8_t> out(plan.prepared_bytes + 64);
  const auto refusal = [&](void* at, int64_t bytes) {
    const std::string message = prepare(plan, data.buffers(), at, bytes).message();
    EXPECT_TRUE(out.all_bytes(kPoison)) << "written after: " << message;
    return message;
  };
  const std::string needed = std::to_string(plan.prepared_bytes);
  EXPECT_EQ(refusal(out.data(), plan.prepared_bytes - 1),
            "prepared: " + std::to_string(plan.prepared_bytes - 1) + " bytes; must be at least " +
                needed);
  EXPECT_EQ(refusal(nullptr, plan.prepared_bytes), "prepared: null; is required");
  EXPECT_EQ(refusal(out.data() + 8, plan.prepared_bytes),
            "prepared: address % 64 = 8; must be aligned to 64 bytes");
  const Plan oracle = *make_plan(kProblem, {.strategy = StrategyId::kReference});
  EXPECT_EQ(prepare(oracle, data.buffers(), out.data(), out.size()).message(),
            "plan.strategy: reference; has no weights to prepare");
  EXPECT_EQ(prepared_descriptor(oracle).status().message(),
            "plan.strategy: reference; has no weights to prepare");
  Buffers broken = data.buffers();
  broken.up_scales = nullptr;
  EXPECT_EQ(prepare(plan, broken, out.data(), out.size()).message(),
            "up_scales: null; is required");
  broken = data.buffers();
  broken.up = out.data() + 64;
  EXPECT_EQ(prepare(plan, broken, out.data(), out.size()).message(),
            "prepared: overlaps up; must not share bytes with any other operand");
  EXPECT_TRUE(out.all_bytes(kPoison));
}

TEST_F(PreparedRefusal, CutBytes) {
  const int64_t part = view.descriptor.expert_bytes;
  const auto opened = [&](int64_t bytes) {
    return open_prepared(memory.data(), bytes).status().message();
  };
  for (const int64_t bytes : {int64_t{INT64_MIN}, int64_t{-1}, int64_t{0}, int64_t{255}}) {
    EXPECT_EQ(opened(bytes), "prepared: " + std::to_string(bytes) + " bytes; must be at least 256");
  }
  for (const int64_t bytes : {int64_t{256}, part - 1, part + 1, 2 * part - 256}) {
    EXPECT_EQ(opened(bytes), "prepared: " + std::to_string(bytes) +
                                 " bytes; must be whole parts of " + std::to_string(part) +
                                 " bytes");
  }
  EXPECT_EQ(open_prepared(memory.data(), part)->descriptor.l, 1);  // run() knows how many it needs
  EXPECT_EQ(open_prepared(nullptr, part).status().message(), "prepared: null; is required");
  EXPECT_EQ(read_prepared_header(memory.data(), 1000 * part)->l, 1000);
  Bytes unaligned(300);
  std::copy_n(memory.begin(), 256, unaligned.begin() + 1);
  EXPECT_EQ(*read_prepared_header(unaligned.data() + 1, memory.size()), view.descriptor);
  for (const int64_t wrong :
       {int64_t{0}, int64_t{-256}, int64_t{256}, INT64_MIN, INT64_MAX - 255}) {
    std::memcpy(unaligned.data() + 1 + 32, &wrong, 8);
    EXPECT_FALSE(read_prepared_header(unaligned.data() + 1, memory.size()).ok()) << wrong;
  }
}

TEST_F(PreparedRefusal, Borrow) {
  auto handle = PreparedWeights::borrow(view);
  ASSERT_TRUE(handle.ok()) << handle.status().message();
  EXPECT_EQ(handle->view(), view);
  EXPECT_EQ(handle->size_bytes(), plan.prepared_bytes);
  EXPECT_EQ(run_with(plan, data, *handle), run_with(plan, data, view));
  memory[9] ^= 1;  // other people's memory is looked at on every call
  Buffers buffers = without_weights(data.buffers());
  buffers.prepared = &*handle;
  Guarded<uint8_t> workspace(plan.workspace_bytes);
  EXPECT_FALSE(run(plan, buffers, workspace.data(), workspace.size()).ok());
  PreparedView wrong = view;
  wrong.bytes -= 1;
  EXPECT_EQ(PreparedWeights::borrow(wrong).status().argument(), "prepared");
  EXPECT_EQ(PreparedWeights::borrow({}).status().message(),
            "prepared: format 0; this library knows 1 .. 11");
  EXPECT_EQ(PreparedWeights().view(), PreparedView());
}

}  // namespace
}  // namespace dualgemm
