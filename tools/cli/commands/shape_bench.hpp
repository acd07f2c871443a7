// One shape of `bench`: operands, the strategies that take part, their checks and times.
#pragma once

#include <memory>
#include <vector>

#include "tools/cli/commands/commands.hpp"
#include "tools/cli/print/bench_report.hpp"
#include "tools/cli/print/progress.hpp"
#include "tools/measure/peaks.hpp"
#include "tools/verify/operands.hpp"

namespace dualgemm::cli {

// The last cache of the device, in bytes; 0 = unknown.
int64_t last_cache(DeviceKind device);

class ShapeBench {
 public:
  ShapeBench(const BenchCommand& command, const Problem& problem);
  ~ShapeBench();

  Status make_operands();

  // Runs `strategy` once and checks its D. `again`: now with prepared weights.
  void enter(StrategyId strategy, bool again = false);

  // `peaks`: those of this machine; the ones that limit a contestant take part in every round.
  // `seconds`: the budget of the rounds. On a GPU peaks and contestants take turns, too.
  Status time(const std::vector<measure::PeakCase>& peaks, double seconds, Progress& progress,
              int64_t index, int64_t count);

  BenchShape finish();

 private:
  struct Contestant;
  struct DevicePeakRounds;

  bool limits_somebody(double measure::Peaks::*field) const;
  static measure::RoundCase host_case(Contestant& contestant);
  static measure::RoundCase device_case(Contestant& contestant);
  Status prepare_and_check(Contestant& contestant);
  Status check(Contestant& contestant);
  // For fp8, which is compared with a checked result, when nothing else was asked for.
  Status compute_trusted();
  // A copy, as timing writes the contestant's own D again.
  Status keep_trusted(const Contestant& contestant);

  const BenchCommand& command_;
  Problem problem_;
  BenchShape shape_;
  std::vector<verify::Operands> operands_;
  std::vector<std::unique_ptr<Contestant>> contestants_;
  std::unique_ptr<verify::Output> trusted_;
};

}  // namespace dualgemm::cli
