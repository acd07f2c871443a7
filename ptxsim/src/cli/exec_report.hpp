// The records that the stand-in has left, added up.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/findings_output.hpp"
#include "timing/counted_costs.hpp"

namespace ptxsim::cli {

struct ExecFinding {
  std::string severity;  // "error", "warning", "advisory"
  std::string text;      // several lines, as a compiler writes them
  uint64_t launches = 1;
  std::string identity;  // what other findings would have to be equal in, to be this one again
  Finding finding;       // for other tools
};

// us, summed over launches.
struct ExecTimes {
  double all = 0;
  double gap = 0, power = 0;  // of these, before the launch, and for the GPU's power limit
  double low = 0, high = 0;   // 90 % of the draws; 0: only the first cluster was recorded
};

struct ExecKernel {
  uint64_t launches = 0, warp_instructions = 0;
  uint64_t repeated = 0;  // launches that were not run, as others had the same arguments
  uint64_t clusters_left_out = 0;
  uint64_t timed = 0;                                         // of the launches
  ExecTimes times;                                            // of these, by the clock
  std::string shape;                                          // of the first launch
  timing::InstructionCounts instructions;                     // of the first timed one
  std::vector<std::pair<std::string, double>> critical_path;  // of that, us; the longest first
};

// A launch that had not ended when its process did.
struct ExecLaunchUnderWay {
  std::string kernel, shape;
  std::string place;               // where it last was seen
  uint64_t warp_instructions = 0;  // up to there
};

struct ExecReport {
  std::map<std::string, ExecKernel> kernels;
  std::vector<ExecFinding> findings;                // equal ones once
  std::vector<ExecFinding> suppressed;              // as the list of suppressions says
  std::vector<bool> used;                           // of these
  std::map<int64_t, ExecLaunchUnderWay> under_way;  // by process
  uint64_t highest_memory = 0;                      // bytes of the GPU
  bool ended = false;                               // the program came to its end: leaks are known

  uint64_t count(const std::string& severity) const;
};

// `records`: lines of JSON. What is no record is passed over: a process may have been killed while
// it wrote.
ExecReport read_exec_records(const std::string& records,
                             const std::vector<Suppression>& suppressions = {});

}  // namespace ptxsim::cli
