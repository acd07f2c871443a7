// Mutants of a kernel: one synchronising or data-moving statement dropped or weakened. A test of
// the judge (does the interpreter or its sanitizer notice?) and of the kernel's own tests.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ptxsim/mutate/outputs.hpp"
#include "ptxsim/ptxsim.hpp"

namespace ptxsim {

enum class MutationKind : uint8_t {
  kDrop,         // the statement does nothing
  kWaitPasses,   // a wait's predicate is true at once
  kFlipParity,   // the other phase is waited for
  kChangeValue,  // an operand is changed: bytes, a descriptor field, a column, an address
};

struct Mutation {
  MutationKind kind = MutationKind::kDrop;
  std::string group;  // "mma", "cp", "commit", "tma", "arrive", "wait", "fence", ...: what the kill
                      // rate is reported by
  uint32_t statement = 0;
  std::string what;  // "drop", "bytes + 16", "descriptor: start address + 32 B"
  // kFlipParity and kChangeValue: which value. A register is changed while the statement executes,
  // an immediate in the text.
  uint32_t reg = 0;  // index into Entry::registers, when from_register
  bool from_register = false;
  uint32_t operand = 0;        // else: index of the operand that is the immediate
  uint64_t add = 0, flip = 0;  // value := (value + add) ^ flip
};

// All mutants of the entry, in the order of its statements.
std::vector<Mutation> enumerate_mutations(const Program& program);

Result<std::shared_ptr<const Program>> apply_mutation(const Program& program,
                                                      const Mutation& mutation);

// "dual_gemm.ptx:311 (roles.cuh:88): drop: tcgen05.commit..."
std::string to_string(const Program& program, const Mutation& mutation);

enum class Fate : uint8_t {
  kNotExecuted,
  kWrongResult,
  kReported,
  kFault,
  kDeadlock,
  kSurvived,
  kInvalid
};
const char* name_of(Fate fate);

struct Trial {
  bool right = true;  // the result is right
  RunResult run;
  // For cases that do not say what is right: the result is then also right only when it is what
  // the unchanged kernel leaves with the same problem, schedule and seed.
  std::optional<Outputs> outputs = {};
};
using RunTrial = std::function<Trial(std::shared_ptr<const Program>, const Options&)>;

struct MutantResult {
  Mutation mutation;
  Fate fate = Fate::kSurvived;
  std::string detail;    // the first error, report or mismatch
  std::string schedule;  // under which it was seen
};

// What mutants' results are compared with, when trials have outputs.
struct Comparison {
  std::vector<std::string> buffers;  // compared, by name; none: what the case expects is
  // Those of them whose contents differ between schedules or seeds of the unchanged kernel, such as
  // sums by atomics in whatever order: there a mutant can be noticed for an order that it changed.
  std::vector<std::string> varying;
};

struct CampaignOptions {
  // Mutants that are known to be harmless: tried with one seed only.
  std::function<bool(const Mutation&)> may_survive = {};
  uint64_t seeds = 3;          // of the lazy and of the random schedule, each
  uint64_t max_mutants = 0;    // 0: all; else an even selection over the groups
  uint32_t ptx_line = 0;       // only the mutants of this line; 0: of all
  bool strict = false;         // warnings and advisories count: for a kernel that raises none
  uint64_t budget_factor = 4;  // warp instructions at most, as a multiple of the unchanged kernel's
  const std::atomic<bool>* stop = nullptr;  // as Options::stop: the campaign ends with what it has
  // Called once, when the unchanged kernel has been run.
  std::function<void(const Comparison&)> compared = {};
};

struct Campaign {
  uint64_t executed = 0, killed = 0;
  bool stopped = false;   // CampaignOptions::stop was set: mutants are missing
  uint64_t selected = 0;  // mutants that were to be tried
  std::vector<MutantResult> mutants;
};
// Runs the unchanged program first: an Error when it is not right and clean itself. A mutant is
// tried on one problem after the other, in every schedule, until it is noticed.
Result<Campaign> run_campaign(const std::shared_ptr<const Program>& program,
                              const std::vector<RunTrial>& problems, const CampaignOptions& options,
                              const std::function<void(const MutantResult&)>& progress = {});

}  // namespace ptxsim
