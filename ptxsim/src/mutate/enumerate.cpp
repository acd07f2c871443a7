#include <fmt/format.h>

#include <algorithm>

#include "ptxsim/mutate/mutation.hpp"

namespace ptxsim {
namespace {

bool has(const Statement& s, std::string_view modifier) {
  return std::find(s.modifiers.begin(), s.modifiers.end(), modifier) != s.modifiers.end();
}
bool any_starts_with(const Statement& s, std::string_view prefix) {
  return std::any_of(s.modifiers.begin(), s.modifiers.end(),
                     [&](const std::string& m) { return m.starts_with(prefix); });
}

class Enumeration {
 public:
  explicit Enumeration(const Program& program) : program_(program) {}

  std::vector<Mutation> all() {
    const auto& statements = program_.entry->statements;
    for (at_ = 0; at_ < statements.size(); ++at_)
      look_at(statements[at_], program_.traits[at_].mutants);
    return std::move(list_);
  }

 private:
  void look_at(const Statement& s, Mutants mutants);
  void tensor_mma(const Statement& s);
  void bulk_copy(const Statement& s);
  void mbarrier_wait(const Statement& s);
  void mbarrier_arrive(const Statement& s);
  // Flips one of the CTAs of a pair in or out of a multicast. `index`: of the mask's operand.
  void multicast(const Statement& s, size_t index) {
    if (!has(s, "multicast::cluster")) return;
    change("multicast", index, "mask: CTA 0 flipped", 0, 1);
    change("multicast", index, "mask: CTA 1 flipped", 0, 2);
  }

  void drop(const char* group) {
    list_.push_back({MutationKind::kDrop, group, at_, "drop", 0, false, 0, 0, 0});
  }
  // The value of operand `index` (of its vector element or address base when it has parts).
  void change(const char* group, size_t index, std::string what, uint64_t add, uint64_t flip = 0,
              MutationKind kind = MutationKind::kChangeValue) {
    const Statement& s = program_.entry->statements[at_];
    if (index >= s.operands.size()) return;
    const Operand* operand = &s.operands[index];
    while (!operand->parts.empty()) operand = &operand->parts[0];
    Mutation m{kind, group, at_, std::move(what), 0, false, static_cast<uint32_t>(index),
               add,  flip};
    if (operand->kind == Operand::Kind::kRegister) {
      m.from_register = true;
      m.reg = operand->reg;
      list_.push_back(m);
    } else if (operand->kind == Operand::Kind::kImmediate && !operand->is_float) {
      list_.push_back(m);
    }
  }

  const Program& program_;
  uint32_t at_ = 0;
  std::vector<Mutation> list_;
};

void Enumeration::tensor_mma(const Statement& s) {
  drop("mma");
  // Operands: D, A, B, metadata of a sparse A, idesc, SFA, SFB, enable-input-d.
  if (s.operands[1].kind == Operand::Kind::kAddress) {
    change("descriptor", 1, "A column + 2", 2);
  } else {
    change("descriptor", 1, "A descriptor: start address + 32 B", 2);
    change("descriptor", 1, "A descriptor: stride + 16 B", uint64_t{1} << 32);
  }
  change("descriptor", 2, "B descriptor: start address + 32 B", 2);
  change("descriptor", 2, "B descriptor: swizzle flipped", 0, uint64_t{1} << 62);
  const bool is_sparse = has(s, "sp");
  if (is_sparse) change("descriptor", 3, "metadata column + 2", 2);
  if (has(s, "block_scale")) {
    const size_t next = is_sparse ? 4 : 3;
    change("descriptor", next, "instruction descriptor: N - 8", ~uint64_t{0} << 17);
    change("scale column", next + 1, "SFA column + 4", 4);
    change("scale column", next + 2, "SFB column + 4", 4);
  }
  change("accumulator", 0, "D column + 32", 32);
}

void Enumeration::bulk_copy(const Statement& s) {
  drop("tma");
  const bool load = any_starts_with(s, "mbarrier::");
  if (!load) return;
  change("stage index", 0, "destination + 1024 B", 1024);
  // The barrier is the third operand of a tensor copy, the fourth of a plain one (after the size).
  const size_t barrier = has(s, "tensor") ? 2 : 3;
  change("stage index", barrier, "barrier + 8 B", 8);
  multicast(s, barrier + 1);
  if (!has(s, "tensor")) change("bytes", 2, "size - 16", ~uint64_t{15});
}

void Enumeration::mbarrier_wait(const Statement& s) {
  list_.push_back({MutationKind::kWaitPasses, "wait", at_, "passes at once", 0, false, 0, 0, 0});
  if (has(s, "parity")) change("parity", 2, "other parity", 0, 1, MutationKind::kFlipParity);
  change("stage index", 1, "barrier + 8 B", 8);
}

void Enumeration::mbarrier_arrive(const Statement& s) {
  drop("arrive");
  const size_t barrier =
      s.operands.size() > 1 && s.operands[0].kind != Operand::Kind::kAddress ? 1 : 0;
  if (has(s, "expect_tx")) {
    change("bytes", barrier + 1, "bytes + 16", 16);
    change("bytes", barrier + 1, "bytes - 16", ~uint64_t{15});
  }
  change("stage index", barrier, "barrier + 8 B", 8);
}

void Enumeration::look_at(const Statement& s, Mutants mutants) {
  switch (mutants) {
    case Mutants::kNone:
      return;
    case Mutants::kTensorMma:
      return tensor_mma(s);
    case Mutants::kTensorCopy:
      drop("cp");
      change("scale column", 0, "destination column + 4", 4);
      return change("descriptor", 1, "descriptor: start address + 512 B", 32);
    case Mutants::kTensorCommit:
      drop("commit");
      change("stage index", 0, "barrier + 8 B", 8);
      return multicast(s, 1);
    case Mutants::kTensorWaitLoad:
      return drop("wait::ld");
    case Mutants::kTensorWaitStore:
      return drop("wait::st");
    case Mutants::kTensorFence:
      return drop("tcgen05 fence");
    case Mutants::kTensorAlloc:
      return drop("alloc");
    case Mutants::kWgmma:
      drop("mma");
      return change("descriptor", 2, "B descriptor: start address + 32 B", 2);
    case Mutants::kWgmmaFence:
      return drop("wgmma fence");
    case Mutants::kWgmmaCommit:
      return drop("commit");
    case Mutants::kWgmmaWait:
    case Mutants::kCopyGroup:
      return drop("wait_group");
    case Mutants::kBulkCopy:
      return bulk_copy(s);
    case Mutants::kMbarrierInit:
      drop("init");
      return change("init", 1, "count + 1", 1);
    case Mutants::kMbarrierArrive:
      return mbarrier_arrive(s);
    case Mutants::kMbarrierExpect:
      drop("arrive");
      return change("bytes", 1, "bytes + 16", 16);
    case Mutants::kMbarrierWait:
      return mbarrier_wait(s);
    case Mutants::kMbarrierInitFence:
      return drop("mbarrier_init fence");
    case Mutants::kFence:
      return drop("fence");
    case Mutants::kWarpBarrier:
      return drop("bar.warp");
    case Mutants::kCtaBarrier:
      return drop("bar.sync");
    case Mutants::kClusterBarrier:
      return drop("cluster barrier");
    case Mutants::kPreviousGrid:
      return drop("previous grid");
  }
}

}  // namespace

std::vector<Mutation> enumerate_mutations(const Program& program) {
  return Enumeration(program).all();
}

}  // namespace ptxsim
