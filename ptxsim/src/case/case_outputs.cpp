#include "case/case_outputs.hpp"

#include <algorithm>

namespace ptxsim {

bool expects_results(const Case& description) {
  return !description.matrices.empty() ||
         std::any_of(description.buffers.begin(), description.buffers.end(),
                     [](const CaseBuffer& buffer) { return !buffer.expect.empty(); });
}

Outputs outputs_of(const Case& description, CaseResult& result) {
  Outputs outputs;
  for (const CaseBuffer& before : description.buffers) {
    const GlobalBuffer* after = result.memory.find(before.name);
    if (after == nullptr) continue;
    const bool wrote =
        std::find(after->written.begin(), after->written.end(), true) != after->written.end();
    const bool changed = before.initialized ? after->data != before.data : wrote;
    outputs.buffers.push_back({before.name, after->data, after->written, changed});
  }
  return outputs;
}

}  // namespace ptxsim
