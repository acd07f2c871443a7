// Scales of prepared weights in shared memory: from rows to what the tensor core copies. Part of
// dual_gemm.cuh, which has the tables.
#pragma once

namespace dualgemm::cuda::sm100a_pair {

// The scales of one matrix in the rows lane, lane + 32, ... of a tile: of each row a word for each
// MMA step.
template <Config kCfg>
struct LaneScales {
  static constexpr int kGroups = (kCfg.tile_n + 31) / 32;  // of 32 rows: TMEM columns
  uint32_t words[kGroups][kMmaSteps];
};

template <Config kCfg>
DUALGEMM_DEVICE void load_scales(const Stage<kCfg>& stage, uint32_t lane, int matrix,
                                 LaneScales<kCfg>& scales) {
#pragma unroll
  for (int group = 0; group < LaneScales<kCfg>::kGroups; ++group) {
    const uint32_t row = 32 * group + lane;
    uint4 words = make_uint4(0, 0, 0, 0);  // behind a tile's last row: not read by the MMA
    if (row < kCfg.tile_n) {
      const UnitScales& unit = stage.sf_weights.as_loaded[row / kUnitCols];
      words = *reinterpret_cast<const uint4*>(unit.rows[matrix][row % kUnitCols]);
    }
    scales.words[group][0] = words.x, scales.words[group][1] = words.y;
    scales.words[group][2] = words.z, scales.words[group][3] = words.w;
  }
}

// The word of a group in a step, 0 where the tile has no such group.
template <Config kCfg>
DUALGEMM_DEVICE uint32_t word_of(const LaneScales<kCfg>& scales, int group, int step) {
  return group < LaneScales<kCfg>::kGroups ? scales.words[group][step] : 0;
}

// By a whole warp: the tile's scales as scale tiles, one for Gate and Up or one each, in the place
// in which they have arrived. Row r of a scale tile has the rows r, r + 32, ...
template <Config kCfg>
DUALGEMM_DEVICE void arrange_stage(Stage<kCfg>& stage, uint32_t lane) {
  LaneScales<kCfg> gate, up;
  load_scales<kCfg>(stage, lane, 0, gate);
  load_scales<kCfg>(stage, lane, 1, up);
  __syncwarp();
#pragma unroll
  for (int step = 0; step < kMmaSteps; ++step) {
    auto& tiles = stage.sf_weights.tiles[step];
    if constexpr (Budget<kCfg>::kScalesShareTile) {
      tiles[0][lane] = make_uint4(word_of(gate, 0, step), word_of(gate, 1, step),
                                  word_of(up, 0, step), word_of(up, 1, step));
    } else {
      tiles[0][lane] = make_uint4(word_of(gate, 0, step), word_of(gate, 1, step),
                                  word_of(gate, 2, step), word_of(gate, 3, step));
      tiles[1][lane] = make_uint4(word_of(up, 0, step), word_of(up, 1, step), word_of(up, 2, step),
                                  word_of(up, 3, step));
    }
  }
}

template <Config kCfg>
DUALGEMM_DEVICE sm100a::StageDescriptors describe_stage(const Stage<kCfg>& stage) {
  if constexpr (kCfg.prepared) {
    const auto rows = [](const void* operand, SmemStrides strides) {
      return smem_descriptor(ptx::shared_address(operand), strides, SmemSwizzle::k128B);
    };
    const auto scales = [](const void* tile) {
      return smem_descriptor(ptx::shared_address(tile), dualgemm::cuda::kScaleTileRows,
                             SmemSwizzle::kNone);
    };
    // Atoms of Gate and of Up follow each other in turns.
    constexpr SmemStrides kUnits{kSwizzledRows128B.leading_bytes, sizeof(UnitCodes)};
    constexpr int kLastTile = Budget<kCfg>::kWeightScaleTiles - 1;
    return {rows(stage.a, kSwizzledRows128B),     rows(stage.codes[0].rows[0], kUnits),
            rows(stage.codes[0].rows[1], kUnits), scales(stage.sf_a),
            scales(stage.sf_weights.tiles[0][0]), scales(stage.sf_weights.tiles[0][kLastTile])};
  } else {
    return sm100a::describe(stage);
  }
}

// Until the stage is there; prepared, warps of both CTAs have written in it.
template <Config kCfg>
DUALGEMM_DEVICE void wait_for_stage(const ptx::Barrier* full, uint32_t parity) {
  if constexpr (kCfg.prepared) {
    ptx::mbarrier_wait_parity_cluster(full, parity);
  } else {
    ptx::mbarrier_wait_parity(full, parity);
  }
}

}  // namespace dualgemm::cuda::sm100a_pair
