#include <gtest/gtest.h>

#include "exec/fatbin_builder.hpp"
#include "fake_cuda/fatbin/container.hpp"
#include "fake_cuda/fatbin/select.hpp"

namespace ptxsim_test {
namespace {

using namespace ptxsim::cuda;

std::string selected(const std::vector<FatbinPart>& parts, uint32_t architecture) {
  const std::string bytes = fatbin_of(parts);
  const auto entries = read_fatbin(bytes_of(bytes));
  EXPECT_TRUE(entries.ok());
  const auto selection = select_ptx(entries.value(), architecture);
  EXPECT_TRUE(selection.ok());
  return selection.value().ptx;
}

TEST(Fatbin, EntriesAreReadInOrder) {
  const std::string bytes = fatbin_of({{2, 100, "machine code", 0}, {1, 90, ptx_for("sm_90a"), 0}});
  const auto entries = read_fatbin(bytes_of(bytes));
  ASSERT_TRUE(entries.ok());
  ASSERT_EQ(entries.value().size(), 2u);
  EXPECT_EQ(entries.value()[0].kind, FatbinKind::kElf);
  EXPECT_EQ(entries.value()[0].architecture, 100u);
  EXPECT_EQ(entries.value()[1].kind, FatbinKind::kPtx);
  EXPECT_EQ(ptx_of(entries.value()[1]).value(), ptx_for("sm_90a"));
  EXPECT_EQ(fatbin_bytes(bytes.data()), bytes.size());
}

TEST(Fatbin, CompressedPtxIsReadByEitherMethod) {
  for (const char method : {'z', 'l'}) {
    const std::string bytes = fatbin_of({{1, 100, ptx_for("sm_100a"), method}});
    const auto entries = read_fatbin(bytes_of(bytes));
    ASSERT_TRUE(entries.ok()) << method;
    EXPECT_LT(entries.value()[0].payload.size(), ptx_for("sm_100a").size());
    const auto text = ptx_of(entries.value()[0]);
    ASSERT_TRUE(text.ok()) << method;
    EXPECT_EQ(text.value(), ptx_for("sm_100a"));
  }
}

TEST(Fatbin, EveryTruncationIsRefused) {
  const std::string bytes =
      fatbin_of({{1, 100, ptx_for("sm_100a"), 'z'}, {2, 100, "machine code", 0}});
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(read_fatbin(bytes_of(bytes).first(size)).ok()) << size;
  EXPECT_TRUE(read_fatbin(bytes_of(bytes)).ok());
}

TEST(Fatbin, BrokenSizesAreRefusedWithTheirByte) {
  const std::string right = fatbin_of({{1, 100, ptx_for("sm_100a"), 'z'}});
  const auto message_of = [&](size_t offset, auto value) {
    std::string bytes = right;
    put(bytes, offset, value);
    const auto entries = read_fatbin(bytes_of(bytes));
    return entries.ok() ? std::string("read") : entries.error().message;
  };
  EXPECT_NE(message_of(0, uint32_t{0x1ee55a01}).find("magic 0x1ee55a01"), std::string::npos);
  EXPECT_NE(message_of(16 + 4, uint32_t{8}).find("at byte 16: an entry of 8"), std::string::npos);
  EXPECT_NE(message_of(16 + 8, uint64_t{1} << 62).find("at byte 16"), std::string::npos);
  EXPECT_NE(message_of(16 + 16, uint32_t{1 << 30}).find("at byte 32"), std::string::npos);
  EXPECT_NE(message_of(16 + 56, uint64_t{1} << 40).find("at byte 72"), std::string::npos);
}

TEST(Fatbin, BrokenCompressionIsRefused) {
  for (const char method : {'z', 'l'}) {
    std::string bytes = fatbin_of({{1, 100, ptx_for("sm_100a"), method}});
    for (size_t i = 16 + 80; i < 16 + 80 + 24; ++i) bytes[i] = static_cast<char>(0xa5 + i);
    const auto entries = read_fatbin(bytes_of(bytes));
    ASSERT_TRUE(entries.ok());
    EXPECT_FALSE(ptx_of(entries.value()[0]).ok()) << method;
  }
}

TEST(Fatbin, LengthOtherThanTheEntrySaysIsRefused) {
  std::string bytes = fatbin_of({{1, 100, ptx_for("sm_100a"), 'z'}});
  put<uint64_t>(bytes, 16 + 56, ptx_for("sm_100a").size() + 1);
  const auto entries = read_fatbin(bytes_of(bytes));
  ASSERT_TRUE(entries.ok());
  EXPECT_FALSE(ptx_of(entries.value()[0]).ok());
}

TEST(PtxSelection, TargetsRunWhereTheManualSays) {
  EXPECT_TRUE(runs_on({80, 0}, 121));
  EXPECT_FALSE(runs_on({100, 0}, 90));
  EXPECT_TRUE(runs_on({90, 'a'}, 90));
  EXPECT_FALSE(runs_on({90, 'a'}, 100));
  EXPECT_FALSE(runs_on({100, 'a'}, 103));
  EXPECT_TRUE(runs_on({100, 'f'}, 103));
  EXPECT_FALSE(runs_on({103, 'f'}, 100));
  EXPECT_FALSE(runs_on({100, 'f'}, 120));
}

TEST(PtxSelection, TargetsAreReadFromTheText) {
  EXPECT_EQ(target_of(ptx_for("sm_100a"))->architecture, 100u);
  EXPECT_EQ(target_of(ptx_for("sm_100a"))->suffix, 'a');
  EXPECT_EQ(target_of(ptx_for("sm_120f, debug"))->suffix, 'f');
  EXPECT_EQ(target_of(ptx_for("sm_80"))->suffix, 0);
  EXPECT_FALSE(target_of("garbage").has_value());
  EXPECT_FALSE(target_of(".target texmode_independent\n").has_value());
}

TEST(PtxSelection, ExactThenFamilyThenHighest) {
  const FatbinPart old{1, 80, ptx_for("sm_80"), 0}, plain{1, 100, ptx_for("sm_100"), 'z'},
      family{1, 100, ptx_for("sm_100f"), 'z'}, exact{1, 100, ptx_for("sm_100a"), 'z'};
  EXPECT_EQ(selected({old, exact, family, plain}, 100), exact.content);
  EXPECT_EQ(selected({old, exact, family, plain}, 103), family.content);
  EXPECT_EQ(selected({old, exact, plain}, 103), plain.content);
  EXPECT_EQ(selected({exact, plain, old}, 90), old.content);
  EXPECT_EQ(selected({exact, family, {2, 90, "machine code", 0}}, 90), "");
}

TEST(PtxSelection, SaysWhatIsThere) {
  const std::string bytes =
      fatbin_of({{2, 100, "machine code", 0}, {1, 90, ptx_for("sm_90a"), 'z'}});
  const auto selection = select_ptx(read_fatbin(bytes_of(bytes)).value(), 100);
  ASSERT_TRUE(selection.ok());
  EXPECT_EQ(selection.value().ptx, "");
  EXPECT_EQ(selection.value().contents, "machine code of sm_100, PTX of sm_90a");
}

}  // namespace
}  // namespace ptxsim_test
