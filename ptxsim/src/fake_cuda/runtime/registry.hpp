// What nvcc's start-up code registers: fat binaries, and which function or variable of the host
// stands for which of theirs.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fake_cuda/session.hpp"

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
  // __managed__ ones: where the host's code looks for the address.
  std::vector<std::pair<void**, std::string>> managed;
};

class Registry {
 public:
  static Registry& get();

  RegisteredImage* add(const void* image);
  void remove(RegisteredImage* image);
  void add_function(RegisteredImage* image, const void* host, const char* name);
  Status load(Session& session, RegisteredImage& image);  // unless it has been

  // kInvalidHandle: no registered function; or what loading its image gives.
  Status kernel_of(Session& session, const void* host, Kernel*& kernel);
  // The function of the host that stands for the kernel; the kernel itself where there is none.
  const void* host_of(const Kernel& kernel) const;
  // kInvalidSymbol: no registered variable.
  Status variable_of(Session& session, const void* host, LoadedModule*& module,
                     ModuleVariable*& variable);
  // Why the thread's last __cudaGetKernel found none: nvcc's code launches nullptr then.
  static Status& last_lookup();

 private:
  struct Function {
    RegisteredImage* image;
    std::string name;
  };
  std::vector<std::unique_ptr<RegisteredImage>> images_;
  std::map<const void*, Function> functions_;
};

}  // namespace ptxsim::cuda::runtime
