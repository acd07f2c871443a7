// `ptxsim case`: what is guessed from the PTX, and that the case is accepted for every kernel here.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "case/draft.hpp"
#include "ptxsim/case/case.hpp"

namespace {

using Json = nlohmann::json;

std::shared_ptr<const ptxsim::Module> module_of(const std::string& entry,
                                                const std::string& target = "sm_100a") {
  auto module =
      ptxsim::load(".version 8.8\n.target " + target + "\n.address_size 64\n" + entry, "draft.ptx");
  EXPECT_TRUE(module.ok()) << to_string(module.error());
  return *module;
}

Json draft_of(const std::string& entry, const std::string& target = "sm_100a") {
  const auto module = module_of(entry, target);
  return Json::parse(ptxsim::draft_case(*module, module->entries.at(0)).json);
}

const Json& item(const Json& list, const std::string& name) {
  static const Json none;
  for (const Json& one : list)
    if (one.value("name", "") == name || one.value("buffer", "") == name) return one;
  ADD_FAILURE() << name << " is not in " << list.dump();
  return none;
}

TEST(DraftCase, LaunchIsWhatTheEntrySays) {
  const Json draft = draft_of(R"(.extern .shared .align 128 .b8 dynamic[];
.visible .entry k() .reqntid 64, 2 .reqnctapercluster 2
{ .reg .b32 %r<2>; .shared .align 8 .b8 fixed[100]; mov.u32 %r0, fixed; mov.u32 %r1, dynamic; ret; })");
  EXPECT_EQ(draft.at("entry"), "k");
  EXPECT_EQ(draft.at("block"), Json::parse("[64, 2]"));
  EXPECT_EQ(draft.at("grid"), Json::parse("[2]"));
  EXPECT_EQ(draft.at("cluster"), Json::parse("[2]"));
  EXPECT_EQ(draft.at("dynamic_shared_bytes"), 227 * 1024 - 128);
}

TEST(DraftCase, MaxntidIsTakenWhenItCanBeLaunched) {
  EXPECT_EQ(draft_of(".visible .entry k() .maxntid 96 { ret; }").at("block"), Json::parse("[96]"));
  EXPECT_EQ(draft_of(".visible .entry k() .maxntid 1024, 1024 { ret; }").at("block"),
            Json::parse("[128]"));
  EXPECT_FALSE(draft_of(".visible .entry k() { ret; }").contains("dynamic_shared_bytes"));
}

TEST(DraftCase, PointersAreFoundByAttributeConversionAndUse) {
  const Json draft = draft_of(R"(.visible .entry k(.param .u64 .ptr .global .align 16 k_param_0,
 .param .u64 k_param_1, .param .u64 k_param_2, .param .u64 k_param_3, .param .u32 k_param_4)
{ .reg .b16 %h<2>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
  ld.param.u64 %rd1, [k_param_1];
  ld.param.u64 %rd2, [k_param_2];
  ld.param.u64 %rd7, [k_param_3];
  cvta.to.global.u64 %rd3, %rd1;
  add.s64 %rd4, %rd3, %rd7;
  ld.global.b32 %r1, [%rd4];
  add.f32 %r2, %r1, %r1;
  mul.lo.s64 %rd8, %rd7, 8;
  add.s64 %rd5, %rd2, %rd8;
  ld.global.b16 %h0, [%rd5];
  cvt.f32.bf16 %r3, %h0;
  st.global.b16 [%rd5+2], %h0;
  ret; })");
  const Json& buffers = draft.at("buffers");
  ASSERT_EQ(buffers.size(), 3u) << buffers.dump();
  EXPECT_EQ(item(buffers, "param_0").at("type"), "u8");
  EXPECT_EQ(item(buffers, "param_1").at("type"), "f32");
  EXPECT_EQ(item(buffers, "param_2").at("type"), "bf16");
  EXPECT_EQ(item(buffers, "param_2").at("fill"), "0x3f00");
  const Json& params = draft.at("params");
  EXPECT_EQ(params.at(3).at("type"), "u64");  // added to an address, but none itself
  EXPECT_EQ(params.at(4).at("type"), "u32");
}

TEST(DraftCase, ABufferThatIsOnlyWrittenIsLeftUnwritten) {
  const Json draft = draft_of(R"(.visible .entry k(.param .u64 out)
{ .reg .b64 %rd<2>; ld.param.u64 %rd1, [out]; st.global.u32 [%rd1], 7; ret; })");
  EXPECT_FALSE(item(draft.at("buffers"), "out").contains("fill"));
  EXPECT_NE(item(draft.at("buffers"), "out").at("comment").get<std::string>().find("expect"),
            std::string::npos);
}

TEST(DraftCase, ABufferThatFragmentsAreLoadedFromHasContents) {
  const Json draft = draft_of(R"(.visible .entry k(.param .u64 in)
{ .reg .b32 %r<9>; .reg .b64 %rd<2>; ld.param.u64 %rd1, [in];
  wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}, [%rd1];
  ret; })");
  EXPECT_TRUE(item(draft.at("buffers"), "in").contains("fill"));
}

TEST(DraftCase, PrefetchesWriteNothing) {
  const Json draft = draft_of(R"(.visible .entry k(.param .u64 in, .param .align 64 .b8 map[128])
{ .reg .b32 %r<4>; .reg .b64 %rd<3>; ld.param.u64 %rd1, [in]; mov.u64 %rd2, map;
  cp.async.bulk.prefetch.L2.global [%rd1], 1024;
  ld.global.u32 %r1, [%rd1];
  cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd2, {%r2, %r3}];
  ret; })");
  for (const Json& buffer : draft.at("buffers")) {
    EXPECT_TRUE(buffer.contains("fill")) << buffer.dump();
    EXPECT_EQ(buffer.at("comment").get<std::string>().find("expect"), std::string::npos)
        << buffer.dump();
  }
}

TEST(DraftCase, StructsFollowTheirLoadsAndTheirAlignment) {
  const std::string entry = R"(.visible .entry k(.param .u8 first, .param .align 16 .b8 s[40])
{ .reg .b32 %r<4>; .reg .b64 %rd<5>;
  mov.u64 %rd1, s;
  add.s64 %rd2, %rd1, 24;
  ld.param.u64 %rd3, [%rd2+-16];
  cvta.to.global.u64 %rd4, %rd3;
  ld.global.u32 %r3, [%rd4];
  ld.param.v2.u32 {%r1, %r2}, [s+24];
  ret; })";
  const Json params = draft_of(entry).at("params");
  ASSERT_EQ(params.size(), 7u) << params.dump();
  EXPECT_EQ(params.at(1).at("align"), 16);
  EXPECT_EQ(params.at(1).at("values"), Json::parse("[0]"));  // bytes 0 to 8
  EXPECT_EQ(params.at(2).at("buffer"), "s_at_8");
  EXPECT_EQ(params.at(3).at("values"), Json::parse("[0]"));  // bytes 16 to 24
  EXPECT_EQ(params.at(4).at("type"), "u32");
  EXPECT_EQ(params.at(5).at("type"), "u32");
  EXPECT_EQ(params.at(6).at("values"), Json::parse("[0]"));  // bytes 32 to 40
}

TEST(DraftCase, TensorMapsAreFoundInParametersAndStructs) {
  const Json draft = draft_of(R"(.visible .entry k(.param .align 64 .b8 whole[128],
 .param .align 128 .b8 s[512])
{ .reg .b32 %r<4>; .reg .b64 %rd<5>; .shared .align 128 .b8 tile[1024]; .shared .b64 bar;
  mov.u64 %rd1, s;
  add.s64 %rd2, %rd1, 256;
  cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd2, {%r1, %r2, %r3}], [bar];
  ret; })");
  const Json& params = draft.at("params");
  EXPECT_EQ(params.at(0).at("tensor_map").at("dims").size(), 2u);
  EXPECT_EQ(params.at(2).at("tensor_map").at("dims").size(), 3u);
  EXPECT_EQ(params.at(2).at("tensor_map").at("buffer"), "s_at_256");
}

TEST(DraftCase, TensorMapsOfIm2colCopiesHavePixels) {
  const Json draft =
      draft_of(R"(.visible .entry k(.param .align 64 .b8 a[128], .param .align 64 .b8 b[128])
{ .reg .b16 %h<4>; .reg .b32 %r<5>; .reg .b64 %rd<5>; .shared .align 128 .b8 tile[1024]; .shared .b64 bar;
  mov.u64 %rd1, a;
  mov.u64 %rd2, b;
  cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes
    [tile], [%rd1, {%r1, %r2, %r3, %r4}], [bar], {%h1, %h2};
  cp.async.bulk.tensor.3d.shared::cluster.global.im2col::w.mbarrier::complete_tx::bytes
    [tile], [%rd2, {%r1, %r2, %r3}], [bar], {%h1, %h2};
  ret; })");
  const Json& params = draft.at("params");
  EXPECT_EQ(params.at(0).at("tensor_map").at("im2col").at("lower").size(), 2u);
  EXPECT_TRUE(params.at(1).at("tensor_map").contains("im2col_wide"));
}

TEST(DraftCase, AScalarLoadedInPartsIsOneValue) {
  const Json params = draft_of(R"(.visible .entry k(.param .u64 a, .param .u32 b)
{ .reg .b32 %r<4>; ld.param.v2.u32 {%r1, %r2}, [a]; ld.param.u8 %r3, [b+2]; ret; })")
                          .at("params");
  ASSERT_EQ(params.size(), 2u) << params.dump();
  EXPECT_EQ(params.at(0).at("type"), "u64");
  EXPECT_EQ(params.at(1).at("type"), "u32");
}

// Layout and launch are accepted, whatever the kernel then does.
void expect_accepted(const std::shared_ptr<const ptxsim::Module>& module) {
  for (const ptxsim::Entry& entry : module->entries) {
    auto program = ptxsim::decode(module, entry.name);
    if (!program.ok()) continue;
    const ptxsim::CaseDraft draft = ptxsim::draft_case(*module, entry);
    const auto description = ptxsim::parse_case(draft.json, ".");
    ASSERT_TRUE(description.ok()) << entry.name << ": " << to_string(description.error());
    EXPECT_EQ(description.value().launch.params.size(), entry.param_bytes) << entry.name;
    ptxsim::Options options;
    options.max_warp_instructions = 1;
    const ptxsim::CaseResult result = ptxsim::run_case(description.value(), *program, options);
    // A case cannot lay a tensor map into a buffer: that is left to a person.
    const bool is_map =
        result.run.error && result.run.error->message.find("no tensor map") != std::string::npos;
    if (!result.run.error || is_map) continue;
    EXPECT_NE(result.run.error->kind, ptxsim::ErrorKind::kInput) << to_string(*result.run.error);
  }
}

TEST(DraftCase, IsAcceptedForEveryKernelOfTheTests) {
  size_t files = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(PTXSIM_TEST_FOLDER)) {
    if (file.path().extension() != ".ptx") continue;
    std::ifstream stream(file.path(), std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    auto module = ptxsim::load(text.str(), file.path().filename().string());
    ASSERT_TRUE(module.ok()) << to_string(module.error());
    expect_accepted(*module);
    ++files;
  }
  EXPECT_GT(files, 200u);
}

}  // namespace
