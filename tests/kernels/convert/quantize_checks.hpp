// The same cases for any device: one that interprets PTX, or a GPU. A Device has
//   void* put(const char* name, const void* from, int64_t bytes, int64_t shift, bool read_only)
//   void get(const void* address, void* to, int64_t bytes)    // and looks at what lies around
//   AssertionResult quantize(problem, buffers), dequantize(...), convert_scales(...),
//     transform_rows(...)
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "support/quantize_case.hpp"
#include "support/transform_case.hpp"

namespace dualgemm::test {

template <class T>
::testing::AssertionResult same_arrays(const char* name, const std::vector<T>& got,
                                       const std::vector<T>& want) {
  if (std::memcmp(got.data(), want.data(), got.size() * sizeof(T)) == 0)
    return ::testing::AssertionSuccess();
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::memcmp(&got[i], &want[i], sizeof(T)) == 0) continue;
    return ::testing::AssertionFailure() << name << "[" << i << "] of " << got.size() << ": got "
                                         << +got[i] << ", want " << +want[i];
  }
  return ::testing::AssertionFailure() << name;
}

// A case on a device: where its arrays are.
template <class Device>
class CaseOn {
 public:
  CaseOn(Device& device, QuantizeCase& data, int64_t shift) : device_(device), data_(data) {
    const int64_t element = core::bytes_of(data.problem.x.type, 1);
    const int64_t x_shift = (shift + element - 1) / element * element;
    x_ = device.put("x", data.x.data(), data.sizes.x, x_shift, false);
    codes_ = bytes("codes", data.codes, shift);
    scales_ = bytes("scales", data.scales, shift);
    groups_ = {numbers("expert_rows", data.expert_rows),
               numbers("expert_offsets", data.expert_offsets),
               numbers("row_experts", data.row_experts)};
    global_ = floats("global_scale", data.global_scale, true);
    found_ = floats("found_scale", data.found_scale, false);
    factors_ = floats("column_factors", data.column_factors, true);
    const std::vector<uint8_t> nothing(4096, 0xA5);
    workspace_ = device.put("workspace", nothing.data(), 4096, 0, false);
  }
  QuantizeBuffers buffers() const {
    return {.x = x_,
            .codes = codes_,
            .scales = scales_,
            .global_scale = global_,
            .found_scale = found_,
            .groups = groups_,
            .column_factors = factors_,
            .workspace = workspace_,
            .workspace_bytes = 4096};
  }
  DequantizeBuffers inverse() const {
    return {.codes = codes_,
            .scales = scales_,
            .global_scale = global_ != nullptr ? global_ : found_,
            .x = x_,
            .groups = groups_};
  }
  // What lies there now.
  QuantizeCase now() const {
    QuantizeCase got = data_;
    device_.get(x_, got.x.data(), data_.sizes.x);
    device_.get(codes_, got.codes.data(), data_.sizes.codes);
    device_.get(scales_, got.scales.data(), data_.sizes.scales);
    if (found_ != nullptr) device_.get(found_, got.found_scale.data(), data_.sizes.global_scale);
    return got;
  }

 private:
  uint8_t* bytes(const char* name, const std::vector<uint8_t>& from, int64_t shift) {
    const auto size = static_cast<int64_t>(from.size());
    return static_cast<uint8_t*>(device_.put(name, from.data(), size, shift, false));
  }
  const int32_t* numbers(const char* name, const std::vector<int32_t>& from) {
    if (from.empty()) return nullptr;
    const auto size = static_cast<int64_t>(from.size() * 4);
    return static_cast<const int32_t*>(device_.put(name, from.data(), size, 4, true));
  }
  float* floats(const char* name, const std::vector<float>& from, bool read_only) {
    if (from.empty()) return nullptr;
    const auto size = static_cast<int64_t>(from.size() * 4);
    return static_cast<float*>(device_.put(name, from.data(), size, 4, read_only));
  }

  Device& device_;
  const QuantizeCase& data_;
  void* x_;
  uint8_t *codes_, *scales_;
  RowGroupArrays groups_;
  float *global_, *found_, *factors_;
  void* workspace_;
};

inline ::testing::AssertionResult same_case(const QuantizeCase& got, const QuantizeCase& want) {
  if (auto same = same_arrays("codes", got.codes, want.codes); !same) return same;
  if (auto same = same_arrays("scales", got.scales, want.scales); !same) return same;
  if (auto same = same_arrays("found_scale", got.found_scale, want.found_scale); !same) return same;
  return same_arrays("x", got.x, want.x);
}

// The CPU quantises `data` in place; the device must have done the same to a copy.
template <class Device>
void expect_quantized_as_on_cpu(Device& device, QuantizeCase& data, int64_t shift) {
  SCOPED_TRACE(data.describe() + ", shift " + std::to_string(shift));
  const CaseOn<Device> there(device, data, shift);
  ASSERT_TRUE(device.quantize(data.problem, there.buffers()));
  const Status status = core::quantize_on_cpu(data.resolved, data.buffers(), 1);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(same_case(there.now(), data));
}

// The same of the inverse, of what `data` holds.
template <class Device>
void expect_dequantized_as_on_cpu(Device& device, QuantizeCase& data, int64_t shift) {
  SCOPED_TRACE(data.describe() + ", shift " + std::to_string(shift));
  std::fill(data.x.begin(), data.x.end(), kPoison);
  const CaseOn<Device> there(device, data, shift);
  ASSERT_TRUE(device.dequantize(data.problem, there.inverse()));
  const float* const global =
      data.global_scale.empty() ? data.found_scale.data() : data.global_scale.data();
  const Status status = core::dequantize_on_cpu(data.resolved,
                                                {.codes = data.codes.data(),
                                                 .scales = data.scales.data(),
                                                 .global_scale = global,
                                                 .x = data.x.data(),
                                                 .groups = data.groups()},
                                                1);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(same_case(there.now(), data));
}

// transform_rows(), apart and in place.
template <class Device>
void check_transforms(Device& device, int rounds) {
  Rng rng;
  for (int i = 0; i < rounds && !::testing::Test::HasFailure(); ++i) {
    TransformProblem p = random_transform_problem(rng);
    if (i % 4 == 0) p.y = p.x;
    TransformCase data(p, rng, Hard::kSpecial);
    if (i % 4 == 0) data.to = data.from;
    SCOPED_TRACE(data.describe());
    const int64_t element = core::bytes_of(p.x.type, 1), shift = element * rng.integer(0, 9);
    const auto put = [&](const char* name, const std::vector<uint8_t>& bytes) {
      return device.put(name, bytes.data(), static_cast<int64_t>(bytes.size()), shift, false);
    };
    const auto bytes_of_factors = static_cast<int64_t>(data.factors.size() * 4);
    void* const x = put("x", data.from);
    void* const y = i % 4 == 0 ? x : put("y", data.to);
    void* const factors =
        device.put("column_factors", data.factors.data(), bytes_of_factors, 4 * (i % 2), true);
    ASSERT_TRUE(device.transform_rows(
        p, {.x = x, .column_factors = static_cast<const float*>(factors), .y = y}));
    const std::vector<uint8_t> want = data.want();
    device.get(y, data.to.data(), static_cast<int64_t>(data.to.size()));
    ASSERT_EQ(data.to, want);
  }
}

// Every fp16 or bf16 number, `rounds` times in another order: neighbours share a scale.
template <class Device>
void check_every_half(Device& device, DataType type, bool four_over_six, int rounds) {
  Rng rng;
  QuantizeProblem p{.rows = 64 * rounds, .cols = 1024, .x = {.type = type}};
  p.scaling = GlobalScaling::kGiven;
  p.four_over_six = four_over_six;
  QuantizeCase data(p);
  data.global_scale = {0x1.3p-4f};
  for (int round = 0; round < rounds; ++round) {
    const auto odd = static_cast<uint64_t>(round == 0 ? 1 : 2 * rng.integer(0, 32767) + 1);
    for (uint64_t i = 0; i < 65536; ++i) {
      data.set_bits(0, 64 * round + static_cast<int64_t>(i / 1024), static_cast<int64_t>(i % 1024),
                    static_cast<uint16_t>(i * odd));
    }
  }
  expect_quantized_as_on_cpu(device, data, 0);
}

template <class Device>
void check_ties(Device& device, int64_t blocks, bool four_over_six) {
  Rng rng;
  QuantizeProblem p{.rows = blocks / 32, .cols = 512, .x = {.type = DataType::kF32}};
  p.scaling = GlobalScaling::kGiven;
  p.four_over_six = four_over_six;
  QuantizeCase data(p);
  data.global_scale = {1.0f};
  for (int64_t block = 0; block < blocks; ++block) {
    float x[16];
    block_of_ties(rng, x);
    for (int i = 0; i < 16; ++i) data.set(0, block / 32, block % 32 * 16 + i, x[i]);
  }
  expect_quantized_as_on_cpu(device, data, 0);
}

// Any values, shapes, strides, layouts, groups; there and back.
template <class Device>
void check_random(Device& device, int cases) {
  Rng rng;
  for (int i = 0; i < cases; ++i) {
    QuantizeCase data(random_quantize_problem(rng));
    // With one found scale for all, a single NaN would leave nothing to look at.
    const bool finite = data.problem.scaling == GlobalScaling::kTensor && rng.chance(0.8);
    data.randomize(rng, finite ? Hard::kOrdinary : Hard::kSpecial);
    const int64_t shift = rng.chance(0.5) ? 0 : rng.integer(1, 17);
    expect_quantized_as_on_cpu(device, data, shift);
    if (rng.chance(0.3)) {
      for (uint8_t& scale : data.scales) scale = rng.byte();  // every scale, NaN among them
    }
    expect_dequantized_as_on_cpu(device, data, shift);
    if (::testing::Test::HasFailure()) return;
  }
}

// Every code with every scale, NaN among them, and global scales that leave products ordinary,
// subnormal in the type of x, beyond it, or none; one for all rows, and one for each.
template <class Device>
void check_every_code(Device& device, DataType type) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> globals{1.0f,  0.37f,    -2.5f, 0x1.fp-14f, 0x1.7p-30f, 0x1p-149f,
                                   1e30f, 65504.0f, 0.0f,  -0.0f,      kInfinity,  std::nanf("")};
  const auto rows = static_cast<int64_t>(globals.size());
  QuantizeProblem p{.rows = rows, .cols = 16 * 256, .x = {.type = type}};
  for (const GlobalScaling scaling : {GlobalScaling::kRow, GlobalScaling::kGiven}) {
    p.scaling = scaling;
    QuantizeCase data(p);
    for (int64_t block = 0; block < rows * 256; ++block) {
      data.scales[static_cast<size_t>(block)] = static_cast<uint8_t>(block);
      for (int64_t i = 0; i < 8; ++i)
        data.codes[static_cast<size_t>(8 * block + i)] = static_cast<uint8_t>(0x10 + 0x22 * i);
    }
    if (scaling == GlobalScaling::kRow) {
      data.found_scale = globals;
      expect_dequantized_as_on_cpu(device, data, 0);
      continue;
    }
    for (const float global : globals) {
      data.global_scale = {global};
      expect_dequantized_as_on_cpu(device, data, 0);
    }
  }
}

// Given scales that are none make all that they belong to NaN.
template <class Device>
void check_given_garbage(Device& device) {
  Rng rng;
  QuantizeProblem p{.rows = 3, .cols = 64, .l = 6, .x = {.type = DataType::kBF16}};
  p.scaling = GlobalScaling::kGivenPerBatch;
  QuantizeCase data(p);
  data.randomize(rng, Hard::kOrdinary);
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> garbage{0.0f, -1.0f, kInfinity, std::nanf(""), -kInfinity, 1.0f};
  data.global_scale = garbage;
  const CaseOn<Device> there(device, data, 0);
  ASSERT_TRUE(device.quantize(p, there.buffers()));
  const QuantizeCase got = there.now();
  for (int64_t i = 0; i < 6 * 3 * 4; ++i) {
    if (i < 5 * 3 * 4) {
      EXPECT_EQ(got.scales[static_cast<size_t>(i)], 0x7F) << i;
    }
    for (int64_t byte = 0; byte < 8 && i < 5 * 3 * 4; ++byte)
      EXPECT_EQ(got.codes[static_cast<size_t>(8 * i + byte)], 0) << i;
  }
  data.global_scale.assign(6, 1.0f);
  ASSERT_TRUE(core::quantize_on_cpu(data.resolved, data.buffers(), 1).ok());
  EXPECT_TRUE(std::equal(got.codes.end() - 3 * 32, got.codes.end(), data.codes.end() - 3 * 32));
}

// Numbers of rows that no caller may pass: the device reports what is touched outside of an array.
template <class Device>
void check_group_garbage(Device& device, int cases) {
  Rng rng;
  for (int i = 0; i < cases; ++i) {
    QuantizeProblem p = random_quantize_problem(rng);
    if (p.grouping == Grouping::kNone) continue;
    QuantizeCase data(p);
    data.randomize(rng, Hard::kOrdinary);
    for (auto* numbers : {&data.expert_rows, &data.expert_offsets, &data.row_experts}) {
      for (int32_t& number : *numbers) {
        if (rng.chance(0.5)) number = static_cast<int32_t>(rng.bits());
        if (rng.chance(0.3)) number = static_cast<int32_t>(rng.integer(0, p.rows));
      }
    }
    SCOPED_TRACE(data.describe());
    const CaseOn<Device> there(device, data, 0);
    ASSERT_TRUE(device.quantize(p, there.buffers()));
    ASSERT_TRUE(device.dequantize(p, there.inverse()));
    static_cast<void>(there.now());
  }
}

template <class Device>
void check_conversions(Device& device, int cases) {
  Rng rng;
  for (int i = 0; i < cases; ++i) {
    ScaleConversion c{
        .rows = rng.integer(1, 300), .sf_cols = rng.integer(1, 70), .l = rng.integer(1, 3)};
    for (ScalePlacement* side : {&c.from, &c.to}) {
      if (rng.chance(0.5)) side->layout = ScaleLayout::kSwizzled128x4;
      if (side->layout == ScaleLayout::kLinear && rng.chance(0.5))
        side->ld = c.sf_cols + rng.integer(0, 9);
      if (rng.chance(0.5)) {
        side->batch_stride =
            *checked_scale_span(side->layout, c.rows, c.sf_cols, side->ld) + rng.integer(0, 40);
      }
    }
    const auto resolved = core::checked_conversion(c);
    ASSERT_TRUE(resolved.ok()) << resolved.status().message();
    std::vector<uint8_t> src(static_cast<size_t>(resolved->from_bytes)),
        dst(static_cast<size_t>(resolved->to_bytes), kPoison);
    for (uint8_t& byte : src) byte = rng.byte();
    const int64_t shift = rng.chance(0.5) ? 0 : rng.integer(1, 17);
    SCOPED_TRACE(std::to_string(c.l) + " x " + std::to_string(c.rows) + " x " +
                 std::to_string(c.sf_cols) + ", " + name_of(c.from.layout) + " to " +
                 name_of(c.to.layout) + ", shift " + std::to_string(shift));
    const auto* from = static_cast<const uint8_t*>(
        device.put("src", src.data(), resolved->from_bytes, shift, true));
    auto* to = static_cast<uint8_t*>(
        device.put("dst", dst.data(), resolved->to_bytes, rng.chance(0.5) ? 0 : shift, false));
    ASSERT_TRUE(device.convert_scales(c, from, to));
    core::convert_scales_on_cpu(*resolved, src.data(), dst.data());
    std::vector<uint8_t> got(dst.size());
    device.get(to, got.data(), resolved->to_bytes);
    ASSERT_TRUE(same_arrays("dst", got, dst));
  }
}

}  // namespace dualgemm::test
