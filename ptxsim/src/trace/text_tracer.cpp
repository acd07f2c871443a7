#include "trace/text_tracer.hpp"

#include <fmt/format.h>

#include "machine/execution.hpp"
#include "printable.hpp"

namespace ptxsim {

void TextTracer::executed(const Execution& x, const Insn& insn, bool blocked) {
  const Dim3& id = x.cta.ctaid;
  out_ << fmt::format("{:>9} cta ({},{},{}) warp {:>2} lanes {:08x} {}{}\t{}\n",
                      x.machine.stats().warp_instructions, id[0], id[1], id[2], x.warp.index,
                      x.mask, blocked ? "waits " : "",
                      to_string(x.machine.place_of(insn.statement)),
                      printable(x.program().entry->statements[insn.statement].text));
}

}  // namespace ptxsim
