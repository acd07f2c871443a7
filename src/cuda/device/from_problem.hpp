// A problem's types as the kernels get them. For host code.
#pragma once

#include "cuda/device/activation.hpp"
#include "dualgemm/types.hpp"

namespace dualgemm::cuda {

static_assert(static_cast<int>(ActKind::kSilu) == static_cast<int>(ActivationKind::kSilu));
static_assert(static_cast<int>(ActKind::kClampedSwiglu) ==
              static_cast<int>(ActivationKind::kClampedSwiglu));
static_assert(static_cast<int>(ActKind::kSwigluOai) ==
              static_cast<int>(ActivationKind::kSwigluOai));
static_assert(static_cast<int>(ActKind::kGeluErf) == static_cast<int>(ActivationKind::kGeluErf));
static_assert(static_cast<int>(ActKind::kGeluTanh) == static_cast<int>(ActivationKind::kGeluTanh));
static_assert(static_cast<int>(ActKind::kRelu2) == static_cast<int>(ActivationKind::kRelu2));
static_assert(static_cast<int>(ActKind::kSigmoid) == static_cast<int>(ActivationKind::kSigmoid));
static_assert(static_cast<int>(ActKind::kIdentity) == static_cast<int>(ActivationKind::kIdentity));

inline ActParams act_params_of(const Activation& act) {
  return {static_cast<ActKind>(act.kind), act.alpha, act.beta, act.limit};
}

// Of d's types that kernels write: f16, bf16, f32.
inline OutputType output_type_of(DataType type) {
  return type == DataType::kF16    ? OutputType::kF16
         : type == DataType::kBF16 ? OutputType::kBF16
                                   : OutputType::kF32;
}

}  // namespace dualgemm::cuda
