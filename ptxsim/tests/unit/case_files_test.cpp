// Every kernel of insn/, rules/ and calls/ under each schedule: the results and reports that its
// own //! lines ask for.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "ptxsim/case/case.hpp"

namespace {

using ptxsim::Schedule;

std::vector<std::string> case_files() {
  std::vector<std::string> files;
  for (const char* folder : {"insn", "rules", "calls"}) {
    const std::filesystem::path path = std::filesystem::path(PTXSIM_TEST_FOLDER) / folder;
    if (!std::filesystem::is_directory(path)) continue;
    for (const auto& file : std::filesystem::directory_iterator(path))
      if (file.path().extension() == ".ptx") files.push_back(file.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

class CaseFile : public testing::TestWithParam<std::string> {};

TEST_P(CaseFile, GivesWhatItExpectsUnderEverySchedule) {
  std::ifstream file(GetParam(), std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  const std::string json = ptxsim::case_text(text.str());
  ASSERT_FALSE(json.empty()) << "no //! lines";
  auto description =
      ptxsim::parse_case(json, std::filesystem::path(GetParam()).parent_path().string());
  ASSERT_TRUE(description.ok()) << to_string(description.error());
  auto module = ptxsim::load(text.str(), GetParam());
  ASSERT_TRUE(module.ok()) << to_string(module.error());
  auto program = ptxsim::decode(*module, description->entry);
  ASSERT_TRUE(program.ok()) << to_string(program.error());
  const auto refused = ptxsim::load_launches(*description, *module);
  ASSERT_FALSE(refused) << to_string(*refused);
  for (const Schedule schedule : {Schedule::kEager, Schedule::kLazy, Schedule::kRandom}) {
    for (uint64_t seed = 1; seed <= (schedule == Schedule::kRandom ? 5 : 1); ++seed) {
      ptxsim::Options options;
      options.schedule = schedule;
      options.seed = seed;
      const ptxsim::CaseResult result = ptxsim::run_case(*description, *program, options);
      for (const std::string& mismatch : result.mismatches)
        ADD_FAILURE() << "schedule " << static_cast<int>(schedule) << " seed " << seed << ": "
                      << mismatch;
      if (result.unexpected_rules)
        for (const ptxsim::Report& report : result.run.reports.list)
          ADD_FAILURE() << to_string(report);
    }
  }
}

std::string name_of(const testing::TestParamInfo<std::string>& info) {
  std::string name = std::filesystem::path(info.param).parent_path().filename().string() + "_" +
                     std::filesystem::path(info.param).stem().string();
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); },
      '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Ptx, CaseFile, testing::ValuesIn(case_files()), name_of);

}  // namespace
