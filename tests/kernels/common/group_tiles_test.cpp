// The table of tiles that the kernel makes, against a plain loop over the experts.
#include "cuda/kernels/common/group_tiles.hpp"

#include <cstring>

#include "core/scale_padding.hpp"
#include "kernels/simulation/simulation.hpp"
#include "support/grouped.hpp"

namespace dualgemm::test {
namespace {

using cuda::GroupTile;

// The rows of each expert; what cannot be is cut.
struct Rows {
  int64_t begin, end;
};
std::vector<Rows> rows_of(const Problem& p, const std::vector<int32_t>& experts) {
  const std::vector<int32_t> cut = cut_experts(p, experts);
  std::vector<Rows> rows;
  for (size_t at = 0; at < static_cast<size_t>(p.l); ++at) {
    const bool masked = p.grouping == Grouping::kMasked;
    rows.push_back(masked ? Rows{0, cut[at]} : Rows{cut[at], cut[at + 1]});
  }
  return rows;
}

std::vector<GroupTile> tiles_of(const Problem& p, const std::vector<int32_t>& experts,
                                int64_t tile_m) {
  std::vector<GroupTile> tiles;
  int64_t padded = 0;
  uint32_t expert = 0;
  for (const Rows& rows : rows_of(p, experts)) {
    for (int64_t row = rows.begin; row < rows.end; row += tile_m) {
      const bool masked = p.grouping == Grouping::kMasked;
      tiles.push_back({expert, row + tile_m >= rows.end, static_cast<uint32_t>(row),
                       static_cast<uint32_t>(std::min(row + tile_m, rows.end)),
                       static_cast<uint32_t>(masked ? row : padded + row - rows.begin)});
    }
    padded += core::round_up_rows(rows.end - rows.begin);
    ++expert;
  }
  return tiles;
}

// Where rows name their experts: runs of one expert, cut into tiles.
std::vector<GroupTile> tiles_of_rows(const Problem& p, const std::vector<int32_t>& owners,
                                     int64_t tile_m) {
  std::vector<GroupTile> tiles;
  const auto exists = [&](int32_t owner) { return owner >= 0 && owner < p.l; };
  for (int64_t row = 0; row < p.m;) {
    const int32_t owner = owners[static_cast<size_t>(row)];
    int64_t end = row + 1;
    while (end < p.m && end - row < tile_m && owners[static_cast<size_t>(end)] == owner) ++end;
    if (exists(owner)) {
      const auto begin = static_cast<uint32_t>(row);
      tiles.push_back({static_cast<uint32_t>(owner), 0, begin, static_cast<uint32_t>(end), begin});
    } else {
      end = row + 1;
    }
    row = end;
  }
  if (!tiles.empty()) tiles.back().last = 1;
  return tiles;
}

// The table that the kernel makes of `data`.
void expect_tiles(RandomCase& data, const std::vector<GroupTile>& expected, int64_t tile_m,
                  const ptxsim::Options& options) {
  const Problem& p = data.problem;
  Simulation simulation(data, 0);
  const int64_t bytes = cuda::group_tiles_bytes(p, tile_m);
  void* const table = simulation.scratch("table", bytes);
  ASSERT_TRUE(
      simulation.run(cuda::group_tiles_launch(p, simulation.buffers(), tile_m, table), options));
  const std::vector<uint8_t> got = simulation.download_scratch("table", kPoison);
  const auto at = [&](size_t index) {
    GroupTile tile;
    std::memcpy(&tile, got.data() + index * sizeof tile, sizeof tile);
    return tile;
  };
  ASSERT_EQ(at(0).expert, expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const GroupTile tile = at(1 + i), &wanted = expected[i];
    ASSERT_EQ(tile.expert, wanted.expert) << "tile " << i;
    ASSERT_EQ(tile.last, wanted.last) << "tile " << i;
    ASSERT_EQ(tile.begin, wanted.begin) << "tile " << i;
    ASSERT_EQ(tile.end, wanted.end) << "tile " << i;
    ASSERT_EQ(tile.padded_begin, wanted.padded_begin) << "tile " << i;
  }
  // Nothing behind the last tile is written.
  const auto end = static_cast<std::ptrdiff_t>((1 + expected.size()) * sizeof(GroupTile));
  ASSERT_TRUE(std::all_of(got.begin() + end, got.end(), [](uint8_t b) { return b == kPoison; }));
}

void expect_table(const Problem& p, const std::vector<int32_t>& experts, int64_t tile_m,
                  const ptxsim::Options& options = {}) {
  SCOPED_TRACE(::testing::Message()
               << name_of(p.grouping) << ", m " << p.m << ", l " << p.l << ", tile_m " << tile_m);
  Rng rng;
  RandomCase data(p, rng, Values::kRandom);
  (p.grouping == Grouping::kMasked ? data.expert_rows : data.expert_offsets) = experts;
  const std::vector<GroupTile> expected = tiles_of(p, experts, tile_m);
  ASSERT_LE(static_cast<int64_t>(expected.size()), cuda::most_group_tiles(p, tile_m));
  expect_tiles(data, expected, tile_m, options);
}

void expect_table_of_rows(const Problem& p, const std::vector<int32_t>& owners, int64_t tile_m,
                          const ptxsim::Options& options = {}) {
  SCOPED_TRACE(::testing::Message() << "m " << p.m << ", l " << p.l << ", tile_m " << tile_m);
  Rng rng;
  RandomCase data(p, rng, Values::kRandom, {}, owners);
  expect_tiles(data, tiles_of_rows(p, owners, tile_m), tile_m, options);
}

Problem grouped(Grouping grouping, int64_t m, int64_t l) {
  return {.m = m, .n = 2, .k = 16, .l = l, .grouping = grouping};
}

std::vector<int32_t> random_experts(const Problem& p, Rng& rng) {
  return p.grouping == Grouping::kMasked ? random_expert_rows(rng, p.l, p.m)
                                         : random_expert_offsets(rng, p.l, p.m);
}

// Rows that name their experts, in chunks of 512: runs that cross from one to the next, end with
// it, are as long as tiles, or of one row each; rows of no expert among them; no expert's row at
// all.
TEST(GroupTiles, RowsNameTheirExperts) {
  Rng rng;
  const ptxsim::Schedule schedules[] = {ptxsim::Schedule::kEager, ptxsim::Schedule::kLazy,
                                        ptxsim::Schedule::kRandom};
  int next = 0;
  for (const int64_t m : {1, 5, 64, 511, 512, 513, 700, 1024, 1500}) {
    for (const int64_t l : {1, 3, 200}) {
      const Problem p = grouped(Grouping::kContiguous, m, l);
      const int64_t tile_m = int64_t{8} << next % 6;
      ptxsim::Options options;
      options.schedule = schedules[next++ % 3];
      const auto rows = static_cast<size_t>(m);
      expect_table_of_rows(p, random_row_experts(rng, l, m), tile_m, options);
      expect_table_of_rows(p, std::vector<int32_t>(rows, static_cast<int32_t>(l - 1)), tile_m,
                           options);
      expect_table_of_rows(p, std::vector<int32_t>(rows, -1), tile_m, options);
      std::vector<int32_t> each(rows), halves(rows, 0);
      for (size_t row = 0; row < rows; ++row) {
        each[row] = static_cast<int32_t>(row % static_cast<size_t>(l + 1)) - 1;
        if (row >= 512) halves[row] = static_cast<int32_t>(l) - 1;
      }
      expect_table_of_rows(p, each, tile_m, options);
      expect_table_of_rows(p, halves, tile_m, options);
    }
  }
}

// 512 experts are one chunk of the kernel's, 513 and 700 are two, 1025 are three.
TEST(GroupTiles, RandomRows) {
  Rng rng;
  int next = 0;
  for (const Grouping grouping : {Grouping::kContiguous, Grouping::kMasked}) {
    for (const int64_t l : {1, 2, 8, 31, 32, 33, 128, 511, 512, 513, 700, 1025}) {
      for (const int64_t m : {1, 5, 64, 700, 1500}) {
        const Problem p = grouped(grouping, m, l);
        if (p.m * p.l > 1 << 18) continue;
        expect_table(p, random_experts(p, rng), int64_t{8} << next++ % 6);
      }
    }
  }
}

TEST(GroupTiles, OneExpertHasAllRowsOrNobodyHasAny) {
  for (const int64_t l : {1, 40, 700}) {
    for (const int64_t owner : {int64_t{0}, l / 2, l - 1}) {
      const Problem contiguous = grouped(Grouping::kContiguous, 3000, l);
      const Problem masked = grouped(Grouping::kMasked, 100, l);
      std::vector<int32_t> offsets(static_cast<size_t>(l) + 1), rows(static_cast<size_t>(l));
      expect_table(masked, rows, 8);
      expect_table(contiguous, offsets, 16);
      std::fill(offsets.begin() + owner + 1, offsets.end(), 3000);
      rows[static_cast<size_t>(owner)] = 100;
      expect_table(contiguous, offsets, 8);
      expect_table(masked, rows, 8);
    }
  }
}

// As many tiles as there may be: a row for each expert but one.
TEST(GroupTiles, TheMostTiles) {
  for (const int64_t m : {3, 20, 300}) {
    const Problem p = grouped(Grouping::kContiguous, m, 20);
    std::vector<int32_t> offsets;
    for (int64_t e = 0; e < p.l; ++e) offsets.push_back(static_cast<int32_t>(std::min(e, m)));
    offsets.push_back(static_cast<int32_t>(m));
    expect_table(p, offsets, 8);
    EXPECT_EQ(static_cast<int64_t>(tiles_of(p, offsets, 8).size()), cuda::most_group_tiles(p, 8));
  }
}

// Falling, negative and large numbers: every tile stays inside, no row is in two.
TEST(GroupTiles, WhatCannotBeIsCut) {
  Rng rng;
  constexpr int32_t kOdd[] = {INT32_MIN, -1, 0, 1, 77, 299, 300, 301, INT32_MAX};
  for (const Grouping grouping : {Grouping::kContiguous, Grouping::kMasked}) {
    for (const int64_t l : {1, 6, 60, 600}) {
      for (int round = 0; round < 6; ++round) {
        const Problem p = grouped(grouping, 300, l);
        std::vector<int32_t> experts(static_cast<size_t>(l) + 1);
        for (int32_t& number : experts) {
          number = rng.chance(0.5) ? kOdd[rng.integer(0, 8)]
                                   : static_cast<int32_t>(rng.integer(-400, 400));
        }
        expect_table(p, experts, 8 << round % 3);
        std::vector<int> owners(300);
        if (grouping == Grouping::kMasked) continue;
        for (const GroupTile& tile : tiles_of(p, experts, 8)) {
          for (uint32_t row = tile.begin; row < tile.end; ++row) ASSERT_EQ(owners.at(row)++, 0);
          ASSERT_LE(tile.padded_begin + (tile.end - tile.begin), core::most_padded_rows(p.m, p.l));
        }
      }
    }
  }
}

TEST(GroupTiles, TheSameInEverySchedule) {
  Rng rng;
  const Problem p = grouped(Grouping::kContiguous, 900, 600);
  const std::vector<int32_t> offsets = random_experts(p, rng);
  for (const ptxsim::Schedule schedule : {ptxsim::Schedule::kLazy, ptxsim::Schedule::kRandom}) {
    for (uint64_t seed = 1; seed <= 3; ++seed)
      expect_table(p, offsets, 16, {.schedule = schedule, .seed = seed, .strict = true});
  }
}

TEST(GroupTiles, RowsThatCannotBeCounted) {
  Problem p = grouped(Grouping::kContiguous, int64_t{1} << 30, int64_t{1} << 25);
  EXPECT_EQ(cuda::check_groups(p).message(),
            "m, l: 1073741824, 33554432; experts' rows, rounded up to 128 each, must be below 2^32 "
            "on a GPU");
  p.l = 1 << 24;
  EXPECT_TRUE(cuda::check_groups(p).ok());
  p.grouping = Grouping::kMasked;
  EXPECT_TRUE(cuda::check_groups(p).ok());
}

}  // namespace
}  // namespace dualgemm::test
