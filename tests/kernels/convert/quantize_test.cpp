// The quantiser's kernels and those of its inverse in the interpreter, against the CPU's: the PTX
// that is emitted for them, launched as the host code would.
#include "cuda/kernels/convert/quantize.hpp"

#include "kernels/convert/quantize_checks.hpp"
#include "kernels/simulation/simulation.hpp"

namespace dualgemm::test {
namespace {

using ::testing::AssertionFailure;
using ::testing::AssertionResult;
using ::testing::AssertionSuccess;

// Arrays far from each other; the interpreter refuses whatever is outside of them.
class SimulatedDevice {
 public:
  explicit SimulatedDevice(ptxsim::Options options = {}) : options_(options) {}
  void* put(const char* name, const void* from, int64_t bytes, int64_t shift, bool read_only) {
    if (bytes == 0) return nullptr;
    std::vector<std::byte> data(static_cast<size_t>(bytes));
    std::memcpy(data.data(), from, data.size());
    const uint64_t address = next_ + static_cast<uint64_t>(shift);
    next_ += (static_cast<uint64_t>(bytes) / 4096 + 3) * 4096;
    memory_.add(name + std::to_string(next_), address, std::move(data), true, read_only);
    return reinterpret_cast<void*>(address);
  }
  void get(const void* address, void* to, int64_t bytes) {
    if (bytes == 0) return;
    const ptxsim::GlobalBuffer* buffer = memory_.find(reinterpret_cast<uint64_t>(address));
    std::memcpy(to, buffer->data.data(), static_cast<size_t>(bytes));
  }

  AssertionResult quantize(const QuantizeProblem& problem, const QuantizeBuffers& buffers) {
    return run(cuda::quantize_launches(core::resolve(problem), buffers));
  }
  AssertionResult dequantize(const QuantizeProblem& problem, const DequantizeBuffers& buffers) {
    return run(cuda::dequantize_launches(core::resolve(problem), buffers));
  }
  AssertionResult convert_scales(const ScaleConversion& conversion, const uint8_t* src,
                                 uint8_t* dst) {
    return run(cuda::convert_scales_launches(*core::checked_conversion(conversion), src, dst));
  }
  size_t launches() const { return launches_; }

 private:
  AssertionResult run(const Expected<std::vector<cuda::KernelLaunch>>& launches) {
    if (!launches) return AssertionFailure() << launches.status().message();
    launches_ = launches->size();
    for (const cuda::KernelLaunch& launch : *launches) {
      const auto program = program_of(launch.kernel);
      if (program == nullptr) return AssertionFailure() << launch.kernel.entry << " not decoded";
      ptxsim::Launch grid;
      grid.grid = {launch.ctas, 1, 1};
      grid.block = {launch.threads, 1, 1};
      grid.params.assign(launch.params.begin(), launch.params.begin() + launch.param_bytes);
      const ptxsim::RunResult result = ptxsim::run(program, grid, memory_, options_);
      if (result.clean()) continue;
      AssertionResult failure = AssertionFailure() << launch.kernel.entry << ":\n";
      if (result.error) failure << ptxsim::to_string(*result.error) << "\n";
      for (const ptxsim::Report& report : result.reports.list)
        failure << ptxsim::to_string(report) << "\n";
      return failure;
    }
    return AssertionSuccess();
  }

  ptxsim::Options options_;
  ptxsim::GlobalMemory memory_;
  uint64_t next_ = uint64_t{1} << 40;
  size_t launches_ = 0;
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

TEST(QuantizeKernels, GroupsWithoutRows) {
  Rng rng;
  for (const Grouping grouping : {Grouping::kMasked, Grouping::kContiguous}) {
    for (const GlobalScaling scaling : {GlobalScaling::kTensor, GlobalScaling::kRow}) {
      for (const int64_t rows : {0, 5}) {
        QuantizeProblem p{.rows = rows, .cols = 48, .l = 3};
        p.grouping = grouping;
        p.scaling = scaling;
        p.q.scale_layout = ScaleLayout::kSwizzled128x4;
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
