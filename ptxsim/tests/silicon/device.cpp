#include "device.hpp"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

namespace silicon {
namespace {

using ptxsim::Case;
using ptxsim::Error;
using ptxsim::ErrorKind;
using ptxsim::Fault;

constexpr size_t kGuardBytes = 4096;
constexpr std::byte kGuard{0xa5};
// Times: how many bytes the copies of a cold launch's buffers have together, which is several times
// an L2; how many copies at the most; and how long a replay is to take.
constexpr uint64_t kColdBytes = uint64_t{512} << 20;
constexpr size_t kMostCopies = 64;
constexpr double kReplayUs = 2000;
constexpr int kReplays = 9, kMostRounds = 100;

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) throw Fault(fmt::format("{}: {}", what, cudaGetErrorString(error)));
}

template <class Function>
Function entry_point(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check(cudaGetDriverEntryPointByVersion(name, &function, 12040, cudaEnableDefault, &found), name);
  if (function == nullptr || found != cudaDriverEntryPointSuccess)
    throw Fault(fmt::format("the driver has no {}", name));
  return reinterpret_cast<Function>(function);
}

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  const char* text = nullptr;
  entry_point<decltype(&cuGetErrorString)>("cuGetErrorString")(result, &text);
  throw Fault(fmt::format("{}: {}", what, text == nullptr ? "unknown error" : text));
}

class DeviceBuffer {
 public:
  explicit DeviceBuffer(uint64_t bytes) : bytes_(bytes) {
    check(cudaMalloc(&base_, bytes + 2 * kGuardBytes + 1024), "cudaMalloc");
    std::vector<std::byte> guard(bytes + 2 * kGuardBytes, kGuard);
    check(cudaMemcpy(base_, guard.data(), guard.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  ~DeviceBuffer() { cudaFree(base_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  std::byte* data() const { return static_cast<std::byte*>(base_) + kGuardBytes; }
  void set(const std::vector<std::byte>& from) const {
    check(cudaMemcpy(data(), from.data(), from.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  std::vector<std::byte> contents(const std::string& name) const {
    std::vector<std::byte> all(bytes_ + 2 * kGuardBytes);
    check(cudaMemcpy(all.data(), base_, all.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
    for (size_t i = 0; i < all.size(); ++i)
      if ((i < kGuardBytes || i >= kGuardBytes + bytes_) && all[i] != kGuard)
        throw Fault(fmt::format("the GPU wrote outside '{}', at offset {}", name,
                                static_cast<int64_t>(i - kGuardBytes)));
    return {all.begin() + kGuardBytes, all.end() - kGuardBytes};
  }

 private:
  void* base_ = nullptr;
  uint64_t bytes_;
};

CUresult encode_tiled(CUtensorMap& map, const ptxsim::TensorMap& m) {
  static const auto function =
      entry_point<decltype(&cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
  return function(&map, static_cast<CUtensorMapDataType>(m.type), m.rank,
                  reinterpret_cast<void*>(m.address),
                  reinterpret_cast<const cuuint64_t*>(m.extents.data()),
                  reinterpret_cast<const cuuint64_t*>(m.stride_bytes.data()), m.box.data(),
                  m.element_strides.data(), static_cast<CUtensorMapInterleave>(m.interleave),
                  static_cast<CUtensorMapSwizzle>(m.swizzle),
                  static_cast<CUtensorMapL2promotion>(m.l2_promotion),
                  static_cast<CUtensorMapFloatOOBfill>(m.fill));
}

// The driver's arguments are W first, as CUTLASS and Triton give them, whatever its manual's "{D,
// H, W}" says.
CUresult encode_im2col(CUtensorMap& map, const ptxsim::TensorMap& m) {
  static const auto function =
      entry_point<decltype(&cuTensorMapEncodeIm2col)>("cuTensorMapEncodeIm2col");
  return function(
      &map, static_cast<CUtensorMapDataType>(m.type), m.rank, reinterpret_cast<void*>(m.address),
      reinterpret_cast<const cuuint64_t*>(m.extents.data()),
      reinterpret_cast<const cuuint64_t*>(m.stride_bytes.data()), m.pixels.lower.data(),
      m.pixels.upper.data(), m.box[0], m.pixels.count, m.element_strides.data(),
      static_cast<CUtensorMapInterleave>(m.interleave), static_cast<CUtensorMapSwizzle>(m.swizzle),
      static_cast<CUtensorMapL2promotion>(m.l2_promotion),
      static_cast<CUtensorMapFloatOOBfill>(m.fill));
}

ptxsim::Result<std::array<uint8_t, 128>> encode(const ptxsim::TensorMap& m) {
  alignas(64) CUtensorMap map{};
  if (m.mode == ptxsim::TensorMapMode::kIm2colWide)
    return Error{ErrorKind::kInput, "im2col::w needs compute capability 10.0", {}};
  const bool tiled = m.mode == ptxsim::TensorMapMode::kTiled;
  if ((tiled ? encode_tiled(map, m) : encode_im2col(map, m)) != CUDA_SUCCESS)
    return Error{ErrorKind::kInput, "the driver refused the tensor map", {}};
  std::array<uint8_t, 128> bytes;
  std::memcpy(bytes.data(), &map, sizeof map);
  return bytes;
}

// A kernel of a PTX text, loaded as long as this lives.
class LoadedKernel {
 public:
  LoadedKernel(const std::string& ptx, const Case& c) {
    static const auto load = entry_point<decltype(&cuModuleLoadDataEx)>("cuModuleLoadDataEx");
    static const auto get = entry_point<decltype(&cuModuleGetFunction)>("cuModuleGetFunction");
    static const auto attribute = entry_point<decltype(&cuFuncSetAttribute)>("cuFuncSetAttribute");
    char log[4096] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
    if (load(&module_, ptx.c_str(), 2, options, values) != CUDA_SUCCESS)
      throw Fault(fmt::format("the driver refused the PTX: {}", log));
    check(get(&function_, module_, c.entry.c_str()), "cuModuleGetFunction");
    check(attribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                    static_cast<int>(c.launch.dynamic_shared_bytes)),
          "cuFuncSetAttribute");
  }
  ~LoadedKernel() { entry_point<decltype(&cuModuleUnload)>("cuModuleUnload")(module_); }
  LoadedKernel(const LoadedKernel&) = delete;
  LoadedKernel& operator=(const LoadedKernel&) = delete;

  void launch(const Case& c, CUstream stream) const;

 private:
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
};

void LoadedKernel::launch(const Case& c, CUstream stream) const {
  static const auto info = entry_point<decltype(&cuFuncGetParamInfo)>("cuFuncGetParamInfo");
  static const auto run = entry_point<decltype(&cuLaunchKernelEx)>("cuLaunchKernelEx");
  const auto& [grid, block, cluster] = std::tie(c.launch.grid, c.launch.block, c.launch.cluster);
  CUlaunchAttribute attributes[1] = {};
  attributes[0].id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attributes[0].value.clusterDim.x = cluster[0];
  attributes[0].value.clusterDim.y = cluster[1];
  attributes[0].value.clusterDim.z = cluster[2];
  CUlaunchConfig config{};
  config.gridDimX = grid[0], config.gridDimY = grid[1], config.gridDimZ = grid[2];
  config.blockDimX = block[0], config.blockDimY = block[1], config.blockDimZ = block[2];
  config.sharedMemBytes = c.launch.dynamic_shared_bytes;
  config.hStream = stream;
  config.attrs = attributes;
  config.numAttrs = ptxsim::volume(cluster) > 1 ? 1 : 0;
  std::vector<uint8_t> params = c.launch.params;
  // One by one: where a parameter's alignment exceeds 16, the driver's own layout begins later than
  // the blob, by as much for all of them (first parameter at 48 for one aligned to 64, seen on an
  // H200).
  std::vector<void*> arguments;
  size_t begin = 0, offset = 0, bytes = 0;
  for (size_t i = 0; info(function_, i, &offset, &bytes) == CUDA_SUCCESS; ++i) {
    if (i == 0) begin = offset;
    arguments.push_back(params.data() + (offset - begin));
  }
  check(run(&config, function_, arguments.data(), nullptr), "cuLaunchKernelEx");
}

// A case with memory of its own on the device.
struct DeviceCase {
  std::vector<std::unique_ptr<DeviceBuffer>> memory;
  std::vector<uint64_t> addresses;
  Case description;
};

ptxsim::Result<DeviceCase> place_on_device(const std::string& case_json,
                                           const std::string& folder) {
  DeviceCase placed;
  const ptxsim::CaseTarget target{
      [&](const std::string&, uint64_t bytes) {
        placed.memory.push_back(std::make_unique<DeviceBuffer>(bytes));
        placed.addresses.push_back(reinterpret_cast<uint64_t>(placed.memory.back()->data()));
        return placed.addresses.back();
      },
      encode};
  ptxsim::Result<Case> c = ptxsim::parse_case(case_json, folder, &target);
  if (!c.ok()) return c.error();
  placed.description = std::move(*c);
  for (size_t i = 0; i < placed.memory.size(); ++i)
    if (placed.description.buffers[i].initialized)
      placed.memory[i]->set(placed.description.buffers[i].data);
  return placed;
}

class Stream {
 public:
  Stream() { check(cudaStreamCreate(&stream_), "cudaStreamCreate"); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

// us of one replay of what `record` puts into the stream: the median of so many.
double median_replay(const std::function<void(cudaStream_t)>& record, int replays) {
  const Stream stream;
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "capture");
  record(stream.get());
  check(cudaStreamEndCapture(stream.get(), &graph), "capture");
  check(cudaGraphInstantiate(&executable, graph, 0), "cudaGraphInstantiate");
  cudaEvent_t begin = nullptr, end = nullptr;
  check(cudaEventCreate(&begin), "cudaEventCreate");
  check(cudaEventCreate(&end), "cudaEventCreate");
  std::vector<double> times;
  for (int i = 0; i < replays + 1; ++i) {  // the first one warms up
    check(cudaEventRecord(begin, stream.get()), "cudaEventRecord");
    check(cudaGraphLaunch(executable, stream.get()), "cudaGraphLaunch");
    check(cudaEventRecord(end, stream.get()), "cudaEventRecord");
    check(cudaStreamSynchronize(stream.get()), "the kernel");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
    if (i > 0) times.push_back(ms * 1e3);
  }
  cudaEventDestroy(begin), cudaEventDestroy(end);
  cudaGraphExecDestroy(executable), cudaGraphDestroy(graph);
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

}  // namespace

ptxsim::Result<DeviceInfo> open_device() {
  cudaDeviceProp properties{};
  DeviceInfo info;
  const cudaError_t error = cudaGetDeviceProperties(&properties, 0);
  if (error != cudaSuccess)
    return Error{ErrorKind::kInput, fmt::format("no GPU: {}", cudaGetErrorString(error)), {}};
  cudaFree(nullptr);
  cudaDriverGetVersion(&info.driver);
  info.name = properties.name;
  info.major = properties.major;
  info.minor = properties.minor;
  return info;
}

ptxsim::Result<DeviceRun> run_on_device(const std::string& ptx, const std::string& case_json,
                                        const std::string& folder) {
  try {
    ptxsim::Result<DeviceCase> placed = place_on_device(case_json, folder);
    if (!placed.ok()) return placed.error();
    const Case& c = placed->description;
    LoadedKernel(ptx, c).launch(c, nullptr);
    check(cudaDeviceSynchronize(), "the kernel");
    DeviceRun result;
    result.addresses = placed->addresses;
    for (size_t i = 0; i < placed->memory.size(); ++i)
      result.buffers.push_back(placed->memory[i]->contents(c.buffers[i].name));
    return result;
  } catch (const Fault& fault) {
    return fault.error();
  }
}

ptxsim::Result<double> time_on_device(const std::string& ptx, const std::string& case_json,
                                      const std::string& folder, bool cold) {
  try {
    std::vector<DeviceCase> copies;
    uint64_t bytes = 0;
    do {
      ptxsim::Result<DeviceCase> placed = place_on_device(case_json, folder);
      if (!placed.ok()) return placed.error();
      for (const ptxsim::CaseBuffer& b : placed->description.buffers) bytes += b.data.size();
      copies.push_back(std::move(*placed));
    } while (cold && bytes < kColdBytes && copies.size() < kMostCopies);
    const LoadedKernel kernel(ptx, copies.front().description);
    const auto in_a_row = [&](int rounds) {
      return median_replay(
                 [&](cudaStream_t stream) {
                   for (int i = 0; i < rounds; ++i)
                     for (const DeviceCase& c : copies) kernel.launch(c.description, stream);
                 },
                 kReplays) /
             (rounds * static_cast<double>(copies.size()));
    };
    const double once = in_a_row(1) * static_cast<double>(copies.size());
    return in_a_row(std::clamp(static_cast<int>(kReplayUs / once), 2, kMostRounds));
  } catch (const Fault& fault) {
    return fault.error();
  }
}

}  // namespace silicon
