// A program that nvcc made and linked with NVIDIA's cuBLAS and cuBLASLt, below `ptxsim exec`: the
// stand-in takes their place.
#include "cli/program.hpp"

#ifdef PTXSIM_NVCC_BLAS

namespace ptxsim_test {
namespace {

class ExecBlas : public Program {
 protected:
  Outcome run_part(const std::string& part) const {
    return start({"exec", "--device", "h200", "--", PTXSIM_NVCC_BLAS, part});
  }
};

// By sums in float64 of the program's own.
TEST_F(ExecBlas, ProductsAreRight) {
  for (const char* part : {"captured", "lt"}) {
    const Outcome outcome = run_part(part);
    EXPECT_EQ(outcome.exit_code, 0) << outcome;
    EXPECT_EQ(outcome.out, "") << outcome;
    EXPECT_TRUE(contains(outcome.err, "0 errors, 0 warnings")) << outcome;
  }
  const Outcome products = run_part("products");  // with one call that cuBLAS refuses
  EXPECT_EQ(products.exit_code, 0) << products;
  EXPECT_EQ(products.out, "") << products;
  EXPECT_TRUE(contains(products.err, "0 errors, 1 warnings")) << products;
  EXPECT_TRUE(contains(products.err, "a leading dimension")) << products;
}

// With calls that cuBLAS refuses.
TEST_F(ExecBlas, FactorsAreRight) {
  const Outcome outcome = run_part("factors");
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(outcome.out, "") << outcome;
  EXPECT_TRUE(contains(outcome.err, "0 errors, 2 warnings")) << outcome;
  EXPECT_TRUE(contains(outcome.err, "cublasDgetrfBatched: a size, a leading")) << outcome;
}

TEST_F(ExecBlas, ProductsOfTheHostsMemoryAreRight) {
  const Outcome outcome = run_part("products_of_host");
  EXPECT_EQ(outcome.exit_code, 0) << outcome;
  EXPECT_EQ(outcome.out, "") << outcome;
  EXPECT_TRUE(contains(outcome.err, "0 errors, 0 warnings")) << outcome;
}

TEST_F(ExecBlas, MemoryIsChecked) {
  const struct {
    const char *part, *message;
  } cases[] = {
      {"unwritten", "A (4 x 4, leading dimension 4, batch 0): byte 40 of allocation 2"},
      {"host", "A (4 x 4, leading dimension 4, batch 0) takes 64 bytes at 0x"},
      {"outside", "C (4 x 5, leading dimension 4, batch 0) takes 80 bytes at 0x"},
  };
  for (const auto& [part, message] : cases) {
    const Outcome outcome = run_part(part);
    EXPECT_EQ(outcome.exit_code, 1) << outcome;
    EXPECT_TRUE(contains(outcome.err, "error: cublasSgemm_v2: ")) << outcome;
    EXPECT_TRUE(contains(outcome.err, message)) << outcome;
  }
}

TEST_F(ExecBlas, ArraysOfAddressesAreInTheGpusMemory) {
  const Outcome outcome = run_part("addresses_of_host");
  EXPECT_EQ(outcome.exit_code, 1) << outcome;
  EXPECT_EQ(outcome.out, "") << outcome;
  EXPECT_TRUE(contains(outcome.err, "error: cublasSgemmBatched: addresses of A (")) << outcome;
}

TEST_F(ExecBlas, ProductsOfTwoStreamsAreJudged) {
  const Outcome outcome = run_part("streams");
  EXPECT_EQ(outcome.exit_code, 1) << outcome;
  EXPECT_TRUE(contains(outcome.err, "[R23]")) << outcome;
}

TEST_F(ExecBlas, OtherCallsAreRefusedByName) {
  const Outcome outcome = run_part("other_call");
  EXPECT_EQ(outcome.exit_code, 1) << outcome;
  EXPECT_EQ(outcome.out, "") << outcome;
  EXPECT_TRUE(contains(outcome.err, "error: cublasSaxpy_v2: not modelled")) << outcome;
}

}  // namespace
}  // namespace ptxsim_test

#endif
