// The error of every reader for bytes that break their format.
#pragma once

#include <string>
#include <utility>

#include "dualgemm/status.hpp"

namespace dualgemm::checkpoint {

// `where`: the file, and what in it; "weights.gguf, tensor 'blk.0.ffn_up.weight'".
inline Status corrupt(std::string where, std::string observed, std::string rule) {
  return Status::error(StatusCode::kCorruptFile, std::move(where), std::move(observed),
                       std::move(rule));
}

}  // namespace dualgemm::checkpoint
