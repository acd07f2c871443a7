#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "api/backend.hpp"
#include "api/reference_strategy.hpp"
#include "core/aligned_bytes.hpp"
#include "core/int_math.hpp"
#include "core/routing.hpp"
#include "core/row_transform.hpp"
#include "cpu/device_caps.hpp"
#include "cpu/strategies.hpp"

namespace dualgemm::api {
namespace {

constexpr int64_t kAlignment = 64;

class CpuBackend final : public Backend {
 public:
  DeviceKind device() const noexcept override { return DeviceKind::kCpu; }

  const Expected<DeviceCaps>& capabilities() const override {
    static const Expected<DeviceCaps> caps = cpu::detect_device_caps();
    return caps;
  }

  std::span<const Strategy* const> strategies() const override {
    static const std::vector<const Strategy*> all = [] {
      std::vector<const Strategy*> list{&reference_strategy()};
      for (const Strategy* strategy : cpu::strategies()) list.push_back(strategy);
      return list;
    }();
    return all;
  }

  Status check_isa(const Plan& plan) const override {
    const std::vector<Isa>& isas = capabilities()->isas;
    if (std::find(isas.begin(), isas.end(), plan.isa) != isas.end()) return {};
    return Status::unsupported("plan.isa", name_of(plan.isa), "this machine does not offer it");
  }

  // The strategies check what they rely on.
  Status check_problem(const core::CheckedProblem&, const Strategy&) const override { return {}; }
  Status check_memory(const Buffers&, const void*) const override { return {}; }
  int current_device() const noexcept override { return -1; }

  Expected<void*> allocate(int64_t bytes) const override {
    const auto size = static_cast<size_t>(core::round_up(bytes, kAlignment));
    void* const memory = std::aligned_alloc(kAlignment, size);
    if (memory != nullptr) return memory;
    return Status::error(StatusCode::kOutOfMemory, "workspace_bytes", std::to_string(bytes),
                         "allocation failed");
  }
  void free(void* memory) const noexcept override { std::free(memory); }
  Expected<std::shared_ptr<void>> allocate_prepared(int64_t bytes) const override {
    Expected<core::AlignedBytes> memory = core::AlignedBytes::allocate(bytes, "prepared weights");
    if (!memory) return memory.status();
    const auto owner = std::make_shared<core::AlignedBytes>(*std::move(memory));
    return std::shared_ptr<void>(owner, owner->data());
  }
  Status wait(const Buffers&) const override { return {}; }  // run() has waited

  Status check_arrays(std::span<const NamedArray>, void*) const override { return {}; }
  int64_t quantize_workspace(const core::ResolvedQuantize&) const noexcept override { return 0; }
  Status quantize(const core::ResolvedQuantize& problem, const QuantizeBuffers& buffers,
                  int threads) const override {
    DUALGEMM_TRY(core::check_groups(problem, buffers.groups));
    DUALGEMM_TRY(core::check_given_scales(problem, buffers.global_scale));
    return core::quantize_on_cpu(problem, buffers, threads);
  }
  Status transform_rows(const TransformProblem& problem, const TransformBuffers& buffers,
                        int threads) const override {
    return core::transform_rows_on_cpu(problem, buffers, threads);
  }
  Status dequantize(const core::ResolvedQuantize& problem, const DequantizeBuffers& buffers,
                    int threads) const override {
    DUALGEMM_TRY(core::check_groups(problem, buffers.groups));
    return core::dequantize_on_cpu(problem, buffers, threads);
  }
  Status convert_scales(const core::ResolvedConversion& conversion, const uint8_t* src,
                        uint8_t* dst, void*) const override {
    core::convert_scales_on_cpu(conversion, src, dst);
    return {};
  }
  Status route_tokens(const RoutingProblem& problem, const RoutingBuffers& buffers) const override {
    return core::route_on_cpu(problem, buffers);
  }
  Status gather_rows(const core::Gather&, void*) const override {
    return Status::error(StatusCode::kInternal, "gather", "on the CPU", "is never planned");
  }
  Status combine_tokens(const CombineProblem& problem, const CombineBuffers& buffers,
                        int threads) const override {
    return core::combine_on_cpu(problem, buffers, threads);
  }
};

}  // namespace

const Backend& cpu_backend() noexcept {
  static const CpuBackend backend;
  return backend;
}

}  // namespace dualgemm::api
