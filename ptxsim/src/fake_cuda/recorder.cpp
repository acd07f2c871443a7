#include "fake_cuda/recorder.hpp"

#include <cxxabi.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>

#include "fake_cuda/status.hpp"
#include "timing/counts_json.hpp"

namespace ptxsim::cuda {
namespace {

using Json = nlohmann::json;

Json to_json(const Place& place) { return to_string(place); }

Json parts_of(const Place& place) {
  return Json{{"ptx", place.ptx_name},
              {"line", place.ptx_line},
              {"function", place.function},
              {"source", place.source_file},
              {"source_line", place.source_line}};
}

std::string identity_of(const Report& report);

Json to_json(const Report& r) {
  return Json{{"rule", r.rule},
              {"severity", ptxsim::name_of(r.severity)},
              {"place", to_json(r.place)},
              {"at", parts_of(r.place)},
              {"entry", r.kernel},
              {"count", r.count},
              {"message", r.message},
              {"identity", identity_of(r)},
              {"text", to_string(r)}};
}

// Findings of several launches of a kernel are one when this is equal: as within a launch, by the
// rule and the two statements, whatever addresses and threads they name.
std::string identity_of(const Report& report) {
  return fmt::format("R{} {} {} {}", report.rule, ptxsim::name_of(report.severity),
                     to_string(report.place), report.other.substr(0, report.other.rfind(", by ")));
}

Json record_of(const char* event, const std::string& kernel, const Launch& launch) {
  return Json{{"event", event},
              {"process", getpid()},
              {"kernel", demangled(kernel)},
              {"grid", launch.grid},
              {"block", launch.block},
              {"cluster", launch.cluster},
              {"shared", launch.dynamic_shared_bytes}};
}

}  // namespace

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      ::abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? std::string(text.get()) : name;
}

void Recorder::append(const std::string& line) const {
  if (path_.empty()) return;
  const int file = open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return;
  const std::string whole = line + "\n";
  if (write(file, whole.data(), whole.size()) < 0) { /* the report lacks it; the program goes on */
  }
  close(file);
}

void Recorder::begins(const std::string& kernel, const Launch& launch) const {
  last_progress_ = std::chrono::steady_clock::now();
  append(record_of("begin", kernel, launch).dump(-1, ' ', false, Json::error_handler_t::replace));
}

void Recorder::goes_on(const Progress& progress) const {
  const auto now = std::chrono::steady_clock::now();
  if (progress.warp_instructions != 0 && now - last_progress_ < std::chrono::seconds(1)) return;
  last_progress_ = now;
  append(Json{{"event", "progress"},
              {"process", getpid()},
              {"warp_instructions", progress.warp_instructions},
              {"place", to_json(progress.place)}}
             .dump(-1, ' ', false, Json::error_handler_t::replace));
}

void Recorder::launched(const std::string& kernel, const Launch& launch, const RunResult& result,
                        const std::optional<LaunchEstimate>& told) const {
  Json record = record_of("launch", kernel, launch);
  record["warp_instructions"] = result.stats.warp_instructions;
  if (result.stats.clusters_left_out != 0)
    record["clusters_left_out"] = result.stats.clusters_left_out;
  if (told) {
    record["microseconds"] = told->time.total;
    record["gap_microseconds"] = told->time.gap;
    record["power_microseconds"] = told->time.power;
    for (const timing::Share& share : told->path)
      record["critical_path"].push_back(Json{{"what", share.label}, {"us", share.us}});
    record["instructions"] = told->instructions;
  }
  if (told && told->interval) {
    record["low_microseconds"] = told->interval->low;
    record["high_microseconds"] = told->interval->high;
  }
  if (result.error)
    record["error"] = Json{{"kind", name_of(result.error->kind)},
                           {"message", result.error->message},
                           {"place", to_json(result.error->place)}};
  for (const Report& r : result.reports.list) record["reports"].push_back(to_json(r));
  append(record.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void Recorder::repeated(const std::string& kernel) const {
  append(Json{{"event", "repeated"}, {"kernel", demangled(kernel)}}.dump(
      -1, ' ', false, Json::error_handler_t::replace));
}

void Recorder::found(const std::string& what, const std::vector<Report>& reports) const {
  Json record{{"event", "found"}, {"what", what}, {"reports", Json::array()}};
  for (const Report& r : reports) record["reports"].push_back(to_json(r));
  append(record.dump(-1, ' ', false, Json::error_handler_t::replace));
}

void Recorder::refused(const std::string& call, int status, const std::string& message,
                       bool modelled) const {
  const char* name = runtime_name(status);
  append(Json{{"event", "refused"},
              {"call", call},
              {"status", name == nullptr ? std::to_string(status) : name},
              {"message", message},
              {"modelled", modelled}}
             .dump(-1, ' ', false, Json::error_handler_t::replace));
}

void Recorder::leaked(const Allocation& allocation) const {
  append(Json{{"event", "leak"},
              {"number", allocation.number},
              {"bytes", allocation.bytes},
              {"home", cuda::name_of(allocation.home)}}
             .dump());
}

void Recorder::ended(uint64_t highest_memory) const {
  append(Json{{"event", "end"}, {"highest_memory", highest_memory}}.dump());
}

}  // namespace ptxsim::cuda
