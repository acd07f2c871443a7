#include "kernels/submission/submitted.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <map>

namespace dualgemm::test {
namespace {

Probe probe_of(const std::string& name) {
  static std::map<std::string, Probe> probes;
  Probe& probe = probes[name];
  if (probe != nullptr) return probe;
  const std::string file = std::string(DUALGEMM_SUBMISSION_FOLDER) + "/" + name + ".so";
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    ADD_FAILURE() << dlerror();
    return nullptr;
  }
  return probe = reinterpret_cast<Probe>(dlsym(library, "dualgemm_probe"));
}

}  // namespace

ProbeAnswer submitted(const std::string& name, const Problem& problem, const Buffers& buffers,
                      int num_sms, void* workspace, cuda::EncodeTiled encode_tiled) {
  ProbeAnswer answer;
  const Probe probe = probe_of(name);
  if (probe == nullptr) {
    answer.error = "no probe";
    return answer;
  }
  const auto bytes = [](const void* data) { return static_cast<const uint8_t*>(data); };
  probe({problem.m, problem.n, problem.k, problem.l, bytes(buffers.a), bytes(buffers.gate),
         bytes(buffers.up), buffers.a_scales, buffers.gate_scales, buffers.up_scales,
         static_cast<uint8_t*>(buffers.d), static_cast<uint8_t*>(workspace), num_sms,
         reinterpret_cast<void*>(encode_tiled)},
        answer);
  return answer;
}

}  // namespace dualgemm::test
