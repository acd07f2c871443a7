// The version of what --json prints: schema/reports.json. Names are only added within one.
#pragma once

namespace ptxsim::cli {

inline constexpr int kReportsVersion = 1;

}  // namespace ptxsim::cli
