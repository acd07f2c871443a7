// Descriptions of GPUs that need not be there: shipped as gpus.json, or a file of the user's.
#pragma once

#include <string>
#include <vector>

#include "dualgemm/types.hpp"

namespace dualgemm::cli {

struct GpuDescription {
  std::string name;                  // as on the command line
  std::vector<std::string> aliases;  // "sm_90a"
  std::string product;
  int compute_capability = 0;  // 10 * major + minor
  int sms = 0;
  int64_t l2_bytes = 0;
  int64_t memory_bytes = 0;
  double memory_gbps = 0.0;
};

const std::vector<GpuDescription>& known_gpus();
const GpuDescription* find_gpu(const std::string& name);  // by name or alias, '-' like '_'
std::vector<std::string> gpu_names();                     // without the aliases
std::vector<std::string> gpu_names_and_aliases();

// One description, as an entry of gpus.json. `origin` names it in errors.
Expected<GpuDescription> parse_gpu(const std::string& text, const std::string& origin);
Expected<GpuDescription> read_gpu(const std::string& path);

}  // namespace dualgemm::cli
