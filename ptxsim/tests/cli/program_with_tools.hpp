// A test with stand-ins for ptxas and nvdisasm, which CUDA_HOME names.
#pragma once

#include <optional>
#include <utility>

#include "cli/program.hpp"

namespace ptxsim_test {

// A variable of the environment, with its value of before behind the test.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (before_)
      setenv(name_, before_->c_str(), 1);
    else
      unsetenv(name_);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

class ProgramWithTools : public Program {
 protected:
  ProgramWithTools() {
    std::filesystem::create_directories(path("cuda/bin"));
    std::filesystem::create_directory(path("temporary"));
    tool("ptxas", R"(echo "${LD_PRELOAD-}$@" >> arguments)");
    tool("nvdisasm", "cat k.sass");
  }
  void tool(const std::string& name, const std::string& does) const {
    const std::string file = "cuda/bin/" + name;
    write(file, "#!/bin/sh\n" + does + "\n");
    std::filesystem::permissions(path(file), std::filesystem::perms::owner_all);
  }
  bool left_nothing_behind() const { return std::filesystem::is_empty(path("temporary")); }
  // No folder has the tools any more, whatever is installed.
  void remove_tools() {
    std::filesystem::remove_all(path("cuda"));
    path_of_programs_.emplace("PATH", "");
  }

 private:
  Variable home_{"CUDA_HOME", path("cuda").string()};
  Variable no_path_{"CUDA_PATH", ""};
  Variable temporary_{"TMPDIR", path("temporary").string()};
  std::optional<Variable> path_of_programs_;
};

}  // namespace ptxsim_test
