// What the files of the tcgen05 family share: operations of one issuing thread, the CTA pair, and
// the state that a CTA keeps between instructions.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "machine/execution.hpp"
#include "machine/tensor_core/tmem.hpp"
#include "ptxsim/insn/decode.hpp"

namespace ptxsim {

// A collective allocation or deallocation of a pair, kept by its even CTA.
struct PairRequest {
  enum class Kind : uint8_t { kAllocate, kFree };
  struct Side {
    bool arrived = false;
    Kind kind = Kind::kAllocate;
    uint32_t columns = 0;
    uint32_t first_column = 0;  // kFree
  };
  Side side[2];
  uint64_t completed = 0;         // requests so far
  uint32_t allocated_column = 0;  // by the last kAllocate
};

// What the matrix of the last fill of a collector buffer was (R15).
struct CollectorFill {
  bool is_tmem = false;
  uint64_t source = 0;  // descriptor, or address in tensor memory
  uint32_t types = 0;   // kind, element type and major-ness
  bool used = false;
  uint32_t statement = 0;
  friend bool same_matrix(const CollectorFill& x, const CollectorFill& y) {
    return x.is_tmem == y.is_tmem && x.source == y.source && x.types == y.types;
  }
};

struct Tcgen05State : FamilyState {
  static constexpr char kFamilyKey[] = "tcgen05";

  // tcgen05.ld and tcgen05.st of one warp that its next wait has to wait for.
  struct Transfers {
    uint32_t in_flight = 0;
    std::optional<AsyncOp> last;
  };
  struct PerWarp {
    Transfers loads, stores;
  };

  std::map<uint32_t, uint64_t> channels;  // issuing thread of the CTA -> channel of mma, cp, commit
  std::map<uint32_t, PerWarp> warps;
  PairRequest pair;
  std::array<std::optional<CollectorFill>, 5> fills;  // of buffers a, b0, b1, b2, b3

  void cta_exits(
      Cta& cta) override;  // R9: tensor memory that was not deallocated; R15: unused fill
};

// Takes .cta_group::N; an error when it is missing or differs from that of another tcgen05
// statement of the entry.
uint32_t take_cta_group(Decode& d);

// The other CTA of the pair; a Fault when there is none or it has exited. `what` names the
// instruction.
Cta& peer_of(const Execution& x, const char* what);

// The CTAs that an instruction with this cta_group acts on, the even one first. An instruction for
// a pair must come from its even CTA.
std::vector<Cta*> ctas_of(const Execution& x, uint32_t cta_group, const char* what);

// The channel in which the operations of this thread complete one after the other.
uint64_t channel_of(const Execution& x, int lane);

// An operand in tensor memory: "[taddr]" or "[taddr + n]".
struct TmemOperand {
  Slot base;
  uint32_t offset = 0;
  uint32_t bits(const Execution& x, int lane) const {
    return x.source<uint32_t>(base)[lane] + offset;
  }
};
TmemOperand tmem_operand(Decode& d, size_t index);

// "collector::a", "collector::b0" ...
std::string name_of_collector(uint32_t buffer);

// An shared::cluster or generic address operand.
struct SharedOperand {
  Slot base;
  unsigned base_bytes = 4;
  int64_t offset = 0;
  bool is_generic = false;
  uint64_t address(const Execution& x, int lane) const;
};
SharedOperand shared_operand(Decode& d, size_t index, bool is_generic);

void decode_tcgen05_alloc(Decode& d);
void decode_tcgen05_dealloc(Decode& d);
void decode_tcgen05_relinquish(Decode& d);
void decode_tcgen05_mma(Decode& d);
void decode_tcgen05_cp(Decode& d);
void decode_tcgen05_commit(Decode& d);
void decode_tcgen05_ld(Decode& d);
void decode_tcgen05_st(Decode& d);
void decode_tcgen05_wait(Decode& d, bool loads);
void decode_tcgen05_fence(Decode& d, bool after_thread_sync);

}  // namespace ptxsim
