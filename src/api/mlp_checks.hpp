// The rules of a gated MLP. Errors name the fields of MlpProblem and MlpBuffers, also those that
// the steps report, which call the same things by other names.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "dualgemm/mlp.hpp"

namespace dualgemm::api {

struct Renamed {
  std::string_view from, to;
};
// The same error with the words of its argument renamed; a word ends at anything but a letter or a
// digit: "a.ld" and "a_scales" both have the word "a".
Status renamed(const Status& status, std::initializer_list<Renamed> words);

// Everything about the problem that needs no device.
Status check_problem(const MlpProblem& problem);

// Nulls, alignment, numbers, and Y and the workspace apart from everything else. Reads no array.
// prepared: whether the plans use prepared weights.
Status check_arrays(const MlpProblem& problem, const MlpBuffers& buffers, bool prepared,
                    const void* workspace, int64_t workspace_bytes);

// Checks which rows belong to which expert; reads the arrays that say so, which are host memory.
Status check_experts(const MlpProblem& problem, const MlpBuffers& buffers);

// Does all of it belong to the current device of that kind?
Status check_places(DeviceKind device, const MlpProblem& problem, const MlpBuffers& buffers,
                    const void* workspace);

}  // namespace dualgemm::api
