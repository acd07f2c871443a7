#include "timing/latency.hpp"

namespace ptxsim::timing {
namespace {

constexpr Parameter kParameters[kNumLatencies - 1] = {
    Parameter::kAluClk,    Parameter::kFmaClk,      Parameter::kDoubleClk, Parameter::kFunctionClk,
    Parameter::kSharedClk, Parameter::kConflictClk, Parameter::kL1Clk,     Parameter::kShuffleClk,
    Parameter::kVoteClk,   Parameter::kMmaSyncClk,  Parameter::kBranchClk};
// About those of an H100.
constexpr double kNominal[kNumLatencies] = {4.5, 4, 8, 18, 24, 2, 33, 24, 12, 30, 10, 1};

}  // namespace

double microseconds(const Chain& chain, const Values& values) {
  double clk = chain.of[kNumLatencies - 1];
  for (size_t i = 0; i + 1 < kNumLatencies; ++i)
    if (chain.of[i] != 0) clk += chain.of[i] * at(values, kParameters[i]);
  return clk / at(values, Parameter::kSmClock) * 1e-3;
}

double nominal_clk(const Chain& chain) {
  double clk = 0;
  for (size_t i = 0; i < kNumLatencies; ++i) clk += chain.of[i] * kNominal[i];
  return clk;
}

}  // namespace ptxsim::timing
