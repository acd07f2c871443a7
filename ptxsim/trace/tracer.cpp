#include "ptxsim/trace/tracer.hpp"

#include <fmt/format.h>

#include "ptxsim/machine/execution.hpp"

namespace ptxsim {

void TextTracer::executed(const Machine& machine, const Warp& warp, const Insn& insn, uint32_t mask,
                          bool blocked) {
  const Place place = machine.place_of(insn.statement);
  const Dim3& id = warp.cta->ctaid;
  out_ << fmt::format("{:>9} cta ({},{},{}) warp {:>2} lanes {:08x} {}{}\t{}\n",
                      machine.stats().warp_instructions, id[0], id[1], id[2], warp.index, mask,
                      blocked ? "waits " : "", to_string(place),
                      machine.program().entry->statements[insn.statement].text);
}

}  // namespace ptxsim
