// The quantiser's kernels and those of its inverse in the interpreter, against the CPU's: the PTX
// that is emitted for them, launched as the host code would.
#include "cuda/kernels/convert/quantize.hpp"

#include "core/int_math.hpp"
#include "kernels/convert/quantize_checks.hpp"
#include "kernels/simulation/simulated_arrays.hpp"

namespace dualgemm::test {
namespace {

using ::testing::AssertionResult;

class SimulatedDevice : public SimulatedArrays {
 public:
  using SimulatedArrays::SimulatedArrays;
  AssertionResult quantize(const QuantizeProblem& problem, const QuantizeBuffers& buffers) {
    return run_changed(cuda::quantize_launches(core::resolve(problem), buffers));
  }
  AssertionResult transform_rows(const TransformProblem& problem, const TransformBuffers& buffers) {
    return run(cuda::transform_launches(problem, buffers));
  }
  AssertionResult dequantize(const QuantizeProblem& problem, const DequantizeBuffers& buffers) {
    return run(cuda::dequantize_launches(core::resolve(problem), buffers));
  }
  AssertionResult convert_scales(const ScaleConversion& conversion, const uint8_t* src,
                                 uint8_t* dst) {
    return run(cuda::convert_scales_launches(*core::checked_conversion(conversion), src, dst));
  }
  // Rows that a thread takes of one matrix from now on, whatever the launch says.
  void set_thread_rows(uint32_t rows) { thread_rows_ = rows; }

 private:
  AssertionResult run_changed(Expected<std::vector<cuda::KernelLaunch>> launches) {
    if (launches && thread_rows_ != 0) {
      for (cuda::KernelLaunch& launch : *launches) change(launch);
    }
    return run(launches);
  }
  void change(cuda::KernelLaunch& launch) const {
    cuda::QuantizeParams params;
    std::memcpy(&params, launch.params.data(), sizeof params);
    const int64_t groups = core::ceil_div(int64_t{params.tensor.count}, int64_t{thread_rows_});
    launch.ctas = static_cast<uint32_t>(
        core::ceil_div(groups * params.tensor.row_units.value, int64_t{launch.threads}));
    params.thread_rows = thread_rows_;
    launch.set_params(params);
  }

  uint32_t thread_rows_ = 0;
};

TEST(QuantizeKernels, EveryHalfPrecisionNumber) {
  for (const DataType type : {DataType::kF16, DataType::kBF16}) {
    for (const bool four_over_six : {false, true}) {
      SimulatedDevice device;
      check_every_half(device, type, four_over_six, 1);
    }
  }
}

TEST(QuantizeKernels, TiesAndTheirNeighbours) {
  for (const bool four_over_six : {false, true}) {
    SimulatedDevice device;
    check_ties(device, 8192, four_over_six);
  }
}

TEST(QuantizeKernels, EveryCodeWithEveryScale) {
  for (const DataType type : {DataType::kF16, DataType::kBF16, DataType::kF32}) {
    SimulatedDevice device;
    check_every_code(device, type);
  }
}

TEST(QuantizeKernels, AnyShapeLayoutAndGroups) {
  SimulatedDevice device;
  check_random(device, 120);
}

// More than 65536 blocks: two in a thread. Wide rows: what a CTA does not keep it reads again.
TEST(QuantizeKernels, ManyBlocksAndWideRows) {
  Rng rng;
  for (const GlobalScaling scaling : {GlobalScaling::kTensor, GlobalScaling::kRow}) {
    QuantizeProblem p{.rows = 4, .cols = 17000, .x = {.type = DataType::kBF16}};
    if (scaling == GlobalScaling::kTensor) p = {.rows = 131, .cols = 8016, .x = p.x};
    p.scaling = scaling;
    p.q.scale_layout = ScaleLayout::kSwizzled128x4;
    p.cols = p.cols / 16 * 16;
    QuantizeCase data(p);
    data.randomize(rng, Hard::kOrdinary);
    SimulatedDevice device;
    expect_quantized_as_on_cpu(device, data, 0);
  }
}

// With a scale for each row, many rows lie in shared memory, unless their addresses or their length
// do not suit: some lanes and warps without a block, padding, groups, rows of no expert.
TEST(QuantizeKernels, RowsInSharedMemory) {
  Rng rng;
  for (const DataType type : {DataType::kF16, DataType::kBF16, DataType::kF32}) {
    for (const Grouping grouping : {Grouping::kNone, Grouping::kMasked, Grouping::kContiguous}) {
      for (const ScaleLayout layout : {ScaleLayout::kLinear, ScaleLayout::kSwizzled128x4}) {
        const bool wide = grouping == Grouping::kNone && type == DataType::kBF16;
        QuantizeProblem p{.rows = 513, .cols = wide ? 2064 : 16 * rng.integer(1, 40)};
        p.x = {.type = type, .ld = p.cols + 8 * rng.integer(0, 3)};
        p.grouping = grouping;
        p.l = grouping == Grouping::kNone ? 1 : 3;
        p.scaling = GlobalScaling::kRow;
        p.q.scale_layout = layout;
        QuantizeCase data(p);
        data.randomize(rng, Hard::kSpecial);
        SimulatedDevice device;
        expect_quantized_as_on_cpu(device, data, 0);
        EXPECT_EQ(device.entry(), std::string("dual_gemm_quantize_staged_") + name_of(type));
      }
    }
  }
}

TEST(QuantizeKernels, RowsThatSharedMemoryDoesNotSuit) {
  Rng rng;
  QuantizeProblem fits{.rows = 512, .cols = 48, .x = {.type = DataType::kBF16}};
  fits.scaling = GlobalScaling::kRow;
  QuantizeProblem few = fits, odd = fits, wide = fits, six = fits;
  few.rows = 511;
  odd.x.ld = 49;
  wide.cols = 1 << 16;
  six.four_over_six = true;
  QuantizeProblem floats = odd;
  floats.x = {.type = DataType::kF32, .ld = 49};
  const auto entry_of = [](const QuantizeProblem& p, uintptr_t x) {
    const QuantizeBuffers buffers{.x = reinterpret_cast<const void*>(x)};
    return std::string(cuda::quantize_launches(core::resolve(p), buffers)->back().kernel.entry);
  };
  EXPECT_EQ(entry_of(fits, 4096), "dual_gemm_quantize_staged_bf16");
  EXPECT_EQ(entry_of(fits, 4096 + 2), "dual_gemm_quantize_rows_bf16");
  for (const QuantizeProblem& p : {few, odd, wide})
    EXPECT_EQ(entry_of(p, 4096), "dual_gemm_quantize_rows_bf16") << p.rows << ", " << p.cols;
  EXPECT_EQ(entry_of(six, 4096), "dual_gemm_quantize_rows_bf16_four_over_six");
  EXPECT_EQ(entry_of(floats, 4096), "dual_gemm_quantize_rows_f32");
  for (const QuantizeProblem& p : {odd, floats}) {
    QuantizeCase data(p);
    data.randomize(rng, Hard::kSpecial);
    SimulatedDevice device;
    expect_quantized_as_on_cpu(device, data, 0);
  }
}

// A thread takes up to 16 rows of a large matrix. The interpreter gets a small matrix with as many.
TEST(QuantizeKernels, RowsOfAThread) {
  Rng rng;
  QuantizeProblem large{.rows = 16384, .cols = 7168, .x = {.type = DataType::kBF16}};
  large.scaling = GlobalScaling::kGiven;
  const auto launches = cuda::quantize_launches(core::resolve(large), {});
  ASSERT_TRUE(launches.ok()) << launches.status().message();
  EXPECT_EQ((*launches)[0].ctas, 16384 / 8 * 448 / 256);  // 16 rows would leave 1792
  for (const uint32_t thread_rows : {1u, 2u, 4u, 16u, 32u}) {
    for (const ScaleLayout layout : {ScaleLayout::kLinear, ScaleLayout::kSwizzled128x4}) {
      QuantizeProblem p{.rows = 37 + 32 * thread_rows, .cols = 16 * (65536 / 37 + 1)};
      if (thread_rows > 4) p = {.rows = 299, .cols = 16 * 221};
      p.x = {.type = thread_rows % 3 == 1 ? DataType::kBF16 : DataType::kF32};
      p.scaling = GlobalScaling::kGiven;
      p.q.scale_layout = layout;
      QuantizeCase data(p);
      data.randomize(rng, Hard::kOrdinary);
      SimulatedDevice device;
      device.set_thread_rows(thread_rows);
      expect_quantized_as_on_cpu(device, data, 0);
      EXPECT_NE(device.entry().find("matrix_many"), std::string::npos) << device.entry();
    }
  }
}

TEST(QuantizeKernels, OneLaunchWhereTheScaleIsGiven) {
  Rng rng;
  for (const auto& [scaling, launches] : {std::pair{GlobalScaling::kGiven, 1},
                                          {GlobalScaling::kGivenPerBatch, 1},
                                          {GlobalScaling::kTensor, 2},
                                          {GlobalScaling::kRow, 1}}) {
    QuantizeProblem p{.rows = 3, .cols = 48};
    p.scaling = scaling;
    QuantizeCase data(p);
    data.randomize(rng, Hard::kOrdinary);
    SimulatedDevice device;
    expect_quantized_as_on_cpu(device, data, 0);
    EXPECT_EQ(device.launches(), static_cast<size_t>(launches));
  }
}

TEST(QuantizeKernels, TransformedRows) {
  SimulatedDevice device;
  check_transforms(device, 60);
}

// A row that a thread's registers do not hold, and one that several CTAs divide.
TEST(QuantizeKernels, WideTransformedRows) {
  Rng rng;
  for (const GlobalScaling scaling :
       {GlobalScaling::kGiven, GlobalScaling::kTensor, GlobalScaling::kRow}) {
    for (const int64_t rows : {2, 140}) {
      QuantizeProblem p{.rows = rows, .cols = rows == 2 ? 17408 : 1280};
      p.x.type = DataType::kBF16;
      p.scaling = scaling;
      p.transform = {.factors = rows == 2, .hadamard = 256};
      p.q.scale_layout = ScaleLayout::kSwizzled128x4;
      QuantizeCase data(p);
      data.randomize(rng, Hard::kOrdinary);
      SimulatedDevice device;
      expect_quantized_as_on_cpu(device, data, 0);
      EXPECT_EQ(device.entry(), "dual_gemm_quantize_transformed_bf16");
      EXPECT_EQ(device.launches(), scaling == GlobalScaling::kTensor ? 2u : 1u);
    }
  }
}

TEST(QuantizeKernels, GroupsWithoutRows) {
  Rng rng;
  for (const Grouping grouping : {Grouping::kMasked, Grouping::kContiguous}) {
    for (const GlobalScaling scaling : {GlobalScaling::kTensor, GlobalScaling::kRow}) {
      for (const int64_t rows : {0, 5}) {
        QuantizeProblem p{.rows = rows, .cols = 48, .l = 3};
        p.grouping = grouping;
        p.scaling = scaling;
        p.q.scale_layout = ScaleLayout::kSwizzled128x4;
        p.transform.hadamard = rng.chance(0.5) ? 16 : 0;
        QuantizeCase data(p);
        data.randomize(rng, Hard::kOrdinary);
        data.row_experts.clear();
        if (grouping == Grouping::kMasked) {
          data.expert_rows = {0, 0, 0};
        } else {
          data.expert_offsets = {0, 0, 0, static_cast<int32_t>(rows)};
        }
        SimulatedDevice device;
        expect_quantized_as_on_cpu(device, data, 0);
      }
    }
  }
}

TEST(QuantizeKernels, GivenScalesThatAreNone) {
  SimulatedDevice device;
  check_given_garbage(device);
}

// Groups that overlap write the same scales, in any order: of such numbers it is only asked that
// nothing outside of the arrays is touched.
TEST(QuantizeKernels, NumbersOfRowsThatAreNone) {
  ptxsim::Options options;
  options.check_global = false;
  SimulatedDevice device(options);
  check_group_garbage(device, 60);
}

TEST(QuantizeKernels, ScalesFromAnyLayoutToAnyOther) {
  SimulatedDevice device;
  check_conversions(device, 60);
}

}  // namespace
}  // namespace dualgemm::test
