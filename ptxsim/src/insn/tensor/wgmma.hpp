// What the files of the wgmma family share (PTX ISA 9.0, "Asynchronous Warpgroup Level Matrix
// Multiply-Accumulate Instructions").
//
// wgmma.mma_async is one operation of four warps: it starts when all of them have issued it, and
// completes as a whole. A warp whose wait_group has returned knows that the operation has also read
// its operands on behalf of the others.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "insn/tensor/mma_sync_sp.hpp"
#include "machine/execution.hpp"
#include "machine/tensor_core/descriptor.hpp"
#include "machine/tensor_core/mma/dense.hpp"
#include "ptxsim/insn/decode.hpp"

namespace ptxsim {

inline constexpr uint32_t kWarpgroupWarps = 4;
inline constexpr uint32_t kWgmmaRows = 64;    // M
inline constexpr uint32_t kWgmmaKBytes = 32;  // of a row of A in one instruction

struct WgmmaDetail final : Detail {
  uint32_t n = 0, k = 0;
  SparseDetail sparse;
  uint32_t stored_k() const { return sparse.present() ? k / 2 : k; }  // of a row of A
  uint32_t b_bytes() const { return kWgmmaKBytes * k / stored_k(); }  // of a row of B
  bool integer = false, saturate = false, a_signed = false, b_signed = false;
  Element a_type = Element::kF16, b_type = Element::kF16;
  DenseRules rules;
  std::vector<Slot> d;  // registers of D
  std::vector<Slot> a;  // A from registers: 4; empty: from shared memory
  Slot a_descriptor, b_descriptor, scale_d;
  bool scale_d_negated = false;
  bool negate_a = false, negate_b = false, a_mn_major = false, b_mn_major = false;
};

struct WgmmaOperation {
  const WgmmaDetail* detail = nullptr;
  uint32_t issued = 0;  // warps that have issued it: a mask
  uint64_t a_bits = 0, b_bits = 0;
  SmemDescriptor a, b;
  bool accumulate = false;
  bool done = false;
  std::array<std::byte*, kWarpgroupWarps> registers{};  // each warp's register file
  std::array<AsyncOp, kWarpgroupWarps> ops{};
  // Sparsity metadata of each warp's lanes, as they were at the issue: kernels that are known to
  // run load the next ones into the same registers while the operation is under way.
  std::array<std::array<uint32_t, kWarpSize>, kWarpgroupWarps> metadata{};
};

// Multiplies: reads its operands now, and writes D of all four warps.
void compute(Cta& cta, const WgmmaOperation& operation, bool exact);

struct WgmmaState final : FamilyState {
  static constexpr char kFamilyKey[] = "wgmma";
  struct PerWarp {
    bool fenced = false;           // wgmma.fence since the start
    uint64_t issued = 0;           // operations
    uint64_t released = 0;         // of them, those that a wait has let go of
    std::vector<uint64_t> groups;  // for each commit_group: operations issued before it
  };
  struct Group {
    uint64_t channel = 0;
    std::vector<std::shared_ptr<WgmmaOperation>> operations;  // by number
    std::array<PerWarp, kWarpgroupWarps> warps;
  };
  std::map<uint32_t, Group> groups;  // by warp index / 4
};

// The number under which an operation owns registers of its warp.
inline uint64_t wgmma_owner(uint64_t operation) { return (uint64_t{1} << 63) | operation; }

void decode_wgmma_mma(Decode& d);

}  // namespace ptxsim
