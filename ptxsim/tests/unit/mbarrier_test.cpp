// mbarriers: random sequences against a model written from the manual, and statements that are
// refused.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "run_text.hpp"

namespace ptxsim {
namespace {

using test::decode_error;
using test::run_text;
using test::with_header;

// "Phase Completion of the mbarrier object" (PTX ISA 9.0).
struct Model {
  int64_t expected, pending, bytes = 0;
  uint32_t phase = 0;
  void complete_if_done() {
    if (pending != 0 || bytes != 0) return;
    ++phase;
    pending = expected;
  }
};

// A program of random operations on one barrier by one thread, with the values it must store.
class RandomProgram {
 public:
  explicit RandomProgram(uint64_t seed) : random_(seed) {
    const int64_t count = 1 + below(6);
    model_ = {count, count};
    line("mbarrier.init.shared::cta.b64 [%r0], " + std::to_string(count) + ";");
    for (int i = 0; i < 80; ++i) step();
  }
  std::string text() const {
    return with_header(
        ".visible .entry k(.param .u64 out) {\n.reg .pred %p<2>; .reg .b32 %r<4>; "
        ".reg .b64 %rd<4>; .shared .align 8 .b64 bar;\nld.param.u64 %rd0, [out];\n"
        "mov.u32 %r0, bar;\n" +
        body_ + "ret;\n}\n");
  }
  const std::vector<uint32_t>& expected() const { return expected_; }

 private:
  int64_t below(uint64_t n) { return static_cast<int64_t>(random_() % n); }
  void line(const std::string& text) { body_ += text + "\n"; }
  void store(const std::string& reg, uint32_t value) {
    line("st.global.u32 [%rd0+" + std::to_string(4 * expected_.size()) + "], " + reg + ";");
    expected_.push_back(value);
  }
  void test_parity(uint32_t parity) {
    line("mbarrier.test_wait.parity.shared::cta.b64 %p0, [%r0], " + std::to_string(parity) + ";");
    line("selp.u32 %r1, 1, 0, %p0;");
    store("%r1", (model_.phase & 1) != parity);
  }

  void arrive() {
    if (model_.pending == 0) return;
    const int64_t count = 1 + below(static_cast<uint64_t>(model_.pending));
    const bool drops = model_.expected > count && below(8) == 0;
    const bool completes = model_.pending == count && model_.bytes == 0;
    const int64_t before = model_.pending;
    const std::string form = completes ? "" : ".noComplete";
    line("mbarrier.arrive" + std::string(drops ? "_drop" : "") + form +
         ".shared::cta.b64 %rd1, [%r0], " + std::to_string(count) + ";");
    if (!completes) {
      line("mbarrier.pending_count.b64 %r1, %rd1;");
      store("%r1", static_cast<uint32_t>(before));
    }
    if (drops) model_.expected -= count;
    model_.pending -= count;
    model_.complete_if_done();
    line("mbarrier.test_wait.shared::cta.b64 %p0, [%r0], %rd1;");
    line("selp.u32 %r1, 1, 0, %p0;");
    store("%r1", completes);
  }

  void arrive_with_bytes() {
    if (model_.pending == 0) return;
    const int64_t bytes = 16 * below(4);
    line("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r0], " + std::to_string(bytes) + ";");
    model_.bytes += bytes;
    --model_.pending;
    model_.complete_if_done();
  }

  void step() {
    switch (below(5)) {
      case 0:
        return arrive();
      case 1:
        return arrive_with_bytes();
      case 2: {
        // Bytes may come before they are expected. What is outstanding is often delivered to the
        // last byte.
        const int64_t bytes =
            model_.bytes > 0 && below(2) == 0 ? model_.bytes : 16 * (1 + below(2));
        line("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r0], " + std::to_string(bytes) +
             ";");
        model_.bytes -= bytes;
        return model_.complete_if_done();
      }
      case 3: {
        if (model_.pending == 0) return;
        const int64_t bytes = model_.bytes < 0 ? -model_.bytes : 16;
        line("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r0], " + std::to_string(bytes) +
             ";");
        model_.bytes += bytes;
        return;
      }
      default:
        return test_parity(static_cast<uint32_t>(below(2)));
    }
  }

  std::mt19937_64 random_;
  Model model_{1, 1};
  std::string body_;
  std::vector<uint32_t> expected_;
};

TEST(Mbarrier, RandomSequencesFollowTheModel) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const RandomProgram program(seed);
    Launch launch;
    test::append_param(launch.params, test::kOutAddress);
    const auto run = run_text(program.text(), launch, {}, program.expected().size() + 1, Options{});
    ASSERT_FALSE(run.result.error) << "seed " << seed << ": " << to_string(*run.result.error);
    for (size_t i = 0; i < program.expected().size(); ++i)
      ASSERT_EQ(run.out[i], program.expected()[i]) << "seed " << seed << " value " << i << "\n"
                                                   << program.text();
  }
}

struct Refused {
  const char* statement;
  const char* message;
};

std::string entry_with(const char* statement) {
  return with_header(
      std::string(".visible .entry k() {\n.reg .pred %p<2>; .reg .b32 %r<4>; .reg .b64 "
                  "%rd<4>; .shared .align 8 .b64 bar;\n") +
      statement + "\nret;\n}\n");
}

TEST(Mbarrier, StatementsThatAreNotLegalAreRefused) {
  const std::vector<Refused> refused = {
      {"mbarrier.init.shared::cta [%r0], 1;", "needs the type .b64"},
      {"mbarrier.init.shared::cluster.b64 [%r0], 1;", "takes .shared::cta only"},
      {"mbarrier.init.b64 [%r0], 1;", "a generic address must have 64 bits"},
      {"mbarrier.inval.shared::cluster.b64 [%r0];", "takes .shared::cta only"},
      {"mbarrier.arrive.shared::cluster.b64 %rd0, [%r0];", "returns no state"},
      {"mbarrier.arrive.release.shared::cta.b64 _, [%r0];", "must be given together"},
      {"mbarrier.arrive.cta.shared::cta.b64 _, [%r0];", "must be given together"},
      {"mbarrier.arrive.acquire.cta.shared::cta.b64 _, [%r0];", "must be given together"},
      {"mbarrier.arrive.release.relaxed.cta.shared::cta.b64 _, [%r0];", "exclude each other"},
      {"mbarrier.arrive.noComplete.shared::cta.b64 _, [%r0];", "operands"},
      {"mbarrier.arrive.expect_tx.noComplete.shared::cta.b64 _, [%r0], 1;", "exclude each other"},
      {"mbarrier.expect_tx.release.cta.shared::cta.b64 [%r0], 1;", "must be given together"},
      {"mbarrier.test_wait.parity.shared::cta.b64 %p0, [%r0], 0, 5;", "operands"},
      {"mbarrier.try_wait.parity.shared::cluster.b64 %p0, [%r0], 0;",
       "waits take .shared::cta only"},
      {"mbarrier.try_wait.release.cta.shared::cta.b64 %p0, [%r0], %rd0;", "must be given together"},
      {"mbarrier.try_wait.parity.shared::cta.b64 %r1, [%r0], 0;", "must be a predicate"},
      {"mbarrier.invented.shared::cta.b64 [%r0];", "unknown mbarrier operation"},
      {"mbarrier.init.shared::cta.b64.sc [%r0], 1;", "modifier .sc is not known"},
  };
  for (const Refused& r : refused) {
    const std::string message = decode_error(entry_with(r.statement));
    EXPECT_NE(message.find(r.message), std::string::npos) << r.statement << ": '" << message << "'";
  }
}

TEST(Mbarrier, ModifiersComeInAnyOrder) {
  for (const char* statement : {
           "mbarrier.arrive.release.cta.shared::cta.b64 _, [%r0];",
           "mbarrier.arrive.shared::cta.release.cluster.b64 _, [%r0];",
           "mbarrier.arrive.expect_tx.release.cta.shared.b64 _, [%r0], 16;",
           "mbarrier.arrive.expect_tx.shared::cluster.b64 _, [%r0], 16;",
           "mbarrier.arrive_drop.expect_tx.shared::cta.relaxed.cluster.b64 %rd0, [%r0], 16;",
           "mbarrier.arrive.release.cluster.b64 _, [%rd0], 2;",
           "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p0, [%r0], 1, 1000;",
           "mbarrier.try_wait.relaxed.cluster.shared.b64 %p0, [%r0], %rd1;",
           "mbarrier.test_wait.shared.parity.b64 %p0, [bar], 0;",
       })
    EXPECT_EQ(decode_error(entry_with(statement)), "") << statement;
}

}  // namespace
}  // namespace ptxsim
