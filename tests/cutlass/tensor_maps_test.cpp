// What our sm_100a kernels' tensor maps make the TMA unit load, byte by byte against those that
// CUTLASS encodes for the same operands: its kernels nvfp4_1cta and nvfp4_2cta, case "range".
// Swizzle, interleave and fill must be the same, and so must the address of every byte of a stage,
// which extents and strides decide. L2 promotion is a hint, and the element type of codes may
// differ: ours are bytes, CUTLASS's pairs of them, and both land packed.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "core/problem.hpp"
#include "cuda/kernels/blackwell/params.hpp"
#include "cuda/kernels/sm100a/launch.hpp"
#include "cuda/kernels/sm100a_pair/launch.hpp"
#include "ptxsim/tensor_map.hpp"

namespace {

using namespace dualgemm;

constexpr int kM = 136, kN = 132, kK = 1344, kL = 2, kLda = kK + 64;
constexpr uint64_t kOutside = ~uint64_t{0};  // a byte that the hardware fills

std::vector<char> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// By address, as the kernel's parameters hold them.
std::map<uint64_t, ptxsim::TensorMap> maps_in(const void* params, size_t bytes) {
  std::map<uint64_t, ptxsim::TensorMap> maps;
  for (size_t at = 0; at + 128 <= bytes; at += 64) {
    ptxsim::TensorMapRecord record;
    std::memcpy(&record, static_cast<const char*>(params) + at, sizeof record);
    auto map = ptxsim::decode_record(record);
    if (map.ok() && ptxsim::encode_tensor_map(*map).ok()) maps.emplace(map->address, *map);
  }
  return maps;
}

// The global address of every byte of a box, in the order in which it lands in shared memory.
// `begin`: the box's first element, innermost first.
std::vector<uint64_t> box_bytes(const ptxsim::TensorMap& map, std::array<int64_t, 5> begin) {
  const auto bits = static_cast<int64_t>(ptxsim::element_bits(map.type));
  std::vector<uint64_t> addresses;
  std::array<int64_t, 5> i{};
  for (i[4] = 0; i[4] < map.box[4]; ++i[4])
    for (i[3] = 0; i[3] < map.box[3]; ++i[3])
      for (i[2] = 0; i[2] < map.box[2]; ++i[2])
        for (i[1] = 0; i[1] < map.box[1]; ++i[1]) {
          uint64_t row = map.address;
          bool inside = true;
          for (size_t d = 1; d < map.rank; ++d) {
            const int64_t at = begin[d] + i[d];
            inside = inside && at >= 0 && at < static_cast<int64_t>(map.extents[d]);
            row += static_cast<uint64_t>(at) * map.stride_bytes[d - 1];
          }
          const int64_t first = begin[0] * bits / 8, count = map.box[0] * bits / 8,
                        end = static_cast<int64_t>(map.extents[0]) * bits / 8;
          for (int64_t byte = first; byte < first + count; ++byte) {
            addresses.push_back(
                inside && byte >= 0 && byte < end ? row + static_cast<uint64_t>(byte) : kOutside);
          }
        }
  return addresses;
}

struct Maps {
  std::map<uint64_t, ptxsim::TensorMap> cutlass, ours;
};

// Made-up device addresses of the case: a, b, sfa, sfb.
uint64_t operand(int index) { return 0x10'0000'0000 + static_cast<uint64_t>(index) * 0x1000'0000; }

Maps both_maps() {
  Maps maps;
  const auto theirs =
      read_file(std::filesystem::path(DUALGEMM_CUTLASS_CASES) / "nvfp4_1cta/range/params.bin");
  maps.cutlass = maps_in(theirs.data(), theirs.size());

  Problem problem{.m = kM, .n = kN, .k = kK, .l = kL};
  problem.a.ld = kLda;
  for (Matrix* matrix : {&problem.a, &problem.gate, &problem.up}) {
    matrix->scale_layout = ScaleLayout::kSwizzled128x4;
  }
  problem.d.type = DataType::kF32;
  Buffers buffers;
  const auto at = [](int index) { return reinterpret_cast<void*>(operand(index)); };
  buffers.a = at(0);
  buffers.gate = buffers.up = at(1);
  buffers.a_scales = static_cast<const uint8_t*>(at(2));
  buffers.gate_scales = buffers.up_scales = static_cast<const uint8_t*>(at(3));
  buffers.d = at(5);
  const auto launches =
      cuda::sm100a::build_launches(core::resolve(problem), buffers, {}, nullptr,
                                   *cuda::sm100a::find_instance(128, DataType::kF32),
                                   reinterpret_cast<cuda::EncodeTiled>(&ptxsim::encode_tiled_abi));
  EXPECT_TRUE(launches.ok());
  if (!launches.ok() || launches->size() != 1) return maps;  // 1: no operand needed a copy
  const cuda::KernelLaunch& launch = launches->front();
  maps.ours = maps_in(launch.params.data(), launch.param_bytes);
  return maps;
}

// Every box of the operand: the same bytes in the same order, and the same swizzle.
template <class TheirBegin, class OurBegin>
void compare_operand(int index, int rows, const TheirBegin& their_begin,
                     const OurBegin& our_begin) {
  const Maps maps = both_maps();
  const auto theirs = maps.cutlass.find(operand(index)), ours = maps.ours.find(operand(index));
  ASSERT_NE(theirs, maps.cutlass.end());
  ASSERT_NE(ours, maps.ours.end());
  EXPECT_EQ(theirs->second.swizzle, ours->second.swizzle);
  EXPECT_EQ(theirs->second.interleave, ours->second.interleave);
  EXPECT_EQ(theirs->second.fill, ours->second.fill);
  for (int l = 0; l < kL; ++l) {
    for (int tile = 0; tile * 128 < rows; ++tile) {
      for (int k_tile = 0; k_tile * 256 < kK; ++k_tile) {
        EXPECT_EQ(box_bytes(theirs->second, their_begin(k_tile, tile, l)),
                  box_bytes(ours->second, our_begin(k_tile, tile, l)))
            << "k tile " << k_tile << " tile " << tile << " batch " << l;
      }
    }
  }
}

using Begin = std::array<int64_t, 5>;

TEST(TensorMaps, OperandsAreCutlasss) {
  for (const auto& [index, rows] : {std::pair{0, kM}, std::pair{1, kN}}) {
    compare_operand(
        index, rows,
        [](int k, int tile, int l) {
          return Begin{k * 256, tile * 128, l};
        },
        [](int k, int tile, int l) {
          return Begin{k * 128, tile * 128, l};
        });
  }
}

TEST(TensorMaps, ScalesAreCutlasss) {
  for (const auto& [index, rows] : {std::pair{2, kM}, std::pair{3, kN}}) {
    compare_operand(
        index, rows,
        [](int k, int tile, int l) {
          return Begin{0, k * 4, tile, l};
        },
        [](int k, int tile, int l) {
          return Begin{0, k * 4, tile, l};
        });
  }
}

// The kernel of pairs beside CUTLASS's. A cluster of CUTLASS's has 4 x 2 CTAs, which load parts of
// what they share and multicast it: its boxes are halves and quarters of a CTA's stage.
namespace pair {

constexpr int kM = 264, kN = 136, kK = 1312;  // k = 32 mod 64: our host reads copies of the scales
constexpr int kLdWeight = kK + 64;            // of Gate and Up
constexpr int kTileN = 128;                   // CUTLASS's

Maps both_maps(bool gate_is_theirs) {
  Maps maps;
  const auto theirs =
      read_file(std::filesystem::path(DUALGEMM_CUTLASS_CASES) / "nvfp4_2cta/range/params.bin");
  maps.cutlass = maps_in(theirs.data(), theirs.size());

  Problem problem{.m = kM, .n = kN, .k = kK};
  problem.gate.ld = problem.up.ld = kLdWeight;
  for (Matrix* matrix : {&problem.a, &problem.gate, &problem.up})
    matrix->scale_layout = ScaleLayout::kSwizzled128x4;
  problem.d.type = DataType::kF32;
  // The weight that CUTLASS's B is not, and every source of a copy, lie elsewhere.
  const int gate = gate_is_theirs ? 1 : 6, up = gate_is_theirs ? 6 : 1;
  const auto scales_of = [](int weight) { return weight + 2; };
  Buffers buffers;
  const auto at = [](int index) { return reinterpret_cast<uint8_t*>(operand(index)); };
  buffers.a = at(0), buffers.gate = at(gate), buffers.up = at(up), buffers.d = at(5);
  buffers.a_scales = at(9), buffers.gate_scales = at(10), buffers.up_scales = at(11);
  cuda::blackwell::Copies copies;  // offsets from a workspace at address 0
  copies.sf_a = static_cast<int64_t>(operand(2));
  copies.sf_gate = static_cast<int64_t>(operand(scales_of(gate)));
  copies.sf_up = static_cast<int64_t>(operand(scales_of(up)));
  const auto launches = cuda::sm100a_pair::build_launches(
      core::resolve(problem), buffers, copies, nullptr,
      *cuda::sm100a_pair::find_instance(kTileN, DataType::kF32),
      reinterpret_cast<cuda::EncodeTiled>(&ptxsim::encode_tiled_abi));
  EXPECT_TRUE(launches.ok()) << launches.status().message();
  if (!launches.ok()) return maps;
  EXPECT_EQ(launches->size(), 2u) << "one copy of three operands' scales, and the kernel";
  maps.ours = maps_in(launches->back().params.data(), launches->back().param_bytes);
  return maps;
}

// The bytes of `count` rows or scale tiles (dimension 1), a box behind the other.
std::vector<uint64_t> boxes_bytes(const ptxsim::TensorMap& map, Begin begin, int64_t count) {
  std::vector<uint64_t> addresses;
  EXPECT_EQ(count % map.box[1], 0);
  for (const int64_t end = begin[1] + count; begin[1] < end; begin[1] += map.box[1]) {
    const std::vector<uint64_t> box = box_bytes(map, begin);
    addresses.insert(addresses.end(), box.begin(), box.end());
  }
  return addresses;
}

// One operand: dimension 1 has `count` of a stage, from begin(k tile, tile, rank) on.
template <class Begins>
void compare(const Maps& maps, int index, int tiles, int64_t count, int elements_a_byte,
             const Begins& begins) {
  SCOPED_TRACE(::testing::Message() << "operand " << index);
  const auto theirs = maps.cutlass.find(operand(index)), ours = maps.ours.find(operand(index));
  ASSERT_NE(theirs, maps.cutlass.end());
  ASSERT_NE(ours, maps.ours.end());
  EXPECT_EQ(theirs->second.swizzle, ours->second.swizzle);
  EXPECT_EQ(theirs->second.interleave, ours->second.interleave);
  EXPECT_EQ(theirs->second.fill, ours->second.fill);
  EXPECT_EQ(ours->second.box[1], count) << "a stage's rows by one copy";
  for (int tile = 0; tile < tiles; ++tile) {
    for (int rank = 0; rank < 2; ++rank) {
      for (int k_tile = 0; k_tile * 256 < kK; ++k_tile) {
        const Begin begin = begins(k_tile, tile, rank);
        Begin their_begin = begin;
        their_begin[0] *= elements_a_byte;
        EXPECT_EQ(boxes_bytes(theirs->second, their_begin, count),
                  boxes_bytes(ours->second, begin, count))
            << "k tile " << k_tile << " tile " << tile << " rank " << rank;
      }
    }
  }
}

TEST(PairTensorMaps, OperandsAreThoseOfCutlasssPair) {
  for (const bool gate : {true, false}) {
    const Maps maps = both_maps(gate);
    compare(maps, 0, 2, 128, 2, [](int k, int tile, int rank) {
      return Begin{k * 128, tile * 256 + rank * 128};
    });
    compare(maps, 1, 2, 64, 2, [](int k, int tile, int rank) {
      return Begin{k * 128, tile * kTileN + rank * 64};
    });
  }
}

// A's are those of a CTA's own rows, a weight's those of the whole tile in both.
TEST(PairTensorMaps, ScalesAreThoseOfCutlasssPair) {
  for (const bool gate : {true, false}) {
    const Maps maps = both_maps(gate);
    compare(maps, 2, 2, 4, 1, [](int k, int tile, int rank) {
      return Begin{0, k * 4, tile * 2 + rank};
    });
    compare(maps, 3, 2, 4, 1, [](int k, int tile, int) { return Begin{0, k * 4, tile}; });
  }
}

}  // namespace pair

}  // namespace
