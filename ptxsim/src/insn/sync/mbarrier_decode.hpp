// What the handlers of the mbarrier family share.
#pragma once

#include "insn/async/shared_operand.hpp"

namespace ptxsim {

struct MbarrierDetail : Detail {
  SharedOperand address;
  Slot result;               // state of arrive, predicate of the waits
  Slot value;                // count, bytes, state or parity; absent: 1
  bool drops = false;        // arrive_drop
  bool expects = false;      // .expect_tx: value is bytes
  bool no_complete = false;  // .noComplete
  bool by_parity = false;
  bool may_suspend = false;  // try_wait
  BarrierOrder order = BarrierOrder::kAcquireReleaseCta;
};

// .release / .acquire / .relaxed with .cta / .cluster, in any place. `ordered` is the legal one of
// the first two, and the order without any. A wait without a scope counts as one of the cluster, as
// published kernels have it for arrivals of other CTAs; an arrival as one of the CTA.
BarrierOrder take_order_and_scope(Decode& d, const char* ordered);

void decode_mbarrier_wait(Decode& d, bool may_suspend);

}  // namespace ptxsim
