// What nvcc's start-up code registers: fat binaries, and which function or variable of the host stands for which of theirs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ptxsim/cuda/session.hpp"

namespace ptxsim::cuda::runtime {

struct RegisteredVariable {
  std::string name;
  uint64_t bytes = 0;
  bool constant = false;
};

struct RegisteredImage {
  const void* image = nullptr;
  LoadedModule* module = nullptr;  // nullptr: not loaded yet
  std::map<const void*, RegisteredVariable> variables;
};

class Registry {
 public:
  static Registry& get();

  RegisteredImage* add(const void* image);
  void remove(RegisteredImage* image);
  void add_function(RegisteredImage* image, const void* host, const char* name);

  // kInvalidHandle: no registered function; or what loading its image gives.
  Status kernel_of(Session& session, const void* host, Kernel*& kernel);
  // kInvalidSymbol: no registered variable.
  Status variable_of(Session& session, const void* host, LoadedModule*& module,
                     ModuleVariable*& variable);
  // Why the thread's last __cudaGetKernel found none: nvcc's code launches nullptr then.
  static Status& last_lookup();

 private:
  Status load(Session& session, RegisteredImage& image);
  struct Function {
    RegisteredImage* image;
    std::string name;
  };
  std::vector<std::unique_ptr<RegisteredImage>> images_;
  std::map<const void*, Function> functions_;
};

}  // namespace ptxsim::cuda::runtime
