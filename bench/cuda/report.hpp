// What was measured: JSON with every number, and a table for people.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/cuda/shape_bench.hpp"

namespace dualgemm::bench {

struct Environment {
  DeviceCaps caps;
  std::string cublaslt, driver;
  int cuda_runtime = 0, cuda_driver = 0;  // 13000 is 13.0
  unsigned max_sm_clock_mhz = 0;
  double power_limit_watts = 0.0;
};

struct ShapeResult {
  int64_t n = 0, k = 0;
  std::vector<Point> points;
};

nlohmann::ordered_json to_json(const Environment& environment,
                               const std::vector<ShapeResult>& shapes);

// Title and head of a shape's table, and the line of a point.
std::string table_head(int64_t n, int64_t k);
std::string table_row(const ShapeResult& shape, const Point& point);

// What is wrong in a point; empty: nothing.
std::vector<std::string> faults_of(const Point& point);

}  // namespace dualgemm::bench
