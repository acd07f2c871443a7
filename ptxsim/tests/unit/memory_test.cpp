// What memory accesses are refused for, and how the message says it.
#include <gtest/gtest.h>

#include <vector>

#include "unit/small_kernel.hpp"

namespace {

using ptxsim_test::error_of;
using ptxsim_test::ErrorCase;

class MemoryError : public testing::TestWithParam<ErrorCase> {};

TEST_P(MemoryError, SaysWhatAndWhere) {
  const ErrorCase& c = GetParam();
  const std::string error = error_of({c.body, c.block, c.cluster});
  EXPECT_NE(error.find(c.message), std::string::npos) << "got: " << error;
  EXPECT_NE(error.find("small.ptx:"), std::string::npos) << "no place: " << error;
}

const std::vector<ErrorCase> kGlobal = {
    {"OutOfBounds", "ld.global.u32 %r1, [%rd1+256];",
     "global read of 4 bytes at 0x100000100 is not inside a registered buffer; the nearest is "
     "'data'"},
    {"AcrossTheEnd", "ld.global.v2.u64 {%rd4, %rd5}, [%rd2+56];", "misaligned"},
    {"BeforeTheStart", "st.global.u32 [%rd1+-4], %r0;", "global write of 4 bytes at 0xfffffffc"},
    {"NullPointer", "mov.u64 %rd4, 0;\n ld.u32 %r1, [%rd4];", "at 0x0 is not inside"},
    {"Misaligned", "ld.global.u64 %rd4, [%rd1+4];",
     "misaligned global address 0x100000004 of an access of 8 bytes; must be a multiple of 8"},
    {"MisalignedVector", "ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%rd1+8];",
     "of an access of 16 bytes; must be a multiple of 16"},
    {"NeverWritten", "ld.global.u32 %r1, [%rd2+8];\n st.global.u32 [%rd1], %r1;",
     "byte 8 of buffer 'fresh' was never written"},
    {"PartlyWritten",
     "st.global.u8 [%rd2], %r0;\n ld.global.u16 %h1, [%rd2];\n setp.eq.u16 %p1, %h1, 287;\n"
     "@%p1 trap;",
     "byte 1 of buffer 'fresh' was never written"},
    {"ReadOnly", "st.global.u32 [%rd3], %r0;", "buffer 'fixed' is read only"},
    {"AtomicReadOnly", "atom.global.add.u32 %r1, [%rd3], 1;", "buffer 'fixed' is read only"},
    {"AtomicNeverWritten", "red.global.add.u32 [%rd2], 1;", "was never written"},
    {"NamesTheLane",
     "mul.wide.u32 %rd4, %r0, 64;\n add.s64 %rd4, %rd4, %rd1;\n ld.global.u32 %r1, [%rd4];",
     "warp 0, lane 4"}};

const std::vector<ErrorCase> kShared = {
    {"SharedOutOfBounds", "ld.shared.u32 %r1, [tile+72];", "shared memory access of 4 bytes"},
    {"SharedSystemPart", "mov.u32 %r1, 16;\n st.shared.u32 [%r1], %r0;",
     "shared memory access of 4 bytes at address 0x10; the CTA's memory is 0x400"},
    {"SharedNeverWritten", "ld.shared.u32 %r1, [tile+4];\n st.shared.u32 [%r1], %r0;",
     "of which some were never written"},
    {"SharedMisaligned", "st.shared.u64 [tile+4], %rd1;", "misaligned shared address 0x404"},
    {"GlobalAsShared", "st.shared.u32 [%rd1], %r0;", "shared memory access of 4 bytes at address"},
    {"NoSuchRank", "mov.u32 %r1, 0x05000400;\n st.shared::cluster.u32 [%r1], %r0;",
     "names CTA rank 5; the cluster has 1 CTAs"},
    {"OtherCtaAsOwn",
     "mov.u32 %r1, tile;\n mapa.shared::cluster.u32 %r2, %r1, 1;\n st.shared.u32 [%r2], %r0;",
     "names CTA rank 1; the executing CTA has rank 0",
     {32, 1, 1},
     {2, 1, 1}},
    {"ExitedCta",
     "mov.u32 %r1, %cluster_ctarank;\n setp.eq.u32 %p1, %r1, 1;\n @%p1 ret;\n mov.u32 %r2, 0;\n"
     "LOOP:\n add.u32 %r2, %r2, 1;\n setp.lt.u32 %p2, %r2, 20000;\n @%p2 bra LOOP;\n"
     "mov.u32 %r3, tile;\n mapa.shared::cluster.u32 %r4, %r3, 1;\n"
     "st.shared::cluster.u32 [%r4], %r0;",
     "which has exited; a cluster barrier before its exit is missing (R11)",
     {32, 1, 1},
     {2, 1, 1}},
    {"LiveMbarrier",
     "mbarrier.init.shared::cta.b64 [full], 1;\n ld.shared.u32 %r1, [full+4];",
     "touches the live mbarrier",
     {1, 1, 1}},
    {"StoreAcrossMbarrier",
     "mbarrier.init.shared::cta.b64 [tile+8], 1;\n st.shared.v4.u32 [tile], {%r0, %r0, %r0, %r0};",
     "access of 16 bytes at shared address 0x400 touches the live mbarrier 0x408",
     {1, 1, 1}},
    {"BulkNotMultipleOf8", "mov.u64 %rd4, 12;\n st.bulk.weak.shared::cta [tile], %rd4, 0;",
     "st.bulk of 12 bytes; must be a multiple of 8"},
    {"BulkOutOfBounds", "mov.u64 %rd4, 128;\n st.bulk.weak.shared::cta [tile], %rd4, 0;",
     "shared memory access of 128 bytes"},
    {"MatrixRowMisaligned",
     "mov.u32 %r1, tile;\n add.u32 %r1, %r1, 8;\n"
     "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1];",
     "misaligned shared address"},
    {"MatrixPartOfWarp",
     "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [tile];",
     "all 32 lanes of the warp must be there",
     {16, 1, 1}},
    {"AsyncStoreOtherCtaBarrier",
     "mov.u32 %r1, tile;\n mapa.shared::cluster.u32 %r2, %r1, 1;\n mov.u32 %r3, full;\n"
     "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r2], %r0, [%r3];",
     "must be the same CTA",
     {32, 1, 1},
     {2, 1, 1}},
    {"AsyncStoreNoBarrier",
     "mov.u32 %r1, tile;\n mapa.shared::cluster.u32 %r2, %r1, 1;\n mov.u32 %r3, full;\n"
     "mapa.shared::cluster.u32 %r4, %r3, 1;\n"
     "st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r2], %r0, [%r4];",
     "R10",
     {32, 1, 1},
     {2, 1, 1}}};

const std::vector<ErrorCase> kOtherSpaces = {
    {"WriteToParam", "mov.b64 %rd4, p1;\n cvta.param.u64 %rd4, %rd4;\n st.u32 [%rd4], %r0;",
     "write to the parameter space at offset 0x8; it is read only"},
    {"WriteToConst", "mov.u64 %rd4, table;\n cvta.const.u64 %rd4, %rd4;\n st.u8 [%rd4], %r0;",
     "write to the constant space"},
    {"BeyondConst", "ld.const.u64 %rd4, [table+16];", "constant offset 0x10; there are 16 bytes"},
    {"BeyondLocal", "st.local.u64 [frame+16], %rd1;", "local offset 0x10; there are 16 bytes"},
    {"BeyondParam", "mov.b64 %rd4, p2;\n ld.param.u64 %rd5, [%rd4+8];",
     "parameter offset 0x18; there are 24 bytes"},
    {"LocalMisaligned", "st.local.u32 [frame+2], %r0;", "misaligned local address"},
    {"AtomicOnLocal",
     "mov.u64 %rd4, frame;\n cvta.local.u64 %rd4, %rd4;\n atom.add.u32 %r1, [%rd4], 1;",
     "atomic operation outside global and shared memory"},
    {"VectorAtomicOnShared",
     "mov.u64 %rd4, tile;\n cvta.shared.u64 %rd4, %rd4;\n mov.f32 %f1, 0f00000000;\n"
     "red.v2.f32.add [%rd4], {%f1, %f1};",
     "vector form of an atomic operation on shared memory"},
    {"TensorMapNotInMemory", "mov.u64 %rd4, 64;\n prefetch.tensormap [%rd4];",
     "0x40 is not inside a registered buffer"},
    {"TensorMapMisaligned", "add.s64 %rd4, %rd1, 32;\n prefetch.tensormap [%rd4];",
     "must be a multiple of 64"}};

const std::vector<ErrorCase> kDecoding = {
    {"StoreToParam", "st.param.u32 [p0], %r0;",
     "st cannot write to the constant space or the kernel's parameters"},
    {"AcquireWithoutScope", "ld.acquire.global.u32 %r1, [%rd1];", ".acquire needs a scope"},
    {"MmioWithoutSys", "ld.mmio.relaxed.gpu.global.u32 %r1, [%rd1];", ".mmio needs the scope .sys"},
    {"NonCoherentShared", "ld.shared.nc.u32 %r1, [tile];", "ld.nc needs .global"},
    {"StrongConst", "ld.relaxed.gpu.const.u32 %r1, [table];", "a strong operation needs"},
    {"WideVectorOfShared", "ld.shared.v4.u64 {%rd4, %rd5, %rd6, %rd7}, [tile];",
     "a vector of 4 elements of 8 bytes"},
    {"TooFewRegisters", "ld.global.v4.u32 {%r1, %r2}, [%rd1];", "2 registers for 4 elements"},
    {"FloatIntoWide", "ld.global.f32 %rd4, [%rd1];",
     "register %rd4 has 8 bytes; the instruction's type has 4"},
    {"NarrowRegister", "ld.global.u32 %h1, [%rd1];", "register %h1 has 2 bytes"},
    {"NoSuchType", "ld.global.f16x2 %r1, [%rd1];", "type .f16x2 is not one of ld and st"},
    {"UnknownModifier", "st.global.acquire.gpu.u32 [%rd1], %r0;",
     "modifier .acquire is not known for st"},
    {"SharedNameAsGeneric", "ld.u32 %r1, [tile];",
     "the name of variable tile is no generic address"},
    {"PolicyMissing", "ld.global.L2::cache_hint.u32 %r1, [%rd1];", "must have 3"},
    {"AtomicBits", "atom.global.add.b32 %r1, [%rd1], 1;", "does not exist for type .b32"},
    {"AtomicNoftz", "atom.global.add.f16 %h1, [%rd1], %h2;", "type .f16 needs .noftz"},
    {"AtomicHalfMin", "atom.global.min.noftz.f16 %h1, [%rd1], %h2;",
     "does not exist for type .f16"},
    {"AtomicInc64", "atom.global.inc.u64 %rd4, [%rd1], %rd1;", "does not exist for type .u64"},
    {"AtomicConst", "atom.const.add.u32 %r1, [table], 1;", "an atomic operation needs"},
    {"ReductionExch", "red.global.exch.b32 [%rd1], 1;", "does not exist for type .b32"},
    {"ReductionAcquire", "red.acquire.gpu.global.add.u32 [%rd1], 1;",
     "red has .relaxed and .release only"},
    {"RedAsyncType",
     "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.s64 [tile], %rd1, "
     "[full];",
     "does not exist for type .s64"},
    {"AsyncReleaseOfACta", "st.async.release.cta.global.u32 [%rd1], %r0;",
     "an asynchronous release has the scope .gpu or .sys"},
    {"AsyncReleaseOfAVector", "st.async.release.gpu.global.v2.u32 [%rd1], {%r0, %r1};",
     "st.async.release stores one element"},
    {"AsyncReleaseMmio", "st.async.mmio.release.gpu.global.u32 [%rd1], %r0;",
     ".mmio needs the scope .sys"},
    {"AsyncReductionOfFloats", "red.async.release.gpu.global.add.f32 [%rd1], %f1;",
     "this operation does not exist for type .f32"},
    {"MatrixOf4BitsTransposed",
     "ldmatrix.sync.aligned.m8n16.x1.trans.shared.b8x16.b4x16_p64 {%r1}, [tile];",
     ".m8n16 needs .b8x16 and has no .trans"},
    {"MatrixBytesNotTransposed", "ldmatrix.sync.aligned.m16n16.x1.shared.b8 {%r1, %r2}, [tile];",
     "needs .trans"},
    {"PrefetchShared", "prefetch.shared.L1 [tile];", "prefetch needs .global, .local"},
    {"DiscardSize", "discard.global.L2 [%rd1], 64;", "the size must be the literal 128"}};

std::string name_of(const testing::TestParamInfo<ErrorCase>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Global, MemoryError, testing::ValuesIn(kGlobal), name_of);
INSTANTIATE_TEST_SUITE_P(Shared, MemoryError, testing::ValuesIn(kShared), name_of);
INSTANTIATE_TEST_SUITE_P(OtherSpaces, MemoryError, testing::ValuesIn(kOtherSpaces), name_of);
INSTANTIATE_TEST_SUITE_P(Decoding, MemoryError, testing::ValuesIn(kDecoding), name_of);

TEST(Memory, TrafficIsCountedInSectorsOncePerInstruction) {
  // 32 lanes on 4 bytes each: 128 bytes, four sectors; then all lanes on one address: one sector.
  const auto result = ptxsim_test::run_small(
      {"mul.wide.u32 %rd4, %r0, 4;\n add.s64 %rd4, %rd4, %rd1;\n ld.global.u32 %r1, [%rd4];\n"
       "ld.global.u32 %r2, [%rd1];\n st.global.u32 [%rd4], %r1;"});
  ASSERT_FALSE(result.error) << to_string(*result.error);
  EXPECT_EQ(result.stats.l2_read_bytes, 128u + 32u);
  EXPECT_EQ(result.stats.l2_write_bytes, 128u);
}

}  // namespace
