#include "tools/cli/parse/args_table.hpp"

#include <algorithm>

#include "tools/cli/parse/args_bind.hpp"
#include "tools/cli/parse/completion.hpp"
#include "tools/cli/parse/help.hpp"
#include "tools/cli/parse/parse_values.hpp"

namespace dualgemm::cli {
namespace {

CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& what,
                      const char* footer) {
  CLI::App* command = app.add_subcommand(name, what);
  command->footer(footer);
  return command;
}

// "a (default), b or c": the conventions that are written.
std::string names_with_default(checkpoint::Convention convention) {
  std::string names = checkpoint::names_of(checkpoint::is_target);
  const std::string name = checkpoint::name_of(convention);
  return names.insert(names.find(name) + name.size(), " (default)");
}

void add_info(CLI::App& app, InfoCommand& command) {
  CLI::App* sub =
      add_command(app, "info", "What this machine offers: device, instruction sets, measured peaks",
                  help::kInfo);
  sub->add_flag("--json", command.json, "JSON on stdout");
  sub->add_flag_callback(
      "--no-peaks", [&command] { command.peaks = false; }, "do not measure peaks");
  sub->add_flag("--devices", command.devices, "list the GPUs that `plan --device` knows instead");
  bind_threads(sub, command.threads);
}

void add_plan(CLI::App& app, PlanCommand& command) {
  CLI::App* sub =
      add_command(app, "plan", "What would run, why, and what was rejected", help::kPlan);
  bind_shape(sub, command.shape);
  bind_problem(sub, command.problem);
  bind_grouping(sub, command.problem.grouping);
  bind_strategy(sub, command.strategy);
  bind_execution(sub, command.execution, Devices::kDescribed);
  sub->add_flag("--json", command.json, "JSON on stdout");
}

void add_make_layer(CLI::App& app, MakeLayerCommand& command) {
  CLI::App* sub = add_command(app, "make-layer", "A random layer and activations to try things on",
                              help::kMakeLayer);
  sub->add_option("--out", command.out, "the layer, safetensors")->type_name("FILE")->required();
  sub->add_option("--activations", command.activations, "the activations, npy or safetensors")
      ->type_name("FILE");
  sub->add_option("--prefix", command.prefix, "the layer's name in the file")
      ->type_name("NAME")
      ->capture_default_str();
  Shape defaults{command.m, command.n, command.k, 1};
  add_value(sub, "-m,--m", command.m, parse_positive_int, "ROWS", "tokens")
      ->default_str(std::to_string(defaults.m));
  add_value(sub, "-n,--n", command.n, parse_positive_int, "ROWS", "intermediate size")
      ->default_str(std::to_string(defaults.n));
  add_value(sub, "-k,--k", command.k, parse_positive_int, "COLS", "hidden size")
      ->default_str(std::to_string(defaults.k));
  add_value(sub, "--type", command.type, parse_data_type, "TYPE", "f32, f16 or bf16 (default)");
  sub->add_flag("--stacked", command.stacked, "one tensor gate_up_proj instead of two");
  sub->add_flag("--mlp", command.mlp, "down_proj, too: K x N");
  add_value(sub, "--experts", command.experts, parse_positive_int, "E",
            "so many layers, PREFIX.experts.0 and on");
  bind_seed(sub, command.seed);
  sub->add_flag("--json", command.json, "what was written as JSON on stdout");
  bind_dry_run(sub, command.dry_run);
}

void add_quantize(CLI::App& app, QuantizeCommand& command) {
  CLI::App* sub = add_command(app, "quantize", "fp32, fp16 or bf16 weights to an NVFP4 checkpoint",
                              help::kQuantize);
  sub->add_option("input", command.input, "npy, safetensors, sharded index or model folder")
      ->type_name("FILE")
      ->required();
  sub->add_option("--out", command.out, "the NVFP4 checkpoint: safetensors, or a folder")
      ->type_name("FILE")
      ->required();
  add_value(sub, "--convention", command.convention, parse_target_convention, "NAME",
            names_with_default(checkpoint::Convention::kModelOpt));
  sub->add_option("--tensor", command.tensors, "only this tensor; may be repeated")
      ->type_name("NAME")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  sub->add_option("--prefix", command.prefix, "only tensors whose names begin so")
      ->type_name("NAME");
  const auto patterns = [sub](const char* name, std::vector<std::string>& target,
                              const char* what) {
    sub->add_option(name, target, what)
        ->type_name("PATTERN")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  };
  patterns(
      "--include", command.include,
      "only tensors whose whole names match, those left alone by default too; may be repeated");
  patterns("--exclude", command.exclude, "not these; wins over --include; may be repeated");
  sub->add_flag("--separate-scales", command.separate_scales,
                "Gate and Up (and q, k, v) keep a global scale each instead of sharing one");
  sub->add_option("--calibrate", command.calibrate,
                  "activations: their amax gives the input scale of weights with as many columns; "
                  "may be repeated")
      ->type_name("FILE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_value(sub, "--scale-layout", command.scale_layout, parse_scale_layout, "LAYOUT",
            "linear (default) or swizzled_128x4");
  add_value(sub, "--global-scale", command.global_scale, parse_positive_number, "X",
            "dequantising multiplier for every tensor instead of amax/(6*448)");
  sub->add_flag("--four-over-six", command.four_over_six,
                "per block also try mapping the largest value to 4, keep the lower mean error");
  sub->add_flag("--check", command.check, "print error statistics of every tensor");
  sub->add_flag("--force", command.force,
                "replace the model that the folder holds, or the configs that lie beside the file");
  sub->add_flag(
      "--resume", command.resume,
      "keep finished shards where a run is interrupted, and go on from those of one before");
  sub->add_flag("--json", command.json, "the report as JSON on stdout");
  bind_threads(sub, command.threads);
  bind_dry_run(sub, command.dry_run);
}

void add_convert(CLI::App& app, ConvertCommand& command) {
  CLI::App* sub = add_command(
      app, "convert", "Scale layouts, nibble order, conventions, ggml blocks", help::kConvert);
  sub->add_option("input", command.input, "safetensors, gguf, sharded index or folder")
      ->type_name("FILE")
      ->required();
  sub->add_option("--out", command.out, "safetensors")->type_name("FILE")->required();
  add_value(sub, "--scale-layout", command.scale_layout, parse_scale_layout, "LAYOUT",
            "of the output: linear or swizzled_128x4");
  add_value(
      sub, "--nibble-order", command.nibble_order, parse_nibble_order, "ORDER",
      "of the output: low_even (even k in the low nibble, as nearly everywhere) or high_even");
  add_value(sub, "--convention,--to", command.convention, parse_target_convention, "NAME",
            "of the output: " + checkpoint::names_of(checkpoint::is_target));
  add_value(sub, "--from", command.from, parse_source_convention, "NAME",
            "refuse the input unless it is of this convention");
  add_value(sub, "--from-scale-layout", command.from_scale_layout, parse_scale_layout, "LAYOUT",
            "of the input, when its metadata do not say (default linear)");
  add_value(sub, "--from-nibble-order", command.from_nibble_order, parse_nibble_order, "ORDER",
            "of the input, when its metadata do not say (default low_even)");
  sub->add_flag("--json", command.json, "what was written as JSON on stdout");
  bind_dry_run(sub, command.dry_run);
}

void add_run(CLI::App& app, RunCommand& command) {
  CLI::App* sub =
      add_command(app, "run", "One layer from files: weights, activations, result", help::kRun);
  bind_layer_files(sub, command.files, true);
  add_value(sub, "--expert", command.files.expert, parse_expert, "E",
            "this expert of the layer, from 0");
  sub->add_flag("--experts", command.experts,
                "all experts of the layer in one grouped run, with --expert-tokens");
  sub->add_option("--expert-tokens", command.expert_tokens,
                  "npy or text: how many rows of the activations each expert gets, or E+1 offsets")
      ->type_name("FILE");
  sub->add_flag(
      "--masked", command.masked,
      "--experts: activations are E x ROWS x K, of which each expert uses its first rows");
  sub->add_flag("--mlp", command.mlp,
                "the whole layer: Down's weights too, Y = H * Down^T with H = act(gate) * up; X "
                "stays in f16 or bf16 (--a-type; else the file's, bf16 for fp32)");
  sub->add_flag("--quantize-x", command.quantize_x, "--mlp: X to NVFP4");
  sub->add_flag("--quantize-h", command.quantize_h,
                "--mlp: H to NVFP4, with the checkpoint's input scale of Down");
  add_value(sub, "--h-global-scale", command.h_global_scale, parse_positive_number, "X",
            "--quantize-h: dequantising multiplier of H instead of the checkpoint's");
  sub->add_option("--out", command.out, "D (--mlp: Y), npy or safetensors (e2m1 needs safetensors)")
      ->type_name("FILE");
  bind_problem(sub, command.problem);
  sub->get_option("--a-type")->each([&command](const std::string&) {
    command.a_type_given = true;
  });
  add_value(sub, "--d-global-scale", command.d_global_scale, parse_positive_number, "X",
            "--d-type e2m1: dequantising multiplier of D (default 1)");
  bind_strategy(sub, command.strategy);
  bind_execution(sub, command.execution);
  sub->add_flag("--check", command.check, "compare D with the oracle; a mismatch is exit status 1");
  sub->add_flag("--json", command.json, "the report as JSON on stdout");
  bind_dry_run(sub, command.dry_run);
}

void add_verify(CLI::App& app, VerifyCommand& command) {
  CLI::App* sub = add_command(app, "verify", "Every strategy against the oracle", help::kVerify);
  bind_shape_lists(sub, command.shapes, "None given: --random-shapes seeded ones");
  bind_problem(sub, command.problem);
  bind_grouping(sub, command.problem.grouping);
  sub->add_flag("--row-experts", command.row_experts,
                "--grouping contiguous: the expert of each row (m_indices) instead of offsets");
  bind_strategies(sub, command.strategies, "default: all");
  bind_execution(sub, command.execution);
  bind_layer_files(sub, command.files, false);
  add_value(sub, "--random-shapes", command.random_shapes, parse_positive_int, "N",
            "how many seeded shapes")
      ->default_str(std::to_string(command.random_shapes));
  add_value(
      sub, "--samples", command.samples, parse_positive_int, "N",
      "compare at least N elements spread over all tiles instead of every one (large shapes)");
  bind_seed(sub, command.seed);
  sub->add_flag("--json", command.json, "JSON on stdout");
}

CLI::Option* add_output(CLI::App* sub, const std::string& name, std::string& target,
                        const std::string& what) {
  const auto store = [&target](const CLI::results_t& values) {
    target = values.empty() || values[0].empty() || values[0] == "true" ? "-" : values[0];
    return true;
  };
  return sub->add_option(name, store, what)->expected(0, 1)->type_name("[FILE]");
}

void add_bench(CLI::App& app, BenchCommand& command) {
  CLI::App* sub = add_command(app, "bench", "Times, checks and ranks the strategies", help::kBench);
  bind_shape_lists(sub, command.shapes,
                   "None given: the challenge's four shapes; N=4096, K=7168 otherwise");
  bind_problem(sub, command.problem);
  bind_strategies(sub, command.strategies, "default: all but reference");
  bind_execution(sub, command.execution);
  add_value(sub, "--min-rounds", command.min_rounds, parse_positive_int, "N",
            "rounds of every strategy, whatever they take; two have an interval")
      ->default_str(std::to_string(command.min_rounds));
  add_value(sub, "--max-rounds", command.max_rounds, parse_positive_int, "N",
            "no more than this many")
      ->default_str(std::to_string(command.max_rounds));
  add_value(sub, "--seconds", command.seconds, parse_positive_number, "S",
            "time for each shape, shared by the work in them; then no new round begins")
      ->default_str("25");
  bind_seed(sub, command.seed);
  sub->add_flag_callback(
      "--no-peaks", [&command] { command.peaks = false; },
      "do not measure peaks (no roofline column)");
  add_output(sub, "--json", command.json, "JSON to FILE, or to stdout");
  add_output(sub, "--markdown", command.markdown, "Markdown to FILE, or to stdout");
  add_output(sub, "--csv", command.csv,
             "CSV, one row per strategy and shape, to FILE, or to stdout");
  bind_dry_run(sub, command.dry_run);
}

void add_validate(CLI::App& app, ValidateCommand& command) {
  CLI::App* sub = add_command(app, "validate", "Is a checkpoint sound?", help::kValidate);
  sub->add_option("input", command.input, "safetensors, gguf, npy, sharded index or folder")
      ->type_name("FILE")
      ->required();
  sub->add_option("--prefix", command.prefix, "only this layer")->type_name("NAME");
  sub->add_flag("--strict", command.strict,
                "negative block scales are errors, and NaN ones with --allow-nan");
  bind_allow_nan(sub, command.allow_nan);
  sub->add_flag("--json", command.json, "JSON on stdout");
}

CLI::Option* add_help(CLI::App& app, HelpRequest& request) {
  CLI::App* sub =
      add_command(app, "help", "What a command does and which options it has", help::kHelp);
  sub->add_flag("--json", request.json, "the table of commands and options as JSON on stdout");
  return sub->add_option("command", request.topic, "the command; none: an overview")
      ->type_name("COMMAND");
}

void add_completion(CLI::App& app, HelpRequest& request) {
  CLI::App* sub = add_command(app, "completion",
                              "A script that completes commands, options and values in a shell",
                              help::kCompletion);
  with_choices(sub->add_option("shell", request.shell, "the shell")->type_name("SHELL")->required(),
               shells());
  sub->add_flag("--json", request.json, "the script as a JSON document on stdout");
}

void add_man(CLI::App& app, HelpRequest& request) {
  CLI::App* sub = add_command(app, "man", "The manual page dualgemm(1), as roff", help::kMan);
  sub->add_flag("--json", request.json, "the page as a JSON document on stdout");
}

// Rules between options, which CLI11 does not know.
Status check_lists(const ShapeLists& shapes) {
  int64_t combinations = 1;
  for (const std::vector<int64_t>* list : {&shapes.m, &shapes.n, &shapes.k, &shapes.l}) {
    const int64_t count = std::max<int64_t>(1, static_cast<int64_t>(list->size()));
    combinations *= count;
    if (combinations > kMaxListLength) {
      return Status::invalid("--m, --n, --k, --l",
                             "more than " + std::to_string(kMaxListLength) + " combinations",
                             "at most " + std::to_string(kMaxListLength));
    }
  }
  return {};
}

// A config names one plan; `strategies`: how many are asked for by name.
Status check_config(const ExecutionOptions& execution, size_t strategies) {
  if (execution.config.empty()) return {};
  if (execution.device != DeviceKind::kCuda) {
    return Status::invalid("--config", "'" + execution.config + "'", "needs --device cuda");
  }
  if (strategies <= 1) return {};
  return Status::invalid("--config", std::to_string(strategies) + " strategies",
                         "is for one; give one --strategy or none");
}

Status check(const InfoCommand&) { return {}; }
Status check(const PlanCommand& command) { return check_config(command.execution, 1); }
Status check(const ConvertCommand&) { return {}; }
Status check(const ValidateCommand&) { return {}; }

Status check(const QuantizeCommand& command) {
  if (holds_blocks(command.convention) && command.scale_layout != ScaleLayout::kLinear) {
    return Status::invalid("--scale-layout", name_of(command.scale_layout),
                           "ggml blocks hold their scales: linear only");
  }
  return {};
}

Status check(const MakeLayerCommand& command) {
  if (command.type == DataType::kE2M1) {
    return Status::invalid("--type", "e2m1",
                           "must be f32, f16 or bf16; `dualgemm quantize` makes NVFP4 of it");
  }
  return {};
}

// What belongs to a whole layer, and what does not.
Status check_mlp_options(const RunCommand& command) {
  if (!command.mlp) {
    if (!command.quantize_x && !command.quantize_h && command.h_global_scale == 0.0) return {};
    return Status::invalid("--quantize-x, --quantize-h, --h-global-scale", "given",
                           "only with --mlp");
  }
  if (command.h_global_scale != 0.0 && !command.quantize_h)
    return Status::invalid("--h-global-scale", "given", "only with --quantize-h");
  if (command.a_type_given && command.problem.a_type == DataType::kE2M1)
    return Status::unsupported("--mlp", "--a-type e2m1",
                               "X is f16 or bf16; --quantize-x makes NVFP4 of it");
  if (command.problem.a_type == DataType::kF32)
    return Status::unsupported("--mlp", "--a-type f32", "X is f16 or bf16");
  if (command.problem.d_type == DataType::kE2M1)
    return Status::unsupported("--mlp", "--d-type e2m1", "Y is f16, bf16 or f32");
  if (command.problem.scale_layout != ScaleLayout::kLinear)
    return Status::unsupported("--mlp", "--layout swizzled_128x4",
                               "it lays out the scales of X and H itself");
  if (command.problem.bias != BiasType::kNone)
    return Status::invalid("--bias", name_of(command.problem.bias),
                           "must not be given for a checkpoint's layer, which brings its own");
  if (command.strategy != StrategyId::kAuto)
    return Status::unsupported("--mlp", "--strategy", "its two products choose theirs");
  if (!command.execution.config.empty())
    return Status::unsupported("--mlp", "--config", "its two products choose theirs");
  return {};
}

Status check(const RunCommand& command) {
  DUALGEMM_TRY(check_mlp_options(command));
  if (command.experts && command.files.expert)
    return Status::invalid("--expert, --experts", "both given", "one or all");
  if (command.experts != !command.expert_tokens.empty()) {
    return Status::invalid("--experts, --expert-tokens", "only one of the two", "need each other");
  }
  if (command.masked && !command.experts)
    return Status::invalid("--masked", "given", "only with --experts");
  if (command.experts && command.problem.d_type == DataType::kE2M1)
    return Status::unsupported("--experts", "--d-type e2m1", "grouped runs give f16, bf16 or f32");
  if (command.experts && command.problem.scale_layout != ScaleLayout::kLinear)
    return Status::unsupported("--experts", "--layout swizzled_128x4",
                               "grouped runs quantise A with linear scales");
  if (command.d_global_scale != 0.0 && command.problem.d_type != DataType::kE2M1) {
    return Status::invalid("--d-global-scale", "given", "only with --d-type e2m1");
  }
  return check_config(command.execution, 1);
}

Status check(const VerifyCommand& command) {
  if (command.files.weights.empty() != command.files.activations.empty()) {
    return Status::invalid("--weights, --activations", "only one of the two",
                           "give both, or neither");
  }
  if (!command.files.weights.empty() && !command.shapes.empty()) {
    return Status::invalid("--m, --n, --k, --l", "given with --weights",
                           "the files determine the shape");
  }
  const Grouping grouping = command.problem.grouping;
  if (!command.files.weights.empty() && grouping != Grouping::kNone) {
    return Status::invalid("--grouping", name_of(grouping),
                           "is for random operands; `run --experts --check` takes files");
  }
  if (command.row_experts && grouping != Grouping::kContiguous)
    return Status::invalid("--row-experts", name_of(grouping), "needs --grouping contiguous");
  DUALGEMM_TRY(check_config(command.execution, command.strategies.size()));
  return check_lists(command.shapes);
}

Status check(const BenchCommand& command) {
  if ((command.json == "-") + (command.markdown == "-") + (command.csv == "-") > 1) {
    return Status::invalid("--json, --markdown, --csv", "more than one on stdout",
                           "give the others a file");
  }
  if (command.max_rounds < command.min_rounds) {
    return Status::invalid("--max-rounds", std::to_string(command.max_rounds),
                           "must not be below --min-rounds");
  }
  DUALGEMM_TRY(check_config(command.execution, command.strategies.size()));
  return check_lists(command.shapes);
}

}  // namespace

Expected<ColourChoice> parse_colour(const std::string& text) {
  if (text == "auto") return ColourChoice::kAuto;
  if (text == "always") return ColourChoice::kAlways;
  if (text == "never") return ColourChoice::kNever;
  return Status::invalid("value", "'" + text + "'", "must be auto, always or never");
}

void add_commands(CLI::App& app, Commands& commands) {
  add_info(app, commands.info);
  add_plan(app, commands.plan);
  add_make_layer(app, commands.make_layer);
  add_quantize(app, commands.quantize);
  add_convert(app, commands.convert);
  add_run(app, commands.run);
  add_verify(app, commands.verify);
  add_bench(app, commands.bench);
  add_validate(app, commands.validate);
  CLI::Option* topic = add_help(app, commands.help);
  add_completion(app, commands.help);
  add_man(app, commands.help);
  std::vector<std::string> names;
  for (CLI::App* sub : app.get_subcommands(nullptr)) {
    add_value(sub, "--color", commands.colour, parse_colour, "WHEN",
              "colours; auto: on a terminal, unless NO_COLOR is set", {"auto", "always", "never"})
        ->default_str("auto");
    group_options(sub);
    names.push_back(sub->get_name());
  }
  with_choices(topic, names);
}

Status check_command(const Command& command) {
  return std::visit([](const auto& value) { return check(value); }, command);
}

}  // namespace dualgemm::cli
