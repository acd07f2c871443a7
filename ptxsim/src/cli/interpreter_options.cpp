#include "cli/interpreter_options.hpp"

namespace ptxsim::cli {

const CLI::Validator kUnsigned(
    [](std::string& text) {
      return text.find('-') == std::string::npos ? std::string() : text + "; must not be negative";
    },
    "UNSIGNED");

void add_interpreter_options(CLI::App& app, InterpreterArgs& args) {
  app.add_option("--mma", args.mma, "exact: the hardware's rounding; rounded: FP32, faster")
      ->check(CLI::IsMember({"exact", "rounded"}))
      ->capture_default_str();
  app.add_option("--budget", args.budget, "Warp instructions of a launch after which to stop")
      ->check(kUnsigned)
      ->capture_default_str();
  app.add_option("--budget-seconds", args.seconds, "Seconds of a launch after which to stop")
      ->check(CLI::Range(0.001, 1e9));
  app.add_option(
         "--resident", args.resident,
         "Clusters that run at the same time; default: 4, and as many as the GPU's SMs hold "
         "where those do not end")
      ->check(CLI::Range(1u, 1024u));
  app.add_option(
         "--sample", args.sample,
         "Run so many clusters of a launch, spread evenly over it, and leave out the others: "
         "what they would write stays as it is, and no result is compared")
      ->check(CLI::Range(1u, UINT32_MAX));
  app.add_flag("--no-sanitizer", args.no_sanitizer, "Do not check synchronisation");
  app.add_flag("--allow-uninitialized", args.allow_uninitialized,
               "Reads of unwritten bytes are no error");
}

Options options_of(const InterpreterArgs& args) {
  Options options;
  options.sanitize = !args.no_sanitizer;
  options.strict = args.strict;
  options.check_uninitialized = !args.allow_uninitialized;
  options.mma = args.mma == "rounded" ? MmaMode::kRounded : MmaMode::kExact;
  options.max_warp_instructions = args.budget;
  options.max_seconds = args.seconds;
  options.admits_more = args.resident == 0;
  options.sample = args.sample;
  // What clusters that are left out would have written is read by others, and by later launches.
  if (args.sample != 0) options.check_uninitialized = false;
  if (args.resident != 0) options.resident_clusters = args.resident;
  return options;
}

}  // namespace ptxsim::cli
