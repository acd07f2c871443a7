// The kernels of the products: arguments are gathered, and products.hpp does the rest.
#include <tuple>

#include "kernels.hpp"
#include "plan_cache.hpp"
#include "products.hpp"

namespace dualgemm::python {
namespace {

using OptionalDouble = std::optional<double>;
using OptionalType = std::optional<ScalarType>;
using std::string;

// The arguments that end every product's list, as they are passed and as they are packed.
#define DUALGEMM_FACTORS                                                          \
  OptionalTensor alpha_gate, OptionalTensor alpha_up, OptionalTensor a_row_scale, \
      OptionalTensor bias_gate, OptionalTensor bias_up, string activation,        \
      OptionalDouble act_alpha, OptionalDouble act_beta, OptionalDouble act_limit
#define DUALGEMM_CHOICE string scale_layout, bool batch_invariant, string strategy, string config
#define DUALGEMM_FACTORS_OF \
  { alpha_gate, alpha_up, bias_gate, bias_up }
#define DUALGEMM_ACTIVATION_OF \
  { activation, act_alpha, act_beta, act_limit }
#define DUALGEMM_CHOICE_OF \
  { scale_layout, batch_invariant, strategy, config }
#define DUALGEMM_WEIGHTS                                                                        \
  OptionalTensor gate, OptionalTensor gate_scales, OptionalTensor up, OptionalTensor up_scales, \
      OptionalTensor packed, int64_t n, int64_t l
#define DUALGEMM_WEIGHTS_OF \
  { gate, gate_scales, up, up_scales, packed, n, l }

Tensor op_glu(Tensor a, OptionalTensor a_scales, Tensor gate, Tensor gate_scales, Tensor up,
              Tensor up_scales, DUALGEMM_FACTORS, OptionalType out_dtype, DUALGEMM_CHOICE) {
  return glu({a, a_scales, a_row_scale}, {gate, gate_scales, up, up_scales, {}, 0, 0},
             DUALGEMM_FACTORS_OF, DUALGEMM_ACTIVATION_OF, DUALGEMM_CHOICE_OF, {}, {out_dtype, {}});
}
void op_glu_out(Tensor a, OptionalTensor a_scales, Tensor gate, Tensor gate_scales, Tensor up,
                Tensor up_scales, DUALGEMM_FACTORS, DUALGEMM_CHOICE, Tensor out) {
  glu({a, a_scales, a_row_scale}, {gate, gate_scales, up, up_scales, {}, 0, 0}, DUALGEMM_FACTORS_OF,
      DUALGEMM_ACTIVATION_OF, DUALGEMM_CHOICE_OF, {}, {{}, out});
}

Tensor op_glu_packed(Tensor a, OptionalTensor a_scales, Tensor packed, int64_t n, int64_t l,
                     DUALGEMM_FACTORS, OptionalType out_dtype, DUALGEMM_CHOICE) {
  return glu({a, a_scales, a_row_scale}, {{}, {}, {}, {}, packed, n, l}, DUALGEMM_FACTORS_OF,
             DUALGEMM_ACTIVATION_OF, DUALGEMM_CHOICE_OF, {}, {out_dtype, {}});
}
void op_glu_packed_out(Tensor a, OptionalTensor a_scales, Tensor packed, int64_t n, int64_t l,
                       DUALGEMM_FACTORS, DUALGEMM_CHOICE, Tensor out) {
  glu({a, a_scales, a_row_scale}, {{}, {}, {}, {}, packed, n, l}, DUALGEMM_FACTORS_OF,
      DUALGEMM_ACTIVATION_OF, DUALGEMM_CHOICE_OF, {}, {{}, out});
}

std::tuple<Tensor, Tensor> op_glu_nvfp4(Tensor a, OptionalTensor a_scales, DUALGEMM_WEIGHTS,
                                        double d_global_scale, DUALGEMM_FACTORS,
                                        string d_scale_layout, DUALGEMM_CHOICE) {
  auto [codes, scales] = glu_nvfp4({a, a_scales, a_row_scale}, DUALGEMM_WEIGHTS_OF,
                                   DUALGEMM_FACTORS_OF, DUALGEMM_ACTIVATION_OF, DUALGEMM_CHOICE_OF,
                                   {}, {d_global_scale, d_scale_layout, {}, {}});
  return {codes, scales};
}
void op_glu_nvfp4_out(Tensor a, OptionalTensor a_scales, DUALGEMM_WEIGHTS, double d_global_scale,
                      DUALGEMM_FACTORS, string d_scale_layout, DUALGEMM_CHOICE, Tensor out_codes,
                      Tensor out_scales) {
  glu_nvfp4({a, a_scales, a_row_scale}, DUALGEMM_WEIGHTS_OF, DUALGEMM_FACTORS_OF,
            DUALGEMM_ACTIVATION_OF, DUALGEMM_CHOICE_OF, {},
            {d_global_scale, d_scale_layout, out_codes, out_scales});
}

Tensor op_contiguous(Tensor a, OptionalTensor a_scales, DUALGEMM_WEIGHTS, OptionalTensor offsets,
                     OptionalTensor m_indices, DUALGEMM_FACTORS, OptionalType out_dtype,
                     DUALGEMM_CHOICE) {
  return glu({a, a_scales, a_row_scale}, DUALGEMM_WEIGHTS_OF, DUALGEMM_FACTORS_OF,
             DUALGEMM_ACTIVATION_OF, DUALGEMM_CHOICE_OF, {offsets, m_indices, {}}, {out_dtype, {}});
}
void op_contiguous_out(Tensor a, OptionalTensor a_scales, DUALGEMM_WEIGHTS, OptionalTensor offsets,
                       OptionalTensor m_indices, DUALGEMM_FACTORS, DUALGEMM_CHOICE, Tensor out) {
  glu({a, a_scales, a_row_scale}, DUALGEMM_WEIGHTS_OF, DUALGEMM_FACTORS_OF, DUALGEMM_ACTIVATION_OF,
      DUALGEMM_CHOICE_OF, {offsets, m_indices, {}}, {{}, out});
}

Tensor op_masked(Tensor a, OptionalTensor a_scales, DUALGEMM_WEIGHTS, Tensor masked_m,
                 DUALGEMM_FACTORS, OptionalType out_dtype, DUALGEMM_CHOICE) {
  return glu({a, a_scales, a_row_scale}, DUALGEMM_WEIGHTS_OF, DUALGEMM_FACTORS_OF,
             DUALGEMM_ACTIVATION_OF, DUALGEMM_CHOICE_OF, {{}, {}, masked_m}, {out_dtype, {}});
}
void op_masked_out(Tensor a, OptionalTensor a_scales, DUALGEMM_WEIGHTS, Tensor masked_m,
                   DUALGEMM_FACTORS, DUALGEMM_CHOICE, Tensor out) {
  glu({a, a_scales, a_row_scale}, DUALGEMM_WEIGHTS_OF, DUALGEMM_FACTORS_OF, DUALGEMM_ACTIVATION_OF,
      DUALGEMM_CHOICE_OF, {{}, {}, masked_m}, {{}, out});
}

#define DUALGEMM_ONE_WEIGHT \
  OptionalTensor w, OptionalTensor w_scales, OptionalTensor packed, int64_t n, int64_t l
#define DUALGEMM_ONE_WEIGHT_OF \
  { w, w_scales, {}, {}, packed, n, l, "w" }
#define DUALGEMM_GROUPS OptionalTensor offsets, OptionalTensor m_indices, OptionalTensor masked_m
#define DUALGEMM_LINEAR_FACTORS \
  OptionalTensor alpha, OptionalTensor bias, OptionalTensor residual, OptionalTensor a_row_scale
#define DUALGEMM_ONE_FACTOR_OF \
  {                            \
    alpha, {}, bias, {}        \
  }

Tensor op_linear(Tensor a, OptionalTensor a_scales, DUALGEMM_ONE_WEIGHT, DUALGEMM_GROUPS,
                 DUALGEMM_LINEAR_FACTORS, string activation, OptionalType out_dtype,
                 DUALGEMM_CHOICE) {
  return linear({a, a_scales, a_row_scale}, DUALGEMM_ONE_WEIGHT_OF, DUALGEMM_ONE_FACTOR_OF,
                {activation, residual}, DUALGEMM_CHOICE_OF, {offsets, m_indices, masked_m},
                {out_dtype, {}});
}
void op_linear_out(Tensor a, OptionalTensor a_scales, DUALGEMM_ONE_WEIGHT, DUALGEMM_GROUPS,
                   DUALGEMM_LINEAR_FACTORS, string activation, DUALGEMM_CHOICE, Tensor out) {
  linear({a, a_scales, a_row_scale}, DUALGEMM_ONE_WEIGHT_OF, DUALGEMM_ONE_FACTOR_OF,
         {activation, residual}, DUALGEMM_CHOICE_OF, {offsets, m_indices, masked_m}, {{}, out});
}

std::tuple<Tensor, Tensor> op_linear_nvfp4(Tensor a, OptionalTensor a_scales, DUALGEMM_ONE_WEIGHT,
                                           double d_global_scale, DUALGEMM_GROUPS,
                                           OptionalTensor alpha, OptionalTensor bias,
                                           OptionalTensor a_row_scale, string activation,
                                           string d_scale_layout, DUALGEMM_CHOICE) {
  auto [codes, scales] = linear_nvfp4(
      {a, a_scales, a_row_scale}, DUALGEMM_ONE_WEIGHT_OF, DUALGEMM_ONE_FACTOR_OF, {activation, {}},
      DUALGEMM_CHOICE_OF, {offsets, m_indices, masked_m}, {d_global_scale, d_scale_layout, {}, {}});
  return {codes, scales};
}
void op_linear_nvfp4_out(Tensor a, OptionalTensor a_scales, DUALGEMM_ONE_WEIGHT,
                         double d_global_scale, DUALGEMM_GROUPS, OptionalTensor alpha,
                         OptionalTensor bias, OptionalTensor a_row_scale, string activation,
                         string d_scale_layout, DUALGEMM_CHOICE, Tensor out_codes,
                         Tensor out_scales) {
  linear_nvfp4({a, a_scales, a_row_scale}, DUALGEMM_ONE_WEIGHT_OF, DUALGEMM_ONE_FACTOR_OF,
               {activation, {}}, DUALGEMM_CHOICE_OF, {offsets, m_indices, masked_m},
               {d_global_scale, d_scale_layout, out_codes, out_scales});
}

Tensor op_pack_weights(Tensor gate, Tensor gate_scales, Tensor up, Tensor up_scales,
                       ScalarType a_dtype, string scale_layout) {
  return pack_weights({gate, gate_scales, up, up_scales, {}, 0, 0}, a_dtype, scale_layout);
}
Tensor op_pack_linear(Tensor w, Tensor w_scales, ScalarType a_dtype, string scale_layout) {
  return pack_linear({w, w_scales, {}, {}, {}, 0, 0, "w"}, a_dtype, scale_layout);
}

}  // namespace

DUALGEMM_KERNELS(m) {
  m.impl("glu", TORCH_BOX(&op_glu));
  m.impl("glu.out", TORCH_BOX(&op_glu_out));
  m.impl("glu_packed", TORCH_BOX(&op_glu_packed));
  m.impl("glu_packed.out", TORCH_BOX(&op_glu_packed_out));
  m.impl("glu_nvfp4", TORCH_BOX(&op_glu_nvfp4));
  m.impl("glu_nvfp4.out", TORCH_BOX(&op_glu_nvfp4_out));
  m.impl("m_grouped_glu_contiguous", TORCH_BOX(&op_contiguous));
  m.impl("m_grouped_glu_contiguous.out", TORCH_BOX(&op_contiguous_out));
  m.impl("m_grouped_glu_masked", TORCH_BOX(&op_masked));
  m.impl("m_grouped_glu_masked.out", TORCH_BOX(&op_masked_out));
  m.impl("linear", TORCH_BOX(&op_linear));
  m.impl("linear.out", TORCH_BOX(&op_linear_out));
  m.impl("linear_nvfp4", TORCH_BOX(&op_linear_nvfp4));
  m.impl("linear_nvfp4.out", TORCH_BOX(&op_linear_nvfp4_out));
  m.impl("pack_weights", TORCH_BOX(&op_pack_weights));
  m.impl("pack_linear", TORCH_BOX(&op_pack_linear));
}

}  // namespace dualgemm::python

// For tests: how many plans the cache holds.
extern "C" __attribute__((visibility("default"))) long long dualgemm_python_plans_kept() {
  return dualgemm::python::plans_kept();
}
