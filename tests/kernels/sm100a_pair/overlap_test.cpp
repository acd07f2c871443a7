// Programmatic dependent launch: until griddepcontrol.wait the grid before may be at work on
// whatever the kernel reads and writes (simulate() says so of every run). Without one of its waits
// the kernel is reported.
#include <fstream>
#include <sstream>

#include "kernels/sm100a_pair/simulated_run.hpp"

namespace dualgemm::test {
namespace {

constexpr const char* kWait = "griddepcontrol.wait;";

// The kernel without its wait number `index`; null: it has no more.
std::shared_ptr<const ptxsim::Program> without_wait(const std::string& module_name,
                                                    const std::string& entry, int index) {
  const std::string path = std::string(DUALGEMM_PTX_FOLDER) + "/" + module_name + ".ptx";
  std::ostringstream stream;
  stream << std::ifstream(path).rdbuf();
  std::string text = stream.str();
  size_t at = text.find(".entry " + entry + "(");
  const size_t end = text.find(".entry ", at + 1);
  for (int i = 0; i <= index; ++i) at = text.find(kWait, at + 1);
  if (at >= end) return nullptr;
  text.erase(at, std::string(kWait).size());
  auto module = ptxsim::load(text, path);
  EXPECT_TRUE(module.ok()) << ptxsim::to_string(module.error());
  auto program = ptxsim::decode(*module, entry);
  EXPECT_TRUE(program.ok()) << ptxsim::to_string(program.error());
  return *program;
}

void expect_every_wait_needed(bool prepared) {
  const Problem p = swizzled({.m = 130, .n = 20, .k = 64, .d = {.type = DataType::kF32}});
  const std::string entry = cuda::sm100a_pair::find_instance(64, DataType::kF32, prepared)->entry;
  const std::string module_name =
      prepared ? "dual_gemm_sm100a_pair_prepared" : "dual_gemm_sm100a_pair";
  Rng rng;
  RandomCase data(p, rng, Values::kRandom);
  data.a_row_scale.assign(static_cast<size_t>(p.m), 2.0f);  // read before the sums are there
  int waits = 0;
  for (; const auto program = without_wait(module_name, entry, waits); ++waits) {
    SimulatedRun run{.tile_n = 64, .prepared = prepared};
    run.mutant = program;
    EXPECT_FALSE(simulate(data, run));
    ASSERT_FALSE(run.result.reports.list.empty()) << "wait " << waits;
    for (const ptxsim::Report& report : run.result.reports.list) EXPECT_EQ(report.rule, 21);
  }
  EXPECT_EQ(waits, 2);  // of the thread that loads, and of the epilogue
}

TEST(Sm100aPairOverlap, EveryWaitIsNeeded) { expect_every_wait_needed(false); }
// Prepared weights are read before it, and are not the grid's before (simulate() says so).
TEST(Sm100aPairOverlap, EveryWaitIsNeededWithPreparedWeights) { expect_every_wait_needed(true); }

}  // namespace
}  // namespace dualgemm::test
