// Sees every executed statement: a commit log.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

namespace ptxsim {

class Machine;
struct Warp;
struct Insn;

class Tracer {
 public:
  virtual ~Tracer() = default;
  virtual void executed(const Machine& machine, const Warp& warp, const Insn& insn, uint32_t mask,
                        bool blocked) = 0;
};

// One line a statement: step, CTA, warp, lanes, place, text; blocked statements once each time they
// are tried.
class TextTracer final : public Tracer {
 public:
  explicit TextTracer(std::ostream& out) : out_(out) {}
  void executed(const Machine& machine, const Warp& warp, const Insn& insn, uint32_t mask,
                bool blocked) override;

 private:
  std::ostream& out_;
};

}  // namespace ptxsim
