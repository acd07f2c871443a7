#include "cli/exec_command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/baseline.hpp"
#include "cli/exec_report.hpp"
#include "cli/loaded.hpp"
#include "cli/program_process.hpp"
#include "cli/reports_version.hpp"
#include "cli/time_report.hpp"
#include "fake_cuda/device_model.hpp"
#include "fake_cuda/settings.hpp"
#include "printable.hpp"
#include "timing/counts_json.hpp"
#include "timing/cuda_tools.hpp"
#include "timing/parameters.hpp"

namespace ptxsim::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

Error refusal(std::string message) { return {ErrorKind::kInput, std::move(message), {}}; }

// Beside the command as it was built or installed: ../lib/ptxsim.
fs::path library_folder() {
  std::error_code none;
  const fs::path self = fs::read_symlink("/proc/self/exe", none);
  return self.parent_path().parent_path() / "lib" / "ptxsim";
}

// A file that is removed behind the command.
class RecordFile {
 public:
  RecordFile() {
    std::string name = (fs::temp_directory_path() / "ptxsim-exec-XXXXXX").string();
    const int file = mkstemp(name.data());
    if (file < 0) return;
    close(file);
    path_ = name;
  }
  ~RecordFile() {
    if (!path_.empty()) unlink(path_.c_str());
  }
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;
  const std::string& path() const { return path_; }
  std::string text() const {
    std::ifstream file(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  std::string path_;
};

cuda::Settings settings_of(const ExecArgs& args, const std::string& report) {
  cuda::Settings settings;
  settings.device = args.device;
  settings.report = report;
  if (!args.ptx_folder.empty()) settings.ptx_folder = fs::absolute(args.ptx_folder).string();
  for (const std::string& file : args.substitutes)
    settings.substitutes.push_back(fs::absolute(file).string());
  settings.time = args.time;
  if (!args.gpu_file.empty()) settings.gpu_file = fs::absolute(args.gpu_file).string();
  settings.sass = args.sass;
  settings.max_clusters = args.max_clusters;
  settings.once = args.once;
  Options& options = settings.options = options_of(args);
  options.schedule = args.schedule == "eager"  ? Schedule::kEager
                     : args.schedule == "lazy" ? Schedule::kLazy
                                               : Schedule::kRandom;
  options.seed = args.seed;
  return settings;
}

void put_before(const char* variable, const std::string& value) {
  const char* old = std::getenv(variable);
  setenv(variable, (old == nullptr || *old == 0 ? value : value + ":" + old).c_str(), 1);
}

std::string ending_text(int status) {
  if (status == 0) return "";
  if (status > 128 && strsignal(status - 128) != nullptr)
    return fmt::format("; the program was ended by signal {} ({})", status - 128,
                       strsignal(status - 128));
  return fmt::format("; the program's exit status is {}", status);
}

void print_times(std::ostream& out, const ExecKernel& kernel) {
  const auto launches = static_cast<double>(kernel.timed);
  const ExecTimes& times = kernel.times;
  out << fmt::format("; {:.2f} us each, an estimate", times.all / launches);
  if (times.high > 0)
    out << fmt::format(" ({:.2f} to {:.2f})", times.low / launches, times.high / launches);
  out << fmt::format(", {:.2f} of them launch gap", times.gap / launches);
}

void print_text(std::ostream& out, const ExecArgs& args, const ExecReport& report, int status) {
  uint64_t launches = 0, instructions = 0, repeated = 0, left_out = 0;
  for (const auto& [name, kernel] : report.kernels) {
    launches += kernel.launches;
    instructions += kernel.warp_instructions;
    repeated += kernel.repeated;
    left_out += kernel.clusters_left_out;
  }
  out << fmt::format("ptxsim: {}: {} launches of {} kernels, {} warp instructions{}\n",
                     cuda::find_device(args.device)->name, launches, report.kernels.size(),
                     instructions, ending_text(status));
  if (args.once)
    out << fmt::format("{} launches were counted only: others had the same arguments (--once)\n",
                       repeated);
  if (args.sample != 0)
    out << fmt::format("{} clusters were left out (--sample {}): results are those of the others\n",
                       left_out, args.sample);
  for (const auto& [name, kernel] : report.kernels) {
    if (!args.verbose && !args.time) break;
    out << fmt::format("  {} times {}: {}", kernel.launches, printable(name, kLongestLine),
                       kernel.shape);
    if (kernel.timed > 0) print_times(out, kernel);
    out << "\n";
    if (kernel.timed > 0) out << "    " << instructions_text(kernel.instructions) << "\n";
  }
  for (const ExecFinding& finding : report.findings) {
    if (finding.severity == "advisory" && !args.verbose && !args.strict) continue;
    out << printable_lines(finding.text) << "\n";
    if (finding.launches > 1)
      out << fmt::format("  in:      {} launches or calls\n", finding.launches);
  }
  if (!report.ended) out << "The program did not come to its end: leaks are not known.\n";
  out << fmt::format("{} errors, {} warnings, {} advisories\n", report.count("error"),
                     report.count("warning"), report.count("advisory"));
}

Json to_json(const ExecFinding& f) {
  const Place& place = f.finding.place;
  Json finding{{"severity", f.severity},
               {"text", f.text},
               {"count", f.launches},
               {"rule", f.finding.rule},
               {"kernel", f.finding.kernel},
               {"place", Json{{"ptx", place.ptx_name},
                              {"line", place.ptx_line},
                              {"function", place.function},
                              {"source", place.source_file},
                              {"source_line", place.source_line}}}};
  if (f.finding.suppressed) finding["reason"] = *f.finding.suppressed;
  return finding;
}

void print_json(std::ostream& out, const ExecArgs& args, const ExecReport& report, int status) {
  Json all{{"schema", kReportsVersion},
           {"device", args.device},
           {"status", status},
           {"ended", report.ended},
           {"highest_memory", report.highest_memory},
           {"kernels", Json::array()},
           {"findings", Json::array()},
           {"suppressed", Json::array()}};
  for (const auto& [name, kernel] : report.kernels)
    all["kernels"].push_back(Json{{"name", name},
                                  {"launches", kernel.launches},
                                  {"warp_instructions", kernel.warp_instructions},
                                  {"repeated", kernel.repeated},
                                  {"clusters_left_out", kernel.clusters_left_out},
                                  {"first_launch", kernel.shape}});
  if (args.time) {
    size_t i = 0;
    for (const auto& [name, kernel] : report.kernels) {
      Json& of_kernel = all["kernels"][i++];
      of_kernel["timed"] = kernel.timed;
      of_kernel["microseconds"] = kernel.times.all;
      of_kernel["gap_microseconds"] = kernel.times.gap;
      of_kernel["power_microseconds"] = kernel.times.power;
      if (kernel.timed > 0) of_kernel["instructions"] = kernel.instructions;
      for (const auto& [what, us] : kernel.critical_path)
        of_kernel["critical_path"].push_back(Json{{"what", what}, {"us", us}});
      if (kernel.times.high > 0) {
        of_kernel["low_microseconds"] = kernel.times.low;
        of_kernel["high_microseconds"] = kernel.times.high;
      }
    }
  }
  for (const ExecFinding& finding : report.findings) all["findings"].push_back(to_json(finding));
  for (const ExecFinding& finding : report.suppressed)
    all["suppressed"].push_back(to_json(finding));
  out << all.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
}

FindingsOfRun findings_of(const ExecArgs& args, const ExecReport& report, int status) {
  FindingsOfRun run{args.program.front(), "", {}};
  for (const auto* list : {&report.findings, &report.suppressed})
    for (const ExecFinding& finding : *list) run.findings.push_back(finding.finding);
  if (status != 0)
    run.findings.push_back({"run",
                            "error",
                            fmt::format("the program's exit status is {}", status),
                            "",
                            "",
                            "",
                            {},
                            1,
                            std::nullopt});
  return run;
}

int print_report(const ExecArgs& args, const ExecReport& report, int status,
                 const std::vector<std::string>& unused) {
  std::ofstream file;
  if (!args.report_file.empty()) file.open(args.report_file);
  std::ostream& out = args.report_file.empty() ? std::cerr : file;
  if (args.json)
    print_json(out, args, report, status);
  else
    print_text(out, args, report, status);
  if (!out.flush())
    return print_error(refusal(fmt::format("--report: cannot write '{}'", args.report_file)));
  for (const std::string& line : unused) std::cerr << line << "\n";
  const std::vector<FindingsOfRun> findings{findings_of(args, report, status)};
  if (const auto failed = write_findings(args, findings)) return print_error(*failed);
  if (const auto failed = write_baseline(args, findings, args.strict)) return print_error(*failed);
  if (status != 0) return status;
  const bool strictly = args.strict && !(report.findings.empty() && unused.empty());
  return report.count("error") != 0 || strictly ? 1 : 0;
}

}  // namespace

void add_exec_options(CLI::App& app, ExecArgs& args) {
  app.add_option("--device", args.device,
                 fmt::format("GPU that the program sees: {}", cuda::device_keys()))
      ->capture_default_str();
  app.add_option("--schedule", args.schedule, "eager, lazy or random")
      ->check(CLI::IsMember({"eager", "lazy", "random"}))
      ->capture_default_str();
  app.add_option("--seed", args.seed, "Seed of random choices")
      ->check(kUnsigned)
      ->capture_default_str();
  app.add_option("--max-clusters", args.max_clusters,
                 "The GPU runs no more clusters at once, as occupancy calls say; 0: launches none")
      ->check(kUnsigned);
  app.add_flag(
      "--once", args.once,
      "A launch with the arguments of one that has been run since device memory was copied "
      "to, filled or allocated is counted, not run");
  add_interpreter_options(app, args);
  add_findings_options(app, args);
  app.add_flag("--strict", args.strict,
               "Warnings, leaks among them, and advisories count as errors");
  app.add_flag(
      "--time", args.time,
      "Estimate each launch, as `ptxsim time` does of its first cluster, or of those of --sample");
  app.add_option("--gpu", args.gpu_file,
                 "File of the clock's parameters, for --time, in place of the device's")
      ->check(CLI::ExistingFile);
  app.add_option("--sass", args.sass,
                 "Instructions of each statement, for --time: auto, ptxas or off, as of `ptxsim "
                 "time`; each kernel is counted once")
      ->check(CLI::IsMember({"off", "auto", "ptxas"}))
      ->capture_default_str();
  app.add_flag("--verbose", args.verbose, "Print kernels and advisories");
  app.add_flag("--json", args.json, "Print the report as JSON");
  app.add_option("--report", args.report_file, "Write the report to this file; default: stderr");
  app.add_option("--ptx", args.substitutes,
                 "PTX of kernels that the program has as machine code only, or a folder with "
                 "name.ptx beside "
                 "name.cubin, written while it runs; may be repeated")
      ->check(CLI::ExistingPath)
      ->allow_extra_args(false);
  app.add_option("--keep-ptx", args.ptx_folder,
                 "Write the PTX that is interpreted to this folder, as messages name it")
      ->check(CLI::ExistingDirectory);
  app.add_option("program", args.program, "The program and its arguments, behind --")->required();
}

int exec_command(const ExecArgs& args) {
  if (cuda::find_device(args.device) == nullptr)
    return print_error(refusal(
        fmt::format("--device: '{}'; must be one of {}", args.device, cuda::device_keys())));
  if (!args.gpu_file.empty()) {
    Result<std::string> text = read_text(args.gpu_file);
    if (!text.ok()) return print_error(text.error());
    if (const auto gpu = timing::parse_parameters(*text, args.gpu_file); !gpu.ok())
      return print_error(gpu.error());
  } else if (args.time && timing::built_in_parameters(args.device).empty())
    return print_error(refusal(
        fmt::format("--time: '{}'; the clock knows {}", args.device, timing::built_in_gpus())));
  if (const std::string missing = timing::missing_cuda_tool();
      args.time && args.sass == "ptxas" && !missing.empty())
    return print_error(
        refusal(fmt::format("--sass: no {} in {}", missing, timing::kWhereToolsAre)));
  Result<std::vector<Suppression>> suppressions = load_suppressions(args);
  if (!suppressions.ok()) return print_error(suppressions.error());
  const fs::path folder = library_folder();
  const fs::path library = folder / "libptxsim_cuda.so";
  std::error_code none;
  if (!fs::exists(library, none))
    return print_error(refusal(fmt::format("'{}' is missing", library.string())));
  const RecordFile records;
  if (records.path().empty()) return print_error(refusal("cannot make a temporary file"));
  setenv(cuda::kSettingsVariable, cuda::to_text(settings_of(args, records.path())).c_str(), 1);
  put_before("LD_PRELOAD", library.string());
  put_before("LD_LIBRARY_PATH", folder.string());
  put_before("PYTHONPATH", (folder / "python").string());
  const int status = run_program(args.program);
  if (status < 0)
    return print_error(
        refusal(fmt::format("cannot start '{}': {}", args.program.front(), std::strerror(errno))));
  const ExecReport report = read_exec_records(records.text(), *suppressions);
  return print_report(args, report, status, unused_suppressions(*suppressions, report.used));
}

}  // namespace ptxsim::cli
