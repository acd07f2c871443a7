#include "capi/error.hpp"
#include "capi/structs.hpp"
#include "dualgemm/checkpoint.h"
#include "dualgemm/checkpoint.hpp"

using namespace dualgemm;

struct dualgemm_checkpoint {
  Checkpoint checkpoint;
};

struct dualgemm_checkpoint_layer {
  CheckpointLayer layer;
};

struct dualgemm_checkpoint_matrix {
  CheckpointMatrix matrix;
};

struct dualgemm_checkpoint_linears {
  std::vector<CheckpointLinear> layers;
};

namespace {

const CheckpointEntry* entry(const dualgemm_checkpoint* checkpoint, int64_t index) noexcept {
  if (checkpoint == nullptr || index < 0) return nullptr;
  const auto& layers = checkpoint->checkpoint.layers();
  return index < static_cast<int64_t>(layers.size()) ? &layers[static_cast<size_t>(index)]
                                                     : nullptr;
}

constexpr int32_t kFlagsOfLayers =
    DUALGEMM_CHECKPOINT_UP_FIRST | DUALGEMM_CHECKPOINT_MAX_INPUT_SCALE |
    DUALGEMM_CHECKPOINT_ALLOW_NAN | DUALGEMM_CHECKPOINT_PRE_QUANT_SCALE |
    DUALGEMM_CHECKPOINT_HADAMARD;
constexpr int32_t kFlagsOfMatrices = DUALGEMM_CHECKPOINT_ALLOW_NAN |
                                     DUALGEMM_CHECKPOINT_PRE_QUANT_SCALE |
                                     DUALGEMM_CHECKPOINT_HADAMARD;
// Callers from before pre_quant_scale: what they load has none.
constexpr uint64_t kMinInfoSize = offsetof(dualgemm_checkpoint_layer_info, pre_quant_scale);
constexpr uint64_t kMinLinearInfoSize = offsetof(dualgemm_checkpoint_linear_info, hadamard);
constexpr uint64_t kInfoWithHadamard = offsetof(dualgemm_checkpoint_layer_info, hadamard);
constexpr uint64_t kMatrixInfoWithHadamard = offsetof(dualgemm_checkpoint_matrix_info, hadamard);
constexpr uint64_t kMinMatrixInfoSize = offsetof(dualgemm_checkpoint_matrix_info, pre_quant_scale);
// The least struct_size of a caller who knows of biases.
constexpr uint64_t kProblemWithBias = offsetof(dualgemm_problem, bias) + 2 * sizeof(int32_t);
constexpr uint64_t kBuffersWithBias = offsetof(dualgemm_buffers, bias_up) + sizeof(void*);

Status check_expert(int64_t expert) {
  if (expert >= -1) return {};
  return Status::invalid("expert", std::to_string(expert), "must be -1 or a number from 0");
}

Status check_flags(int32_t flags, int32_t known) {
  if ((flags & ~known) == 0) return {};
  return Status::invalid("flags", std::to_string(flags),
                         known == kFlagsOfLayers ? "must be DUALGEMM_CHECKPOINT_* or 0"
                                                 : "must be DUALGEMM_CHECKPOINT_ALLOW_NAN, "
                                                   "DUALGEMM_CHECKPOINT_PRE_QUANT_SCALE, "
                                                   "DUALGEMM_CHECKPOINT_HADAMARD, or 0");
}

// A handle that a failure leaves null.
template <class Handle>
Status require_handle(Handle** handle, const char* argument) {
  if (handle != nullptr) *handle = nullptr;
  return capi::require(handle, argument);
}

// load_down() and load_matrix() differ in one call.
dualgemm_status load_matrix(const dualgemm_checkpoint* checkpoint, const char* what,
                            const char* name, int64_t expert, int32_t flags,
                            Expected<CheckpointMatrix> (Checkpoint::*load)(const std::string&,
                                                                           const CheckpointOptions&)
                                const,
                            dualgemm_checkpoint_matrix** matrix) noexcept {
  return capi::guarded([&]() -> Status {
    DUALGEMM_TRY(require_handle(matrix, "matrix"));
    DUALGEMM_TRY(capi::require(checkpoint, "checkpoint"));
    DUALGEMM_TRY(capi::require(name, what));
    DUALGEMM_TRY(check_flags(flags, kFlagsOfMatrices));
    DUALGEMM_TRY(check_expert(expert));
    CheckpointOptions options;
    options.expert = expert;
    options.allow_nan = (flags & DUALGEMM_CHECKPOINT_ALLOW_NAN) != 0;
    options.pre_quant_scale = (flags & DUALGEMM_CHECKPOINT_PRE_QUANT_SCALE) != 0;
    options.hadamard = (flags & DUALGEMM_CHECKPOINT_HADAMARD) != 0;
    Expected<CheckpointMatrix> loaded = (checkpoint->checkpoint.*load)(name, options);
    if (!loaded) return loaded.status();
    *matrix = new dualgemm_checkpoint_matrix{*std::move(loaded)};
    return {};
  });
}

}  // namespace

extern "C" {

dualgemm_status dualgemm_checkpoint_open(const char* path,
                                         dualgemm_checkpoint** checkpoint) noexcept {
  return capi::guarded([&]() -> Status {
    DUALGEMM_TRY(require_handle(checkpoint, "checkpoint"));
    DUALGEMM_TRY(capi::require(path, "path"));
    Expected<Checkpoint> opened = Checkpoint::open(path);
    if (!opened) return opened.status();
    *checkpoint = new dualgemm_checkpoint{*std::move(opened)};
    return {};
  });
}

void dualgemm_checkpoint_close(dualgemm_checkpoint* checkpoint) noexcept { delete checkpoint; }

int64_t dualgemm_checkpoint_layer_count(const dualgemm_checkpoint* checkpoint) noexcept {
  return checkpoint == nullptr ? 0 : static_cast<int64_t>(checkpoint->checkpoint.layers().size());
}

const char* dualgemm_checkpoint_layer_name(const dualgemm_checkpoint* checkpoint,
                                           int64_t index) noexcept {
  const CheckpointEntry* found = entry(checkpoint, index);
  return found == nullptr ? nullptr : found->prefix.c_str();
}

int64_t dualgemm_checkpoint_layer_experts(const dualgemm_checkpoint* checkpoint,
                                          int64_t index) noexcept {
  const CheckpointEntry* found = entry(checkpoint, index);
  return found == nullptr ? 0 : found->experts;
}

dualgemm_status dualgemm_checkpoint_load(const dualgemm_checkpoint* checkpoint, const char* prefix,
                                         int64_t expert, int32_t flags,
                                         dualgemm_checkpoint_layer** layer) noexcept {
  return capi::guarded([&]() -> Status {
    DUALGEMM_TRY(require_handle(layer, "layer"));
    DUALGEMM_TRY(capi::require(checkpoint, "checkpoint"));
    DUALGEMM_TRY(capi::require(prefix, "prefix"));
    DUALGEMM_TRY(check_flags(flags, kFlagsOfLayers));
    DUALGEMM_TRY(check_expert(expert));
    CheckpointOptions options;
    options.expert = expert;
    options.up_first = (flags & DUALGEMM_CHECKPOINT_UP_FIRST) != 0;
    options.max_input_scale = (flags & DUALGEMM_CHECKPOINT_MAX_INPUT_SCALE) != 0;
    options.allow_nan = (flags & DUALGEMM_CHECKPOINT_ALLOW_NAN) != 0;
    options.pre_quant_scale = (flags & DUALGEMM_CHECKPOINT_PRE_QUANT_SCALE) != 0;
    options.hadamard = (flags & DUALGEMM_CHECKPOINT_HADAMARD) != 0;
    Expected<CheckpointLayer> loaded = checkpoint->checkpoint.load(prefix, options);
    if (!loaded) return loaded.status();
    *layer = new dualgemm_checkpoint_layer{*std::move(loaded)};
    return {};
  });
}

void dualgemm_checkpoint_layer_free(dualgemm_checkpoint_layer* layer) noexcept { delete layer; }

dualgemm_status dualgemm_checkpoint_layer_get_info(const dualgemm_checkpoint_layer* layer,
                                                   dualgemm_checkpoint_layer_info* info) noexcept {
  return capi::guarded([&]() -> Status {
    DUALGEMM_TRY(capi::require(layer, "layer"));
    DUALGEMM_TRY(capi::require(info, "info"));
    DUALGEMM_TRY(capi::check_struct_size("info", info->struct_size, kMinInfoSize));
    Problem problem;
    layer->layer.describe(problem);
    info->n = problem.n;
    info->k = problem.k;
    info->gate_global_scale = layer->layer.gate_global_scale();
    info->up_global_scale = layer->layer.up_global_scale();
    info->input_scale = layer->layer.input_scale().value_or(0.0f);
    info->scale_layout = static_cast<int32_t>(problem.gate.scale_layout);
    if (info->struct_size > kMinInfoSize) info->pre_quant_scale = layer->layer.pre_quant_scale();
    if (info->struct_size > kInfoWithHadamard) info->hadamard = layer->layer.hadamard();
    return {};
  });
}

dualgemm_status dualgemm_checkpoint_layer_apply(const dualgemm_checkpoint_layer* layer,
                                                float a_global_scale, dualgemm_problem* problem,
                                                dualgemm_buffers* buffers) noexcept {
  return capi::guarded([&]() -> Status {
    DUALGEMM_TRY(capi::require(layer, "layer"));
    Problem described;
    layer->layer.describe(described);
    const bool biased = described.bias != BiasType::kNone;
    if (problem != nullptr)
      DUALGEMM_TRY(
          capi::check_struct_size("problem", problem->struct_size,
                                  biased ? kProblemWithBias : offsetof(dualgemm_problem, d)));
    if (buffers != nullptr)
      DUALGEMM_TRY(capi::check_struct_size(
          "buffers", buffers->struct_size,
          biased ? kBuffersWithBias : offsetof(dualgemm_buffers, alpha_gate_per_batch)));
    if (problem != nullptr) {
      problem->n = described.n;
      problem->k = described.k;
      dualgemm_matrix matrix{};  // tight
      matrix.type = DUALGEMM_E2M1;
      matrix.scale_layout = static_cast<int32_t>(described.gate.scale_layout);
      problem->gate = problem->up = matrix;
      if (problem->struct_size >= kProblemWithBias)
        problem->bias = static_cast<int32_t>(described.bias);
    }
    if (buffers != nullptr) {
      Buffers attached;
      layer->layer.attach_to(attached, a_global_scale);
      buffers->gate = attached.gate;
      buffers->gate_scales = attached.gate_scales;
      buffers->up = attached.up;
      buffers->up_scales = attached.up_scales;
      buffers->alpha_gate = attached.alpha_gate;
      buffers->alpha_up = attached.alpha_up;
      if (buffers->struct_size >= kBuffersWithBias) {
        buffers->bias_gate = attached.bias_gate;
        buffers->bias_up = attached.bias_up;
      }
    }
    return {};
  });
}

dualgemm_status dualgemm_checkpoint_count_experts(const dualgemm_checkpoint* checkpoint,
                                                  const char* prefix, int64_t* experts) noexcept {
  return capi::guarded([&]() -> Status {
    DUALGEMM_TRY(capi::require(checkpoint, "checkpoint"));
    DUALGEMM_TRY(capi::require(prefix, "prefix"));
    DUALGEMM_TRY(capi::require(experts, "experts"));
    const Expected<int64_t> count = checkpoint->checkpoint.count_experts(prefix);
    if (!count) return count.status();
    *experts = *count;
    return {};
  });
}

dualgemm_status dualgemm_checkpoint_load_down(const dualgemm_checkpoint* checkpoint,
                                              const char* prefix, int64_t expert,
                                              dualgemm_checkpoint_matrix** matrix) noexcept {
  return load_matrix(checkpoint, "prefix", prefix, expert, 0, &Checkpoint::load_down, matrix);
}

dualgemm_status dualgemm_checkpoint_load_down_flags(const dualgemm_checkpoint* checkpoint,
                                                    const char* prefix, int64_t expert,
                                                    int32_t flags,
                                                    dualgemm_checkpoint_matrix** matrix) noexcept {
  return load_matrix(checkpoint, "prefix", prefix, expert, flags, &Checkpoint::load_down, matrix);
}

dualgemm_status dualgemm_checkpoint_load_matrix(const dualgemm_checkpoint* checkpoint,
                                                const char* module, int64_t expert,
                                                dualgemm_checkpoint_matrix** matrix) noexcept {
  return load_matrix(checkpoint, "module", module, expert, 0, &Checkpoint::load_matrix, matrix);
}

dualgemm_status dualgemm_checkpoint_load_matrix_flags(
    const dualgemm_checkpoint* checkpoint, const char* module, int64_t expert, int32_t flags,
    dualgemm_checkpoint_matrix** matrix) noexcept {
  return load_matrix(checkpoint, "module", module, expert, flags, &Checkpoint::load_matrix, matrix);
}

void dualgemm_checkpoint_matrix_free(dualgemm_checkpoint_matrix* matrix) noexcept { delete matrix; }

dualgemm_status dualgemm_checkpoint_matrix_get_info(
    const dualgemm_checkpoint_matrix* matrix, dualgemm_checkpoint_matrix_info* info) noexcept {
  return capi::guarded([&]() -> Status {
    DUALGEMM_TRY(capi::require(matrix, "matrix"));
    DUALGEMM_TRY(capi::require(info, "info"));
    DUALGEMM_TRY(capi::check_struct_size("info", info->struct_size, kMinMatrixInfoSize));
    const CheckpointMatrix& from = matrix->matrix;
    info->n = from.n();
    info->k = from.k();
    info->data = from.data();
    info->scales = from.scales();
    info->bias = from.bias();
    info->global_scale = from.global_scale();
    info->input_scale = from.input_scale().value_or(0.0f);
    info->type = static_cast<int32_t>(from.type());
    info->scale_layout = static_cast<int32_t>(from.scale_layout());
    if (info->struct_size > kMinMatrixInfoSize) info->pre_quant_scale = from.pre_quant_scale();
    if (info->struct_size > kMatrixInfoWithHadamard) info->hadamard = from.hadamard();
    return {};
  });
}

dualgemm_status dualgemm_checkpoint_list_linears(const dualgemm_checkpoint* checkpoint,
                                                 dualgemm_checkpoint_linears** linears) noexcept {
  return capi::guarded([&]() -> Status {
    DUALGEMM_TRY(require_handle(linears, "linears"));
    DUALGEMM_TRY(capi::require(checkpoint, "checkpoint"));
    Expected<std::vector<CheckpointLinear>> layers = checkpoint->checkpoint.linear_layers();
    if (!layers) return layers.status();
    *linears = new dualgemm_checkpoint_linears{*std::move(layers)};
    return {};
  });
}

void dualgemm_checkpoint_linears_free(dualgemm_checkpoint_linears* linears) noexcept {
  delete linears;
}

int64_t dualgemm_checkpoint_linears_count(const dualgemm_checkpoint_linears* linears) noexcept {
  return linears == nullptr ? 0 : static_cast<int64_t>(linears->layers.size());
}

dualgemm_status dualgemm_checkpoint_linears_get_info(
    const dualgemm_checkpoint_linears* linears, int64_t index,
    dualgemm_checkpoint_linear_info* info) noexcept {
  return capi::guarded([&]() -> Status {
    DUALGEMM_TRY(capi::require(linears, "linears"));
    DUALGEMM_TRY(capi::require(info, "info"));
    DUALGEMM_TRY(capi::check_struct_size("info", info->struct_size, kMinLinearInfoSize));
    const int64_t count = dualgemm_checkpoint_linears_count(linears);
    if (index < 0 || index >= count) {
      return Status::invalid("index", std::to_string(index),
                             "must be from 0 to " + std::to_string(count - 1));
    }
    const CheckpointLinear& from = linears->layers[static_cast<size_t>(index)];
    info->n = from.n;
    info->k = from.k;
    info->experts = from.experts;
    info->bytes = from.bytes;
    info->block_rows = from.block_rows;
    info->block_cols = from.block_cols;
    info->module = from.module.c_str();
    info->format = from.format.c_str();
    info->granularity = from.granularity.c_str();
    info->activations = from.activations.c_str();
    info->description = from.description.c_str();
    info->contradiction = from.contradiction.c_str();
    if (info->struct_size > kMinLinearInfoSize) info->hadamard = from.hadamard;
    return {};
  });
}

}  // extern "C"
