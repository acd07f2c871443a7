// A kind of device as the API sees it: what it offers, which strategies run on it, what must hold
// of a call's memory, and where a workspace comes from.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/gather.hpp"
#include "core/quantize_problem.hpp"
#include "dualgemm/experts.hpp"
#include "dualgemm/types.hpp"
#include "plan/strategy.hpp"

namespace dualgemm::api {

// An array of the caller, under the name that errors give it; null: not checked.
struct NamedArray {
  const char* name;
  const void* data;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual DeviceKind device() const noexcept = 0;

  // What the current device of this kind offers; looked at once. Thread-safe.
  virtual const Expected<DeviceCaps>& capabilities() const = 0;

  // In the order of the documentation's table. The objects live as long as the program.
  virtual std::span<const Strategy* const> strategies() const = 0;

  // Does the current device offer what the plan runs on?
  virtual Status check_isa(const Plan& plan) const = 0;

  // What an edited plan may ask for. Comes before the buffers are looked at.
  virtual Status check_problem(const core::CheckedProblem& problem,
                               const Strategy& strategy) const = 0;

  // Does all that the call reads and writes belong to the device that will run it? `workspace` may
  // be null; prepared weights have their view.
  virtual Status check_memory(const Buffers& buffers, const void* workspace) const = 0;

  // The number of the current device, for prepared weights; -1: there is but one.
  virtual int current_device() const noexcept = 0;

  // A workspace at a multiple of 64 bytes. bytes > 0.
  virtual Expected<void*> allocate(int64_t bytes) const = 0;
  virtual void free(void* memory) const noexcept = 0;
  // For prepared weights, as aligned as any of their formats wants it.
  virtual Expected<std::shared_ptr<void>> allocate_prepared(int64_t bytes) const = 0;
  // Until all that was enqueued on buffers.stream is done.
  virtual Status wait(const Buffers& buffers) const = 0;

  // The same as check_memory() for any arrays and a stream.
  virtual Status check_arrays(std::span<const NamedArray> arrays, void* stream) const = 0;
  // Bytes that quantize() needs beside its operands.
  virtual int64_t quantize_workspace(const core::ResolvedQuantize& problem) const noexcept = 0;
  // What can be refused only where it runs: sizes that the device cannot count to, and what the
  // arrays hold if the host reads them. Then the work itself. Everything else has been checked.
  virtual Status quantize(const core::ResolvedQuantize& problem, const QuantizeBuffers& buffers,
                          int threads) const = 0;
  virtual Status transform_rows(const TransformProblem& problem, const TransformBuffers& buffers,
                                int threads) const = 0;
  virtual Status dequantize(const core::ResolvedQuantize& problem, const DequantizeBuffers& buffers,
                            int threads) const = 0;
  virtual Status convert_scales(const core::ResolvedConversion& conversion, const uint8_t* src,
                                uint8_t* dst, void* stream) const = 0;
  virtual Status route_tokens(const RoutingProblem& problem,
                              const RoutingBuffers& buffers) const = 0;
  // For what cannot read rows by index; the CPU can.
  virtual Status gather_rows(const core::Gather& gather, void* stream) const = 0;
  virtual Status combine_tokens(const CombineProblem& problem, const CombineBuffers& buffers,
                                int threads) const = 0;
};

const Backend& cpu_backend() noexcept;
const Backend& cuda_backend() noexcept;  // in a build without CUDA: one that says so

const Backend& backend_of(DeviceKind device) noexcept;  // kAuto: the CPU's

// The strategies of all backends, the oracle first; made once, thread-safe.
std::span<const Strategy* const> registry();

// For what needs CUDA in a build without it.
Status not_in_this_build();

}  // namespace dualgemm::api
