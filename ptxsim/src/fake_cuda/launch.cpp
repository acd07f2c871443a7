// Launches: what CUDA refuses, and the run in the interpreter. The statuses are those that an H200
// gives (driver 580.159, CUDA 13.0).
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include "fake_cuda/host_poll.hpp"
#include "fake_cuda/session.hpp"

namespace ptxsim::cuda {
namespace {

constexpr uint32_t kSharedWithoutConsent = 48 * 1024;
constexpr uint64_t kMostPortableCluster = 8;
constexpr uint64_t kMostCluster = 16;
constexpr Dim3 kMaxGrid{0x7fffffff, 65535, 65535};
constexpr Dim3 kMaxBlock{1024, 1024, 64};

std::string text_of(const Dim3& d) { return fmt::format("{}x{}x{}", d[0], d[1], d[2]); }

bool is_within(const Dim3& extents, const Dim3& most) {
  for (int i = 0; i < 3; ++i)
    if (extents[i] < 1 || extents[i] > most[i]) return false;
  return true;
}

bool is_misaligned(const Error& error) { return error.message.find("(R14)") != std::string::npos; }

// What the host learns of a kernel that did not end as it should.
Status status_of(const Error& error) {
  switch (error.kind) {
    case ErrorKind::kInput:
      return kNotSupported;
    case ErrorKind::kDeadlock:
    case ErrorKind::kBudget:
    case ErrorKind::kStopped:
      return kLaunchTimeout;
    case ErrorKind::kFault:
      break;
  }
  if (error.message.find(" Assertion `") != std::string::npos) return kAssert;
  if (is_misaligned(error)) return kMisalignedAddress;
  return error.message.find("is not inside a registered buffer") != std::string::npos
             ? kIllegalAddress
             : kLaunchFailed;
}

// As kernels see them: ascending and disjoint. Memory that kernels do not see is left out.
void add_ranges(const DeviceMemory& memory, const std::vector<MemoryRange>& from,
                GridTrail::Ranges& to) {
  GridTrail::Ranges all;
  for (const MemoryRange& range : from) {
    Location location;
    if (memory.locate(range.begin, range.bytes, location) != kSuccess ||
        location.allocation == nullptr)
      continue;
    const uint64_t begin = location.allocation->address + location.offset;
    all.push_back({begin, begin + range.bytes, 0, false});
  }
  std::ranges::sort(all, {}, &GridTrail::Range::begin);
  for (const GridTrail::Range& range : all) {
    if (!to.empty() && range.begin <= to.back().end)
      to.back().end = std::max(to.back().end, range.end);
    else
      to.push_back(range);
  }
}

}  // namespace

bool Session::take_parameters(const Kernel& kernel, void** arguments,
                              std::vector<uint8_t>& params) const {
  const Entry& entry = *kernel.entry;
  params.assign(entry.param_bytes, 0);
  for (uint32_t i = 0; i < entry.num_params; ++i) {
    const Variable& parameter = entry.variables[i];
    if (arguments == nullptr || arguments[i] == nullptr) return false;
    std::memcpy(params.data() + parameter.offset, arguments[i], parameter.bytes);
  }
  return true;
}

Status Session::refuse_launch(const LaunchRequest& request, Status status,
                              const std::string& message) const {
  recorder.refused("launch of " + demangled(request.kernel->entry->name), status, message);
  return status;
}

uint32_t Session::blocks_per_sm(const Kernel& kernel, uint32_t threads,
                                uint64_t dynamic_shared_bytes) const {
  const auto program = LoadedModule::program_of(const_cast<Kernel&>(kernel));
  const uint64_t shared =
      (program == nullptr ? 0 : program->static_shared_bytes) + dynamic_shared_bytes;
  if (shared > std::max(kSharedWithoutConsent, kernel.max_dynamic_shared_bytes) || threads == 0 ||
      threads > 1024)
    return 0;
  const uint32_t warps = (threads + kWarpSize - 1) / kWarpSize;
  const uint64_t by_threads = device.threads_per_sm / (warps * kWarpSize);
  const uint64_t by_shared = device.shared_bytes_per_sm / (shared + 1024);
  return static_cast<uint32_t>(std::min<uint64_t>({by_threads, by_shared, device.blocks_per_sm}));
}

Status Session::check_launch(const LaunchRequest& request) const {
  const Kernel& kernel = *request.kernel;
  const Entry& entry = *kernel.entry;
  const auto refuse = [&](Status status, const std::string& message) {
    return refuse_launch(request, status, message);
  };
  if (!is_within(request.grid, kMaxGrid))
    return refuse(kInvalidValue,
                  fmt::format("grid {}; from 1 to {}", text_of(request.grid), text_of(kMaxGrid)));
  const uint64_t threads = volume(request.block);
  if (!is_within(request.block, kMaxBlock) || threads > 1024)
    return refuse(kInvalidValue, fmt::format("block {}; from 1 to {}, and at most 1024 threads",
                                             text_of(request.block), text_of(kMaxBlock)));
  const uint64_t bound = uint64_t{entry.maxntid[0]} * entry.maxntid[1] * entry.maxntid[2];
  if (bound != 0 && threads > bound)
    return refuse(kInvalidValue,
                  fmt::format("{} threads; __launch_bounds__ allows {}", threads, bound));
  if (entry.reqntid[0] != 0 && request.block != Dim3(entry.reqntid))
    return refuse(kInvalidValue, fmt::format("block {}; the kernel requires {}",
                                             text_of(request.block), text_of(Dim3(entry.reqntid))));
  const bool required = entry.reqnctapercluster[0] != 0;
  const Dim3 cluster =
      required && !request.has_cluster ? Dim3(entry.reqnctapercluster) : request.cluster;
  if (required && cluster != Dim3(entry.reqnctapercluster))
    return refuse(kInvalidClusterSize,
                  fmt::format("cluster {}; the kernel requires {}", text_of(cluster),
                              text_of(Dim3(entry.reqnctapercluster))));
  const uint64_t most = kernel.non_portable_cluster_size ? kMostCluster : kMostPortableCluster;
  if (volume(cluster) == 0 || volume(cluster) > most)
    return refuse(kInvalidClusterSize,
                  fmt::format("cluster {}; at most {} CTAs", text_of(cluster), most));
  for (int i = 0; i < 3; ++i)
    if (request.grid[i] % cluster[i] != 0)
      return refuse(kInvalidClusterSize, fmt::format("grid {} is not a multiple of cluster {}",
                                                     text_of(request.grid), text_of(cluster)));
  const uint64_t statically = kernel.program == nullptr ? 0 : kernel.program->static_shared_bytes;
  const uint64_t shared = statically + request.dynamic_shared_bytes;
  const uint64_t allowed =
      std::max<uint64_t>(kSharedWithoutConsent, statically + kernel.max_dynamic_shared_bytes);
  if (shared > allowed)
    return refuse(
        kInvalidValue,
        fmt::format(
            "{} bytes of shared memory, {} of them dynamic; allowed are {}, and up to {} with "
            "cudaFuncAttributeMaxDynamicSharedMemorySize",
            shared, request.dynamic_shared_bytes, allowed, device.shared_bytes_per_block()));
  if (volume(cluster) > 1 && settings.max_clusters == 0)
    return refuse(
        kInvalidClusterSize,
        fmt::format("cluster {}; none can be scheduled, as --max-clusters says", text_of(cluster)));
  const uint64_t resident = uint64_t{blocks_per_sm(kernel, static_cast<uint32_t>(threads),
                                                   request.dynamic_shared_bytes)} *
                            device.sms;
  if (request.cooperative && volume(request.grid) > resident)
    return refuse(
        kCooperativeLaunchTooLarge,
        fmt::format("{} blocks; at most {} are resident at once", volume(request.grid), resident));
  return kSuccess;
}

void Session::touched(const char* call, const void* to, const void* from, size_t bytes) {
  using Ranges = std::vector<MemoryRange>;
  touched(call, to == nullptr ? Ranges{} : Ranges{{to, bytes}},
          from == nullptr ? Ranges{} : Ranges{{from, bytes}});
}

void Session::touched(const char* call, const std::vector<MemoryRange>& writes,
                      const std::vector<MemoryRange>& reads) {
  const auto trail = std::make_shared<GridTrail>();
  trail->kernel = call;
  trail->accesses.push_back(call);
  add_ranges(memory, writes, trail->writes);
  add_ranges(memory, reads, trail->reads);
  if (launched_saw(trail->writes)) forget_launched();
  const std::vector<Report> reports = streams.touched(trail);
  if (!reports.empty()) recorder.found(call, reports);
}

void Session::forget_launched() {
  launched_.clear();
  trails_of_launched_.clear();
}

// Benchmarks fill a buffer of their own before each launch, so that L2 holds nothing else.
bool Session::launched_saw(const GridTrail::Ranges& writes) const {
  return std::ranges::any_of(trails_of_launched_, [&](const auto& trail) {
    return std::ranges::any_of(writes, [&](const GridTrail::Range& range) {
      return trail == nullptr || find_overlap(trail->writes, range.begin, range.end) != nullptr ||
             find_overlap(trail->reads, range.begin, range.end) != nullptr;
    });
  });
}

// Whether such a launch has been run since its memory changed; from now on it has.
bool Session::has_run(const LaunchRequest& request) {
  if (changes_of_launched_ != memory.changes()) forget_launched();
  changes_of_launched_ = memory.changes();
  std::string key = fmt::format("{} {} {} {} {} ", static_cast<const void*>(request.kernel),
                                text_of(request.grid), text_of(request.block),
                                text_of(request.cluster), request.dynamic_shared_bytes);
  key.append(request.params.begin(), request.params.end());
  return !launched_.insert(std::move(key)).second;
}

Status Session::launch(const LaunchRequest& request, GridChain& chain) {
  if (sticky != kSuccess) return sticky;
  Kernel& kernel = *request.kernel;
  const auto program = LoadedModule::program_of(kernel);
  if (program == nullptr) {
    recorder.refused("launch of " + demangled(kernel.entry->name), kNotSupported, kernel.refusal,
                     false);
    return sticky = kNotSupported;
  }
  if (settings.once && has_run(request)) {
    recorder.repeated(kernel.entry->name);
    return sticky;
  }
  Launch launch{.grid = request.grid,
                .block = request.block,
                .cluster = request.cluster,
                .dynamic_shared_bytes = request.dynamic_shared_bytes,
                .params = request.params,
                .previous_grid = {},
                .earlier_grids = request.overlaps ? chain.beside_next() : EarlierGrids()};
  Options options = settings.options;
  options.keep_trail = true;
  // The clock tells what a statement multiplies by what the machine has since the last one.
  if (clock && options.admits_more) options.resident_clusters = 1;
  if (request.cooperative) {  // its blocks may wait for each other
    options.resident_clusters = static_cast<uint32_t>(volume(launch.grid));
    options.sample = 0;
  }
  if (last_launched_ != kernel.module) {
    if (last_launched_ != nullptr) last_launched_->name_variables(memory, false);
    kernel.module->name_variables(memory, true);
    last_launched_ = kernel.module;
  }
  memory.load_host_memory();
  if (request.cooperative)
    memory.global().add("workspace of the grid", kGridWorkspace,
                        std::vector<std::byte>(kGridWorkspaceBytes), true, false);
  const HostPoll poll(memory);
  auto observers = clock ? clock->begin(kernel, *program, launch) : std::vector<MakeObserver>();
  if (clock && !kernel.costs->refusal.empty())
    recorder.refused("estimate of " + demangled(kernel.entry->name), kNotSupported,
                     kernel.costs->refusal, false);
  if (streams.may_wait() && has_strong_loads(*program) && memory.has_host_memory()) {
    observers.push_back(poll.observer());
    options.stop = poll.found();
  }
  options.on_progress = [this](const Progress& progress) { recorder.goes_on(progress); };
  recorder.begins(kernel.entry->name, launch);
  RunResult result = run(kernel.module->with_constants(program, memory), launch, memory.global(),
                         options, std::move(observers));
  if (request.cooperative) memory.global().remove(kGridWorkspace);
  if (result.error &&
      result.error->kind ==
          ErrorKind::kStopped) {  // nothing has come of it; `begins` says where it waits
    forget_launched();
    return kWaits;
  }
  const std::optional<LaunchEstimate> told =
      clock && !result.error ? clock->estimate(*program, launch, memory.global()) : std::nullopt;
  if (result.trail) result.trail->kernel = demangled(kernel.entry->name);
  // The trail of a sample leaves out what others touch.
  if (settings.once) trails_of_launched_.push_back(options.sample == 0 ? result.trail : nullptr);
  chain.add(result.trail, launch.earlier_grids);
  for (Report& report : streams.touched(result.trail)) result.reports.add(std::move(report));
  memory.store_host_memory();
  // As CUDA's runtime does when the host waits for the kernel, which here it always has.
  for (const PrintedText& printed : result.printed.texts) std::fputs(printed.text.c_str(), stdout);
  recorder.launched(kernel.entry->name, launch, result, told);
  if (result.error) sticky = status_of(*result.error);
  return sticky;
}

}  // namespace ptxsim::cuda
