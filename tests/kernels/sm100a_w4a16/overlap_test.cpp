// The grid may begin while the one before it still runs (programmatic dependent launch). Every run
// of these tests says so (Simulation::let_previous_grid_own_everything()); this one, that a kernel
// that did not wait would be found out.
#include <algorithm>
#include <fstream>
#include <sstream>

#include "kernels/sm100a_w4a16/simulated_run.hpp"

namespace dualgemm::test {
namespace {

std::string kernels_text() {
  std::ostringstream text;
  text << std::ifstream(DUALGEMM_PTX_FOLDER "/dual_gemm_sm100a_w4a16.ptx").rdbuf();
  return text.str();
}

TEST(Sm100aW4a16Overlap, NothingIsReadOrWrittenBeforeTheGridBeforeHasEnded) {
  Problem p = with_rows({.m = 5, .n = 70, .k = 320}, DataType::kBF16);
  p.bias = BiasType::kF32;
  Rng rng;
  RandomCase data(p, rng, Values::kRandom);
  W4a16Run run{.split = 2};
  ASSERT_TRUE(simulate(data, run));

  std::string text = kernels_text();
  const std::string wait = "griddepcontrol.wait;";
  size_t waits = 0;
  for (size_t at = text.find(wait); at != std::string::npos; at = text.find(wait, at), ++waits)
    text.erase(at, wait.size());
  EXPECT_EQ(waits, cuda::sm100a_w4a16::instances().size());
  auto module = ptxsim::load(text, "without_wait.ptx");
  ASSERT_TRUE(module.ok()) << ptxsim::to_string(module.error());
  auto program = ptxsim::decode(*module, instance_of(p, run).entry);
  ASSERT_TRUE(program.ok()) << ptxsim::to_string(program.error());
  run.mutant = *program;
  EXPECT_FALSE(simulate(data, run));
  const auto& reports = run.result.reports.list;
  const auto found = [&](const std::string& instruction) {
    return std::any_of(reports.begin(), reports.end(), [&](const ptxsim::Report& report) {
      return report.rule == 21 && ptxsim::to_string(report).find(instruction) != std::string::npos;
    });
  };
  EXPECT_TRUE(found("cp.async.bulk.tensor.3d")) << "loads of operands";
  EXPECT_TRUE(found("cp.async.bulk.tensor.4d")) << "loads of scales";
  EXPECT_TRUE(found("st.global")) << "D";
  EXPECT_TRUE(found("ld.global")) << "biases";
}

}  // namespace
}  // namespace dualgemm::test
