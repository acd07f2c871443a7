#include "parse/special_register.hpp"

#include <algorithm>
#include <iterator>

namespace ptxsim {
namespace {

constexpr SpecialName kSpecials[] = {
    {"%tid", SpecialKind::kTid, true},
    {"%ntid", SpecialKind::kNtid, true},
    {"%ctaid", SpecialKind::kCtaid, true},
    {"%nctaid", SpecialKind::kNctaid, true},
    {"%clusterid", SpecialKind::kClusterid, true},
    {"%nclusterid", SpecialKind::kNclusterid, true},
    {"%cluster_ctaid", SpecialKind::kClusterCtaid, true},
    {"%cluster_nctaid", SpecialKind::kClusterNctaid, true},
    {"%cluster_ctarank", SpecialKind::kClusterCtarank, false},
    {"%cluster_nctarank", SpecialKind::kClusterNctarank, false},
    {"%is_explicit_cluster", SpecialKind::kIsExplicitCluster, false},
    {"%laneid", SpecialKind::kLaneid, false},
    {"%warpid", SpecialKind::kWarpid, false},
    {"%nwarpid", SpecialKind::kNwarpid, false},
    {"%smid", SpecialKind::kSmid, false},
    {"%nsmid", SpecialKind::kNsmid, false},
    {"%gridid", SpecialKind::kGridid, false},
    {"%lanemask_eq", SpecialKind::kLanemaskEq, false},
    {"%lanemask_le", SpecialKind::kLanemaskLe, false},
    {"%lanemask_lt", SpecialKind::kLanemaskLt, false},
    {"%lanemask_ge", SpecialKind::kLanemaskGe, false},
    {"%lanemask_gt", SpecialKind::kLanemaskGt, false},
    {"%clock", SpecialKind::kClock, false},
    {"%clock_hi", SpecialKind::kClockHi, false},
    {"%clock64", SpecialKind::kClock64, false},
    {"%globaltimer", SpecialKind::kGlobaltimer, false},
    {"%globaltimer_lo", SpecialKind::kGlobaltimerLo, false},
    {"%globaltimer_hi", SpecialKind::kGlobaltimerHi, false},
    {"%dynamic_smem_size", SpecialKind::kDynamicSmemSize, false},
    {"%total_smem_size", SpecialKind::kTotalSmemSize, false},
    {"%aggr_smem_size", SpecialKind::kAggrSmemSize, false},
    {"%reserved_smem_offset_begin", SpecialKind::kReservedSmemOffsetBegin, false},
    {"%reserved_smem_offset_cap", SpecialKind::kReservedSmemOffsetCap, false},
    {"%reserved_smem_offset_0", SpecialKind::kReservedSmemOffset0, false},
    {"%reserved_smem_offset_1", SpecialKind::kReservedSmemOffset1, false},
    {"%current_graph_exec", SpecialKind::kCurrentGraphExec, false},
    {"%reserved_smem_offset_end", SpecialKind::kReservedSmemOffsetEnd, false},
};

}  // namespace

bool is_unmodelled_special(std::string_view name) {
  // %envreg<32>, %pm0 .. %pm7 and their 64-bit forms.
  for (const std::string_view family : {"%envreg", "%pm"})
    if (name.starts_with(family)) return find_special(name) == nullptr;
  return false;
}

const SpecialName* find_special(std::string_view name) {
  const auto* found = std::find_if(std::begin(kSpecials), std::end(kSpecials),
                                   [name](const SpecialName& entry) { return entry.name == name; });
  return found == std::end(kSpecials) ? nullptr : found;
}

}  // namespace ptxsim
