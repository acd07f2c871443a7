#include "fake_cuda/settings.hpp"

#include <fmt/format.h>

#include <charconv>

namespace ptxsim::cuda {
namespace {

template <class T>
void read_number(std::string_view text, T& value) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size()) value = static_cast<T>(number);
}

void read_milliseconds(std::string_view text, double& seconds) {
  uint64_t milliseconds = 0;
  read_number(text, milliseconds);
  seconds = static_cast<double>(milliseconds) / 1000;
}

void apply(Settings& settings, std::string_view key, std::string_view value) {
  Options& options = settings.options;
  if (key == "device") settings.device = value;
  if (key == "report") settings.report = value;
  if (key == "ptx") settings.ptx_folder = value;
  if (key == "substitute") settings.substitutes.emplace_back(value);
  if (key == "time") settings.time = value != "0";
  if (key == "gpu") settings.gpu_file = value;
  if (key == "sass") settings.sass = value;
  if (key == "schedule") read_number(value, options.schedule);
  if (key == "seed") read_number(value, options.seed);
  if (key == "sanitize") options.sanitize = value != "0";
  if (key == "strict") options.strict = value != "0";
  if (key == "uninitialized") options.check_uninitialized = value != "0";
  if (key == "mma") read_number(value, options.mma);
  if (key == "budget") read_number(value, options.max_warp_instructions);
  if (key == "seconds") read_milliseconds(value, options.max_seconds);
  if (key == "resident") read_number(value, options.resident_clusters);
  if (key == "admits_more") options.admits_more = value != "0";
  if (key == "sample") read_number(value, options.sample);
  if (key == "once") settings.once = value != "0";
  if (key == "max_clusters") read_number(value, settings.max_clusters);
}

}  // namespace

std::string to_text(const Settings& settings) {
  const Options& o = settings.options;
  std::string text = fmt::format(
      "device={}\nreport={}\nptx={}\ntime={:d}\ngpu={}\nsass={}\nschedule={}\nseed={}\nsanitize={:"
      "d}"
      "\nstrict={:d}"
      "\nuninitialized={:d}"
      "\nmma={}\nbudget={}\n"
      "seconds={}\nresident={}\nadmits_more={:d}\nmax_clusters={}\nsample={}\nonce={:d}\n",
      settings.device, settings.report, settings.ptx_folder, settings.time, settings.gpu_file,
      settings.sass, static_cast<int>(o.schedule), o.seed, o.sanitize, o.strict,
      o.check_uninitialized, static_cast<int>(o.mma), o.max_warp_instructions,
      static_cast<uint64_t>(o.max_seconds * 1000), o.resident_clusters, o.admits_more,
      settings.max_clusters, o.sample, settings.once);
  for (const std::string& file : settings.substitutes) text += "substitute=" + file + "\n";
  return text;
}

Settings settings_of(std::string_view text) {
  Settings settings;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t equals = line.find('=');
    if (equals != std::string_view::npos)
      apply(settings, line.substr(0, equals), line.substr(equals + 1));
  }
  return settings;
}

}  // namespace ptxsim::cuda
