#include "insn/registry.hpp"

#include <algorithm>
#include <map>
#include <string_view>

namespace ptxsim {
namespace {

std::map<std::string_view, const Decoder*> all_decoders() {
  std::map<std::string_view, const Decoder*> decoders;
  for (auto family : {decoders_move,        decoders_integer, decoders_float,     decoders_convert,
                      decoders_compare,     decoders_control, decoders_call,      decoders_memory,
                      decoders_matrix_move, decoders_warp,    decoders_barrier,   decoders_fence,
                      decoders_mbarrier,    decoders_copy,    decoders_tensormap, decoders_clc,
                      decoders_tcgen05,     decoders_wgmma,   decoders_mma,       decoders_wmma,
                      decoders_image}) {
    for (const Decoder& decoder : family()) decoders.emplace(decoder.root, &decoder);
  }
  return decoders;
}

const std::map<std::string_view, const Decoder*>& by_root() {
  static const std::map<std::string_view, const Decoder*> all = all_decoders();
  return all;
}

}  // namespace

const Decoder* find_decoder(std::string_view root) {
  const auto found = by_root().find(root);
  return found == by_root().end() ? nullptr : found->second;
}

const Traits& Decoder::traits_of(const Statement& statement) const {
  const auto has = [&](std::string_view modifier) {
    return modifier.empty() || std::find(statement.modifiers.begin(), statement.modifiers.end(),
                                         modifier) != statement.modifiers.end();
  };
  for (auto form = forms.rbegin(); form != forms.rend(); ++form)
    if (has(form->modifiers[0]) && has(form->modifiers[1])) return form->traits;
  return traits;
}

Traits traits_of(const Statement& statement) {
  const Decoder* decoder = find_decoder(statement.root);
  return decoder == nullptr ? Traits() : decoder->traits_of(statement);
}

std::vector<std::string_view> decoded_roots() {
  std::vector<std::string_view> roots;
  for (const auto& [root, decoder] : by_root()) roots.push_back(root);
  return roots;
}

}  // namespace ptxsim
