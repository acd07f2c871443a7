#include "timing/sass_costs.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>

namespace ptxsim::timing {
namespace {

// kHigh: as two of kMultiply.
enum class Pipe : uint8_t { kNone, kAlu, kMultiply, kHigh, kFloat, kDouble, kFunction, kExchange };

struct PipeRow {
  std::string_view prefix;
  Pipe pipe;
};
// The first that an opcode begins with counts. kNone: takes a slot and no unit of these. Units of
// an SM's quarter on sm_80 to sm_100: 16 lanes for kAlu and kMultiply, twice 16 for kFloat, of
// which kMultiply has one half (CUDA C++ Programming Guide, arithmetic throughput).
constexpr PipeRow kPipes[] = {
    {"LDC", Pipe::kNone},       {"LDGDEPBAR", Pipe::kNone}, {"LD", Pipe::kExchange},
    {"ST", Pipe::kExchange},    {"ATOM", Pipe::kExchange},  {"RED.", Pipe::kExchange},
    {"REDG", Pipe::kExchange},  {"BAR", Pipe::kExchange},   {"SHFL", Pipe::kExchange},
    {"HMMA", Pipe::kExchange},  {"IMMA", Pipe::kExchange},  {"QMMA", Pipe::kExchange},
    {"OMMA", Pipe::kExchange},  {"DMMA", Pipe::kExchange},  {"HGMMA", Pipe::kExchange},
    {"FFMA", Pipe::kFloat},     {"FADD", Pipe::kFloat},     {"FMUL", Pipe::kFloat},
    {"VIADD", Pipe::kFloat},    {"HFMA2", Pipe::kMultiply}, {"HADD2", Pipe::kMultiply},
    {"HMUL2", Pipe::kMultiply}, {"IMAD.HI", Pipe::kHigh},   {"IMAD", Pipe::kMultiply},
    {"IDP", Pipe::kMultiply},   {"DADD", Pipe::kDouble},    {"DMUL", Pipe::kDouble},
    {"DFMA", Pipe::kDouble},    {"DSETP", Pipe::kDouble},   {"MUFU", Pipe::kFunction},
    {"FCHK", Pipe::kFunction},  {"I2FP", Pipe::kAlu},       {"F2FP", Pipe::kAlu},
    {"F2I", Pipe::kFunction},   {"I2F", Pipe::kFunction},   {"F2F", Pipe::kFunction},
    {"FRND", Pipe::kFunction},  {"POPC", Pipe::kFunction},  {"FLO", Pipe::kFunction},
    {"BREV", Pipe::kFunction},  {"BRA", Pipe::kNone},       {"BRX", Pipe::kNone},
    {"BSSY", Pipe::kNone},      {"BSYNC", Pipe::kNone},     {"CALL", Pipe::kNone},
    {"RET", Pipe::kNone},       {"EXIT", Pipe::kNone},      {"S2", Pipe::kNone},
    {"CS2R", Pipe::kNone},      {"U", Pipe::kNone},         {"R2UR", Pipe::kNone},
    {"WARPSYNC", Pipe::kNone},  {"MEMBAR", Pipe::kNone},    {"DEPBAR", Pipe::kNone},
    {"SYNCS", Pipe::kExchange},
};

Pipe pipe_of(const SassInsn& insn) {
  for (const PipeRow& row : kPipes)
    if (std::string_view(insn.opcode).starts_with(row.prefix)) return row.pipe;
  return Pipe::kAlu;
}

struct LineCount {
  double issued = 0, alu = 0, multiply = 0, floats = 0, doubles = 0, functions = 0, exchanges = 0;
  void add(Pipe pipe) {
    issued += 1;
    alu += pipe == Pipe::kAlu;
    multiply += pipe == Pipe::kMultiply ? 1 : pipe == Pipe::kHigh ? 2 : 0;
    floats += pipe == Pipe::kFloat;
    doubles += pipe == Pipe::kDouble;
    functions += pipe == Pipe::kFunction;
    exchanges += pipe == Pipe::kExchange;
  }
  LineCount& operator+=(const LineCount& more) {
    issued += more.issued, alu += more.alu, multiply += more.multiply, floats += more.floats;
    doubles += more.doubles, functions += more.functions, exchanges += more.exchanges;
    return *this;
  }
};

// A jump forward over a call: what lies between is a slow path.
std::vector<bool> slow_paths(const SassSection& section) {
  std::vector<bool> slow(section.insns.size());
  for (size_t i = 0; i < section.own; ++i) {
    const SassInsn& jump = section.insns[i];
    const auto target = static_cast<size_t>(std::max<int64_t>(0, jump.target));
    if (!jump.is_guarded || !jump.opcode.starts_with("BRA") || target <= i) continue;
    const auto begin = section.insns.begin() + static_cast<std::ptrdiff_t>(i + 1);
    const auto end =
        section.insns.begin() + static_cast<std::ptrdiff_t>(std::min(target, section.own));
    const bool is_of_one =
        std::all_of(begin, end, [&](const SassInsn& insn) { return insn.line == jump.line; });
    const bool calls = std::any_of(
        begin, end, [](const SassInsn& insn) { return insn.opcode.starts_with("CALL"); });
    if (is_of_one && calls)
      std::fill(slow.begin() + (begin - section.insns.begin()),
                slow.begin() + (end - section.insns.begin()), true);
  }
  return slow;
}

std::map<int, LineCount> counts_of(const Program& program, std::span<const SassSection> sections) {
  std::map<int, LineCount> counts;
  for (const SassSection& section : sections) {
    const std::vector<Entry>& entries = program.module->entries;
    const bool is_of_other = section.name != program.entry->name &&
                             std::any_of(entries.begin(), entries.end(), [&](const Entry& entry) {
                               return entry.name == section.name;
                             });
    if (is_of_other) continue;
    const std::vector<bool> slow = slow_paths(section);
    for (size_t i = 0; i < section.own; ++i) {
      const SassInsn& insn = section.insns[i];
      const bool is_padding =
          insn.opcode == "NOP" || (insn.target == static_cast<int64_t>(i) && !insn.is_guarded);
      if (!is_padding && !slow[i]) counts[insn.line].add(pipe_of(insn));
    }
  }
  return counts;
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}
bool has(const Statement& s, std::initializer_list<std::string_view> words) {
  return std::any_of(s.modifiers.begin(), s.modifiers.end(),
                     [&](const std::string& modifier) { return is_one_of(modifier, words); });
}

// Copies of a statement that is one instruction in each; 0: it is none such.
struct Copies {
  double of_memory = 0, of_floats = 0;
};
Copies copies_of(const Statement& s, const LineCount& count) {
  Copies copies;
  if (is_one_of(s.root, {"ld", "st", "atom", "red", "bar", "barrier", "shfl", "mma", "ldmatrix"}) &&
      !has(s, {"param", "const"}))
    copies.of_memory = count.exchanges;
  if (is_one_of(s.root, {"add", "sub", "mul", "fma", "mad"}) && has(s, {"f32", "f64"}))
    copies.of_floats = count.floats + count.doubles;
  return copies;
}

// Its operands decide between instructions and a subroutine when it runs.
bool takes_a_path(const Statement& s) {
  return is_one_of(s.root, {"div", "rem"}) && has(s, {"s64", "u64"});
}

class Costs {
 public:
  Costs(const Program& program, std::map<int, LineCount> counts)
      : program_(program), counts_(std::move(counts)), costs_(program.insns.size()) {}

  std::vector<std::optional<SassCost>> run() {
    const std::vector<Statement>& statements = program_.entry->statements;
    std::vector<bool> begins(statements.size() + 1);
    begins[0] = begins[statements.size()] = true;
    for (size_t i = 0; i < statements.size(); ++i)
      if (program_.traits[i].has(Trait::kJumps)) {
        begins[i + 1] = true;
        if (program_.insns[i].target < statements.size()) begins[program_.insns[i].target] = true;
      }
    for (size_t first = 0; first < statements.size();) {
      size_t end = first + 1;
      while (!begins[end]) ++end;
      straight(first, end);
      first = end;
    }
    return std::move(costs_);
  }

 private:
  LineCount count(size_t i) const {
    const auto found = counts_.find(program_.entry->statements[i].line);
    return found == counts_.end() ? LineCount{} : found->second;
  }

  // Statements that are executed together. Their instructions take as long as the slots, or as the
  // unit that has most to do.
  void straight(size_t first, size_t end) {
    LineCount all;
    Copies copies;
    for (size_t i = first; i < end; ++i) {
      const LineCount c = count(i);
      all += c;
      const Copies own = copies_of(program_.entry->statements[i], c);
      copies.of_memory = std::max(copies.of_memory, own.of_memory);
      copies.of_floats = std::max(copies.of_floats, own.of_floats);
    }
    if (all.issued == 0) return;
    const double number = copies.of_memory > 0   ? copies.of_memory
                          : copies.of_floats > 0 ? copies.of_floats
                                                 : usual_count(first, end);
    const double longest =
        std::max({all.issued, 2 * all.alu, 2 * all.multiply, all.floats + all.multiply});
    for (size_t i = first; i < end; ++i) {
      const LineCount c = count(i);
      if (takes_a_path(program_.entry->statements[i])) continue;
      costs_[i] = SassCost{c.issued / number * longest / all.issued, c.functions / number,
                           c.doubles / number};
    }
  }

  // That a quarter of the statements with any instruction have at most: some are several, and a few
  // were taken out of the loop.
  double usual_count(size_t first, size_t end) const {
    std::vector<double> issued;
    for (size_t i = first; i < end; ++i)
      if (const double of_it = count(i).issued; of_it > 0) issued.push_back(of_it);
    std::sort(issued.begin(), issued.end());
    return issued[issued.size() / 4];
  }

  const Program& program_;
  std::map<int, LineCount> counts_;
  std::vector<std::optional<SassCost>> costs_;
};

}  // namespace

std::vector<std::optional<SassCost>> costs_of_sass(const Program& program,
                                                   std::span<const SassSection> sections) {
  return Costs(program, counts_of(program, sections)).run();
}

}  // namespace ptxsim::timing
