// The launches of a file that scripts/make_submission writes.
#pragma once

#include <string>

#include "cuda/runtime/launch_value.hpp"
#include "cuda/runtime/tensor_map.hpp"
#include "dualgemm/types.hpp"
#include "kernels/submission/probe.hpp"

namespace dualgemm::test {

// `name`: sm90a or sm100a. What its host part makes of a call on a GPU of `num_sms` SMs.
ProbeAnswer submitted(const std::string& name, const Problem& problem, const Buffers& buffers,
                      int num_sms, void* workspace, cuda::EncodeTiled encode_tiled);

struct Extents {
  int64_t m, n, k, l = 1;
};
inline Problem problem_of(const Extents& extents) {
  Problem problem{.m = extents.m, .n = extents.n, .k = extents.k, .l = extents.l};
  problem.a.scale_layout = problem.gate.scale_layout = problem.up.scale_layout =
      ScaleLayout::kSwizzled128x4;
  return problem;
}

// The challenge's, those that are timed last.
inline constexpr Extents kChallenge[] = {
    {1536, 512, 7168},  {256, 512, 256},   {1536, 512, 7168}, {3072, 1024, 1536}, {7168, 1024, 256},
    {7168, 2304, 2048}, {4608, 384, 7168}, {7168, 384, 2304}, {512, 768, 7168},   {4096, 768, 512},
    {256, 4096, 7168},  {512, 4096, 7168}, {256, 3072, 4096}, {512, 3072, 7168}};

}  // namespace dualgemm::test
