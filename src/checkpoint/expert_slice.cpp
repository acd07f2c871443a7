#include <fmt/format.h>

#include <algorithm>

#include "checkpoint/expert_slice.hpp"
#include "checkpoint/guard.hpp"

namespace dualgemm::checkpoint {
namespace {

// dst[cols][rows] = src[rows][cols], in squares that fit in the L1 cache.
void transpose(const std::byte* src, int64_t rows, int64_t cols, std::byte* dst) {
  constexpr int64_t kSquare = 64;
  for (int64_t row = 0; row < rows; row += kSquare) {
    for (int64_t col = 0; col < cols; col += kSquare) {
      for (int64_t r = row; r < std::min(rows, row + kSquare); ++r) {
        for (int64_t c = col; c < std::min(cols, col + kSquare); ++c) {
          dst[c * rows + r] = src[r * cols + c];
        }
      }
    }
  }
}

// One expert's share: one value for all, one each, or two each.
std::vector<float> scales_of(const std::vector<float>& all, int64_t experts, int64_t expert) {
  if (all.size() <= 1) return all;
  const size_t each = all.size() / static_cast<size_t>(experts);
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(each) * expert;
  return {first, first + static_cast<std::ptrdiff_t>(each)};
}

}  // namespace

Status check_expert_of(const Weight& weight, int64_t expert) {
  if (expert >= 0 && expert < weight.experts) return {};
  return Status::invalid(
      "expert", fmt::format("{}", expert),
      fmt::format("'{}' holds {}, numbered from 0", weight.name, weight.experts));
}

Expected<Weight> slice_matrix(const Weight& weight, int64_t expert) {
  DUALGEMM_TRY(check_expert_of(weight, expert));
  Weight one = weight;
  one.experts = 0;
  one.k_outer = false;
  const auto experts = static_cast<size_t>(weight.experts), index = static_cast<size_t>(expert);
  const size_t bytes = weight.data.size() / experts, scales = weight.scales.size() / experts;
  one.data = weight.data.subspan(index * bytes, bytes);
  one.scales = weight.scales.subspan(index * scales, scales);
  if (!weight.k_outer) return one;
  auto memory = std::make_shared<std::vector<std::byte>>(bytes + scales);
  transpose(one.data.data(), weight.k / 2, weight.n, memory->data());
  transpose(std::as_bytes(one.scales).data(), weight.k / kSfVec, weight.n, memory->data() + bytes);
  one.data = std::span<const std::byte>(*memory).first(bytes);
  one.scales = {reinterpret_cast<const uint8_t*>(memory->data() + bytes), scales};
  one.owner = std::move(memory);
  return one;
}

Expected<Weight> slice_expert(const Weight& weight, int64_t expert) {
  return guarded(weight.name, [&]() -> Expected<Weight> {
    Expected<Weight> one = slice_matrix(weight, expert);
    if (!one) return one;
    for (std::vector<float>* scales : {&one->dequant_global_scales, &one->dequant_input_scales,
                                       &one->global_divisors, &one->input_divisors})
      *scales = scales_of(*scales, weight.experts, expert);
    return one;
  });
}

}  // namespace dualgemm::checkpoint
