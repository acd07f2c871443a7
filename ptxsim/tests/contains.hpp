// EXPECT_TRUE(contains(text, part)): the message shows the text.
#pragma once

#include <gtest/gtest.h>

#include <string>

namespace ptxsim_test {

inline testing::AssertionResult contains(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "'" << part << "' is not in:\n" << text;
}

}  // namespace ptxsim_test
