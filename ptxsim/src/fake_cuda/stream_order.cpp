#include "fake_cuda/stream_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

namespace ptxsim::cuda {
namespace {

constexpr int kRule = 23;
constexpr size_t kMostOpen = 256;  // of more, the oldest are forgotten

using Range = GridTrail::Range;

bool covers(const StreamClock& clock, uint64_t stream, uint64_t number) {
  const auto found = clock.find(stream);
  return found != clock.end() && found->second >= number;
}

// "file:12" of a text that ends in it.
bool take_line(std::string& text, int& line) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return false;
  const char* const end = text.data() + text.size();
  if (std::from_chars(text.data() + colon + 1, end, line).ptr != end) return false;
  text.resize(colon);
  return true;
}

// The place in a text of GridTrail::accesses: "'statement' at k.ptx:9 (k.cu:3), by CTA ...".
Place place_of_access(const std::string& access) {
  const size_t by = access.rfind(", by "), at = access.rfind("' at ", by);
  Place place;
  if (by == std::string::npos || at == std::string::npos) return place;
  place.ptx_name = access.substr(at + 5, by - at - 5);
  const size_t source = place.ptx_name.find(" (");
  if (source != std::string::npos) {
    place.source_file = place.ptx_name.substr(source + 2);
    place.source_file.resize(place.source_file.find(')'));
    take_line(place.source_file, place.source_line);
    place.ptx_name.resize(source);
  }
  take_line(place.ptx_name, place.ptx_line);
  if (int line = 0; take_line(place.ptx_name, line)) {  // the other number was a column
    place.ptx_column = place.ptx_line;
    place.ptx_line = line;
  }
  return place;
}

struct Conflict {
  const Range *later, *earlier;
};

// The first of `later` that touches one of `earlier`, unless both are strong.
Conflict conflict_of(const GridTrail::Ranges& later, const GridTrail::Ranges& earlier) {
  for (const Range& range : later)
    for (auto other =
             std::lower_bound(earlier.begin(), earlier.end(), range.begin,
                              [](const Range&r, uint64_t begin) { return r.end <= begin; });
         other != earlier.end() && other->begin < range.end; ++other)
      if (!range.is_strong || !other->is_strong) return {&range, &*other};
  return {nullptr, nullptr};
}

Report report_of(const GridTrail& later, bool later_writes, const GridTrail& earlier,
                 bool earlier_writes, const Conflict& conflict) {
  const uint64_t at = std::max(conflict.later->begin, conflict.earlier->begin);
  Report report;
  report.rule = kRule;
  report.severity = Severity::kError;
  report.kernel = later.kernel;
  report.place = place_of_access(later.accesses.at(conflict.later->access));
  report.message = fmt::format(
      "'{}' {} global memory 0x{:x}, which '{}' in another stream {}, and nothing orders the two",
      later.kernel, later_writes ? "writes" : "reads", at, earlier.kernel,
      earlier_writes ? "writes" : "reads");
  report.actor = later.accesses.at(conflict.later->access);
  report.other = earlier.accesses.at(conflict.earlier->access);
  report.missing = "an event of the one stream that the other waits for, or a host that waits";
  report.fix =
      "cudaEventRecord behind the earlier work and cudaStreamWaitEvent before the later one, or "
      "one "
      "stream for both";
  return report;
}

}  // namespace

void join(StreamClock& clock, const StreamClock& other) {
  for (const auto& [stream, number] : other) {
    uint64_t& known = clock[stream];
    known = std::max(known, number);
  }
}

void StreamOrder::host_waited_for(const StreamClock& clock) {
  join(host_, clock);
  std::erase_if(open_, [&](const Work& work) { return covers(host_, work.stream, work.number); });
}

std::vector<Report> StreamOrder::add(uint64_t stream, const StreamClock& clock,
                                     std::shared_ptr<const GridTrail> trail) {
  std::vector<Report> reports;
  for (const Work& work : open_) {
    if (covers(clock, work.stream, work.number)) continue;
    for (const auto& [later, writes] : {std::pair{&trail->writes, true}, {&trail->reads, false}}) {
      const Conflict on_write = conflict_of(*later, work.trail->writes);
      if (on_write.later != nullptr)
        reports.push_back(report_of(*trail, writes, *work.trail, true, on_write));
      const Conflict on_read = writes ? conflict_of(*later, work.trail->reads) : Conflict{};
      if (on_read.later != nullptr)
        reports.push_back(report_of(*trail, writes, *work.trail, false, on_read));
    }
  }
  if (open_.size() >= kMostOpen) open_.erase(open_.begin());
  open_.push_back({stream, clock.at(stream), std::move(trail)});
  return reports;
}

}  // namespace ptxsim::cuda
