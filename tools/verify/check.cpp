#include "tools/verify/check.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/problem.hpp"
#include "dualgemm/dualgemm.hpp"
#include "dualgemm/formats.hpp"
#include "reference/bound.hpp"
#include "tools/measure/parallel_for.hpp"

namespace dualgemm::verify {
namespace {

using Groups = std::vector<core::RowGroup>;

Groups groups_of(const Problem& problem, const Buffers& buffers) {
  Groups groups;
  core::RowGroups all(problem, buffers);
  for (core::RowGroup group; all.next(group);) groups.push_back(group);
  return groups;
}

int64_t rows_of(const Groups& groups) {
  int64_t rows = 0;
  for (const core::RowGroup& group : groups) rows += group.rows;
  return rows;
}

// Smallest unit the oracle judges: one element, or for an NVFP4 D one block, as its scale depends
// on all of it.
struct Unit {
  int64_t group, row, col;  // row: of the group
};

int64_t unit_cols(const Problem& problem) noexcept {
  return problem.d.type == DataType::kE2M1 ? kSfVec : 1;
}

int64_t batches_of_d(const Problem& problem) noexcept {
  return problem.grouping == Grouping::kContiguous ? 1 : problem.l;
}

CheckReport empty_report(const Problem& problem, const Groups& groups) {
  CheckReport report;
  report.map_rows = (problem.m + kMapTile - 1) / kMapTile * batches_of_d(problem);
  report.map_cols = (core::columns_of_d(problem) + kMapTile - 1) / kMapTile;
  report.map.assign(static_cast<size_t>(report.map_rows * report.map_cols),
                    TileState::kNotCompared);
  report.nothing_to_compare = rows_of(groups) == 0;
  return report;
}

void merge(const Problem& problem, const reference::TileCheck& tile, CheckReport& report) {
  report.compared += tile.rows * tile.cols;
  report.failed += tile.failed;
  const int64_t batch = problem.grouping == Grouping::kContiguous ? 0 : tile.batch;
  const int64_t first = batch * (report.map_rows / batches_of_d(problem));
  // A group's tile may lie in two of the map.
  for (int64_t row = tile.row / kMapTile; row <= (tile.row + tile.rows - 1) / kMapTile; ++row) {
    TileState& state =
        report.map[static_cast<size_t>((first + row) * report.map_cols + tile.col / kMapTile)];
    state = std::max(state, tile.failed > 0 ? TileState::kWrong : TileState::kRight);
  }
  if (tile.worst_share <= report.worst_share && report.compared > tile.rows * tile.cols) return;
  report.worst_share = tile.worst_share;
  report.worst_batch = tile.batch;
  report.worst_row = tile.worst_row;
  report.worst_col = tile.worst_col;
  report.actual = tile.actual;
  report.expected = tile.expected;
  report.lowest = tile.lowest;
  report.highest = tile.highest;
}

uint64_t mix(uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

int64_t tile_rows_of(const core::RowGroup& group) noexcept {
  return (group.rows + kMapTile - 1) / kMapTile;
}

// The tiles (i, j) of every group with (i + j) % step == 0: every row and every column of tiles is
// met as long as step does not exceed either count.
std::vector<Unit> spread_units(const Problem& problem, const Groups& groups,
                               const CheckOptions& options) {
  const int64_t width = unit_cols(problem);
  const int64_t tile_cols = (core::columns_of_d(problem) + kMapTile - 1) / kMapTile;
  const int64_t wanted = (options.samples + width - 1) / width;
  int64_t tiles = 0;
  for (const core::RowGroup& group : groups) tiles += tile_rows_of(group) * tile_cols;
  if (tiles == 0) return {};
  const int64_t per_tile = (wanted + tiles - 1) / tiles;
  std::vector<Unit> units;
  int64_t first_row = 0;  // of this group's tiles
  for (size_t g = 0; g < groups.size(); ++g) {
    const int64_t tile_rows = tile_rows_of(groups[g]);
    if (tile_rows == 0) continue;
    const int64_t step = std::clamp<int64_t>(tiles / wanted, 1, std::min(tile_rows, tile_cols));
    for (int64_t i = 0; i < tile_rows; ++i) {
      for (int64_t j = (step - i % step) % step; j < tile_cols; j += step) {
        const int64_t rows = std::min(kMapTile, groups[g].rows - i * kMapTile);
        const int64_t cols = std::min(kMapTile, core::columns_of_d(problem) - j * kMapTile) / width;
        const int64_t count = std::min(per_tile, rows * cols);
        // A start and a stride coprime to the tile's size visit `count` different places.
        const uint64_t start =
            mix(options.seed + static_cast<uint64_t>((first_row + i) * tile_cols + j));
        for (int64_t s = 0; s < count; ++s) {
          const int64_t place = static_cast<int64_t>((start + static_cast<uint64_t>(s) * 83u) %
                                                     static_cast<uint64_t>(rows * cols));
          units.push_back({static_cast<int64_t>(g), i * kMapTile + place / cols,
                           j * kMapTile + place % cols * width});
        }
      }
    }
    first_row += tile_rows;
  }
  return units;
}

CheckReport check_units(const Problem& problem, const Buffers& buffers, const Groups& groups,
                        Isa isa, const std::vector<Unit>& units) {
  const core::ResolvedProblem resolved = core::resolve(problem);
  const reference::Accumulation accumulation = reference::accumulation_of(problem, isa);
  std::vector<reference::TileCheck> checks(units.size());
  measure::parallel_for(static_cast<int64_t>(units.size()), [&](int64_t i) {
    const Unit& unit = units[static_cast<size_t>(i)];
    checks[static_cast<size_t>(i)] =
        reference::check_tile(resolved, buffers, groups[static_cast<size_t>(unit.group)], unit.row,
                              1, unit.col, unit_cols(problem), accumulation);
  });
  CheckReport report = empty_report(problem, groups);
  for (const reference::TileCheck& check : checks) merge(problem, check, report);
  return report;
}

// Where an element of D lies, and its block's scale.
struct Place {
  int64_t index, scale;
};
Place place_of(const core::ResolvedMatrix& d, const core::RowGroup& group, int64_t row,
               int64_t col) noexcept {
  Place place{group.a_batch * d.batch_stride + (group.row_begin + row) * d.ld + col, 0};
  if (d.type == DataType::kE2M1) {
    place.scale = group.a_batch * d.scale_batch_stride +
                  d.scale_map()(group.d_sf_row_begin + row, col / kSfVec);
  }
  return place;
}

double element_value(const core::ResolvedMatrix& d, const Buffers& buffers,
                     const Place& at) noexcept {
  const int64_t index = at.index;
  switch (d.type) {
    case DataType::kF32:
      return static_cast<const float*>(buffers.d)[index];
    case DataType::kF16:
      return decode_f16(static_cast<const uint16_t*>(buffers.d)[index]);
    case DataType::kBF16:
      return decode_bf16(static_cast<const uint16_t*>(buffers.d)[index]);
    case DataType::kE2M1:
      break;
  }
  const uint8_t pair = static_cast<const uint8_t*>(buffers.d)[index / 2];
  return static_cast<double>(decode_e2m1(static_cast<uint8_t>(pair >> (index % 2 * 4)))) *
         decode_scale(buffers.d_scales[at.scale]) * buffers.d_global_scale;
}

// Do the bytes of one unit, and its scale, agree?
bool same_bits(const core::ResolvedMatrix& d, const Buffers& x, const Buffers& y,
               const Place& at) noexcept {
  const bool blocks = d.type == DataType::kE2M1;
  const int64_t begin = core::bytes_of(d.type, at.index);
  const auto size = static_cast<size_t>(core::bytes_of(d.type, blocks ? kSfVec : 1));
  const auto* x_bytes = static_cast<const uint8_t*>(x.d);
  const auto* y_bytes = static_cast<const uint8_t*>(y.d);
  if (std::memcmp(x_bytes + begin, y_bytes + begin, size) != 0) return false;
  return !blocks || x.d_scales[at.scale] == y.d_scales[at.scale];
}

struct Difference {
  Unit unit;
  double size;  // largest in the unit; infinite when a NaN or an infinity is involved
};

struct RowDifference {
  std::vector<Difference> units;
  double error_squared = 0.0, expected_squared = 0.0, max_abs = 0.0;
  int64_t differing = 0, non_finite = 0;
};

RowDifference compare_row(const core::ResolvedMatrix& d, const Buffers& expected,
                          const Buffers& actual, int64_t width, const core::RowGroup& group,
                          int64_t number, int64_t row) {
  RowDifference result;
  for (int64_t col = 0; col < d.cols; col += width) {
    const bool same = same_bits(d, expected, actual, place_of(d, group, row, col));
    double largest = 0.0;
    for (int64_t i = 0; i < width; ++i) {
      const Place place = place_of(d, group, row, col + i);
      const double x = element_value(d, expected, place);
      const double error = same ? 0.0 : std::abs(element_value(d, actual, place) - x);
      if (std::isfinite(error) && std::isfinite(x)) {
        result.error_squared += error * error;
        result.expected_squared += x * x;
        result.max_abs = std::max(result.max_abs, error);
      } else if (!same) {
        ++result.non_finite;
      }
      largest = std::isfinite(error) ? std::max(largest, error) : HUGE_VAL;
    }
    if (same) continue;
    result.differing += width;
    result.units.push_back({{number, row, col}, largest});
  }
  return result;
}

// The rows of all groups, one after the other.
std::vector<RowDifference> compare_rows(const Problem& problem, const Groups& groups,
                                        const Buffers& expected, const Buffers& actual) {
  const core::ResolvedProblem resolved = core::resolve(problem);
  struct Row {
    int64_t group, row;
  };
  std::vector<Row> rows;
  for (size_t g = 0; g < groups.size(); ++g) {
    for (int64_t row = 0; row < groups[g].rows; ++row)
      rows.push_back({static_cast<int64_t>(g), row});
  }
  std::vector<RowDifference> result(rows.size());
  measure::parallel_for(static_cast<int64_t>(rows.size()), [&](int64_t i) {
    const Row& at = rows[static_cast<size_t>(i)];
    result[static_cast<size_t>(i)] =
        compare_row(resolved.d, expected, actual, unit_cols(problem),
                    groups[static_cast<size_t>(at.group)], at.group, at.row);
  });
  return result;
}

// Elements of D in no group's rows that are not `unwritten`.
int64_t count_written_elsewhere(const Problem& problem, const Buffers& buffers,
                                const Groups& groups, uint8_t unwritten) {
  const core::ResolvedMatrix d = core::resolve(problem).d;
  std::vector<bool> computed(static_cast<size_t>(batches_of_d(problem) * problem.m), false);
  for (const core::RowGroup& group : groups) {
    for (int64_t row = 0; row < group.rows; ++row)
      computed[static_cast<size_t>(group.a_batch * problem.m + group.row_begin + row)] = true;
  }
  int64_t written = 0;
  const auto* const bytes = static_cast<const uint8_t*>(buffers.d);
  for (size_t i = 0; i < computed.size(); ++i) {
    if (computed[i]) continue;
    const auto row = static_cast<int64_t>(i);
    const int64_t index = row / problem.m * d.batch_stride + row % problem.m * d.ld;
    for (int64_t col = 0; col < d.cols; col += 2) {  // at least a byte
      const int64_t begin = core::bytes_of(d.type, index + col);
      const int64_t end = core::bytes_of(d.type, index + std::min(col + 2, d.cols));
      const bool same = std::all_of(bytes + begin, bytes + end,
                                    [unwritten](uint8_t byte) { return byte == unwritten; });
      written += same ? 0 : std::min<int64_t>(2, d.cols - col);
    }
  }
  return written;
}

}  // namespace

std::string CheckReport::picture(int64_t max_rows, int64_t max_cols) const {
  const int64_t row_step = (map_rows + max_rows - 1) / max_rows,
                col_step = (map_cols + max_cols - 1) / max_cols;
  std::string out;
  for (int64_t top = 0; top < map_rows; top += row_step) {
    for (int64_t left = 0; left < map_cols; left += col_step) {
      TileState worst = TileState::kNotCompared;
      for (int64_t row = top; row < std::min(top + row_step, map_rows); ++row) {
        for (int64_t col = left; col < std::min(left + col_step, map_cols); ++col) {
          worst = std::max(worst, map[static_cast<size_t>(row * map_cols + col)]);
        }
      }
      out += worst == TileState::kWrong ? 'X' : (worst == TileState::kRight ? '.' : ' ');
    }
    out += '\n';
  }
  return out;
}

Expected<CheckReport> check_result(const Problem& problem, const Buffers& buffers, Isa isa,
                                   const CheckOptions& options) {
  DUALGEMM_TRY(validate(problem, buffers));
  if (options.samples < 0)
    return Status::invalid("samples", std::to_string(options.samples), "must be >= 0");
  const Groups groups = groups_of(problem, buffers);
  CheckReport report = empty_report(problem, groups);
  if (options.samples > 0) {
    report = check_units(problem, buffers, groups, isa, spread_units(problem, groups, options));
  } else {
    const auto tiles = reference::check_output(
        problem, buffers, reference::accumulation_of(problem, isa), kMapTile, kMapTile);
    for (const reference::TileCheck& tile : tiles) merge(problem, tile, report);
  }
  if (options.unwritten)
    report.written_elsewhere =
        count_written_elsewhere(problem, buffers, groups, *options.unwritten);
  return report;
}

Expected<OutputDifference> output_difference(const Problem& problem, const Buffers& expected,
                                             const Buffers& actual) {
  DUALGEMM_TRY(validate(problem, expected));
  DUALGEMM_TRY(validate(problem, actual));
  const Groups groups = groups_of(problem, actual);
  OutputDifference difference;
  difference.elements = rows_of(groups) * core::columns_of_d(problem);
  double error_squared = 0.0, expected_squared = 0.0;
  for (const RowDifference& row : compare_rows(problem, groups, expected, actual)) {
    difference.differing += row.differing;
    difference.non_finite += row.non_finite;
    difference.max_abs = std::max(difference.max_abs, row.max_abs);
    error_squared += row.error_squared;
    expected_squared += row.expected_squared;
  }
  if (error_squared > 0.0) {
    difference.rel_l2 =
        expected_squared > 0.0 ? std::sqrt(error_squared / expected_squared) : HUGE_VAL;
  }
  return difference;
}

Expected<CheckReport> check_against(const Problem& problem, const Buffers& trusted,
                                    const Buffers& actual, Isa isa, int64_t most) {
  DUALGEMM_TRY(validate(problem, trusted));
  DUALGEMM_TRY(validate(problem, actual));
  if (most < 1) return Status::invalid("most", std::to_string(most), "must be at least 1");
  const Groups groups = groups_of(problem, actual);
  std::vector<Difference> differences;
  for (const RowDifference& row : compare_rows(problem, groups, trusted, actual)) {
    differences.insert(differences.end(), row.units.begin(), row.units.end());
  }
  const auto checked = std::min(
      differences.size(), static_cast<size_t>(std::max<int64_t>(1, most / unit_cols(problem))));
  std::nth_element(differences.begin(), differences.begin() + static_cast<std::ptrdiff_t>(checked),
                   differences.end(),
                   [](const Difference& x, const Difference& y) { return x.size > y.size; });
  std::vector<Unit> units;
  for (size_t i = 0; i < checked; ++i) units.push_back(differences[i].unit);
  CheckReport report = check_units(problem, actual, groups, isa, units);
  // What is not in `units` is identical, or nearer to the trusted result than the units that the
  // oracle judged.
  report.compared = rows_of(groups) * core::columns_of_d(problem);
  for (TileState& state : report.map) state = std::max(state, TileState::kRight);
  return report;
}

}  // namespace dualgemm::verify
