// The texts of PlanOptions::config: what they say, what is refused, and what choose() makes of
// them.
#include "plan/config_text.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "plan/choose.hpp"
#include "support/rng.hpp"

namespace dualgemm {
namespace {

using plan::parse_config;

std::string refusal(const std::string& text) {
  const auto request = parse_config(text);
  if (request.ok()) return "accepted";
  EXPECT_EQ(request.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(request.status().argument(), "config");
  return request.status().observed() + "; " + request.status().rule();
}

TEST(ConfigText, ReadsWhatPlansPrint) {
  const auto request = parse_config("cuda_sm90a_fused_wgmma_c128_w4_t8x32x256_s12_f16");
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(request->strategy, StrategyId::kFused);
  EXPECT_EQ(request->isa, Isa::kSm90a);
  EXPECT_EQ(request->d_type, DataType::kF16);
  EXPECT_EQ(request->prepared, false);
  EXPECT_EQ(request->constraints, (PlanConstraints{.tile_m = 8,
                                                   .tile_n = 32,
                                                   .tile_k = 256,
                                                   .stages = 12,
                                                   .k_warpgroups = 4,
                                                   .ctas = 128,
                                                   .kernel = "wgmma"}));
  const auto cached = parse_config("cuda_sm80_cached_cublaslt_bf16_prepared");
  ASSERT_TRUE(cached.ok()) << cached.status().message();
  EXPECT_EQ(cached->strategy, StrategyId::kCached);
  EXPECT_EQ(cached->prepared, true);
  EXPECT_EQ(cached->constraints, (PlanConstraints{.tile_m = 0,
                                                  .tile_n = 0,
                                                  .tile_k = 0,
                                                  .stages = 0,
                                                  .k_warpgroups = 0,
                                                  .ctas = PlanConstraints::kUnnamed,
                                                  .kernel = "cublaslt"}))
      << "what is not named it has not";
  // A strategy whose name begins with another one's.
  const auto epilogue = parse_config("cuda_sm80_fused_epilogue_mma_t8x16x128_f32");
  ASSERT_TRUE(epilogue.ok()) << epilogue.status().message();
  EXPECT_EQ(epilogue->strategy, StrategyId::kFusedEpilogue);
  EXPECT_EQ(epilogue->constraints.stages, 0);
  EXPECT_EQ(epilogue->constraints.ctas, PlanConstraints::kUnnamed) << "a CTA for each piece";
  EXPECT_FALSE(epilogue->constraints.demands_ctas());
}

TEST(ConfigText, ReadsKeysInAnyOrder) {
  const auto request =
      parse_config("k_warpgroups=2,tile_m=64,isa=sm90a,kernel=wgmma,strategy=fused,ctas=1");
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(request->strategy, StrategyId::kFused);
  EXPECT_EQ(request->isa, Isa::kSm90a);
  EXPECT_EQ(request->constraints,
            (PlanConstraints{.tile_m = 64, .k_warpgroups = 2, .ctas = 1, .kernel = "wgmma"}));
  EXPECT_FALSE(request->d_type.has_value());
  EXPECT_EQ(plan::text_of(request->constraints), "kernel=wgmma,tile_m=64,k_warpgroups=2,ctas=1");
  EXPECT_TRUE(parse_config("")->constraints == PlanConstraints());
}

TEST(ConfigText, NamesWhatIsWrong) {
  EXPECT_EQ(refusal("tile_q=8"),
            "'tile_q'; is no key; there are strategy, isa, kernel, tile_m, tile_n, tile_k, stages, "
            "k_warpgroups, "
            "ctas");
  EXPECT_EQ(refusal("tile_m=8,tile_m=8"), "'tile_m'; is given twice");
  EXPECT_EQ(refusal("isa=sm80,isa=sm80"), "'isa'; is given twice");
  EXPECT_EQ(refusal("kernel=mma,kernel=mma"), "'kernel'; is given twice");
  EXPECT_EQ(refusal("kernel="), "'kernel='; must be a kernel's name");
  EXPECT_EQ(refusal("tile_m=eight"), "'tile_m=eight'; must be a whole number");
  EXPECT_EQ(refusal("tile_m="), "'tile_m='; must be a whole number");
  EXPECT_EQ(refusal("tile_m=-8"), "'tile_m=-8'; must be a whole number");
  EXPECT_EQ(refusal("tile_m=99999999999999999999"),
            "'tile_m=99999999999999999999'; must be a whole number");
  EXPECT_EQ(refusal("tile_m=8,"), "''; must be key=value");
  EXPECT_EQ(refusal("cpu_avx2_fused_p6"),
            "'cpu_avx2_fused_p6'; is for the CPU; plans can be named on cuda only");
  EXPECT_NE(refusal("isa=sm7").find("sm90a"), std::string::npos) << "the names are listed";
  for (const char* text :
       {"fused", "cuda", "cuda_", "cuda_sm90a", "cuda_sm91_fused_f16", "cuda_sm90a_fusing_f16",
        "cuda_sm90a_fused", "cuda_sm90a_fused_", "cuda_sm90a_fused_f17", "cuda_sm90a_fused_f16",
        "cuda_sm90a_fused_wgmma_c128_w4_t8x32_s12_f16", "cuda_sm90a_fused_wgmma_t8x32x256_c128_f16",
        "cuda_sm90a_fused_wgmma_f16_prepared2", "cuda_sm90a_fused_wgmma_f16_f16",
        "cuda_sm90a_fused__f16"}) {
    EXPECT_NE(refusal(text).find("must be a plan's config, such as cuda_sm90a_fused_wgmma_c128"),
              std::string::npos)
        << text;
  }
}

// Whatever stands there: a request or an error about the config, and text_of() reads back.
TEST(ConfigText, AnyTextIsReadOrRefused) {
  const std::string pieces[] = {"cuda_",  "sm90a",
                                "_",      "fused",
                                "_wgmma", "_c128",
                                "_w4",    "_t8x32x256",
                                "_s12",   "_f16",
                                "=",      ",",
                                "tile_m", "ctas",
                                "8",      "isa",
                                "-1",     "x",
                                "\0",     "k_warpgroups",
                                "stages", "99999999999999999999"};
  test::Rng rng;
  int accepted = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (int64_t i = rng.integer(1, 9); i > 0; --i) text += rng.pick(pieces);
    auto request = parse_config(text);
    if (!request) {
      ASSERT_EQ(request.status().argument(), "config") << text;
      continue;
    }
    ++accepted;
    const auto again = parse_config(plan::text_of(request->constraints));
    ASSERT_TRUE(again.ok()) << text;
    if (!request->constraints.demands_ctas()) request->constraints.ctas = PlanConstraints::kAny;
    ASSERT_EQ(again->constraints, request->constraints) << text;
  }
  EXPECT_GT(accepted, 20);
}

// Has a choice of tiles, as the kernels of a GPU have.
class ChoosingStrategy final : public Strategy {
 public:
  explicit ChoosingStrategy(StrategyId id = StrategyId::kFused) : id_(id) {}
  StrategyId id() const noexcept override { return id_; }
  DeviceKind device() const noexcept override { return DeviceKind::kCuda; }
  Status supports(const core::CheckedProblem&, const DeviceCaps&) const override { return {}; }
  Status plan(Plan& plan, const DeviceCaps& caps) const override {
    return plan_constrained(plan, caps, {});
  }
  Status plan_constrained(Plan& plan, const DeviceCaps&,
                          const PlanConstraints& constraints) const override {
    plan::set_kernel(plan, KernelId::kSm90a);
    plan.shape.tile_m = constraints.tile_m == 64 ? 64 : 8;
    plan.shape.tile_n = 32;
    plan.shape.tile_k = 256;
    plan.shape.stages = 3;
    plan.shape.ctas = constraints.demands_ctas() ? std::min<int64_t>(constraints.ctas, 100) : 100;
    plan.shape.k_warpgroups = 2;
    return {};
  }
  const char* how_it_works() const noexcept override { return "not at all"; }
  const char* numerics(const Plan&) const noexcept override { return "nothing is computed"; }
  Preparation preparation(const Plan&) const noexcept override { return Preparation::kNone; }
  int64_t workspace_bytes(const Plan&) const override { return 0; }
  PreparedDescriptor prepared_descriptor(const Plan&) const override { return {}; }
  Status prepare(const Plan&, const core::CheckedProblem&, const Buffers&,
                 uint8_t*) const override {
    return {};
  }
  Status run(const Plan&, const core::CheckedProblem&, const Buffers&, void*,
             RunInfo*) const override {
    return {};
  }

 private:
  StrategyId id_;
};

DeviceCaps gpu() {
  DeviceCaps caps;
  caps.kind = DeviceKind::kCuda;
  caps.isas = {Isa::kSm90a, Isa::kSm80};
  caps.compute_capability = 90;
  caps.num_sms = 132;
  return caps;
}

Expected<Plan> choose(const std::string& config, PlanOptions options = {}) {
  static const ChoosingStrategy fused, epilogue(StrategyId::kFusedEpilogue);
  static const std::vector<const Strategy*> all{&fused, &epilogue};
  options.config = config;
  return plan::choose({.m = 8, .n = 32, .k = 64}, options, gpu(), all, "");
}

TEST(ChooseConstrained, PlansAreNamedByTheirOwnText) {
  for (const char* wanted :
       {"", "tile_m=64", "ctas=7", "kernel=wgmma", "strategy=fused_epilogue,isa=sm80"}) {
    const auto plan = choose(wanted);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    const auto again = choose(plan->config());
    ASSERT_TRUE(again.ok()) << again.status().message();
    EXPECT_EQ(again->config(), plan->config());
  }
  EXPECT_EQ(choose("tile_m=64,ctas=7")->config(), "cuda_sm90a_fused_wgmma_c7_w2_t64x32x256_s3_f16");
  EXPECT_EQ(choose("ctas=1000")->shape.ctas, 100) << "at most so many";
}

TEST(ChooseConstrained, RefusesWhatCannotBeGranted) {
  const auto message = [](const std::string& config, const PlanOptions& options = {}) {
    const auto plan = choose(config, options);
    EXPECT_EQ(plan.status().argument(), plan.ok() ? "" : "config") << plan.status().message();
    return plan.ok() ? plan->config() : plan.status().message();
  };
  EXPECT_EQ(
      message("tile_m=16"),
      "config: tile_m=16; fused on sm90a runs cuda_sm90a_fused_wgmma_c100_w2_t8x32x256_s3_f16 and "
      "leaves that no choice");
  EXPECT_EQ(
      message("kernel=skinny"),
      "config: kernel=skinny; fused on sm90a runs cuda_sm90a_fused_wgmma_c100_w2_t8x32x256_s3_f16 "
      "and leaves that no choice");
  EXPECT_EQ(message("strategy=fused", {.strategy = StrategyId::kFusedEpilogue}),
            "config: 'strategy=fused'; the strategy that is asked for is fused_epilogue");
  EXPECT_EQ(message("isa=sm80", {.isa = Isa::kSm90a}),
            "config: 'isa=sm80'; the isa that is asked for is sm90a");
  EXPECT_EQ(message("cuda_sm90a_fused_wgmma_f32"),
            "config: 'cuda_sm90a_fused_wgmma_f32'; the problem's type of D is f16");
  EXPECT_EQ(message("cuda_sm90a_fused_wgmma_f16", {.prepared = true}),
            "config: 'cuda_sm90a_fused_wgmma_f16'; the weights that are asked for are prepared");
  EXPECT_NE(message("tile=1").find("is no key"), std::string::npos);
  const auto absent = choose("isa=sm100a");
  ASSERT_FALSE(absent.ok());
  EXPECT_EQ(absent.status().message(), "isa: sm100a; this machine offers sm90a, sm80");
  EXPECT_EQ(choose("strategy=streams").status().message(),
            "strategy: streams; this build does not contain it");
}

TEST(ChooseConstrained, IsNotForTheCpu) {
  DeviceCaps caps;
  caps.isas = {Isa::kScalar};
  const auto plan = plan::choose({.m = 8, .n = 32, .k = 64}, {.config = "tile_m=8"}, caps, {}, "");
  ASSERT_FALSE(plan.ok());
  EXPECT_EQ(plan.status().message(),
            "config: 'tile_m=8'; needs the device cuda, the plan is made for cpu");
}

}  // namespace
}  // namespace dualgemm
