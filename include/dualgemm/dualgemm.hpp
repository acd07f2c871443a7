// C++ API of nvfp4_dual_gemm. One call for everything:
//
//   // prologue: operands                 (m, n, k, and where A, Gate, Up, their scales and D lie)
//   dualgemm::Problem problem{.m = m, .n = n, .k = k};
//   dualgemm::Buffers buffers{.a = a, .a_scales = a_scales, .gate = gate,
//                             .gate_scales = gate_scales, .up = up, .up_scales = up_scales,
//                             .alpha_gate = alpha_gate, .alpha_up = alpha_up, .d = d};
//   dualgemm::Status status = dualgemm::run(problem, buffers);
//   if (!status.ok()) return report(status.message());
//
// A layer that runs again and again plans once, keeps its workspace, and prepares its weights:
//
//   // prologue: operands_and_problem     (the first two statements of the above)
//   auto plan = dualgemm::make_plan(problem, {.prepared = true});
//   if (!plan) return report(plan.status().message());
//   auto workspace = dualgemm::Workspace::allocate(*plan);
//   if (!workspace) return report(workspace.status().message());
//   auto weights = dualgemm::prepare(*plan, buffers);  // Gate and Up may be freed now
//   if (!weights) return report(weights.status().message());
//   buffers.prepared = &*weights;
//   dualgemm::Status status = dualgemm::run(*plan, buffers, *workspace);
//   if (!status.ok()) return report(status.message());
//
// Prepared weights are bytes, and may lie in memory of the caller's: in a file that is mapped, in
// an allocator's arena, in a tensor:
//
//   // prologue: operands_and_problem     (as above)
//   auto plan = dualgemm::make_plan(problem, {.prepared = true});
//   if (!plan) return report(plan.status().message());
//   const int64_t bytes = plan->prepared_bytes;
//   void* memory = std::aligned_alloc(64, bytes);  // bytes: a multiple of 256
//   dualgemm::Status status = dualgemm::prepare(*plan, buffers, memory, bytes);
//   if (!status.ok()) return report(status.message());
//   // ... written to a file, read again at another place:
//   auto weights = dualgemm::open_prepared(memory, bytes);
//   if (!weights) return report(weights.status().message());
//   buffers.prepared_view = &*weights;
//   status = dualgemm::run(problem, buffers);
//   std::free(memory);
//   if (!status.ok()) return report(status.message());
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dualgemm/formats.hpp"
#include "dualgemm/quantize.hpp"
#include "dualgemm/status.hpp"
#include "dualgemm/types.hpp"
#include "dualgemm/version.h"

namespace dualgemm {

// "0.1.0"
const char* version() noexcept;

// What this machine offers. Detected once, then cached; thread-safe.
const DeviceCaps& device_caps();

// The same for one kind of device; kCuda: the current GPU, which is asked through a CUDA context if
// its compute capability is 10.x. An error says why there is none: no GPU, no driver, or a build
// without CUDA.
Expected<DeviceCaps> device_caps(DeviceKind kind);

// Every rule of Problem (and of Problem with Buffers) that can be checked without running: shapes,
// strides, alignment, overflow, overlap of D with any input, nulls, activation parameters, expert
// offsets, which it reads: host memory. The first broken rule is returned.
Status validate(const Problem& problem);
Status validate(const Problem& problem, const Buffers& buffers);

// Bytes that each buffer of a problem must have, from its first to one past the last byte used; 0 =
// not used. Contiguous groups with swizzled scales of A or D depend on how the rows fall to the
// experts: the size given suffices for every distribution.
struct OperandSizes {
  int64_t a = 0, a_scales = 0;
  int64_t gate = 0, gate_scales = 0;
  int64_t up = 0, up_scales = 0;
  int64_t d = 0, d_scales = 0;
  int64_t a_row_scale = 0;  // if one is passed
  int64_t bias_gate = 0, bias_up = 0;
};
Expected<OperandSizes> operand_sizes(const Problem& problem);

// Chooses how to run `problem` on this machine, or says why it cannot. Pure in (problem,
// device_caps() of options.device, options, DUALGEMM_FORCE_ISA). kAuto is the CPU.
Expected<Plan> make_plan(const Problem& problem, const PlanOptions& options = {});
Expected<Plan> make_plan(const Problem& problem, const PlanOptions& options,
                         const DeviceCaps& caps);

// What a strategy can do once per weight: packed NVFP4 panels (0.5625 bytes a value), decoded
// weights, ... An explicit handle, which owns its bytes, on kCuda the GPU's, unless they are
// borrowed; move-only. What it fits: Buffers::prepared.
class PreparedWeights {
 public:
  // A handle over bytes of the caller's, which must outlive it. For strategy graph on kCuda, which
  // keeps what it has recorded in a handle; for the others a view is as good.
  static Expected<PreparedWeights> borrow(const PreparedView& view);

  PreparedWeights() noexcept;
  ~PreparedWeights();
  PreparedWeights(PreparedWeights&&) noexcept;
  PreparedWeights& operator=(PreparedWeights&&) noexcept;

  bool empty() const noexcept;
  int64_t size_bytes() const noexcept;
  PreparedView view() const noexcept;  // of its bytes, valid as long as it lives

  struct Impl;  // of the library
  explicit PreparedWeights(std::unique_ptr<Impl> impl) noexcept;
  const Impl* impl() const noexcept { return impl_.get(); }
  Impl* impl() noexcept { return impl_.get(); }

 private:
  std::unique_ptr<Impl> impl_;
};

// Reads gate, gate_scales, up and up_scales of `buffers`; afterwards these four may be null or
// freed. Unsupported when plan.prepared_bytes == 0. On kCuda it allocates device memory, works on
// buffers.stream and returns when that is done: not while the stream records a graph.
Expected<PreparedWeights> prepare(const Plan& plan, const Buffers& buffers);

// What prepare() makes for a plan, whatever plan.prepared is. Unsupported when it makes nothing.
Expected<PreparedDescriptor> prepared_descriptor(const Plan& plan);

// The same into memory of the caller's: descriptor.bytes (plan.prepared_bytes) of it at a multiple
// of descriptor.alignment, apart from the weights. Every byte is written, and depends on the
// weights' values and the format alone: it is the same on every machine, for any number of threads
// and for any layout that the weights had. One expert's part is what a plan with l = 1 and the same
// format makes of that expert. On kCuda device memory; nothing is allocated, the rest is as above.
Status prepare(const Plan& plan, const Buffers& buffers, void* memory, int64_t bytes);

// What prepared bytes are, by their first header. header: kPreparedHeaderBytes in memory of the
// host, at any alignment; bytes: how many there are in all. An error says what is wrong: no
// header, another version of the format, bytes that are cut off.
Expected<PreparedDescriptor> read_prepared_header(const void* header, int64_t bytes);

// The same for all of the bytes in memory of the host: looks at the header of every part. To run on
// a GPU copy them to device memory and set view.memory to it.
Expected<PreparedView> open_prepared(const void* memory, int64_t bytes);

// Some of the experts, for a plan whose l is `count`.
Expected<PreparedView> prepared_experts(const PreparedView& view, int64_t first, int64_t count = 1);

// Memory for run(), on the host or on the current GPU, at a multiple of 64. Not initialised;
// move-only. On a GPU it must live until the stream has passed the last run that uses it.
class Workspace {
 public:
  // plan.workspace_bytes on plan.device.
  static Expected<Workspace> allocate(const Plan& plan);
  // kAuto is the CPU. 0 bytes are legal: data() is null then.
  static Expected<Workspace> allocate(int64_t bytes, DeviceKind device = DeviceKind::kCpu);

  Workspace() noexcept;  // 0 bytes
  Workspace(Workspace&& other) noexcept;
  Workspace& operator=(Workspace&& other) noexcept;
  ~Workspace() = default;

  void* data() const noexcept { return memory_.get(); }
  int64_t size_bytes() const noexcept { return size_bytes_; }
  DeviceKind device() const noexcept { return device_; }

 private:
  struct Free {
    DeviceKind device = DeviceKind::kCpu;
    void operator()(void* memory) const noexcept;
  };
  Workspace(void* memory, int64_t bytes, DeviceKind device) noexcept;

  std::unique_ptr<void, Free> memory_;
  int64_t size_bytes_ = 0;
  DeviceKind device_ = DeviceKind::kCpu;
};

// Runs the plan. Validates first; on any error nothing is written. `workspace` needs
// plan.workspace_bytes bytes at 64-byte alignment (null is legal for 0 bytes). Reentrant: plans and
// prepared weights may be shared between threads, a workspace may not. The bytes of the workspace
// that are needed must not overlap any operand. On kCuda all arrays, the stream and the prepared
// weights must belong to the current GPU, and the workspace must live until the stream has passed.
// Our kernels may be launched so that they overlap the end of the one before them; they read
// nothing but prepared weights before it has ended. So prepared bytes that the caller has copied to
// a GPU must be there when run() is called, not only enqueued before it on the stream. A kernel of
// the caller's that is itself launched with programmatic stream serialization after ours must wait
// (griddepcontrol.wait) before it writes anything that ours read or reads what ours wrote.
Status run(const Plan& plan, const Buffers& buffers, void* workspace, int64_t workspace_bytes,
           RunInfo* info = nullptr);

// The same in a Workspace, which must be on the plan's device.
Status run(const Plan& plan, const Buffers& buffers, const Workspace& workspace,
           RunInfo* info = nullptr);

// One call for everything: makes the plan, prepares the weights if the options or the strategy
// demand it and the buffers have none, allocates the workspace, runs, frees. If the buffers have
// prepared weights the plan is made with PlanOptions::prepared. On kCuda it returns when the result
// is there.
Status run(const Problem& problem, const Buffers& buffers, const PlanOptions& options = {},
           RunInfo* info = nullptr);

// The strategies in the order of the documentation's table.
std::vector<StrategyId> all_strategies();
// Those that this build has for one kind of device.
std::vector<StrategyId> all_strategies(DeviceKind device);

}  // namespace dualgemm
