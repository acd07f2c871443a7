// One call: what a kernel's file provides, and the C functions that custom_kernel() calls.
#pragma once

#include <array>
#include <cstdint>

#include "tools/submission/device.hpp"
#include "tools/submission/operands.hpp"

namespace dualgemm::submission {
namespace {

struct Launches {
  const char* error = nullptr;  // null: list[0 .. count-1] in order
  size_t count = 0;
  std::array<cuda::KernelLaunch, 2> list{};

  void add(const cuda::KernelLaunch& launch) { list[count++] = launch; }
};

// Defined by the file that includes this one. Precondition of build() and workspace_bytes():
// check().
Launches build(const Operands& operands, int num_sms, uint8_t* workspace, EncodeTiled encode_tiled);
int64_t workspace_bytes(const Operands& operands, int num_sms);
const Device* current_device(const char** error);

const char* run(const Operands& operands, uint8_t* workspace) {
  const char* error = check(operands);
  if (error != nullptr) return error;
  const Device* const device = current_device(&error);
  if (device == nullptr) return error;
  const Launches launches = build(operands, device->num_sms(), workspace, device->encode_tiled());
  error = launches.error;
  for (size_t i = 0; error == nullptr && i < launches.count; ++i) error = enqueue(launches.list[i]);
  return error;
}

}  // namespace
}  // namespace dualgemm::submission

// Both return null, or what failed. Addresses are of the current GPU.
extern "C" __attribute__((visibility("default"))) const char* dual_gemm_workspace_bytes(
    int64_t m, int64_t n, int64_t k, int64_t l, int64_t* bytes) {
  using namespace dualgemm::submission;
  const Operands operands{.m = m, .n = n, .k = k, .l = l};
  const char* error = check_extents(operands);
  if (error != nullptr) return error;
  const Device* const device = current_device(&error);
  if (device != nullptr) *bytes = workspace_bytes(operands, device->num_sms());
  return error;
}

extern "C" __attribute__((visibility("default"))) const char* dual_gemm(
    const uint8_t* a, const uint8_t* gate, const uint8_t* up, const uint8_t* a_scales,
    const uint8_t* gate_scales, const uint8_t* up_scales, uint8_t* d, uint8_t* workspace, int64_t m,
    int64_t n, int64_t k, int64_t l) {
  return dualgemm::submission::run({m, n, k, l, a, gate, up, a_scales, gate_scales, up_scales, d},
                                   workspace);
}
