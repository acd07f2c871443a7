// transform_rows() on the CPU: what it means, and what it refuses. That quantize() does the same
// first is in quantize_tensor_test.cpp.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "dualgemm/dualgemm.hpp"
#include "support/sanitizers.hpp"
#include "support/transform_case.hpp"

namespace dualgemm::test {
namespace {

TransformBuffers buffers_of(TransformCase& data) {
  return {.x = data.from.data(), .column_factors = data.factors_or_null(), .y = data.to.data()};
}

TEST(TransformRows, EveryTypeShapeAndStride) {
  Rng rng;
  for (int i = 0; i < (kSanitized ? 50 : 200); ++i) {
    TransformCase data(random_transform_problem(rng), rng, Hard::kSpecial);
    SCOPED_TRACE(data.describe());
    const std::vector<uint8_t> want = data.want();
    const Status status =
        transform_rows(data.problem, buffers_of(data), {.threads = static_cast<int>(1 + i % 3)});
    ASSERT_TRUE(status.ok()) << status.message();
    ASSERT_EQ(data.to, want);
  }
}

TEST(TransformRows, InPlace) {
  Rng rng;
  for (int i = 0; i < 40; ++i) {
    TransformProblem p = random_transform_problem(rng);
    p.y = p.x;
    TransformCase data(p, rng, Hard::kOrdinary);
    data.to = data.from;  // what lies between rows is kept
    const std::vector<uint8_t> want = data.want();
    TransformBuffers buffers = buffers_of(data);
    buffers.y = data.from.data();
    ASSERT_TRUE(transform_rows(p, buffers).ok());
    ASSERT_EQ(data.from, want) << data.describe();
  }
}

// The product of each so many columns with the matrix whose elements are
// (-1)^popcount(row & column) / sqrt(size), within the errors of its additions.
TEST(TransformRows, IsTheProductWithSylvestersMatrix) {
  Rng rng;
  for (const int64_t size : {16, 32, 64, 128, 256}) {
    TransformProblem p{.rows = 3, .cols = 3 * size};
    p.x.type = p.y.type = DataType::kF32;
    p.transform.hadamard = size;
    TransformCase data(p, rng, Hard::kOrdinary);
    for (int64_t i = 0; i < p.rows * p.cols; ++i)
      store_element(data.from.data(), DataType::kF32, i, rng.normal());
    ASSERT_TRUE(transform_rows(p, buffers_of(data)).ok());
    for (int64_t i = 0; i < p.rows * p.cols; ++i) {
      const int64_t begin = i / size * size, col = i % size;
      double want = 0.0, magnitude = 0.0;
      for (int64_t k = 0; k < size; ++k) {
        const double x = load_element(data.from.data(), DataType::kF32, begin + k);
        want += std::popcount(static_cast<uint64_t>(k & col)) % 2 == 0 ? x : -x;
        magnitude += std::fabs(x);
      }
      const double root = std::sqrt(static_cast<double>(size));
      // One rounding an addition, one of the factor, one of the product.
      const double bound = (std::log2(static_cast<double>(size)) + 2) * 0x1p-24 * magnitude / root;
      ASSERT_NEAR(load_element(data.to.data(), DataType::kF32, i), want / root, bound) << size;
    }
  }
}

// What fits is exact, and twice the matrix is the identity.
TEST(TransformRows, TwiceIsTheIdentity) {
  TransformProblem p{.rows = 1, .cols = 512};
  p.x.type = p.y.type = DataType::kBF16;
  for (const int64_t size : {16, 64, 256}) {
    p.transform.hadamard = size;
    Rng rng;
    TransformCase data(p, rng, Hard::kOrdinary);
    for (int64_t i = 0; i < p.cols; ++i) store_element(data.from.data(), p.x.type, i, 0.0f);
    for (const int64_t i : {3, 100, 300})
      store_element(data.from.data(), p.x.type, i, static_cast<float>(i));
    const std::vector<uint8_t> before = data.from;
    ASSERT_TRUE(transform_rows(p, buffers_of(data)).ok());
    EXPECT_NE(data.to, before);
    std::swap(data.from, data.to);
    ASSERT_TRUE(transform_rows(p, buffers_of(data)).ok());
    for (int64_t i = 0; i < p.cols; ++i) {
      EXPECT_EQ(load_element(data.to.data(), p.x.type, i),
                load_element(before.data(), p.x.type, i));
    }
  }
}

TEST(TransformRows, Refusals) {
  TransformProblem p{.rows = 2, .cols = 96};
  std::vector<uint16_t> x(192), y(192);
  std::vector<float> factors(96, 1.0f);
  const auto refused = [&](const TransformProblem& problem, const TransformBuffers& buffers) {
    const Status status = transform_rows(problem, buffers);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.message();
    return status.argument();
  };
  const TransformBuffers whole{.x = x.data(), .y = y.data()};
  ASSERT_TRUE(transform_rows(p, whole).ok());
  for (const int64_t size : {-16, 1, 8, 24, 48, 64, 512}) {
    TransformProblem wrong = p;
    wrong.transform.hadamard = size;
    EXPECT_EQ(refused(wrong, whole), "transform.hadamard") << size;
  }
  TransformProblem wrong = p;
  wrong.y.type = DataType::kBF16;
  EXPECT_EQ(refused(wrong, whole), "y.type");
  wrong = p;
  wrong.x.type = wrong.y.type = DataType::kE2M1;
  EXPECT_EQ(refused(wrong, whole), "x.type");
  wrong = p;
  wrong.cols = 90;
  EXPECT_EQ(refused(wrong, whole), "cols");
  wrong = p;
  wrong.rows = 0;
  EXPECT_EQ(refused(wrong, whole), "rows");
  wrong = p;
  wrong.y.ld = 95;
  EXPECT_EQ(refused(wrong, whole), "y.ld");
  wrong = p;
  wrong.transform.factors = true;
  EXPECT_EQ(refused(wrong, whole), "column_factors");
  EXPECT_EQ(refused(p, {.x = x.data(), .column_factors = factors.data(), .y = y.data()}),
            "column_factors");
  EXPECT_EQ(refused(p, {.y = y.data()}), "x");
  EXPECT_EQ(refused(p, {.x = x.data()}), "y");
  EXPECT_EQ(refused(p, {.x = x.data(), .y = x.data() + 16}), "y");
  wrong = p;
  wrong.y.ld = 112;
  std::vector<uint16_t> wide(300);
  EXPECT_EQ(refused(wrong, {.x = wide.data(), .y = wide.data()}), "y");  // they do not lie alike
}

TEST(TransformRows, TheQuantizerRefusesTheSame) {
  QuantizeProblem p{.rows = 2, .cols = 96};
  p.transform.hadamard = 64;
  EXPECT_EQ(validate(p).argument(), "transform.hadamard");
  p.transform = {.factors = true, .hadamard = 32};
  p.scaling = GlobalScaling::kRow;
  QuantizeCase data(p);
  ASSERT_TRUE(quantize(p, data.buffers()).ok());
  QuantizeBuffers buffers = data.buffers();
  buffers.column_factors = nullptr;
  EXPECT_EQ(quantize(p, buffers).argument(), "column_factors");
  buffers.column_factors = reinterpret_cast<const float*>(data.codes.data());
  EXPECT_EQ(quantize(p, buffers).code(), StatusCode::kInvalidArgument);
  p.transform.factors = false;
  EXPECT_EQ(quantize(p, data.buffers()).argument(), "column_factors");
}

}  // namespace
}  // namespace dualgemm::test
