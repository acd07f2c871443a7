// A test for each section of the kernel's cases.txt.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "kernels/suite/checks.hpp"

namespace dualgemm::test {
namespace {

void run_section(const CaseSection& section) {
  const Check check = find_check(section.check);
  ASSERT_NE(check, nullptr) << section.check << " is no check";
  const auto cases = cases_of(section, kernel_row());
  ASSERT_TRUE(cases.ok()) << cases.status().message();
  check(kernel_row(), *cases, section.limits);
}

class SectionTest : public ::testing::Test {
 public:
  explicit SectionTest(CaseSection section) : section_(std::move(section)) {}
  void TestBody() override { run_section(section_); }

 private:
  CaseSection section_;
};

// A table that cannot be read is a test that fails.
class BrokenTableTest : public ::testing::Test {
 public:
  explicit BrokenTableTest(std::string message) : message_(std::move(message)) {}
  void TestBody() override { FAIL() << kernel_row().cases << ": " << message_; }

 private:
  std::string message_;
};

bool register_sections() {
  std::ostringstream text;
  text << std::ifstream(kernel_row().cases).rdbuf();
  const auto sections = parse_case_table(text.str());
  if (!sections.ok() || sections->empty()) {
    const std::string message = sections.ok() ? "no test" : sections.status().message();
    ::testing::RegisterTest(
        "Cases", "CanBeRead", nullptr, nullptr, __FILE__, __LINE__,
        [message]() -> ::testing::Test* { return new BrokenTableTest(message); });
    return false;
  }
  for (const CaseSection& section : *sections) {
    ::testing::RegisterTest(section.suite.c_str(), section.name.c_str(), nullptr, nullptr,
                            kernel_row().cases, section.line,
                            [section]() -> ::testing::Test* { return new SectionTest(section); });
  }
  return true;
}

[[maybe_unused]] const bool registered = register_sections();

}  // namespace
}  // namespace dualgemm::test
