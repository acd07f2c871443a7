// CUTLASS's kernels in the interpreter: the right matrix, in every schedule, and not one sanitizer
// error. What is reported below an error is listed here, each with its reason, and must be seen.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "ptxsim/case/case.hpp"

namespace {

using ptxsim::Schedule;
using ptxsim::Severity;

struct Allowed {
  int rule;
  Severity severity;
  const char* message;  // a part of it
};

// Copies into scale columns that an earlier MMA of the same thread reads: in flight one behind the
// other, which no text promises and every published NVFP4 kernel relies on (ISA reference 5.3).
constexpr Allowed kScaleColumns{6, Severity::kAdvisory, "overwrites tensor memory"};
// CUTLASS has no tcgen05.fence, neither between a commit's wait and the loads nor after the loads.
constexpr Allowed kNoFence{7, Severity::kAdvisory, "without tcgen05.fence::"};
// CUTLASS waits for tcgen05.ld once per tile, when it hands the accumulator back; until then ptxas
// alone sees that the registers are not there yet.
constexpr Allowed kLateWait{8, Severity::kWarning, "is read before its wait"};
// Without a C, the epilogue ends with its last stores under way.
constexpr Allowed kStoresAtEnd{8, Severity::kWarning, "may still read shared memory"};
// The barrier of the deallocation is initialised without fence.mbarrier_init before the relaxed
// cluster barrier.
constexpr Allowed kUnfencedBarrier{10, Severity::kWarning, "whose initialisation is not ordered"};
// One elected thread works in a branch of its own, and no __syncwarp follows before bar.sync, the
// cluster barrier or tcgen05.alloc.
constexpr Allowed kSeparatedLanes{12, Severity::kAdvisory, "needs a converged warp"};

struct Kernel {
  const char* name;
  std::vector<Allowed> allowed;
};

const Kernel& kernel_named(const std::string& name) {
  static const std::vector<Kernel> kKernels = {
      {"nvfp4_1cta", {kScaleColumns, kNoFence, kLateWait, kSeparatedLanes}},
      {"nvfp4_2cta",
       {kScaleColumns, kNoFence, kLateWait, kStoresAtEnd, kUnfencedBarrier, kSeparatedLanes}},
      {"f16_sm90", {kSeparatedLanes}},
  };
  for (const Kernel& kernel : kKernels) {
    if (name == kernel.name) return kernel;
  }
  throw std::invalid_argument(name);
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// (kernel, case)
class CutlassKernel : public testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  void SetUp() override {
    const auto [name, problem] = GetParam();
    const std::filesystem::path folder = DUALGEMM_CUTLASS_CASES;
    const auto module =
        ptxsim::load(read_file(folder / (std::string(name) + ".ptx")), std::string(name) + ".ptx");
    ASSERT_TRUE(module.ok()) << to_string(module.error());
    const std::filesystem::path files = folder / name / problem;
    auto parsed = ptxsim::parse_case(read_file(files / "case.json"), files.string());
    ASSERT_TRUE(parsed.ok()) << to_string(parsed.error());
    case_ = *parsed;
    const auto program = ptxsim::decode(module.value(), case_.entry);
    ASSERT_TRUE(program.ok()) << to_string(program.error());
    program_ = program.value();
  }

  void run(Schedule schedule, uint64_t seed) const {
    SCOPED_TRACE("schedule " + std::to_string(static_cast<int>(schedule)) + " seed " +
                 std::to_string(seed));
    ptxsim::Options options;
    options.schedule = schedule;
    options.seed = seed;
    const ptxsim::CaseResult result = ptxsim::run_case(case_, program_, options);
    for (const std::string& mismatch : result.mismatches) ADD_FAILURE() << mismatch;
    if (result.unexpected_rules)
      for (const ptxsim::Report& report : result.run.reports.list)
        ADD_FAILURE() << to_string(report);
    check_reports(result.run.reports);
  }

 private:
  void check_reports(const ptxsim::Reports& reports) const {
    const std::vector<Allowed>& allowed = kernel_named(std::get<0>(GetParam())).allowed;
    std::vector<bool> seen(allowed.size(), false);
    for (const ptxsim::Report& report : reports.list) {
      bool is_allowed = false;
      for (size_t i = 0; i < allowed.size(); ++i) {
        if (report.rule != allowed[i].rule || report.severity != allowed[i].severity ||
            report.message.find(allowed[i].message) == std::string::npos)
          continue;
        is_allowed = seen[i] = true;
      }
      EXPECT_TRUE(is_allowed) << to_string(report);
    }
    for (size_t i = 0; i < allowed.size(); ++i) {
      EXPECT_TRUE(seen[i]) << "not seen any more, to be taken off the list: R" << allowed[i].rule
                           << " '" << allowed[i].message << "'";
    }
  }

  ptxsim::Case case_;
  std::shared_ptr<const ptxsim::Program> program_;
};

TEST_P(CutlassKernel, EagerSchedule) { run(Schedule::kEager, 1); }

TEST_P(CutlassKernel, LazySchedule) {
  for (uint64_t seed = 1; seed <= 3; ++seed) run(Schedule::kLazy, seed);
}

TEST_P(CutlassKernel, RandomSchedule) {
  for (uint64_t seed = 1; seed <= 5; ++seed) run(Schedule::kRandom, seed);
}

std::string name_of(const testing::TestParamInfo<CutlassKernel::ParamType>& info) {
  return std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param);
}

INSTANTIATE_TEST_SUITE_P(All, CutlassKernel,
                         testing::Combine(testing::Values("nvfp4_1cta", "nvfp4_2cta", "f16_sm90"),
                                          testing::Values("exact", "range")),
                         name_of);
INSTANTIATE_TEST_SUITE_P(OneKTile, CutlassKernel,
                         testing::Values(std::make_tuple("nvfp4_1cta", "short")), name_of);

}  // namespace
