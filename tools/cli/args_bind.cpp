#include "tools/cli/args_bind.hpp"

#include "core/enum_table.hpp"
#include "tools/cli/parse_values.hpp"

namespace dualgemm::cli {

void bind_shape(CLI::App* app, Shape& shape) {
  add_value(app, "-m,--m", shape.m, parse_positive_int, "ROWS", "tokens: rows of A and D")
      ->default_str(std::to_string(shape.m));
  add_value(app, "-n,--n", shape.n, parse_positive_int, "ROWS",
            "intermediate size: rows of gate and of up, columns of D")
      ->default_str(std::to_string(shape.n));
  add_value(app, "-k,--k", shape.k, parse_positive_int, "COLS",
            "hidden size: columns of A, gate, up; a multiple of 16")
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
            "intermediate sizes (rows of gate and of up)");
  add_value(app, "-k,--k", shapes.k, parse_int_list, list, "hidden sizes (multiples of 16)");
  add_value(app, "-l,--l", shapes.l, parse_int_list, list,
            "batches; every combination of the four lists is run.\n" + fallback);
}

void bind_problem(CLI::App* app, ProblemOptions& problem) {
  add_value(app, "--a-type", problem.a_type, parse_data_type, "TYPE",
            "A: e2m1 (NVFP4, default), or f16, bf16, f32 (weights stay 4-bit: \"W4A16\")");
  add_value(app, "--d-type", problem.d_type, parse_data_type, "TYPE",
            "D: f16 (default), bf16, f32, or e2m1 (NVFP4, quantised in the epilogue)");
  add_value(
      app, "--layout,--scale-layout", problem.scale_layout, parse_scale_layout, "LAYOUT",
      "block scales: linear (default; as in checkpoints) or swizzled_128x4 (cuBLASLt, CUTLASS)");
  add_value(app, "--act", problem.act, parse_activation, "ACT",
            "default silu; " + core::enum_names<ActivationKind>());
  add_value(app, "--act-alpha", problem.act_alpha, parse_number, "X",
            "the two SwiGLU kinds: g*sigmoid(X*g); default 1, swiglu_oai 1.702");
  add_value(app, "--act-beta", problem.act_beta, parse_number, "X",
            "the two SwiGLU kinds: (u + X); default 0, swiglu_oai 1");
  add_value(
      app, "--act-limit", problem.act_limit, parse_limit, "X",
      "the two SwiGLU kinds: clamp at X, or inf; swiglu_oai's default 7, clamped_swiglu needs it");
  app->add_flag("--batch-invariant", problem.batch_invariant,
                "a row's bits depend neither on the number of rows nor on the instruction set");
}

void bind_execution(CLI::App* app, ExecutionOptions& execution) {
  add_value(app, "--device", execution.device, parse_device, "DEVICE",
            "default auto; " + core::enum_names<DeviceKind>());
  add_value(app, "--isa", execution.isa, parse_isa, "ISA",
            "default auto (DUALGEMM_FORCE_ISA, else the best here); " + core::enum_names<Isa>());
  bind_threads(app, execution.threads);
  app->add_flag(
      "--prepared", execution.prepared,
      "convert the weights once, outside of the run (a serving process does this at load)");
  app->add_option(
         "--config", execution.config,
         "--device cuda: the kernel to run instead of the one chosen; a plan's config, or "
         "some of strategy, isa, kernel, tile_m, tile_n, tile_k, stages, k_warpgroups, ctas as "
         "key=value,...")
      ->type_name("TEXT");
}

void bind_strategy(CLI::App* app, StrategyId& strategy) {
  add_value(app, "--strategy", strategy, parse_strategy, "NAME",
            "auto (default), or one of those that `dualgemm --help` explains");
}

void bind_strategies(CLI::App* app, std::vector<StrategyId>& strategies,
                     const std::string& fallback) {
  add_value(app, "--strategy,--strategies", strategies, parse_strategy_list, "LIST",
            "strategies, comma-separated, or all (" + fallback + ")");
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
            "a stacked gate_up_proj holds gate_first (default; HF, vLLM) or up_first (TRT-LLM, "
            "FlashInfer)");
  app->add_flag("--max-input-scale", files.max_input_scale,
                "gate and up carry different input scales: take the larger (as vLLM does) instead "
                "of refusing");
}

void bind_threads(CLI::App* app, int& threads) {
  add_value(app, "--threads", threads, parse_thread_count, "N",
            "0 (default) = all cores of this process; never changes a result");
}

void bind_seed(CLI::App* app, uint64_t& seed) {
  add_value(app, "--seed", seed, parse_seed, "N", "of the random operands")
      ->default_str(std::to_string(seed));
}

}  // namespace dualgemm::cli
