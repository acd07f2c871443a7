#include <nlohmann/json.hpp>

#include "run_program.hpp"

namespace dualgemm::test {
namespace {

using nlohmann::json;
using InfoPlan = CliTest;

TEST_F(InfoPlan, InfoNamesDeviceAndInstructionSets) {
  const ProgramResult result = run({"info", "--no-peaks"});
  ASSERT_EQ(result.exit_code, 0) << result;
  for (const char* part :
       {"device", "cores", "caches", "instruction sets", "scalar", "CUDA", "revision"}) {
    EXPECT_TRUE(contains(result.out, part));
  }
  EXPECT_EQ(result.out.find("peaks"), std::string::npos);
}

TEST_F(InfoPlan, InfoJson) {
  const ProgramResult result = run({"info", "--json", "--no-peaks"});
  ASSERT_EQ(result.exit_code, 0) << result;
  const json info = json::parse(result.out);
  EXPECT_GE(info["cores"].get<int>(), 1);
  EXPECT_EQ(info["isas"].back(), "scalar");
  EXPECT_EQ(info["isa_in_use"],  // pairs of bf16 are not for NVFP4 rows
            info["isas"][info["isas"].front() == "avx512_bf16" ? 1 : 0]);
  EXPECT_TRUE(info["build"].contains("revision"));
  EXPECT_FALSE(info.contains("peaks"));
}

TEST_F(InfoPlan, InfoMeasuresPeaks) {
  const ProgramResult result = run({"info", "--json", "--threads", "1"});
  ASSERT_EQ(result.exit_code, 0) << result;
  const json peaks = json::parse(result.out)["peaks"];
  EXPECT_EQ(peaks["threads"], 1);
  EXPECT_GT(peaks["read_gbps"].get<double>(), 0.0);
}

TEST_F(InfoPlan, ForcedInstructionSetShows) {
  const ProgramResult result = run({"info", "--json", "--no-peaks"}, {"DUALGEMM_FORCE_ISA=scalar"});
  ASSERT_EQ(result.exit_code, 0) << result;
  EXPECT_EQ(json::parse(result.out)["isa_in_use"], "scalar");
}

TEST_F(InfoPlan, WrongForcedInstructionSetIsNamed) {
  const ProgramResult result = run({"info", "--no-peaks"}, {"DUALGEMM_FORCE_ISA=avx9000"});
  EXPECT_EQ(result.exit_code, 2) << result;
  EXPECT_TRUE(contains(result.err, "DUALGEMM_FORCE_ISA"));
}

TEST_F(InfoPlan, PlanExplainsChoiceAndRejections) {
  const ProgramResult result = run({"plan", "--m", "512", "--n", "4096", "--k", "7168"});
  ASSERT_EQ(result.exit_code, 0) << result;
  EXPECT_TRUE(contains(result.out, "fused"));
  EXPECT_TRUE(contains(result.out, "two_pass"));  // among the rejected
  EXPECT_EQ(result.err, "");
}

TEST_F(InfoPlan, PlanJsonHoldsWhatWasAsked) {
  const ProgramResult result = run({"plan",
                                    "--m",
                                    "3",
                                    "--n",
                                    "32",
                                    "--k",
                                    "64",
                                    "--l",
                                    "2",
                                    "--act",
                                    "swiglu_oai",
                                    "--act-limit",
                                    "inf",
                                    "--a-type",
                                    "bf16",
                                    "--d-type",
                                    "f32",
                                    "--layout",
                                    "swizzled_128x4",
                                    "--strategy",
                                    "two_pass",
                                    "--isa",
                                    "scalar",
                                    "--threads",
                                    "2",
                                    "--batch-invariant",
                                    "--bias",
                                    "f32",
                                    "--json"});
  ASSERT_EQ(result.exit_code, 0) << result;
  const json plan = json::parse(result.out);
  EXPECT_EQ(plan["strategy"], "two_pass");
  EXPECT_EQ(plan["isa"], "scalar");
  EXPECT_EQ(plan["threads"], 2);
  const json& problem = plan["problem"];
  EXPECT_EQ(problem["m"], 3);
  EXPECT_EQ(problem["l"], 2);
  EXPECT_EQ(problem["a_type"], "bf16");
  EXPECT_EQ(problem["d_type"], "f32");
  EXPECT_EQ(problem["weight_scale_layout"], "swizzled_128x4");
  EXPECT_EQ(problem["batch_invariant"], true);
  EXPECT_EQ(problem["bias"], "f32");
  EXPECT_EQ(problem["act"]["kind"], "swiglu_oai");
  EXPECT_EQ(problem["act"]["limit"], "inf");
  EXPECT_NEAR(problem["act"]["alpha"].get<double>(), 1.702, 1e-6);
  EXPECT_TRUE(plan["rejected"].is_array());
}

TEST_F(InfoPlan, PlanComputesNothing) {  // terabytes of operands
  const ProgramResult result = run({"plan", "--m", "1000000", "--n", "1000000", "--k", "1000000"});
  EXPECT_EQ(result.exit_code, 0) << result;
}

}  // namespace
}  // namespace dualgemm::test
