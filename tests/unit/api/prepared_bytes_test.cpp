// Prepared weights as bytes in memory of the caller's: which bytes they are, that nothing but the
// weights' values decides them, that they can be moved, saved, cut and put together.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "core/e2m1.hpp"
#include "core/e4m3.hpp"
#include "core/int_math.hpp"
#include "support/sanitizers.hpp"
#include "unit/api/prepared_run.hpp"

namespace dualgemm {
namespace {

using test::Bytes;
using test::bytes_of;
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

// The strategies of the CPU that prepare something.
std::vector<StrategyId> strategies() {
  std::vector<StrategyId> ids;
  for (const StrategyId id : all_strategies(DeviceKind::kCpu)) {
    const auto plan = make_plan(Problem{.m = 1, .n = 1, .k = 16}, {.strategy = id});
    if (plan && plan->preparation != Preparation::kNone) ids.push_back(id);
  }
  return ids;
}

Problem problem_with_weights(Rng& rng) {
  Problem p;
  p.m = rng.integer(1, 40);
  p.n = rng.integer(1, 70);
  p.k = 16 * rng.integer(1, 20);
  p.l = rng.chance(0.4) ? 1 : rng.integer(2, 4);
  p.a.type = rng.chance(0.6) ? DataType::kE2M1 : static_cast<DataType>(rng.integer(1, 3));
  p.grouping = p.l == 1 ? Grouping::kNone : static_cast<Grouping>(rng.integer(0, 2));
  for (Matrix* matrix : {&p.gate, &p.up}) {
    if (rng.chance(0.4)) matrix->scale_layout = ScaleLayout::kSwizzled128x4;
    if (rng.chance(0.3)) matrix->ld = p.k + 2 * rng.integer(0, 20);
  }
  return p;
}

// Every instruction set, every strategy, any number of threads and whatever was in the memory: one
// content for a format, and one result for a handle, a view, and a view of a copy elsewhere.
TEST(PreparedBytes, OneContentForAFormatAndOneResult) {
  Rng rng;
  for (int round = 0; round < (test::kSanitized ? 4 : 10) && !HasFailure(); ++round) {
    const Problem problem = problem_with_weights(rng);
    ASSERT_TRUE(validate(problem).ok()) << validate(problem).message();
    RandomCase data(problem, rng, Values::kRandom);
    std::map<PreparedFormat, Bytes> contents;
    for (const Isa isa : device_caps().isas) {
      for (const StrategyId id : strategies()) {
        const auto threads = static_cast<int>(rng.integer(1, 4));
        const Plan plan = plan_of(problem, {.strategy = id, .isa = isa, .threads = threads});
        SCOPED_TRACE(plan.config() + ", n " + std::to_string(problem.n) + ", k " +
                     std::to_string(problem.k) + ", l " + std::to_string(problem.l));
        Guarded<uint8_t> memory =
            prepared_of(plan, data.buffers(), static_cast<uint8_t>(rng.integer(0, 255)));
        const PreparedView view = view_of(plan, memory);
        ASSERT_EQ(view.descriptor.bytes, plan.prepared_bytes);
        const Bytes content = bytes_of(memory);
        const auto [known, first] = contents.try_emplace(view.descriptor.format, content);
        ASSERT_EQ(content, known->second) << "not the bytes of another instruction set, strategy "
                                             "or number of threads";
        const auto handle = prepare(plan, data.buffers());
        ASSERT_TRUE(handle.ok()) << handle.status().message();
        ASSERT_EQ(handle->size_bytes(), plan.prepared_bytes);
        ASSERT_EQ(handle->view().descriptor, view.descriptor);
        ASSERT_EQ(std::memcmp(handle->view().memory, content.data(), content.size()), 0);

        const Bytes expected = run_with(plan, data, *handle);
        ASSERT_EQ(run_with(plan, data, view), expected);
        ASSERT_EQ(bytes_of(memory), content) << "run() has written to prepared weights";
        Guarded<uint8_t> copy(memory.size() + 64);
        std::copy(content.begin(), content.end(), copy.begin() + 64);
        memory.fill(kPoison);
        const auto opened = open_prepared(copy.data() + 64, memory.size());
        ASSERT_TRUE(opened.ok()) << opened.status().message();
        ASSERT_EQ(opened->descriptor, view.descriptor);
        ASSERT_EQ(run_with(plan, data, *opened), expected);
      }
    }
    EXPECT_EQ(contents.size(), 2u);  // panels, and fp8's
  }
}

void copy_weight(const core::ResolvedMatrix& from_matrix, const test::Operand& from,
                 const core::ResolvedMatrix& to_matrix, test::Operand& to, int64_t batches) {
  const ScaleMap from_map = from_matrix.scale_map(), to_map = to_matrix.scale_map();
  for (int64_t batch = 0; batch < batches; ++batch) {
    for (int64_t row = 0; row < from_matrix.rows; ++row) {
      const auto at = [&](const core::ResolvedMatrix& matrix) {
        return (batch * matrix.batch_stride + row * matrix.ld) / 2;
      };
      std::copy_n(from.data.data() + at(from_matrix), from_matrix.cols / 2,
                  to.data.data() + at(to_matrix));
      for (int64_t block = 0; block < from_matrix.sf_cols; ++block) {
        to.scales[batch * to_matrix.scale_batch_stride + to_map(row, block)] =
            from.scales[batch * from_matrix.scale_batch_stride + from_map(row, block)];
      }
    }
  }
}

// The same values, however they lay: strides, scale layouts, poison between them.
TEST(PreparedBytes, TheFormerLayoutLeavesNoTrace) {
  Rng rng;
  for (const int64_t n : {1, 16, 40, 130}) {
    Problem tight{.m = 2, .n = n, .k = 208, .l = 3}, loose = tight;
    loose.gate.ld = tight.k + 6;
    loose.gate.scale_ld = tight.k / 16 + 3;
    loose.up.batch_stride = tight.n * tight.k + 10;
    loose.up.scale_layout = ScaleLayout::kSwizzled128x4;
    RandomCase data(tight, rng, Values::kRandom), other(loose, rng, Values::kRandom);
    copy_weight(data.resolved.gate, data.gate, other.resolved.gate, other.gate, tight.l);
    copy_weight(data.resolved.up, data.up, other.resolved.up, other.up, tight.l);
    for (const Isa isa : device_caps().isas) {
      for (const StrategyId id : {StrategyId::kFused, StrategyId::kFp8}) {
        const PlanOptions options{.strategy = id, .isa = isa};
        EXPECT_EQ(bytes_of(prepared_of(plan_of(tight, options), data.buffers())),
                  bytes_of(prepared_of(plan_of(loose, options), other.buffers())))
            << name_of(id) << " on " << name_of(isa) << ", n " << n;
      }
    }
  }
}

void put(Bytes& bytes, size_t at, int64_t value, size_t count) {
  for (size_t i = 0; i < count; ++i) bytes[at + i] = static_cast<uint8_t>(value >> (8 * i));
}

Bytes header_of(PreparedFormat format, int64_t n, int64_t k, int64_t expert_bytes) {
  Bytes header(256, 0);
  std::memcpy(header.data(), "DUALGEMM", 8);
  put(header, 8, static_cast<int64_t>(format), 4);
  put(header, 12, 1, 4);
  put(header, 16, n, 8);
  put(header, 24, k, 8);
  put(header, 32, expert_bytes, 8);
  return header;
}

// One tight matrix with linear scales, as docs/formats.md draws cpu_panels.
void append_panels(const uint8_t* codes, const uint8_t* scales, int64_t n, int64_t k, Bytes& out) {
  const auto at = [&](int64_t column) { return std::min(column, n - 1); };  // the last one repeats
  for (int64_t panel = 0; panel < n; panel += 16) {
    for (int64_t group = 0; group < core::ceil_div(k, 64); ++group) {
      for (int64_t block = 4 * group; block < 4 * group + 4; ++block) {
        for (int64_t byte = 0; byte < 128; ++byte) {  // two rows of 16 dwords
          const int64_t column = at(panel + byte % 64 / 4);
          const int64_t from = block * 8 + byte / 64 * 4 + byte % 4;
          out.push_back(from < k / 2 ? codes[column * (k / 2) + from] : 0);
        }
      }
      for (int64_t byte = 0; byte < 64; ++byte) {
        const int64_t block = 4 * group + byte % 4;
        out.push_back(block < k / 16 ? scales[at(panel + byte / 4) * (k / 16) + block] : 0);
      }
    }
  }
}

// As docs/formats.md draws cpu_fp8.
void append_fp8(const uint8_t* codes, const uint8_t* scales, int64_t n, int64_t k, Bytes& out) {
  Bytes values, factors;
  for (int64_t panel = 0; panel < n; panel += 16) {
    Bytes of_panel(static_cast<size_t>(16 * k));
    for (int64_t column = panel; column < panel + 16; ++column) {
      std::vector<float> row(static_cast<size_t>(k), 0.0f);
      for (int64_t i = 0; column < n && i < k; ++i) {
        const int code = codes[(column * k + i) / 2] >> (i % 2 * 4) & 15;
        row[static_cast<size_t>(i)] = core::decode_e2m1(static_cast<uint8_t>(code)) *
                                      core::decode_e4m3(scales[column * (k / 16) + i / 16]);
      }
      float largest = 0.0f;
      for (const float value : row) largest = std::max(largest, std::abs(value));
      const float scale = largest / 448.0f;
      for (int64_t i = 0; i < k; ++i) {
        of_panel[static_cast<size_t>(i * 16 + column - panel)] =
            core::encode_e4m3(row[static_cast<size_t>(i)] / (scale == 0.0f ? 1.0f : scale));
      }
      const auto* const bytes = reinterpret_cast<const uint8_t*>(&scale);
      factors.insert(factors.end(), bytes, bytes + 4);
    }
    values.insert(values.end(), of_panel.begin(), of_panel.end());
  }
  out.insert(out.end(), values.begin(), values.end());
  out.insert(out.end(), factors.begin(), factors.end());
}

// Bytes that another machine saved are these: every one of them, by a program that shares no code
// with the library's packing.
TEST(PreparedBytes, AreThoseOfTheDocument) {
  Rng rng;
  for (const auto& [n, k, l] : {std::array<int64_t, 3>{1, 16, 1}, {16, 64, 2}, {37, 208, 3}}) {
    const Problem p{.m = 1, .n = n, .k = k, .l = l};
    RandomCase data(p, rng, Values::kRandom);
    for (const bool fp8 : {false, true}) {
      const StrategyId id = fp8 ? StrategyId::kFp8 : StrategyId::kFused;
      const int64_t columns = core::round_up(n, 16);
      const int64_t operand = fp8 ? columns * (k + 4) : columns * core::round_up(k, 64) * 9 / 16;
      const int64_t expert_bytes = core::round_up(256 + 2 * operand, 256);
      Bytes expected;
      for (int64_t e = 0; e < l; ++e) {
        const Bytes header = header_of(fp8 ? PreparedFormat::kCpuFp8 : PreparedFormat::kCpuPanels,
                                       n, k, expert_bytes);
        expected.insert(expected.end(), header.begin(), header.end());
        for (const test::Operand* weight : {&data.gate, &data.up}) {
          (fp8 ? append_fp8 : append_panels)(weight->data.data() + e * n * k / 2,
                                             weight->scales.data() + e * n * k / 16, n, k,
                                             expected);
        }
        expected.resize(static_cast<size_t>((e + 1) * expert_bytes), 0);
      }
      for (const Isa isa : device_caps().isas) {
        const Plan plan = plan_of(p, {.strategy = id, .isa = isa});
        EXPECT_EQ(bytes_of(prepared_of(plan, data.buffers())), expected) << plan.config();
      }
      const PreparedDescriptor d = *prepared_descriptor(plan_of(p, {.strategy = id}));
      EXPECT_EQ(d.expert_bytes, expert_bytes);
      EXPECT_EQ(d.expert_offset(l - 1) + expert_bytes, d.bytes);
      EXPECT_EQ(d.alignment, 64);
      EXPECT_EQ(d.version, 1);
    }
  }
}

// A plan for few rows and one for many, by another strategy: one file.
TEST(PreparedBytes, AreSavedAndMapped) {
  Rng rng;
  const Problem p{.m = 3, .n = 50, .k = 336, .l = 2};
  RandomCase data(p, rng, Values::kRandom);
  const Plan plan = plan_of(p);
  char path[] = "/tmp/prepared_bytes_XXXXXX";
  const int file = mkstemp(path);
  ASSERT_GE(file, 0);
  const auto bytes = static_cast<size_t>(plan.prepared_bytes);
  {
    const Guarded<uint8_t> memory = prepared_of(plan, data.buffers());
    ASSERT_EQ(write(file, memory.data(), bytes), static_cast<ssize_t>(bytes));
  }
  void* const mapped = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const auto view = open_prepared(mapped, plan.prepared_bytes);
  ASSERT_TRUE(view.ok()) << view.status().message();
  for (const int64_t m : {3, 64}) {
    Problem other = p;
    other.m = m;
    RandomCase rows(other, rng, Values::kRandom);
    copy_weight(data.resolved.gate, data.gate, rows.resolved.gate, rows.gate, p.l);
    copy_weight(data.resolved.up, data.up, rows.resolved.up, rows.up, p.l);
    for (const StrategyId id : {StrategyId::kFused, StrategyId::kCached}) {
      const Plan again = plan_of(other, {.strategy = id});
      const auto handle = prepare(again, rows.buffers());
      ASSERT_TRUE(handle.ok()) << handle.status().message();
      EXPECT_EQ(run_with(again, rows, *view), run_with(again, rows, *handle)) << again.config();
    }
    Buffers buffers = without_weights(rows.buffers());  // in one call, too
    buffers.prepared_view = &*view;
    const Status status = run(other, buffers);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  EXPECT_EQ(munmap(mapped, bytes), 0);
  EXPECT_EQ(close(file), 0);
  EXPECT_EQ(unlink(path), 0);
}

Buffers of_expert(const RandomCase& data, Buffers buffers, int64_t e) {
  const core::ResolvedProblem& p = data.resolved;
  buffers.a = static_cast<const uint8_t*>(buffers.a) + e * p.a.batch_stride / 2;
  buffers.a_scales += e * p.a.scale_batch_stride;
  buffers.gate = static_cast<const uint8_t*>(buffers.gate) + e * p.gate.batch_stride / 2;
  buffers.gate_scales += e * p.gate.scale_batch_stride;
  buffers.up = static_cast<const uint8_t*>(buffers.up) + e * p.up.batch_stride / 2;
  buffers.up_scales += e * p.up.scale_batch_stride;
  return buffers;
}

// A part is what a plan for one expert makes; parts make up the whole, in any order.
TEST(PreparedBytes, ExpertsAreParts) {
  Rng rng;
  constexpr int64_t kExperts = 4;
  const Problem all{.m = 5, .n = 33, .k = 96, .l = kExperts, .d = {.type = DataType::kF32}};
  Problem one = all;
  one.l = 1;
  for (const StrategyId id : strategies()) {
    SCOPED_TRACE(name_of(id));
    RandomCase data(all, rng, Values::kRandom);
    const Plan plan = plan_of(all, {.strategy = id}), plan_of_one = plan_of(one, {.strategy = id});
    const Guarded<uint8_t> memory = prepared_of(plan, data.buffers());
    const PreparedView view = view_of(plan, memory);
    const Bytes d = run_with(plan, data, view);
    const auto d_bytes = static_cast<std::ptrdiff_t>(all.m * all.n * 4);
    Guarded<uint8_t> assembled(memory.size());
    for (int64_t e = 0; e < kExperts; ++e) {
      const auto part = prepared_experts(view, e);
      ASSERT_TRUE(part.ok()) << part.status().message();
      EXPECT_EQ(part->memory, memory.data() + view.descriptor.expert_offset(e));
      EXPECT_EQ(part->descriptor, *prepared_descriptor(plan_of_one));
      const Buffers alone = of_expert(data, data.buffers(), e);
      const Guarded<uint8_t> made_alone = prepared_of(plan_of_one, alone);
      ASSERT_EQ(made_alone.size(), part->bytes);
      EXPECT_EQ(std::memcmp(part->memory, made_alone.data(), static_cast<size_t>(part->bytes)), 0);
      RandomCase copy(one, rng, Values::kRandom);
      const Bytes d_of_one = run_with(plan_of_one, copy, [&](Buffers& buffers) {
        buffers.a = alone.a, buffers.a_scales = alone.a_scales;
        buffers.alpha_gate = alone.alpha_gate, buffers.alpha_up = alone.alpha_up;
        buffers.prepared_view = &*part;
      });
      EXPECT_TRUE(std::equal(d_of_one.begin(), d_of_one.begin() + d_bytes, d.begin() + e * d_bytes))
          << "expert " << e;
      // In place, expert by expert, in another order.
      const int64_t place = (e + 1) % kExperts;
      const Status status = prepare(plan_of_one, of_expert(data, data.buffers(), place),
                                    assembled.data() + view.descriptor.expert_offset(place),
                                    view.descriptor.expert_bytes);
      EXPECT_TRUE(status.ok()) << status.message();
    }
    EXPECT_EQ(bytes_of(assembled), bytes_of(memory));
    const auto last_three = prepared_experts(view, 1, 3);
    ASSERT_TRUE(last_three.ok()) << last_three.status().message();
    EXPECT_EQ(last_three->descriptor.l, 3);
    EXPECT_EQ(prepared_experts(*last_three, 2)->memory, prepared_experts(view, 3)->memory);
    EXPECT_EQ(*open_prepared(last_three->memory, last_three->bytes), *last_three);
    EXPECT_EQ(prepared_experts(view, 4).status().message(), "first: 4; must be 0 .. 3");
    EXPECT_EQ(prepared_experts(view, -1).status().message(), "first: -1; must be 0 .. 3");
    EXPECT_EQ(prepared_experts(view, 2, 3).status().message(), "count: 3; must be 1 .. 2");
    EXPECT_EQ(prepared_experts(view, 2, 0).status().message(), "count: 0; must be 1 .. 2");
    EXPECT_EQ(prepared_experts(view, 1, INT64_MAX).status().argument(), "count");
  }
}

}  // namespace
}  // namespace dualgemm
