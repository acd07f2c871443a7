#include <mutex>
#include <utility>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/guard.hpp"
#include "checkpoint/linear_layers.hpp"
#include "dualgemm/checkpoint.hpp"

namespace dualgemm {

struct Checkpoint::Impl {
  checkpoint::TensorFile file;
  std::vector<CheckpointEntry> layers;

  // Read once.
  const Expected<checkpoint::ModelQuantization>& quantization() const {
    std::call_once(once_, [&] { quantization_ = checkpoint::quantization_beside(file); });
    return quantization_;
  }

 private:
  mutable std::once_flag once_;
  mutable Expected<checkpoint::ModelQuantization> quantization_ = checkpoint::ModelQuantization();
};

struct CheckpointLayer::Impl {
  checkpoint::MlpLayer layer;
};

struct CheckpointMatrix::Impl {
  checkpoint::DownProjection matrix;
};

namespace {

Expected<checkpoint::LayerOptions> layer_options(
    const Expected<checkpoint::ModelQuantization>& said, const CheckpointOptions& options) {
  checkpoint::LayerOptions wanted;
  if (!said) return said.status();
  wanted.quantization = &*said;
  wanted.rotates = options.hadamard;
  if (options.up_first) wanted.stacked_order = checkpoint::StackedOrder::kUpFirst;
  wanted.max_input_scale = options.max_input_scale;
  wanted.weight.allow_nan = options.allow_nan;
  wanted.pre_quant_scale = options.pre_quant_scale;
  if (options.expert != -1) wanted.expert = options.expert;
  return wanted;
}

Expected<CheckpointMatrix> readable(Expected<checkpoint::DownProjection> matrix) {
  if (!matrix) return matrix.status();
  DUALGEMM_TRY(checkpoint::make_readable(*matrix));
  auto impl = std::make_shared<CheckpointMatrix::Impl>();
  impl->matrix = *std::move(matrix);
  return CheckpointMatrix(std::move(impl));
}

}  // namespace

Checkpoint::Checkpoint(std::shared_ptr<const Impl> impl) noexcept : impl_(std::move(impl)) {}

Expected<Checkpoint> Checkpoint::open(const std::string& path) {
  return checkpoint::guarded(path, [&]() -> Expected<Checkpoint> {
    Expected<checkpoint::TensorFile> file = checkpoint::TensorFile::open(path);
    if (!file) return file.status();
    auto impl = std::make_shared<Impl>();
    for (const checkpoint::LayerEntry& entry : checkpoint::list_mlp_layers(*file))
      impl->layers.push_back({entry.prefix, entry.experts});
    impl->file = *std::move(file);
    return Checkpoint(std::move(impl));
  });
}

const std::vector<CheckpointEntry>& Checkpoint::layers() const noexcept { return impl_->layers; }

Expected<CheckpointLayer> Checkpoint::load(const std::string& prefix,
                                           const CheckpointOptions& options) const {
  return checkpoint::guarded(prefix, [&]() -> Expected<CheckpointLayer> {
    const auto wanted = layer_options(impl_->quantization(), options);
    if (!wanted) return wanted.status();
    Expected<checkpoint::MlpLayer> layer = checkpoint::load_mlp_layer(impl_->file, prefix, *wanted);
    if (!layer) return layer.status();
    DUALGEMM_TRY(checkpoint::check_runnable(*layer));
    DUALGEMM_TRY(checkpoint::make_runnable(*layer));
    auto impl = std::make_shared<CheckpointLayer::Impl>();
    impl->layer = *std::move(layer);
    return CheckpointLayer(std::move(impl));
  });
}

Expected<CheckpointMatrix> Checkpoint::load_down(const std::string& prefix,
                                                 const CheckpointOptions& options) const {
  return checkpoint::guarded(prefix, [&]() -> Expected<CheckpointMatrix> {
    const auto wanted = layer_options(impl_->quantization(), options);
    if (!wanted) return wanted.status();
    return readable(checkpoint::load_down_projection(impl_->file, prefix, *wanted));
  });
}

Expected<CheckpointMatrix> Checkpoint::load_matrix(const std::string& module,
                                                   const CheckpointOptions& options) const {
  return checkpoint::guarded(module, [&]() -> Expected<CheckpointMatrix> {
    const auto wanted = layer_options(impl_->quantization(), options);
    if (!wanted) return wanted.status();
    return readable(checkpoint::load_linear(impl_->file, module, *wanted));
  });
}

Expected<std::vector<CheckpointLinear>> Checkpoint::linear_layers() const {
  const std::string& origin = impl_->file.origin();
  return checkpoint::guarded(origin, [&]() -> Expected<std::vector<CheckpointLinear>> {
    const std::string folder = checkpoint::folder_of_model(impl_->file);
    const Expected<checkpoint::ModelQuantization> said =
        folder.empty() ? checkpoint::ModelQuantization()
                       : checkpoint::ModelQuantization::read(folder);
    if (!said) return said.status();
    Expected<std::vector<checkpoint::LinearLayer>> found =
        checkpoint::list_linear_layers(impl_->file, *said);
    if (!found) return found.status();
    std::vector<CheckpointLinear> layers;
    for (checkpoint::LinearLayer& layer : *found) {
      CheckpointLinear linear;
      linear.module = std::move(layer.module);
      linear.n = layer.n;
      linear.k = layer.k;
      linear.experts = layer.experts;
      linear.bytes = layer.bytes;
      linear.format = name_of(layer.scheme.format);
      linear.granularity = name_of(layer.scheme.granularity);
      linear.block_rows = layer.scheme.rows;
      linear.block_cols = layer.scheme.cols;
      linear.activations = name_of(layer.scheme.activations);
      linear.description = std::move(layer.scheme.description);
      linear.contradiction = std::move(layer.contradiction);
      linear.hadamard = layer.hadamard;
      layers.push_back(std::move(linear));
    }
    return layers;
  });
}

Expected<int64_t> Checkpoint::count_experts(const std::string& prefix) const {
  return checkpoint::guarded(prefix,
                             [&] { return checkpoint::count_experts(impl_->file, prefix); });
}

CheckpointLayer::CheckpointLayer(std::shared_ptr<const Impl> impl) noexcept
    : impl_(std::move(impl)) {}

int64_t CheckpointLayer::n() const noexcept { return impl_->layer.n; }
int64_t CheckpointLayer::k() const noexcept { return impl_->layer.k; }
float CheckpointLayer::gate_global_scale() const noexcept {
  return impl_->layer.gate.dequant_global_scale;
}
float CheckpointLayer::up_global_scale() const noexcept {
  return impl_->layer.up.dequant_global_scale;
}
std::optional<float> CheckpointLayer::input_scale() const noexcept {
  return impl_->layer.dequant_input_scale;
}
const float* CheckpointLayer::pre_quant_scale() const noexcept {
  return impl_->layer.pre_quant_scale.empty() ? nullptr : impl_->layer.pre_quant_scale.data();
}
int64_t CheckpointLayer::hadamard() const noexcept { return impl_->layer.hadamard; }
const char* CheckpointLayer::convention() const noexcept {
  return checkpoint::name_of(impl_->layer.convention);
}

void CheckpointLayer::describe(Problem& problem) const noexcept {
  problem.n = n();
  problem.k = k();
  problem.gate = Matrix{.scale_layout = impl_->layer.scale_layout};
  problem.up = problem.gate;
  problem.bias = impl_->layer.gate_bias.empty() ? BiasType::kNone : BiasType::kF32;
}

void CheckpointLayer::attach_to(Buffers& buffers, float a_global_scale) const noexcept {
  const checkpoint::MlpLayer& layer = impl_->layer;
  buffers.gate = layer.gate.codes();
  buffers.gate_scales = layer.gate.scales.data();
  buffers.up = layer.up.codes();
  buffers.up_scales = layer.up.scales.data();
  buffers.alpha_gate = a_global_scale * layer.gate.dequant_global_scale;
  buffers.alpha_up = a_global_scale * layer.up.dequant_global_scale;
  const bool biased = !layer.gate_bias.empty();
  buffers.bias_gate = biased ? layer.gate_bias.data() : nullptr;
  buffers.bias_up = biased ? layer.up_bias.data() : nullptr;
}

CheckpointMatrix::CheckpointMatrix(std::shared_ptr<const Impl> impl) noexcept
    : impl_(std::move(impl)) {}

int64_t CheckpointMatrix::n() const noexcept { return impl_->matrix.n; }
int64_t CheckpointMatrix::k() const noexcept { return impl_->matrix.k; }
DataType CheckpointMatrix::type() const noexcept { return impl_->matrix.type; }
ScaleLayout CheckpointMatrix::scale_layout() const noexcept { return impl_->matrix.scale_layout; }
float CheckpointMatrix::global_scale() const noexcept {
  return impl_->matrix.down.dequant_global_scale;
}
std::optional<float> CheckpointMatrix::input_scale() const noexcept {
  return impl_->matrix.dequant_input_scale;
}
const float* CheckpointMatrix::pre_quant_scale() const noexcept {
  return impl_->matrix.pre_quant_scale.empty() ? nullptr : impl_->matrix.pre_quant_scale.data();
}
int64_t CheckpointMatrix::hadamard() const noexcept { return impl_->matrix.hadamard; }
const char* CheckpointMatrix::convention() const noexcept {
  return checkpoint::name_of(impl_->matrix.convention);
}
const void* CheckpointMatrix::data() const noexcept { return impl_->matrix.down.data.data(); }
const uint8_t* CheckpointMatrix::scales() const noexcept {
  return type() == DataType::kE2M1 ? impl_->matrix.down.scales.data() : nullptr;
}
const float* CheckpointMatrix::bias() const noexcept {
  return impl_->matrix.bias.empty() ? nullptr : impl_->matrix.bias.data();
}

}  // namespace dualgemm
