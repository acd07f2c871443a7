#include "tools/cli/print/written_json.hpp"

namespace dualgemm::cli {
namespace {

template <class Enum>
Json name_or_null(const std::optional<Enum>& value) {
  return value ? Json(name_of(*value)) : Json(nullptr);
}

}  // namespace

Json written_json(const MakeLayerCommand& command) {
  return {{"out", command.out},
          {"activations", command.activations.empty() ? Json(nullptr) : Json(command.activations)},
          {"prefix", command.prefix},
          {"m", command.m},
          {"n", command.n},
          {"k", command.k},
          {"type", name_of(command.type)},
          {"stacked", command.stacked},
          {"mlp", command.mlp},
          {"experts", command.experts},
          {"seed", command.seed},
          {"build", provenance()}};
}

// null: unchanged.
Json written_json(const ConvertCommand& command) {
  return {{"input", command.input},
          {"out", command.out},
          {"convention", name_or_null(command.convention)},
          {"scale_layout", name_or_null(command.scale_layout)},
          {"nibble_order", name_or_null(command.nibble_order)},
          {"build", provenance()}};
}

}  // namespace dualgemm::cli
