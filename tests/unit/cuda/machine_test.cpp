// The GPUs that models of choice know are those of ptxsim's clock and of the command.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "cuda/machine/gpus.hpp"

namespace dualgemm::cuda::machine {
namespace {

nlohmann::json read(const std::filesystem::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  return nlohmann::json::parse(file, nullptr, false);
}

// The one file of this name below a folder of the project.
std::filesystem::path file_of(const char* folder, const std::string& name) {
  const std::filesystem::path root = std::filesystem::path(DUALGEMM_SOURCE_FOLDER) / folder;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().generic_string().ends_with("/" + name)) return entry.path();
  }
  return {};
}

// A GPU and the name of its file in the clock.
struct Described {
  const Gpu& gpu;
  const char* file;
};
const Described kAll[] = {{kB200, "b200"},       {kA100, "a100"}, {kRtx3090, "rtx3090"},
                          {kRtx4090, "rtx4090"}, {kL40s, "l40s"}, {kRtx5090, "rtx5090"},
                          {kGb10, "gb10"}};

TEST(Machine, IsFoundByCapabilityAndSms) {
  EXPECT_EQ(std::size(kAll), kGpus.size());
  for (const auto& [gpu, file] : kAll)
    EXPECT_EQ(machine::find(gpu.compute_capability, static_cast<int>(gpu.sms.value)), &gpu) << file;
  EXPECT_EQ(machine::find(120, 48), nullptr);
  EXPECT_EQ(machine::find(0, 0), nullptr);
}

TEST(Machine, IsThatOfTheClock) {
  for (const auto& [gpu, file] : kAll) {
    SCOPED_TRACE(file);
    const nlohmann::json clock = read(file_of("ptxsim", std::string("gpus/") + file + ".json"));
    const auto value = [&](const char* name) {
      return clock.at("parameters").at(name).at("value").get<double>();
    };
    EXPECT_EQ(gpu.sms.value, value("num_sms"));
    EXPECT_DOUBLE_EQ(gpu.clocks_per_us.value, 1e3 * value("sm_clock_ghz"));
    EXPECT_DOUBLE_EQ(gpu.hbm_bytes_per_us.value, 1e6 * value("hbm_tb_per_s"));
    EXPECT_DOUBLE_EQ(gpu.l2_bytes_per_us.value, 1e6 * value("l2_tb_per_s"));
    EXPECT_DOUBLE_EQ(gpu.ingest_bytes_per_us.value, 1e3 * value("ingest_gb_per_s"));
    EXPECT_EQ(gpu.shared_bytes_per_clock.value, value("shared_bytes_per_clk"));
    EXPECT_DOUBLE_EQ(gpu.half_macs_per_us.value, 1e6 * value("sustained_tmac_per_s"));
  }
}

TEST(Machine, HasTheClocksKinds) {
  for (const auto& [gpu, file] : kAll) {
    SCOPED_TRACE(file);
    const nlohmann::json clock = read(file_of("ptxsim", std::string("gpus/") + file + ".json"));
    const auto expect_kind = [&](const Number& number, const char* name) {
      const std::string kind = clock.at("parameters").at(name).at("kind");
      const char* const ours = number.kind == Kind::kMeasured    ? "measured"
                               : number.kind == Kind::kPublished ? "published"
                               : number.kind == Kind::kDerived   ? "derived"
                               : number.kind == Kind::kFitted    ? "fitted"
                               : number.kind == Kind::kAssumed   ? "assumed"
                                                                 : "data sheet";
      EXPECT_EQ(ours, kind) << name;
    };
    expect_kind(gpu.sms, "num_sms");
    expect_kind(gpu.clocks_per_us, "sm_clock_ghz");
    expect_kind(gpu.hbm_bytes_per_us, "hbm_tb_per_s");
    expect_kind(gpu.l2_bytes_per_us, "l2_tb_per_s");
    expect_kind(gpu.ingest_bytes_per_us, "ingest_gb_per_s");
    expect_kind(gpu.shared_bytes_per_clock, "shared_bytes_per_clk");
    expect_kind(gpu.half_macs_per_us, "sustained_tmac_per_s");
  }
}

TEST(Machine, IsThatOfTheCommand) {
  const nlohmann::json table = read(file_of("tools/cli", "gpus.json"));
  size_t found = 0;
  for (const nlohmann::json& row : table.at("gpus")) {
    for (const auto& [gpu, file] : kAll) {
      if (row.at("name") != gpu.name) continue;
      ++found;
      EXPECT_EQ(gpu.compute_capability, row.at("compute_capability"));
      EXPECT_EQ(gpu.sms.value, row.at("sms"));
      EXPECT_EQ(gpu.l2_bytes.value, row.at("l2_bytes"));
      EXPECT_EQ(gpu.memory_bytes.value, row.at("memory_bytes"));
      EXPECT_DOUBLE_EQ(gpu.sheet_bytes_per_us.value, 1e3 * row.at("memory_gbps").get<double>());
    }
  }
  EXPECT_EQ(found, std::size(kAll));
}

}  // namespace
}  // namespace dualgemm::cuda::machine
