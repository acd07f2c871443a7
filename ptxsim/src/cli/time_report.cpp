#include "cli/time_report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/reports_version.hpp"
#include "printable.hpp"
#include "timing/counts_json.hpp"

namespace ptxsim::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string besides_of(const timing::LaunchTime& time) {
  std::string text;
  if (time.atomics > 0) text += fmt::format(", atomics of one line {:.2f} more", time.atomics);
  if (time.power > 0) text += fmt::format(", at the power limit {:.2f} more", time.power);
  return text;
}

std::string number_of(const TimedLaunch& t) {
  const std::string interval = fmt::format("{:.2f} to {:.2f} in 90 % of {} draws", t.interval.low,
                                           t.interval.high, t.interval.draws);
  return t.doubt.is_too_much()
             ? fmt::format("no single number, {} us: too much is not modelled", interval)
             : fmt::format("{:.2f} us ({})", t.time.total, interval);
}

std::string text_of(const TimedLaunch& t) {
  const timing::LaunchTime& time = t.time;
  std::string text = fmt::format(
      "{}: {}\n"
      "  launch gap {:.2f}, first wave {:.2f}, {} later {:.2f}, exit {:.2f}{}\n",
      printable(t.name, kLongestName), number_of(t), time.gap, time.first_wave, time.waves - 1,
      time.later_waves, time.exit, besides_of(time));
  text += fmt::format(
      "  {:.0f} % of its instructions are not modelled; {:.0f} % of the critical path has assumed "
      "numbers\n",
      100 * t.doubt.unknown_part, 100 * t.doubt.assumed_part);
  if (t.instructions) text += "  " + instructions_text(*t.instructions) + "\n";
  text += "  critical path of the first wave:\n";
  for (const timing::Share& s : t.path)
    text += fmt::format("    {:5.1f} %  {:<17} {:.2f} us\n", 100 * s.us / time.timeline.end,
                        s.label, s.us);
  text += "  waits of the first wave:\n";
  for (const timing::Wait& w : t.waits)
    text += fmt::format("    {:5.1f} %  {} waits for {} ({}), held by {}\n",
                        100 * w.us / time.timeline.end, w.role, w.for_role, w.for_what, w.held_by);
  return text;
}

OrderedJson json_of(const TimedLaunch& t) {
  const timing::LaunchTime& time = t.time;
  OrderedJson j{{"name", t.name},
                {"us", t.doubt.is_too_much() ? OrderedJson() : OrderedJson(time.total)},
                {"interval",
                 {{"low_us", t.interval.low},
                  {"median_us", t.interval.median},
                  {"high_us", t.interval.high},
                  {"draws", t.interval.draws}}},
                {"unknown_percent", 100 * t.doubt.unknown_part},
                {"assumed_percent", 100 * t.doubt.assumed_part},
                {"launch_gap_us", time.gap},
                {"first_wave_us", time.first_wave},
                {"waves", time.waves},
                {"later_waves_us", time.later_waves},
                {"exit_us", time.exit},
                {"atomics_us", time.atomics},
                {"power_us", time.power},
                {"other_us", time.other},
                {"critical_path", OrderedJson::array()},
                {"waits", OrderedJson::array()}};
  if (t.instructions) j["instructions"] = *t.instructions;
  for (const timing::Share& s : t.path)
    j["critical_path"].push_back(
        OrderedJson{{"what", s.label}, {"us", s.us}, {"percent", 100 * s.us / time.timeline.end}});
  for (const timing::Wait& w : t.waits)
    j["waits"].push_back(OrderedJson{{"role", w.role},
                                     {"for_role", w.for_role},
                                     {"for", w.for_what},
                                     {"held_by", w.held_by},
                                     {"us", w.us},
                                     {"percent", 100 * w.us / time.timeline.end}});
  return j;
}

}  // namespace

std::string instructions_text(const timing::InstructionCounts& counts) {
  if (counts.from != "table")
    return fmt::format("{} of {} statements have the instructions that ptxas made of them",
                       counts.counted, counts.statements);
  const std::string note = counts.note.empty() ? "" : ": " + printable(counts.note, kLongestLine);
  return "instructions are the table's" + note;
}

std::string report_text(const timing::GpuParameters& gpu,
                        const std::vector<TimedLaunch>& launches) {
  std::string text =
      fmt::format("An estimate for {}, not a measurement.\n", printable(gpu.name, kLongestName));
  for (const TimedLaunch& t : launches) text += text_of(t);
  return text;
}

std::string json_text(const timing::GpuParameters& gpu, const std::vector<TimedLaunch>& launches) {
  OrderedJson all{{"schema", kReportsVersion}, {"gpu", gpu.name}, {"kind", "estimate"}};
  all["launches"] = OrderedJson::array();
  for (const TimedLaunch& t : launches) all["launches"].push_back(json_of(t));
  return all.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

}  // namespace ptxsim::cli
