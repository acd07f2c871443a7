// A whole gated MLP against its definition in double precision.
#pragma once

#include "dualgemm/mlp.hpp"
#include "tools/verify/check.hpp"

namespace dualgemm::verify {

// Y of `buffers`, all of them host memory, with the weights themselves (prepared ones are not
// looked at); a residual as it was before the run. X is what the library's quantiser makes of it, H
// what the definition gives, stored as the problem says. gate_up, down: what computed the two
// products.
//
// An element of Y may differ from the definition by as much as
// - the bound of the second product (docs/numerics.md) for any H that may have been stored,
// - and |alpha| * the sum over j of |Down[j]| * how far the stored H[j] may lie from the
//   definition's: the interval of the first product, through the rounding to H's type. For NVFP4
//   these are the codes of both ends of the interval, under every scale that the block may have
//   got; transformed, as far as their sum can move a value, and quantised by row, with every scale
//   that the row may have got.
// With top_k a token's sum may differ by its weights times that of its rows, rounded to y.type, and
// by the roundings of the sum.
Expected<CheckReport> check_mlp(const MlpProblem& problem, const MlpBuffers& buffers, Isa gate_up,
                                Isa down);

}  // namespace dualgemm::verify
