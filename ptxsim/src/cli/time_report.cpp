#include "cli/time_report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "printable.hpp"

namespace ptxsim::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string text_of(const TimedLaunch& t) {
  const timing::LaunchTime& time = t.time;
  std::string text = fmt::format(
      "{}: {:.2f} us ({:.2f} to {:.2f} in 90 % of {} draws)\n"
      "  launch gap {:.2f}, first wave {:.2f}, {} later {:.2f}, exit {:.2f}\n",
      printable(t.name, kLongestName), time.total, t.interval.low, t.interval.high,
      t.interval.draws, time.gap, time.first_wave, time.waves - 1, time.later_waves, time.exit);
  text += "  critical path of the first wave:\n";
  for (const timing::Share& s : t.path)
    text += fmt::format("    {:5.1f} %  {:<17} {:.2f} us\n", 100 * s.us / time.first_wave, s.label,
                        s.us);
  text += "  waits of the first wave:\n";
  for (const timing::Wait& w : t.waits)
    text += fmt::format("    {:5.1f} %  {} waits for {} ({}), held by {}\n",
                        100 * w.us / time.first_wave, w.role, w.for_role, w.for_what, w.held_by);
  return text;
}

OrderedJson json_of(const TimedLaunch& t) {
  const timing::LaunchTime& time = t.time;
  OrderedJson j{{"name", t.name},
                {"us", time.total},
                {"interval",
                 {{"low_us", t.interval.low},
                  {"median_us", t.interval.median},
                  {"high_us", t.interval.high},
                  {"draws", t.interval.draws}}},
                {"launch_gap_us", time.gap},
                {"first_wave_us", time.first_wave},
                {"waves", time.waves},
                {"later_waves_us", time.later_waves},
                {"exit_us", time.exit},
                {"other_us", time.other},
                {"critical_path", OrderedJson::array()},
                {"waits", OrderedJson::array()}};
  for (const timing::Share& s : t.path)
    j["critical_path"].push_back(
        OrderedJson{{"what", s.label}, {"us", s.us}, {"percent", 100 * s.us / time.first_wave}});
  for (const timing::Wait& w : t.waits)
    j["waits"].push_back(OrderedJson{{"role", w.role},
                                     {"for_role", w.for_role},
                                     {"for", w.for_what},
                                     {"held_by", w.held_by},
                                     {"us", w.us},
                                     {"percent", 100 * w.us / time.first_wave}});
  return j;
}

}  // namespace

std::string report_text(const timing::GpuParameters& gpu,
                        const std::vector<TimedLaunch>& launches) {
  std::string text =
      fmt::format("An estimate for {}, not a measurement.\n", printable(gpu.name, kLongestName));
  for (const TimedLaunch& t : launches) text += text_of(t);
  return text;
}

std::string json_text(const timing::GpuParameters& gpu, const std::vector<TimedLaunch>& launches) {
  OrderedJson all{{"gpu", gpu.name}, {"kind", "estimate"}, {"launches", OrderedJson::array()}};
  for (const TimedLaunch& t : launches) all["launches"].push_back(json_of(t));
  return all.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace ptxsim::cli
