#include "cuda/kernels/common/device_peaks.hpp"

#include <algorithm>

#include "cuda/kernels/common/read_bytes.hpp"
#include "cuda/runtime/cublaslt.hpp"
#include "cuda/runtime/device.hpp"
#include "cuda/runtime/device_memory.hpp"
#include "cuda/runtime/graph_timer.hpp"
#include "cuda/runtime/kernel_launch.hpp"

namespace dualgemm::cuda {
namespace {

constexpr int64_t kGib = int64_t{1} << 30;
constexpr int64_t kEdge = 8192;
constexpr int kCalls = 3, kReplays = 7;  // few in a row: the clock falls under load

double fastest(const std::vector<double>& seconds) {
  return *std::min_element(seconds.begin(), seconds.end());
}

// Zeros would need less power than data do, and run at a higher clock. The bytes are below 0x40:
// finite and small in fp16 and in E4M3.
Status fill(DeviceMemory& memory) {
  std::vector<uint8_t> bytes(static_cast<size_t>(memory.size()));
  uint64_t state = 1;
  for (uint8_t& byte : bytes) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<uint8_t>(state >> 58 | (state >> 50 & 0x80));
  }
  return memory.upload(bytes.data());
}

Expected<double> time_gemm(GemmNumber number, const DeviceMemory& operands, DeviceMemory& product,
                           DeviceMemory& workspace) {
  const GemmShape shape{number, kEdge, kEdge, kEdge, 1, kEdge, 0, kEdge, 0, kEdge, 0};
  if (const Status status = plan_gemm(shape); !status.ok()) {
    if (status.code() == StatusCode::kUnsupported) return 0.0;
    return status;
  }
  const GemmOperands where{operands.data(), operands.data() + operands.size() / 2,
                           reinterpret_cast<float*>(product.data()), workspace.data()};
  const auto seconds = time_graph(kCalls, kReplays, [&](void* stream, int) {
    return enqueue_gemm(shape, where, static_cast<cudaStream_t>(stream));
  });
  if (!seconds) return seconds.status();
  return 2.0 * kEdge * kEdge * kEdge / fastest(*seconds) * 1e-9;
}

Expected<double> time_read(const DeviceMemory& memory, DeviceMemory& sum) {
  const Expected<DeviceCaps> caps = detect_device_caps();
  if (!caps) return caps.status();
  const KernelLaunch launch = read_bytes_launch(
      {memory.data(), memory.size(), reinterpret_cast<uint32_t*>(sum.data())}, caps->num_sms);
  const auto seconds = time_graph(kCalls, kReplays, [&](void* stream, int) {
    return enqueue(launch, static_cast<cudaStream_t>(stream));
  });
  if (!seconds) return seconds.status();
  return static_cast<double>(memory.size()) / fastest(*seconds) * 1e-9;
}

}  // namespace

Expected<DevicePeaks> measure_device_peaks() {
  Expected<DeviceMemory> large = DeviceMemory::allocate(2 * kGib, "peaks");
  if (!large) return large.status();
  Expected<DeviceMemory> operands = DeviceMemory::allocate(2 * kEdge * kEdge * 2, "peaks");
  if (!operands) return operands.status();
  Expected<DeviceMemory> workspace = DeviceMemory::allocate(kGemmWorkspaceBytes, "peaks");
  if (!workspace) return workspace.status();
  DUALGEMM_TRY(fill(*operands));
  const Expected<double> read = time_read(*large, *workspace);
  if (!read) return read.status();
  DevicePeaks peaks;
  peaks.read_gbps = *read;
  for (const auto& [number, rate] : {std::pair{GemmNumber::kF16, &peaks.f16_gflops},
                                     std::pair{GemmNumber::kE4M3, &peaks.e4m3_gflops}}) {
    const Expected<double> measured = time_gemm(number, *operands, *large, *workspace);
    if (!measured) return measured.status();
    *rate = *measured;
  }
  return peaks;
}

}  // namespace dualgemm::cuda
