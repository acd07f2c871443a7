// What the command line asks for, as plain values: the parser fills them in, the commands carry
// them out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "dualgemm/dualgemm.hpp"

namespace dualgemm::cli {

// The parts of a Problem that one subcommand takes from options; m, n, k come from files in `run`.
struct ProblemOptions {
  DataType a_type = DataType::kE2M1;
  DataType d_type = DataType::kF16;
  ScaleLayout scale_layout = ScaleLayout::kLinear;
  ActivationKind act = ActivationKind::kSilu;
  std::optional<double> act_alpha, act_beta, act_limit;
  bool batch_invariant = false;
  BiasType bias = BiasType::kNone;
  Grouping grouping = Grouping::kNone;  // `plan` and `verify`

  Activation activation() const;
  Problem problem(int64_t m, int64_t n, int64_t k, int64_t l) const;
};

struct ExecutionOptions {
  DeviceKind device = DeviceKind::kAuto;
  Isa isa = Isa::kAuto;
  int threads = 0;
  bool prepared = false;
  std::string config;  // PlanOptions::config
  std::string gpu;     // `plan`: a GPU of the table, or a .json that describes one; device is kCuda

  PlanOptions plan_options(StrategyId strategy) const;
};

struct Shape {
  int64_t m, n, k, l;
};

struct ShapeLists {
  std::vector<int64_t> m, n, k, l;
  bool empty() const { return m.empty() && n.empty() && k.empty() && l.empty(); }
  // Every combination, m fastest; an empty list stands for `fallback`'s member.
  std::vector<Shape> combinations(const Shape& fallback) const;
};

struct InfoCommand {
  bool json = false;
  bool devices = false;  // list the GPUs that `plan` knows
  bool peaks = true;
  int threads = 0;
};

struct PlanCommand {
  Shape shape{512, 4096, 7168, 1};
  ProblemOptions problem;
  ExecutionOptions execution;
  StrategyId strategy = StrategyId::kAuto;
  bool json = false;
};

struct MakeLayerCommand {
  bool json = false;
  std::string out, activations;
  std::string prefix = "model.layers.0.mlp";
  int64_t m = 64, n = 1024, k = 512;
  DataType type = DataType::kBF16;
  bool stacked = false;
  bool mlp = false;     // down_proj, too
  int64_t experts = 0;  // so many layers, <prefix>.experts.0 and on; 0: one, at <prefix>
  uint64_t seed = 1;
  bool dry_run = false;  // here and below: every check, nothing computed or written
};

struct QuantizeCommand {
  std::string input, out;
  std::vector<std::string> calibrate;  // activations whose amax gives input_scale; none = no scale
  checkpoint::Convention convention = checkpoint::Convention::kModelOpt;
  std::vector<std::string> tensors;  // exact names; empty = every 2-D float tensor under `prefix`
  std::string prefix;
  std::vector<std::string> include, exclude;  // patterns
  bool separate_scales = false;
  ScaleLayout scale_layout = ScaleLayout::kLinear;
  double global_scale = 0.0;  // 0 = from the data
  bool four_over_six = false;
  bool check = false;
  bool json = false;
  bool force = false;   // a model in the folder, or configs beside the file, are replaced
  bool resume = false;  // finished shards stay where the run is interrupted, and are used
  bool dry_run = false;
  int threads = 0;
};

struct ConvertCommand {
  std::string input, out;
  std::optional<checkpoint::Convention>
      from;  // what the input must be; otherwise found from names and dtypes
  std::optional<checkpoint::NibbleOrder> from_nibble_order;
  std::optional<ScaleLayout> from_scale_layout;
  std::optional<checkpoint::Convention>
      convention;  // of the output; nullopt in all three = unchanged
  std::optional<ScaleLayout> scale_layout;
  std::optional<checkpoint::NibbleOrder> nibble_order;
  bool json = false;
  bool dry_run = false;
};

// A layer and its activations from files.
struct LayerFiles {
  std::string weights;
  std::string prefix;
  std::string activations;
  std::string activations_tensor;  // in a safetensors file; empty = its only tensor
  checkpoint::StackedOrder stacked_order = checkpoint::StackedOrder::kGateFirst;
  bool u2_is_bf16 = false;        // npy activations of uint16
  bool max_input_scale = false;   // Gate and Up carry different input scales: take the larger
  bool allow_nan = false;         // NaN and infinite scales are taken as they are
  std::optional<int64_t> expert;  // of a layer that has several
};

struct RunCommand {
  LayerFiles files;
  ProblemOptions problem;
  ExecutionOptions execution;
  StrategyId strategy = StrategyId::kAuto;
  double d_global_scale = 0.0;                  // 0 = 1
  bool experts = false;                         // all experts of the layer, grouped
  std::string expert_tokens;                    // file of counts or offsets
  bool masked = false;                          // activations [experts, rows, K] with counts
  bool mlp = false;                             // Down too: the whole layer
  bool a_type_given = false;                    // mlp; by name, the default too
  bool quantize_x = false, quantize_h = false;  // mlp
  double h_global_scale = 0.0;                  // mlp; 0 = the checkpoint's
  std::string out;
  bool check = false;
  bool json = false;
  bool dry_run = false;
};

struct VerifyCommand {
  ShapeLists shapes;  // empty: `random_shapes` seeded ones
  LayerFiles files;   // weights empty: random operands
  ProblemOptions problem;
  ExecutionOptions execution;
  std::vector<StrategyId> strategies;  // empty = all
  int64_t random_shapes = 12;
  int64_t samples = 0;       // 0 = every element
  bool row_experts = false;  // contiguous groups by the expert of each row instead of offsets
  uint64_t seed = 1;
  bool json = false;
};

struct BenchCommand {
  ShapeLists shapes;  // empty: the challenge's four
  ProblemOptions problem;
  ExecutionOptions execution;
  std::vector<StrategyId> strategies;  // empty = all but the reference, which takes hours
  int64_t min_rounds = 3, max_rounds = 9;
  double seconds = 25.0;  // for each shape, shared by all of them
  uint64_t seed = 1;
  bool peaks = true;
  // Where each format goes: empty = not wanted, "-" = stdout. Nothing wanted on stdout or anywhere
  // = text on stdout.
  std::string json, markdown, csv;
  bool dry_run = false;
};

struct ValidateCommand {
  std::string input;
  std::string prefix;
  bool strict = false;
  bool allow_nan = false;  // NaN and infinite scales are no errors
  bool json = false;
};

using Command =
    std::variant<InfoCommand, PlanCommand, MakeLayerCommand, QuantizeCommand, ConvertCommand,
                 RunCommand, VerifyCommand, BenchCommand, ValidateCommand>;

}  // namespace dualgemm::cli
