// Barriers, fences and exchange within a warp: what is refused.
#include <gtest/gtest.h>

#include <vector>

#include "unit/small_kernel.hpp"

namespace {

using ptxsim_test::error_of;
using ptxsim_test::ErrorCase;

class BarrierError : public testing::TestWithParam<ErrorCase> {};

TEST_P(BarrierError, SaysWhatAndWhere) {
  const ErrorCase& c = GetParam();
  const std::string error = error_of({c.body, c.block, c.cluster});
  EXPECT_NE(error.find(c.message), std::string::npos) << "got: " << error;
}

const std::string kSecondWarp = "setp.gt.u32 %p1, %r0, 31;\n";

const std::vector<ErrorCase> kNamed = {
    {"NoSuchBarrier", "bar.sync 16;", "barrier 16; must be 0 to 15"},
    {"CountNotMultipleOf32",
     "bar.sync 1, 48;",
     "count of 48 threads; must be a multiple of 32",
     {64, 1, 1}},
    {"CountAboveCta", "bar.sync 1, 128;", "at most the 64 of the CTA", {64, 1, 1}},
    {"CountOfZero", "mov.u32 %r1, 0;\n barrier.arrive 1, %r1;", "count of 0 threads"},
    {"CountsDiffer",
     kSecondWarp + "@%p1 bra SECOND;\n bar.sync 1, 64;\n ret;\nSECOND:\n bar.sync 1, 96;",
     "all arrivals of a phase must have the same count (R13)",
     {96, 1, 1}},
    {"ArrivesAgainBeforeItsWarp",
     "setp.gt.u32 %p1, %r0, 15;\n @%p1 bra OTHERS;\n barrier.arrive 1, 64;\n"
     "barrier.arrive 1, 64;\nOTHERS:\n barrier.arrive 1, 64;",
     "arrive again at barrier 1 before the others of their warp; 0 of 64 threads have arrived",
     {32 * 2, 1, 1}},
    {"ReducesAndSyncs",
     kSecondWarp + "@%p1 bra SECOND;\n bar.sync 1;\n ret;\nSECOND:\n setp.eq.u32 %p2, %r0, 0;\n"
                   "bar.red.popc.u32 %r1, 1, %p2;",
     ".red together with .sync or .arrive",
     {64, 1, 1}},
    {"NumberDiffers", "and.b32 %r1, %r0, 1;\n barrier.sync %r1;",
     "the barrier's number differs between lanes"},
    {"PartOfWarp", "setp.lt.u32 %p1, %r0, 16;\n @%p1 bar.sync 0;",
     "all lanes of the warp must execute it (R12)"},
    {"NobodyElse", kSecondWarp + "@%p1 ret;\n bar.sync 1, 64;", "deadlock", {64, 1, 1}},
    {"ArriveNeedsCount", "bar.arrive 1;", "must have 2"},
    {"NoSuchReduction", "bar.red.xor.pred %p1, 1, %p2;", "a reducing barrier needs"}};

const std::vector<ErrorCase> kCluster = {
    {"WaitWithoutArrival",
     "barrier.cluster.wait;",
     "without having arrived (R13)",
     {32, 1, 1},
     {2, 1, 1}},
    {"ArrivesTwice",
     "barrier.cluster.arrive;\n barrier.cluster.arrive;",
     "again without barrier.cluster.wait",
     {32, 1, 1},
     {2, 1, 1}},
    {"OneNeverComes",
     "mov.u32 %r1, %cluster_ctarank;\n setp.eq.u32 %p1, %r1, 0;\n @%p1 bra MEET;\n" + kSecondWarp +
         "@%p1 bra MEET;\n bar.sync 1, 64;\nMEET:\n barrier.cluster.arrive;\n "
         "barrier.cluster.wait;",
     "deadlock",
     {64, 1, 1},
     {2, 1, 1}},
    {"AlignedPartOfWarp",
     "setp.lt.u32 %p1, %r0, 16;\n @%p1 barrier.cluster.arrive.aligned;\n @%p1 "
     "barrier.cluster.wait.aligned;",
     "(R12)",
     {32, 1, 1},
     {2, 1, 1}},
    {"AcquiringArrival", "barrier.cluster.arrive.acquire;",
     "modifier .acquire is not known for barrier"}};

const std::vector<ErrorCase> kOthers = {
    {"MaskWithoutSelf", "bar.warp.sync 1;",
     "member mask 00000001 does not name the executing lane 1"},
    {"ShuffleWithoutSync", "shfl.idx.b32 %r1, %r0, 0, 31;", "must have 5"},
    {"ShuffleMode", "shfl.sync.b32 %r1, %r0, 0, 31, -1;", "shfl needs .up"},
    {"VoteType", "vote.sync.ballot.pred %p1, %p2, -1;", "vote.ballot needs .b32"},
    {"ReduceAddOfFloat", "redux.sync.add.f32 %f1, %f2, -1;", "redux has"},
    {"ReduceAndOfUnsigned", "redux.sync.and.u32 %r1, %r0, -1;", "redux has"},
    {"ElectWithoutPredicate", "elect.sync %r1, -1;", "needs a pair of destinations"},
    {"FenceWithoutScope", "fence.acq_rel;", "fence needs a scope"},
    {"FenceOfUnknownProxy", "fence.proxy.async.const;", "modifier .const is not known for fence"},
    {"FenceProxyAlone", "fence.proxy;", "fence.proxy needs"},
    {"FenceInitScope", "fence.mbarrier_init.release.gpu;", "has the form .release.cluster only"},
    {"FenceRestrictedTheOtherWay", "fence.acquire.sync_restrict::shared::cta.cluster;",
     "must be .release.sync_restrict"},
    {"FenceTensorMapSize", "fence.proxy.tensormap::generic.acquire.gpu [%rd1], 64;",
     "the size must be the literal 128"},
    {"RegistersTooFew", "setmaxnreg.dec.sync.aligned.u32 16;",
     "register count 16; must be a multiple of 8 from 24 to 256"},
    {"RegistersNotMultipleOf8", "setmaxnreg.inc.sync.aligned.u32 100;", "register count 100"},
    {"RegistersPartOfWarp", "setp.lt.u32 %p1, %r0, 16;\n @%p1 setmaxnreg.inc.sync.aligned.u32 64;",
     "(R12)"},
    {"DependentGrid", "griddepcontrol.launch;", "griddepcontrol needs"}};

std::string name_of(const testing::TestParamInfo<ErrorCase>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(Named, BarrierError, testing::ValuesIn(kNamed), name_of);
INSTANTIATE_TEST_SUITE_P(Cluster, BarrierError, testing::ValuesIn(kCluster), name_of);
INSTANTIATE_TEST_SUITE_P(Others, BarrierError, testing::ValuesIn(kOthers), name_of);

}  // namespace
