#include "cli/time_command.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <utility>

#include "cli/interpreter_options.hpp"
#include "cli/loaded.hpp"
#include "cli/time_report.hpp"
#include "timing/counted_costs.hpp"
#include "timing/description.hpp"
#include "timing/recorded_launch.hpp"
#include "timing/sass_listing.hpp"
#include "timing/timeline_svg.hpp"

namespace ptxsim::cli {
namespace {

Error refusal(std::string message) { return {ErrorKind::kInput, std::move(message), {}}; }

Result<timing::GpuParameters> parameters_of(const std::string& gpu) {
  if (const std::string_view built_in = timing::built_in_parameters(gpu); !built_in.empty())
    return timing::parse_parameters(built_in, gpu + ".json");
  if (gpu.find('.') == std::string::npos && gpu.find('/') == std::string::npos)
    return refusal(
        fmt::format("--gpu: '{}'; must be one of {}, or a file", gpu, timing::built_in_gpus()));
  Result<std::string> text = read_text(gpu);
  if (!text.ok()) return text.error();
  return timing::parse_parameters(*text, gpu);
}

Result<timing::CountedCosts> costs_of(const std::string& how, const Loaded& loaded) {
  if (how == "off" || how == "auto" || how == "ptxas")
    return timing::costs_by(how, loaded.ptx, *loaded.program);
  Result<std::string> text = read_text(how);
  if (!text.ok()) return text.error();
  auto sections = timing::parse_sass(*text, how);
  if (!sections.ok()) return sections.error();
  return timing::counted_costs(*loaded.program, *sections, "listing");
}

Result<timing::LaunchWork> run_kernel(const TimeArgs& args, const timing::GpuParameters& gpu,
                                      timing::InstructionCounts& counts) {
  Result<Loaded> loaded = load_files(args.kernel, args.case_file, args.entry);
  if (!loaded.ok()) return loaded.error();
  Result<timing::CountedCosts> costs = costs_of(args.sass, *loaded);
  if (!costs.ok()) return costs.error();
  counts = costs->counts;
  timing::RecordOptions options;
  options.costs = costs->costs;
  options.clusters = args.clusters;
  options.whole_grid = args.whole_grid;
  return timing::record(loaded->description, loaded->program, gpu.values(), options);
}

int print(const TimeArgs& args, const timing::GpuParameters& gpu,
          std::vector<std::pair<std::string, timing::LaunchWork>> launches,
          const std::optional<timing::InstructionCounts>& counts) {
  std::vector<TimedLaunch> timed;
  for (auto& [name, work] : launches) {
    if (args.ctas_per_sm > 0) work.ctas_per_sm = args.ctas_per_sm;
    work.dependent_launch |= args.dependent_launch;
    work.in_graph = args.in_graph;
    work.is_warm = args.warm;
    TimedLaunch t{name,
                  timing::time_of(work, gpu.values()),
                  timing::interval_of(work, gpu, args.draws, args.seed),
                  {},
                  {},
                  {},
                  counts};
    const timing::Work& slowest = work.classes[t.time.slowest].work;
    t.path = timing::shares_of(timing::critical_path(slowest, t.time.timeline));
    t.doubt = timing::doubt_of(work, gpu, t.path);
    t.waits = timing::waits_of(slowest, t.time.timeline, 0.01 * t.time.first_wave);
    timed.push_back(std::move(t));
  }
  if (!args.svg.empty()) {
    const timing::LaunchTime& time = timed.front().time;
    std::ofstream file(args.svg, std::ios::binary);
    file << timing::timeline_svg(launches.front().second.classes[time.slowest].work, time.timeline,
                                 fmt::format("{} on {}", timed.front().name, gpu.name));
    if (!file.flush())
      return print_error(refusal(fmt::format("--svg: cannot write '{}'", args.svg)));
  }
  std::cout << (args.json ? json_text(gpu, timed) : report_text(gpu, timed));
  if (!std::cout.flush()) return print_error(refusal("cannot write the results"));
  return 0;
}

}  // namespace

void add_time_options(CLI::App& app, TimeArgs& args) {
  app.add_option("kernel", args.kernel, "PTX file");
  app.add_option("--entry", args.entry, "Kernel; default: the case's, or the only one");
  app.add_option("--case", args.case_file,
                 "JSON: grid, buffers, parameters; default: the //! lines");
  app.add_option("--launch", args.launches,
                 "JSON: the structure of one launch or several, in place of a kernel");
  app.add_option("--gpu", args.gpu,
                 fmt::format("{}, or a file of parameters", timing::built_in_gpus()))
      ->capture_default_str();
  app.add_option(
         "--cluster", args.clusters,
         "Clusters (CTAs) of the grid that are timed, from 0; default: three, spread over it")
      ->delimiter(',');
  app.add_flag("--whole-grid", args.whole_grid,
               "Run all side by side: for kernels whose CTAs wait for each other");
  app.add_option("--ctas-per-sm", args.ctas_per_sm, "Default: what shared memory and threads allow")
      ->check(CLI::Range(uint32_t{1}, uint32_t{32}));
  app.add_option("--sass", args.sass,
                 "Instructions of each statement: ptxas: those that ptxas makes of it, which needs "
                 "ptxas and nvdisasm; auto: those, or a table's where the tools are missing or "
                 "fail; off: the table's; a file: those of a listing that nvdisasm printed")
      ->capture_default_str();
  app.add_flag("--pdl", args.dependent_launch, "Programmatic dependent launch");
  app.add_flag("--warm", args.warm,
               "L2 holds what it can of the buffers; default: it holds nothing of them");
  app.add_flag("--graph", args.in_graph, "Launches of a graph; default: of a stream");
  app.add_option("--draws", args.draws, "Draws of the parameters, for the interval")
      ->capture_default_str()
      ->check(CLI::Range(uint32_t{1}, uint32_t{100000}));
  app.add_option("--seed", args.seed, "Seed of the draws")->check(kUnsigned)->capture_default_str();
  app.add_option("--svg", args.svg, "Write the timeline of the first wave to this file");
  app.add_flag("--json", args.json, "Print everything as JSON");
}

int time_command(const TimeArgs& args) {
  if (args.kernel.empty() == args.launches.empty())
    return print_error(refusal("time needs a kernel or --launch, and not both"));
  Result<timing::GpuParameters> gpu = parameters_of(args.gpu);
  if (!gpu.ok()) return print_error(gpu.error());
  std::vector<std::pair<std::string, timing::LaunchWork>> launches;
  std::optional<timing::InstructionCounts> counts;
  if (args.launches.empty()) {
    Result<timing::LaunchWork> work = run_kernel(args, *gpu, counts.emplace());
    if (!work.ok()) return print_error(work.error());
    const std::string name = work->name;
    launches.emplace_back(name, std::move(*work));
  } else {
    Result<std::string> text = read_text(args.launches);
    if (!text.ok()) return print_error(text.error());
    auto descriptions = timing::parse_descriptions(*text, args.launches);
    if (!descriptions.ok()) return print_error(descriptions.error());
    for (const timing::Description& d : *descriptions)
      launches.emplace_back(d.name, timing::work_of(d));
  }
  if (launches.empty()) return print_error(refusal(args.launches + ": no launch"));
  return print(args, *gpu, std::move(launches), counts);
}

}  // namespace ptxsim::cli
