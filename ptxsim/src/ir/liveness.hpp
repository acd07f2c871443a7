// Which registers of a decoded program are live: may be read before they are written again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "ir/control_flow.hpp"
#include "ptxsim/ir/program.hpp"

namespace ptxsim {

inline constexpr uint32_t kLine = 64;  // registers begin at multiples of it (ir/module.hpp)

class LineSet {
 public:
  explicit LineSet(size_t lines) : words_((lines + 63) / 64) {}
  void add(size_t line) { words_[line / 64] |= uint64_t{1} << line % 64; }
  void remove(size_t line) { words_[line / 64] &= ~(uint64_t{1} << line % 64); }
  bool has(size_t line) const { return (words_[line / 64] >> line % 64 & 1) != 0; }
  // Whether any was new.
  bool add_all(const LineSet& other) {
    uint64_t added = 0;
    for (size_t i = 0; i < words_.size(); ++i) {
      added |= other.words_[i] & ~words_[i];
      words_[i] |= other.words_[i];
    }
    return added != 0;
  }

 private:
  std::vector<uint64_t> words_;
};

// Straight pieces of the text and the registers that are live before each (backward data flow).
class Liveness {
 public:
  explicit Liveness(const Program& program)
      : program_(program), lines_(program.register_bytes / kLine) {
    find_pieces();
    for (bool changes = true; changes;) {
      changes = false;
      for (size_t p = pieces_.size(); p-- > 0;) changes |= update(p);
    }
  }
  const LineSet& at_start() const { return pieces_[piece_of_[program_.start]].live; }
  // Calls see(live) with the registers that are live before each statement.
  template <class See>
  void at_each(See&& see) const {
    for (size_t p = 0; p < pieces_.size(); ++p) {
      LineSet live = behind(p);
      walk_back(pieces_[p], live, see);
    }
  }

 private:
  struct Piece {
    uint32_t begin, end;
    std::vector<uint32_t> labels;
    bool falls_through;
    LineSet live;
  };

  void find_pieces() {
    const auto count = static_cast<uint32_t>(program_.insns.size());
    std::vector<bool> begins(count + 1, false);
    begins[0] = true;
    for (uint32_t i = 0; i < count; ++i) {
      const NextStatements next = next_of(program_, i);
      for (const uint32_t label : next.labels) begins[label] = true;
      if (!next.labels.empty() || !next.falls_through) begins[i + 1] = true;
    }
    piece_of_.resize(count);
    for (uint32_t i = 0; i < count; ++i) {
      if (begins[i]) pieces_.push_back({i, i, {}, true, LineSet(lines_)});
      piece_of_[i] = static_cast<uint32_t>(pieces_.size()) - 1;
      pieces_.back().end = i + 1;
    }
    for (Piece& piece : pieces_) {
      NextStatements next = next_of(program_, piece.end - 1);
      piece.labels = std::move(next.labels);
      piece.falls_through = next.falls_through;
    }
  }

  LineSet behind(size_t p) const {
    const Piece& piece = pieces_[p];
    LineSet live(lines_);
    if (piece.falls_through && p + 1 < pieces_.size()) live.add_all(pieces_[p + 1].live);
    for (const uint32_t label : piece.labels)
      if (label < piece_of_.size()) live.add_all(pieces_[piece_of_[label]].live);
    return live;
  }

  // Whether more is live before piece `p` than was known.
  bool update(size_t p) {
    Piece& piece = pieces_[p];
    LineSet live = behind(p);
    walk_back(piece, live, [](const LineSet&) {});
    return piece.live.add_all(live);
  }

  // From what is live behind the piece to what is before it; `see` is shown what lies between.
  template <class See>
  void walk_back(const Piece& piece, LineSet& live, See&& see) const {
    for (uint32_t i = piece.end; i-- > piece.begin;) {
      const Insn& insn = program_.insns[i];
      // A guarded statement may write nothing, and one that works on registers later (wgmma's D)
      // reads what it writes.
      const bool writes_surely = !insn.guard.present() && !insn.owns_registers;
      for (const RegisterUse& use : program_.uses_of(insn))
        if (use.is_write && writes_surely) live.remove(use.at / kLine);
      for (const RegisterUse& use : program_.uses_of(insn))
        if (!use.is_write || insn.owns_registers) live.add(use.at / kLine);
      see(live);
    }
  }

  const Program& program_;
  size_t lines_;
  std::vector<Piece> pieces_;
  std::vector<uint32_t> piece_of_;  // by statement
};

}  // namespace ptxsim
