#include <fmt/format.h>

#include "tools/cli/commands/commands.hpp"
#include "tools/cli/parse/gpu_table.hpp"
#include "tools/cli/print/build_info.hpp"
#include "tools/cli/print/json.hpp"
#include "tools/cli/print/report.hpp"
#include "tools/measure/peaks.hpp"

namespace dualgemm::cli {
namespace {

struct PeakLine {
  const char* key;
  const char* what;
  const char* unit;
  double measure::Peaks::*field;
};

constexpr PeakLine kPeakLines[] = {
    {"vnni_zmm_gops", "int8 dot, AVX-512 VNNI", "GOP/s", &measure::Peaks::vnni_zmm_gops},
    {"vnni_block_gops", "NVFP4 blocks, AVX-512 VNNI", "GOP/s", &measure::Peaks::vnni_block_gops},
    {"avx2_dot_gops", "int8 dot, AVX2", "GOP/s", &measure::Peaks::avx2_dot_gops},
    {"avx2_block_gops", "NVFP4 blocks, AVX2", "GOP/s", &measure::Peaks::avx2_block_gops},
    {"fma_zmm_gflops", "fp32 FMA, AVX-512", "GFLOP/s", &measure::Peaks::fma_zmm_gflops},
    {"fma_ymm_gflops", "fp32 FMA, AVX2", "GFLOP/s", &measure::Peaks::fma_ymm_gflops},
    {"bf16_zmm_gflops", "bf16 pairs, AVX-512", "GFLOP/s", &measure::Peaks::bf16_zmm_gflops},
    {"amx_bf16_gflops", "bf16 tiles, AMX", "GFLOP/s", &measure::Peaks::amx_bf16_gflops},
    {"sdot_gops", "int8 dot, NEON", "GOP/s", &measure::Peaks::sdot_gops},
    {"smmla_gops", "int8 matrix, NEON", "GOP/s", &measure::Peaks::smmla_gops},
    {"fma_neon_gflops", "fp32 FMA, NEON", "GFLOP/s", &measure::Peaks::fma_neon_gflops},
    {"read_gbps", "memory read", "GB/s", &measure::Peaks::read_gbps},
};

// The instruction set that a plan without constraints gets here, DUALGEMM_FORCE_ISA included.
Expected<Isa> chosen_isa() {
  Problem smallest;
  smallest.m = smallest.n = smallest.k = kSfVec;
  const Expected<Plan> plan = make_plan(smallest);
  if (!plan) return plan.status();
  return plan->isa;
}

std::string names_of(const std::vector<Isa>& isas) {
  std::string names;
  for (const Isa isa : isas) names += (names.empty() ? "" : ", ") + std::string(name_of(isa));
  return names;
}

// The GPU and what this build has for it.
std::string gpu_text() {
  const Expected<DeviceCaps> caps = device_caps(DeviceKind::kCuda);
  if (!caps) return "none to use; `dualgemm plan --device cuda` says why";
  return fmt::format("{}, compute capability {}.{}, {} SMs; kernels: {}", caps->name,
                     caps->compute_capability / 10, caps->compute_capability % 10, caps->num_sms,
                     caps->isas.empty() ? "none (they need 8.0 or later)" : names_of(caps->isas));
}

void print_text(const InfoCommand& command, Isa isa, const measure::Peaks& peaks) {
  const DeviceCaps& caps = device_caps();
  const auto line = [](const char* name, const std::string& value) {
    print(with_long_lines_broken(fmt::format("{:<18}  {}", name, value), stdout_style().width));
  };
  const auto cache = [](int64_t bytes) {
    return bytes == 0 ? std::string("unknown") : fmt::format("{} KiB", bytes >> 10);
  };
  line("dualgemm",
       fmt::format("{} (revision {}, {}, {})", version(), kRevision, kCompiler, kBuildType));
  line("CUDA", kHasCuda ? "compiled in" : "not in this build");
  line("device", fmt::format("{}: {}", name_of(caps.kind), caps.name));
  if (kHasCuda) line("GPU", gpu_text());
  line("cores", std::to_string(caps.cores));
  line("caches", fmt::format("L1d {}, L2 {} per core, L3 {}", cache(caps.l1d_bytes),
                             cache(caps.l2_bytes), cache(caps.l3_bytes)));
  line("instruction sets", names_of(caps.isas));
  line("in use", name_of(isa));
  if (!command.peaks) return;
  print(fmt::format("\nmeasured peaks, {} threads (0 = not on this machine)\n", peaks.threads));
  for (const PeakLine& peak : kPeakLines) {
    print(fmt::format("  {:<28} {:>9.1f} {}\n", peak.what, peaks.*peak.field, peak.unit));
  }
}

void print_json(const InfoCommand& command, Isa isa, const measure::Peaks& peaks) {
  Json json = to_json(device_caps());
  json["isa_in_use"] = name_of(isa);
  const Expected<DeviceCaps> gpu = device_caps(DeviceKind::kCuda);
  json["gpu"] = gpu ? to_json(*gpu) : Json(nullptr);
  json["build"] = provenance();
  if (command.peaks) {
    Json& object = json["peaks"];
    object["threads"] = peaks.threads;
    for (const PeakLine& peak : kPeakLines) object[peak.key] = number(peaks.*peak.field);
  }
  print(dump(json));
}

int list_gpus(bool as_json) {
  Json list = Json::array();
  Table table({{"name", Align::kLeft},
               {"compute capability"},
               {"SMs"},
               {"L2"},
               {"memory"},
               {"GB/s"},
               {"also", Align::kLeft}});
  for (const GpuDescription& gpu : known_gpus()) {
    std::string also = gpu.product;
    for (const std::string& alias : gpu.aliases) also += ", " + alias;
    table.add_row({gpu.name,
                   fmt::format("{}.{}", gpu.compute_capability / 10, gpu.compute_capability % 10),
                   std::to_string(gpu.sms), fmt::format("{} MiB", gpu.l2_bytes >> 20),
                   fmt::format("{} GB", gpu.memory_bytes / 1000000000),
                   fmt::format("{:.0f}", gpu.memory_gbps), also});
    list.push_back({{"name", gpu.name},
                    {"aliases", gpu.aliases},
                    {"product", gpu.product},
                    {"compute_capability", gpu.compute_capability},
                    {"sms", gpu.sms},
                    {"l2_bytes", gpu.l2_bytes},
                    {"memory_bytes", gpu.memory_bytes},
                    {"memory_gbps", gpu.memory_gbps}});
  }
  print_styled(as_json ? dump({{"gpus", list}, {"build", provenance()}}) : table.text());
  return 0;
}

}  // namespace

int execute(const InfoCommand& command) {
  if (command.devices) return list_gpus(command.json);
  const Expected<Isa> isa = chosen_isa();
  if (!isa) return fail_usage(isa.status());
  measure::Peaks peaks;
  if (command.peaks) {
    talk("measuring peaks");
    peaks = measure::measure_peaks(command.threads);
  }
  command.json ? print_json(command, *isa, peaks) : print_text(command, *isa, peaks);
  return 0;
}

}  // namespace dualgemm::cli
