// Kernels without their griddepcontrol.wait, and what the sanitizer says of them (R21).
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "kernels/simulation/simulation.hpp"
#include "ptxsim/ptxsim.hpp"
#include "ptxsim/report.hpp"

namespace dualgemm::test {

// The waits of an entry in the order of its text.
class Waits {
 public:
  // module: of a PTX file of the build.
  Waits(const std::string& module, const std::string& entry)
      : name_(module + ".ptx"), entry_(entry), text_(ptx_text(module)) {
    const size_t begin = text_.find(".entry " + entry + "(");
    const size_t end = std::min(text_.find(".entry ", begin + 1), text_.size());
    for (size_t at = text_.find(kWait, begin); at < end; at = text_.find(kWait, at + 1))
      places_.push_back(at);
  }
  size_t count() const { return places_.size(); }

  std::shared_ptr<const ptxsim::Program> without(size_t index) const { return decode({index}); }
  std::shared_ptr<const ptxsim::Program> without_all() const {
    std::vector<size_t> all(count());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    return decode(all);
  }

 private:
  static constexpr const char* kWait = "griddepcontrol.wait;";

  std::shared_ptr<const ptxsim::Program> decode(const std::vector<size_t>& indices) const {
    std::string text = text_;
    const size_t length = std::string(kWait).size();
    for (const size_t index : indices) text.replace(places_[index], length, length, ' ');
    return decoded_entry(text, name_, entry_);
  }

  std::string name_, entry_;
  const std::string& text_;
  std::vector<size_t> places_;
};

// Whether an access by this instruction was reported as one that does not wait for the grid before.
inline bool is_reported_as_unwaited(const std::vector<ptxsim::Report>& reports,
                                    const std::string& instruction) {
  return std::any_of(reports.begin(), reports.end(), [&](const ptxsim::Report& report) {
    return report.rule == 21 && ptxsim::to_string(report).find(instruction) != std::string::npos;
  });
}

struct Access {
  const char *instruction, *what;
};

// A kernel whose waits, so many, were taken out must be reported for all of these.
template <class Run>
void expect_reported_without_wait(RandomCase& data, Run run, const Waits& waits,
                                  std::initializer_list<Access> accesses, size_t count = 1) {
  ASSERT_TRUE(simulate(data, run));
  EXPECT_EQ(waits.count(), count);
  run.mutant = waits.without_all();
  EXPECT_FALSE(simulate(data, run));
  for (const auto& [instruction, what] : accesses)
    EXPECT_TRUE(is_reported_as_unwaited(run.result.reports.list, instruction)) << what;
}

}  // namespace dualgemm::test
