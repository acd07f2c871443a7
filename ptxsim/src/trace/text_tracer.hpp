// A commit log: one line a statement: step, CTA, warp, lanes, place, text; blocked statements once
// each time they are tried.
#pragma once

#include <ostream>

#include "ptxsim/machine/observer.hpp"

namespace ptxsim {

class TextTracer final : public Observer {
 public:
  explicit TextTracer(std::ostream& out) : out_(out) {}
  bool wants_statements() const override { return true; }
  void executed(const Execution& x, const Insn& insn, bool blocked) override;

 private:
  std::ostream& out_;
};

}  // namespace ptxsim
