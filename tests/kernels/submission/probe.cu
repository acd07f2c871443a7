// A submission's CUDA text as it is written, and a way into its host part for tests.
#include DUALGEMM_SUBMISSION_TEXT
#include "kernels/submission/probe.hpp"

extern "C" __attribute__((visibility("default"))) void dualgemm_probe(
    const dualgemm::test::ProbeCall& call, dualgemm::test::ProbeAnswer& answer) {
  using namespace dualgemm::submission;
  const Operands operands{call.m,           call.n,         call.k,  call.l,
                          call.a,           call.gate,      call.up, call.a_scales,
                          call.gate_scales, call.up_scales, call.d};
  answer.error = check(operands);
  if (answer.error != nullptr) return;
  answer.workspace_bytes = workspace_bytes(operands, call.num_sms);
  const Launches launches = build(operands, call.num_sms, call.workspace,
                                  reinterpret_cast<EncodeTiled>(call.encode_tiled));
  answer.error = launches.error;
  answer.count = launches.count;
  for (size_t i = 0; i < launches.count; ++i) answer.launches[i] = launches.list[i];
}
