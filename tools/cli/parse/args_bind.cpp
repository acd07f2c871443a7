#include "tools/cli/parse/args_bind.hpp"

#include <map>

#include "tools/cli/parse/gpu_table.hpp"
#include "tools/cli/parse/parse_values.hpp"

namespace dualgemm::cli {
namespace {

// A strategy's names, as a list may hold them.
std::vector<std::string> names_in_strategy_lists() {
  std::vector<std::string> names;
  for (const std::string& name : names_taken_by(parse_strategy)) {
    if (name != name_of(StrategyId::kAuto)) names.push_back(name);
  }
  names.push_back("all");
  return names;
}

std::string without_quotes(const std::string& text) {
  const bool quoted = text.size() >= 2 && text.front() == text.back() &&
                      (text.front() == '\'' || text.front() == '"');
  return quoted ? text.substr(1, text.size() - 2) : text;
}

bool is_file_name(const std::string& text) {
  return text.size() > 5 && text.compare(text.size() - 5, 5, ".json") == 0;
}

void bind_device(CLI::App* app, ExecutionOptions& execution, Devices devices) {
  const std::string usual = "auto (a GPU where there is one that takes the problem, else the CPU)";
  if (devices == Devices::kPresent) {
    add_value(app, "--device", execution.device, parse_device, "DEVICE", usual + ", or by name")
        ->default_str("auto");
    return;
  }
  std::vector<std::string> names = names_taken_by(parse_device);
  const std::vector<std::string> gpus = gpu_names_and_aliases();
  names.insert(names.end(), gpus.begin(), gpus.end());
  const auto store = [&execution, names](const std::string& text) {
    const Expected<DeviceKind> device = parse_device(text);
    execution.gpu.clear();
    execution.device = device ? *device : DeviceKind::kCuda;
    if (device) return;
    if (find_gpu(text) == nullptr && !is_file_name(text)) {
      throw CLI::ValidationError(
          "--device", "'" + text +
                          "'; must be auto, cpu, cuda, a .json file or a GPU that `dualgemm info "
                          "--devices` lists" +
                          did_you_mean(text, names));
    }
    execution.gpu = text;
  };
  with_choices(
      app->add_option_function<std::string>(
             "--device", store,
             usual + "; or a GPU that is not there: a .json file that describes it, or by name")
          ->type_name("DEVICE")
          ->default_str("auto"),
      names);
}

}  // namespace

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words(1);
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
    if (letter) {
      words.back() += c;
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

CLI::Option* with_choices(CLI::Option* option, const std::vector<std::string>& choices) {
  if (choices.empty()) return option;
  std::string list;
  for (const std::string& choice : choices) list += (list.empty() ? "" : "|") + choice;
  return option->check(
      CLI::Validator([](std::string&) { return std::string(); }, list, kChoicesValidator));
}

std::string refusal(const Status& status, const std::vector<std::string>& choices) {
  return status.observed() + "; " + status.rule() +
         did_you_mean(without_quotes(status.observed()), choices);
}

void bind_shape(CLI::App* app, Shape& shape) {
  add_value(app, "-m,--m", shape.m, parse_positive_int, "ROWS", "tokens: rows of A and D")
      ->default_str(std::to_string(shape.m));
  add_value(app, "-n,--n", shape.n, parse_positive_int, "ROWS",
            "intermediate size: rows of Gate and of Up, columns of D")
      ->default_str(std::to_string(shape.n));
  add_value(app, "-k,--k", shape.k, parse_positive_int, "COLS",
            "hidden size: columns of A, Gate, Up; a multiple of 16")
      ->default_str(std::to_string(shape.k));
  add_value(app, "-l,--l", shape.l, parse_positive_int, "BATCHES",
            "independent problems of this shape")
      ->default_str(std::to_string(shape.l));
}

void bind_shape_lists(CLI::App* app, ShapeLists& shapes, const std::string& fallback) {
  const char* list = "LIST";
  add_value(app, "-m,--m", shapes.m, parse_int_list, list,
            "tokens: 16 or 1,16,256 or 1024:4096:256 (first:last:step)");
  add_value(app, "-n,--n", shapes.n, parse_int_list, list,
            "intermediate sizes (rows of Gate and of Up)");
  add_value(app, "-k,--k", shapes.k, parse_int_list, list, "hidden sizes (multiples of 16)");
  add_value(app, "-l,--l", shapes.l, parse_int_list, list,
            "batches; every combination of the four lists is run.\n" + fallback);
}

void bind_problem(CLI::App* app, ProblemOptions& problem) {
  add_value(app, "--a-type", problem.a_type, parse_data_type, "TYPE",
            "A: NVFP4, or wider while the weights stay in 4 bits (\"W4A16\")")
      ->default_str(name_of(problem.a_type));
  add_value(app, "--d-type", problem.d_type, parse_data_type, "TYPE",
            "D; e2m1 is NVFP4, quantised in the epilogue")
      ->default_str(name_of(problem.d_type));
  add_value(app, "--layout,--scale-layout", problem.scale_layout, parse_scale_layout, "LAYOUT",
            "block scales, as in checkpoints or as cuBLASLt and CUTLASS want them")
      ->default_str(name_of(problem.scale_layout));
  add_value(app, "--act", problem.act, parse_activation, "ACT", "activation of the gate")
      ->default_str(name_of(problem.act));
  add_value(app, "--act-alpha", problem.act_alpha, parse_number, "X",
            "the two SwiGLU kinds: g*sigmoid(X*g); default 1, swiglu_oai 1.702");
  add_value(app, "--act-beta", problem.act_beta, parse_number, "X",
            "the two SwiGLU kinds: (u + X); default 0, swiglu_oai 1");
  add_value(
      app, "--act-limit", problem.act_limit, parse_limit, "X",
      "the two SwiGLU kinds: clamp at X, or inf; swiglu_oai's default 7, clamped_swiglu needs it");
  app->add_flag("--batch-invariant", problem.batch_invariant,
                "a row's bits depend neither on the number of rows nor on the instruction set");
  add_value(app, "--bias", problem.bias, parse_bias, "TYPE",
            "of Gate and of Up, added before the activation: random numbers of this type. A "
            "checkpoint's own are read without it")
      ->default_str(name_of(problem.bias));
}

void bind_grouping(CLI::App* app, Grouping& grouping) {
  add_value(
      app, "--grouping", grouping, parse_grouping, "GROUPING",
      "groups of L experts: contiguous (M rows in all, one expert's behind another's) or masked "
      "(up to M rows each)")
      ->default_str(name_of(grouping));
}

void bind_execution(CLI::App* app, ExecutionOptions& execution, Devices devices) {
  bind_device(app, execution, devices);
  add_value(
      app, "--isa", execution.isa, parse_isa, "ISA",
      "instruction set; auto is on the CPU DUALGEMM_FORCE_ISA, else the best that the device has")
      ->default_str(name_of(execution.isa));
  bind_threads(app, execution.threads);
  app->add_flag(
      "--prepared", execution.prepared,
      "convert the weights once, outside of the run (a serving process does this at load)");
  app->add_option("--config", execution.config,
                  "--device cuda: the kernel to run instead of the one chosen; a plan's config, or "
                  "some of strategy, isa, kernel, tile_m, tile_n, tile_k, stages, k_warpgroups, "
                  "ctas as key=value,...")
      ->type_name("TEXT");
}

void bind_strategy(CLI::App* app, StrategyId& strategy) {
  add_value(app, "--strategy", strategy, parse_strategy, "NAME",
            "how D is computed (`dualgemm help` explains each)")
      ->default_str(name_of(strategy));
}

void bind_strategies(CLI::App* app, std::vector<StrategyId>& strategies,
                     const std::string& fallback) {
  add_value(app, "--strategy,--strategies", strategies, parse_strategy_list, "LIST",
            "strategies, comma-separated (" + fallback + ")", names_in_strategy_lists());
}

void bind_allow_nan(CLI::App* app, bool& allow_nan) {
  app->add_flag(
      "--allow-nan", allow_nan,
      "scales of weights that are NaN or infinite are no error; they make NaN of what they "
      "touch");
}

void bind_layer_files(CLI::App* app, LayerFiles& files, bool required) {
  CLI::Option* weights =
      required ? app->add_option("weights", files.weights,
                                 "safetensors file, sharded index or checkpoint folder")
               : app->add_option("--weights", files.weights,
                                 "safetensors file, sharded index or checkpoint folder");
  weights->type_name("FILE")->required(required);
  app->add_option("--prefix", files.prefix,
                  "the layer's name in the file, e.g. model.layers.0.mlp; below it gate_proj and "
                  "up_proj, or gate_up_proj."
                  " May be left out when the file holds one layer")
      ->type_name("NAME");
  app->add_option("--activations", files.activations,
                  "npy or safetensors; M x K in fp32, fp16, bf16, or NVFP4")
      ->type_name("FILE")
      ->required(required);
  app->add_option("--activations-tensor", files.activations_tensor,
                  "which tensor of that file, if it holds several")
      ->type_name("NAME");
  app->add_flag("--u2-is-bf16", files.u2_is_bf16,
                "npy activations of uint16 hold bf16 (NumPy has no type for it)");
  add_value(app, "--stacked-order", files.stacked_order, parse_stacked_order, "ORDER",
            "halves of a stacked gate_up_proj; HF and vLLM write the gate first, TRT-LLM and "
            "FlashInfer up first")
      ->default_str(checkpoint::name_of(files.stacked_order));
  app->add_flag("--max-input-scale", files.max_input_scale,
                "Gate and Up carry different input scales: take the larger (as vLLM does) instead "
                "of refusing");
  bind_allow_nan(app, files.allow_nan);
}

void bind_threads(CLI::App* app, int& threads) {
  add_value(app, "--threads", threads, parse_thread_count, "N",
            "0 = as many as pay, at most all cores of this process; never changes a result")
      ->default_str("0");
}

void bind_seed(CLI::App* app, uint64_t& seed) {
  add_value(app, "--seed", seed, parse_seed, "N", "of the random operands")
      ->default_str(std::to_string(seed));
}

void bind_dry_run(CLI::App* app, bool& dry_run) {
  app->add_flag(
      "--dry-run", dry_run,
      "check everything that can be known before, say what would be written; write nothing");
}

void group_options(CLI::App* app) {
  static const std::map<std::string, const char*> groups = {
      {"m", "Shape"},
      {"n", "Shape"},
      {"k", "Shape"},
      {"l", "Shape"},
      {"random-shapes", "Shape"},
      {"a-type", "Problem"},
      {"d-type", "Problem"},
      {"scale-layout", "Problem"},
      {"act", "Problem"},
      {"act-alpha", "Problem"},
      {"act-beta", "Problem"},
      {"act-limit", "Problem"},
      {"batch-invariant", "Problem"},
      {"bias", "Problem"},
      {"grouping", "Problem"},
      {"row-experts", "Problem"},
      {"d-global-scale", "Problem"},
      {"quantize-x", "Problem"},
      {"quantize-h", "Problem"},
      {"h-global-scale", "Problem"},
      {"seed", "Problem"},
      {"device", "Execution"},
      {"isa", "Execution"},
      {"threads", "Execution"},
      {"prepared", "Execution"},
      {"config", "Execution"},
      {"strategy", "Execution"},
      {"strategies", "Execution"},
      {"weights", "Files"},
      {"prefix", "Files"},
      {"activations", "Files"},
      {"activations-tensor", "Files"},
      {"u2-is-bf16", "Files"},
      {"stacked-order", "Files"},
      {"max-input-scale", "Files"},
      {"allow-nan", "Files"},
      {"out", "Files"},
      {"force", "Files"},
      {"resume", "Files"},
      {"dry-run", kOutputGroup},
      {"min-rounds", "Timing"},
      {"max-rounds", "Timing"},
      {"seconds", "Timing"},
      {"no-peaks", "Timing"},
      {"json", kOutputGroup},
      {"markdown", kOutputGroup},
      {"csv", kOutputGroup},
      {"color", kOutputGroup},
      {"help", kOutputGroup},
  };
  for (CLI::Option* option : app->get_options()) {
    for (const std::string& name : option->get_lnames()) {
      if (const auto found = groups.find(name); found != groups.end()) option->group(found->second);
    }
  }
}

}  // namespace dualgemm::cli
