// Calls: what decode() refuses, what goes wrong while they run, and what reports and mutants say.
#include <gtest/gtest.h>

#include <algorithm>

#include "ptxsim/mutate/mutation.hpp"
#include "run_text.hpp"

namespace ptxsim::test {
namespace {

// `functions`, and an entry with `body` after some registers; %rd1 is the address of `out`.
std::string module_of(const std::string& functions, const std::string& body) {
  return with_header(functions +
                     "\n.visible .entry k(.param .u64 out) {\n.reg .pred %p<4>; .reg .b32 %r<8>; "
                     ".reg .b64 %rd<8>;\nld.param.u64 %rd1, [out];\nmov.u32 %r0, %tid.x;\n" +
                     body + "\nret;\n}\n");
}

TextRun run_module(const std::string& functions, const std::string& body, uint32_t threads = 1,
                   const Options& options = {}) {
  Launch launch;
  launch.block = {threads, 1, 1};
  append_param(launch.params, kOutAddress);
  return run_text(module_of(functions, body), launch, {}, 32, options);
}

std::string fault_of(const std::string& functions, const std::string& body, uint32_t threads = 1) {
  const TextRun run = run_module(functions, body, threads);
  return run.result.error ? run.result.error->message : "";
}

const std::string kTwice =
    ".func (.reg .u32 r) twice(.reg .u32 a) { add.u32 r, a, a; ret; }\n"
    ".func (.param .b32 r) sum(.param .b32 a, .param .b32 b) {\n"
    ".reg .b32 x<3>; ld.param.b32 x0, [a]; ld.param::func.b32 x1, [b]; add.u32 x2, x0, x1;\n"
    "st.param.b32 [r], x2; ret; }\n";

TEST(Call, RegistersLiteralsAndVariablesArePassed) {
  const TextRun run = run_module(
      kTwice,
      "call (%r1), twice, (21); st.global.u32 [%rd1], %r1;\n"
      "{ .param .b32 p; .param .b32 q; st.param.b32 [p], 30; call.uni (q), sum, (p, %r1);\n"
      "ld.param.u32 %r2, [q]; }\nst.global.u32 [%rd1+4], %r2;\ncall (_), twice, (1);\ncall sum, "
      "(1, 2);");
  ASSERT_FALSE(run.result.error) << to_string(*run.result.error);
  EXPECT_EQ(run.out[0], 42u);
  EXPECT_EQ(run.out[1], 72u);
}

TEST(Call, DecodeRefuses) {
  const auto refused = [](const std::string& body) {
    return decode_error(module_of(kTwice, body));
  };
  EXPECT_EQ(refused("call (%r1), twice;"),
            "0 arguments and 1 results; the function has 1 and 1 in 'call (%r1), twice;'");
  EXPECT_EQ(refused("call (%r1), twice, (%rd1);"),
            "register %rd1 has 8 bytes; the instruction's type has 4 in 'call (%r1), twice, "
            "(%rd1);'");
  EXPECT_EQ(refused("{ .param .b64 p; call (%r1), twice, (p); }"),
            "p has 8 bytes; the function's parameter or result has 4 in 'call (%r1), twice, (p);'");
  EXPECT_EQ(refused("call (%r1), %rd1, (1);"),
            "an indirect call needs the name of a .callprototype or .calltargets in 'call (%r1), "
            "%rd1, (1);'");
  EXPECT_EQ(refused("call 7;"),
            "call needs a function, or a register with the address of one in 'call 7;'");
  EXPECT_EQ(
      refused("mov.u32 %r1, twice;"),
      "the address of a function as a value of 4 bytes; must have 8 in 'mov.u32 %r1, twice;'");
  EXPECT_EQ(refused("{ .param .b32 p; ld.param.u64 %rd2, [p]; }"),
            "access of 8 bytes at offset 0 of parameter p, which has 4 bytes in 'ld.param.u64 "
            "%rd2, [p];'");
  EXPECT_EQ(refused("st.param.u64 [out], %rd1;"),
            "st cannot write to the constant space or the kernel's parameters in 'st.param.u64 "
            "[out], %rd1;'");
  EXPECT_EQ(decode_error(module_of(".extern .func free(.param .b32 p);", "call free, (1);")),
            "free is declared with parameters -> results of (4) -> () bytes; CUDA's has (8) -> () "
            "in 'call free, (1);'");
}

TEST(Call, AnErrorOfAFunctionNamesIt) {
  auto module = load(module_of(".func bad { junk; ret; }", "call bad;"), "k.ptx");
  ASSERT_TRUE(module.ok());
  auto program = decode(*module, "");
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(to_string(program.error()),
            "k.ptx:4 in bad: error: unknown instruction 'junk' in 'junk;'");
  const auto error = check_function(*module, 0);
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->message, "unknown instruction 'junk' in 'junk;'");
}

TEST(Call, UnknownFunctionsAreRefusedWhenTheyAreCalled) {
  const std::string unknown = ".extern .func (.param .b32 r) elsewhere(.param .b64 p);";
  EXPECT_EQ(fault_of(unknown, "setp.ne.u32 %p1, %r0, 0; @%p1 call (%r1), elsewhere, (%rd1);"), "");
  EXPECT_TRUE(fault_of(unknown, "call (%r1), elsewhere, (%rd1);")
                  .starts_with("call of elsewhere, which this module does not define; there are "
                               "stand-ins for vprintf, __assertfail, malloc, free, "
                               "cudaGraphSetConditional; CTA (0,0,0), warp 0, lane 0"));
}

TEST(Call, IndirectCallsAreChecked) {
  const std::string proto = "P: .callprototype (.param .b32 _) _ (.param .b32 _);\n";
  EXPECT_TRUE(fault_of(kTwice, proto + "call (%r1), %rd1, (1), P;")
                  .starts_with("call of 0x2000000000, which is the address of no function"));
  EXPECT_TRUE(fault_of(kTwice, proto + "mov.u64 %rd2, sum; call (%r1), %rd2, (1), P;")
                  .starts_with("call of sum with parameters -> results of (4) -> (4) bytes; it has "
                               "(4, 4) -> (4)"));
  EXPECT_TRUE(fault_of(kTwice + ".func (.reg .u32 r) other(.reg .u32 a) { ret; }",
                       "T: .calltargets twice; mov.u64 %rd2, other; call (%r1), %rd2, (1), T;")
                  .starts_with("call of other, which is not among the .calltargets"));
  EXPECT_TRUE(fault_of(kTwice, "mov.u64 %rd2, twice; ld.global.u8 %r1, [%rd2];")
                  .starts_with("global read of 1 bytes at 0x7f4000000010 is not inside"));
}

TEST(Call, FaultsSayWhereTheFunctionWasCalled) {
  const TextRun run =
      run_module(".func inner { trap; ret; }\n.func outer { call inner; ret; }\n", "call outer;");
  ASSERT_TRUE(run.result.error);
  EXPECT_EQ(to_string(*run.result.error),
            "test.ptx:4 in inner: error: trap was executed; CTA (0,0,0), warp 0, lane 0: 'trap;'; "
            "called at test.ptx:5 in outer, test.ptx:11");
}

TEST(Call, ANoreturnFunctionMustNotReturn) {
  EXPECT_TRUE(fault_of(".func f .noreturn { ret; }", "call f;")
                  .starts_with("f is .noreturn, and returns; CTA (0,0,0), warp 0, lane 0"));
}

TEST(Call, ExitInAFunctionEndsTheThread) {
  const TextRun run =
      run_module(".func leave(.reg .u32 t) { .reg .pred p; setp.lt.u32 p, t, 3; @p exit; ret; }\n",
                 "mul.wide.u32 %rd2, %r0, 4; add.u64 %rd1, %rd1, %rd2; st.global.u32 [%rd1], 1;\n"
                 "call leave, (%r0); st.global.u32 [%rd1], 2;",
                 32);
  ASSERT_FALSE(run.result.error) << to_string(*run.result.error);
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(run.out[i], i < 3 ? 1u : 2u) << i;
}

// Registers of a recursive function come back, predicates included; the registers of a new
// activation are unwritten.
TEST(Call, EachActivationHasItsRegisters) {
  const TextRun run = run_module(
      ".func (.reg .u32 r) f(.reg .u32 n) {\n.reg .u32 x, y, fresh; .reg .pred p, q;\n"
      "setp.eq.u32 p, n, 0; setp.gt.u32 q, n, 2;\nmov.u32 y, fresh; mov.u32 fresh, n;\n"
      "@p mov.u32 r, y;\n@p ret;\nsub.u32 x, n, 1;\ncall (y), f, (x);\n@q add.u32 y, y, n;\n"
      "add.u32 r, y, 100;\nret; }\n",
      "call (%r1), f, (4); st.global.u32 [%rd1], %r1;");
  ASSERT_FALSE(run.result.error) << to_string(*run.result.error);
  EXPECT_EQ(run.out[0], 0x7fffdeadu + 400 + 3 + 4);
}

TEST(Call, LocalVariablesOfAFrameEndWithIt) {
  const std::string function =
      ".func (.reg .u64 r) f { .local .align 8 .b8 mine[8]; mov.u64 r, mine; ret; }";
  EXPECT_TRUE(fault_of(function, "call (%rd2), f; ld.local.u32 %r1, [%rd2];")
                  .starts_with("access of 4 bytes at local offset 0x0; there are 0 bytes"));
}

TEST(Call, LocalMemoryIsLimited) {
  EXPECT_TRUE(fault_of("", "alloca.u64 %rd2, 524289;")
                  .starts_with("524289 bytes of local memory are needed here; a thread has at most "
                               "524288; CTA (0,0,0), warp 0, lane 0"));
  EXPECT_TRUE(fault_of(".func f { .local .b8 big[300000]; call f; ret; }", "call f;")
                  .starts_with("600000 bytes of local memory are needed here"));
}

TEST(Call, StackOfAllocas) {
  const TextRun run =
      run_module("",
                 "stacksave.u64 %rd2; alloca.u64 %rd3, 12; alloca.u64 %rd4, 4, 32;\n"
                 "st.local.u32 [%rd4], 5; ld.local.u32 %r1, [%rd4];\n"
                 "stackrestore.u64 %rd2; alloca.u64 %rd5, 8; sub.u64 %rd3, %rd3, %rd5;\n"
                 "st.global.u32 [%rd1], %r1; st.global.u64 [%rd1+8], %rd3;\n"
                 "st.global.u64 [%rd1+16], %rd4;");
  ASSERT_FALSE(run.result.error) << to_string(*run.result.error);
  EXPECT_EQ(run.out[0], 5u);
  EXPECT_EQ(run.out[2], 0u);
  EXPECT_EQ(run.out[4] % 32, 0u);
  EXPECT_TRUE(fault_of("", "mov.u64 %rd2, 64; stackrestore.u64 %rd2;")
                  .starts_with("stackrestore of 0x40, which stacksave has not given"));
}

TEST(Call, VariablesInInitialValues) {
  const TextRun run = run_module(
      ".global .u32 numbers[2] = {3, 4};\n.const .u64 at[2] = {numbers, generic(numbers)+4};\n",
      "ld.const.u64 %rd2, [at]; ld.const.u64 %rd3, [at+8];\nld.global.u32 %r1, [%rd2]; "
      "ld.u32 %r2, [%rd3];\nst.global.v2.u32 [%rd1], {%r1, %r2};");
  ASSERT_FALSE(run.result.error) << to_string(*run.result.error);
  EXPECT_EQ(run.out[0], 3u);
  EXPECT_EQ(run.out[1], 4u);
}

// Lanes that were called from two places meet in the function: its shuffle has all of them.
TEST(Call, LanesFromTwoCallSitesMeet) {
  const TextRun run = run_module(
      ".func (.reg .u32 r) next(.reg .u32 v) { shfl.sync.down.b32 r, v, 1, 31, -1; ret; }\n",
      "mul.wide.u32 %rd2, %r0, 4; add.u64 %rd1, %rd1, %rd2; setp.lt.u32 %p1, %r0, 7;\n"
      "@%p1 bra A; call (%r1), next, (%r0); bra B;\nA: call (%r1), next, (%r0);\n"
      "B: st.global.u32 [%rd1], %r1;",
      32);
  ASSERT_FALSE(run.result.error) << to_string(*run.result.error);
  for (uint32_t i = 0; i < 32; ++i) EXPECT_EQ(run.out[i], i < 31 ? i + 1 : 31) << i;
}

const std::string kRacing =
    ".shared .b32 cell;\n.func put(.reg .u32 t) {\n.reg .pred p; .reg .u32 v;\n"
    "setp.eq.u32 p, t, 0;\n@p st.shared.u32 [cell], 9;\nbar.sync 0;\nld.shared.u32 v, [cell];\n"
    "ret; }\n";

TEST(Call, ReportsNameTheFunction) {
  std::string racing = kRacing;
  racing.erase(racing.find("bar.sync 0;\n"), 12);
  Options options;
  options.check_uninitialized = false;
  const TextRun run = run_module(racing, "call put, (%r0);", 64, options);
  ASSERT_FALSE(run.result.error) << to_string(*run.result.error);
  ASSERT_FALSE(run.result.reports.list.empty());
  const Report& report = run.result.reports.list.front();
  EXPECT_EQ(report.rule, 16);
  EXPECT_EQ(to_string(report.place), "test.ptx:9 in put");
  EXPECT_EQ(report.place.function, "put");
}

TEST(Call, StatementsOfFunctionsAreMutated) {
  auto module = load(module_of(kRacing, "call put, (%r0);"), "k.ptx");
  ASSERT_TRUE(module.ok());
  auto program = decode(*module, "");
  ASSERT_TRUE(program.ok()) << to_string(program.error());
  const std::vector<Mutation> mutations = enumerate_mutations(**program);
  const auto dropped = std::find_if(mutations.begin(), mutations.end(), [&](const Mutation& m) {
    return to_string(**program, m) == "k.ptx:9 in put: drop: bar.sync 0;";
  });
  ASSERT_NE(dropped, mutations.end());
  auto mutant = apply_mutation(**program, *dropped);
  ASSERT_TRUE(mutant.ok());
  GlobalMemory memory;
  Launch launch;
  launch.block = {64, 1, 1};
  append_param(launch.params, kOutAddress);
  EXPECT_TRUE(run(*program, launch, memory, {}).clean());
  EXPECT_FALSE(run(*mutant, launch, memory, {}).clean());
}

// An immediate is changed in the text: of the function, not of the entry's statement there.
TEST(Call, ImmediatesOfFunctionsAreMutated) {
  auto module =
      load(module_of(".shared .b64 bar;\n.func wait { .reg .pred p; .reg .b32 b; mov.u32 b, bar;\n"
                     "W: mbarrier.try_wait.parity.shared::cta.b64 p, [b], 0; @!p bra W; ret; }\n",
                     "call wait;"),
           "k.ptx");
  ASSERT_TRUE(module.ok());
  auto program = decode(*module, "");
  ASSERT_TRUE(program.ok()) << to_string(program.error());
  for (const Mutation& m : enumerate_mutations(**program)) {
    if (m.kind != MutationKind::kFlipParity) continue;
    ASSERT_FALSE(m.from_register);
    auto mutant = apply_mutation(**program, m);
    ASSERT_TRUE(mutant.ok());
    EXPECT_EQ((*mutant)->module->functions[0].body.statements[1].operands[2].bits, 1u);
    return;
  }
  FAIL() << "no parity was found";
}

}  // namespace
}  // namespace ptxsim::test
