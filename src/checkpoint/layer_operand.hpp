// One projection of a layer, whichever it is: how its matrix and its bias are read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "dualgemm/status.hpp"

namespace dualgemm::checkpoint {

// One matrix: the weight, or the wanted one of its `experts`, of which the tensors of all
// projections of a layer hold the same number, 0 for one matrix. `memory` owns what is not in the
// file. MXFP4 keeps its exponents until make_nvfp4().
Expected<Weight> load_matrix(const TensorFile& file, const std::string& module, int64_t experts,
                             const LayerOptions& options, TensorFile& memory);

// NVFP4's scales of what load_matrix() read from MXFP4, or of a part of its rows, which messages
// name.
Status make_nvfp4(const TensorFile& file, const LayerOptions& options, const std::string& part,
                  Weight& weight, TensorFile& memory);

// Codes and scales of kGgml blocks.
Status unpack_ggml(Weight& weight, TensorFile& memory);

LayerOperand operand_of(const Weight& weight, float dequant_global_scale);

// The numbers of tensor `name`, `rows` of them; where experts > 0, those of `expert`. None if there
// is no such tensor.
Expected<std::vector<float>> load_bias(const TensorFile& file, const std::string& name,
                                       int64_t rows, int64_t experts,
                                       const std::optional<int64_t>& expert);

// ModelOpt's AWQ: the k factors of MODULE.pre_quant_scale, by which the columns of the input are
// multiplied before anything else; empty: none, or all are 1. kUnsupported unless
// options.pre_quant_scale; kCorruptFile: one is NaN or infinite.
// The rotation of the input of `module` with k columns; kUnsupported unless options.rotates, or
// what rotation_of() refuses.
Expected<int64_t> rotation_wanted(const TensorFile& file, const std::string& module, int64_t k,
                                  const LayerOptions& options);
Expected<std::vector<float>> load_pre_quant_scale(const TensorFile& file, const std::string& module,
                                                  int64_t k, int64_t experts,
                                                  const LayerOptions& options);

// Low nibble = even k, values of kPlain aligned to their size. Copies only what needs it.
Status make_runnable(LayerOperand& operand, DataType type, NibbleOrder order, TensorFile& memory);

}  // namespace dualgemm::checkpoint
