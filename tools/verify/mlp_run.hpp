// A gated MLP whose operands lie in host memory, run on the CPU or on a GPU.
#pragma once

#include <memory>

#include "dualgemm/mlp.hpp"

namespace dualgemm::verify {

class MlpRun {
 public:
  MlpRun() noexcept;
  ~MlpRun();
  MlpRun(MlpRun&&) noexcept;
  MlpRun& operator=(MlpRun&&) noexcept;

  // Plans, prepares the weights if the options say so, allocates the workspace, and on kCuda copies
  // the operands to the current GPU. Looks at no residual: a checkpoint's layer has none. What
  // `host` points to must live as long as the run.
  static Expected<MlpRun> make(const MlpProblem& problem, const MlpBuffers& host,
                               const PlanOptions& options);

  const GatedMlp& mlp() const noexcept;

  // Runs and waits; Y is in the host's memory then.
  Status run();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace dualgemm::verify
