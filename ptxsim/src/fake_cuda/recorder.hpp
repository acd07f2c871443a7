// What happened, for the report of `ptxsim exec`: one JSON object a line, appended at once to a
// file, so that nothing is lost when the program crashes. Processes that the program starts append
// to the same file.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "fake_cuda/device_memory.hpp"
#include "fake_cuda/launch_clock.hpp"
#include "ptxsim/ptxsim.hpp"

namespace ptxsim::cuda {

class Recorder {
 public:
  explicit Recorder(std::string path) : path_(std::move(path)) {}

  // The launch is under way: what is known of it when the process is killed.
  void begins(const std::string& kernel, const Launch& launch) const;
  void goes_on(const Progress& progress) const;  // at most once a second
  // `told`: by the clock, where there is one.
  void launched(const std::string& kernel, const Launch& launch, const RunResult& result,
                const std::optional<LaunchEstimate>& told) const;
  // A launch that was not run, as one with the same arguments has been.
  void repeated(const std::string& kernel) const;
  // Findings of work that is no launch, `what`: a copy.
  void found(const std::string& what, const std::vector<Report>& reports) const;
  // A call that was refused, or did not do what the program may expect. `modelled` false: CUDA
  // would have done it.
  void refused(const std::string& call, int status, const std::string& message,
               bool modelled = true) const;
  void leaked(const Allocation& allocation) const;
  void ended(uint64_t highest_memory) const;

 private:
  void append(const std::string& line) const;
  std::string path_;
  mutable std::chrono::steady_clock::time_point last_progress_;
};

// `name` as C++ writes it, without its parameters' namespaces shortened; itself when it is not
// mangled.
std::string demangled(const std::string& name);

}  // namespace ptxsim::cuda
