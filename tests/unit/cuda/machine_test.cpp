// The GPUs that models of choice know are those of ptxsim's clock and of the command.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "cuda/machine/b200.hpp"

namespace dualgemm::cuda::machine {
namespace {

nlohmann::json read(const std::filesystem::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  return nlohmann::json::parse(file, nullptr, false);
}

// The one file of this name below a folder of the project.
std::filesystem::path find(const char* folder, const std::string& name) {
  const std::filesystem::path root = std::filesystem::path(DUALGEMM_SOURCE_FOLDER) / folder;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().generic_string().ends_with("/" + name)) return entry.path();
  }
  return {};
}

TEST(Machine, IsThatOfTheClock) {
  const nlohmann::json clock = read(find("ptxsim", "gpus/b200.json"));
  const auto value = [&](const char* name) {
    return clock.at("parameters").at(name).at("value").get<double>();
  };
  EXPECT_EQ(kB200.sms.value, value("num_sms"));
  EXPECT_DOUBLE_EQ(kB200.clocks_per_us.value, 1e3 * value("sm_clock_ghz"));
  EXPECT_DOUBLE_EQ(kB200.hbm_bytes_per_us.value, 1e6 * value("hbm_tb_per_s"));
  EXPECT_DOUBLE_EQ(kB200.l2_bytes_per_us.value, 1e6 * value("l2_tb_per_s"));
  EXPECT_DOUBLE_EQ(kB200.ingest_bytes_per_us.value, 1e3 * value("ingest_gb_per_s"));
  EXPECT_EQ(kB200.shared_bytes_per_clock.value, value("shared_bytes_per_clk"));
}

TEST(Machine, HasTheClocksKinds) {
  const nlohmann::json clock = read(find("ptxsim", "gpus/b200.json"));
  const auto expect_kind = [&](const Number& number, const char* name) {
    const std::string kind = clock.at("parameters").at(name).at("kind");
    const char* const ours = number.kind == Kind::kMeasured  ? "measured"
                             : number.kind == Kind::kFitted  ? "fitted"
                             : number.kind == Kind::kAssumed ? "assumed"
                                                             : "data sheet";
    EXPECT_EQ(ours, kind) << name;
  };
  expect_kind(kB200.sms, "num_sms");
  expect_kind(kB200.clocks_per_us, "sm_clock_ghz");
  expect_kind(kB200.hbm_bytes_per_us, "hbm_tb_per_s");
  expect_kind(kB200.l2_bytes_per_us, "l2_tb_per_s");
  expect_kind(kB200.ingest_bytes_per_us, "ingest_gb_per_s");
  expect_kind(kB200.shared_bytes_per_clock, "shared_bytes_per_clk");
}

TEST(Machine, IsThatOfTheCommand) {
  const nlohmann::json table = read(find("tools/cli", "gpus.json"));
  bool found = false;
  for (const nlohmann::json& gpu : table.at("gpus")) {
    if (gpu.at("name") != kB200.name) continue;
    found = true;
    EXPECT_EQ(kB200.compute_capability, gpu.at("compute_capability"));
    EXPECT_EQ(kB200.sms.value, gpu.at("sms"));
    EXPECT_EQ(kB200.l2_bytes.value, gpu.at("l2_bytes"));
    EXPECT_EQ(kB200.memory_bytes.value, gpu.at("memory_bytes"));
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace dualgemm::cuda::machine
