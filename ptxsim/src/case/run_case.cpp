#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <set>

#include "case/launches.hpp"

namespace ptxsim {
namespace {

constexpr size_t kMostMismatches = 20;

uint64_t pattern_at(const GlobalBuffer& buffer, uint64_t index, unsigned bytes) {
  uint64_t pattern = 0;
  std::memcpy(&pattern, buffer.data.data() + index * bytes, bytes);
  return pattern;
}

double f16_value(uint64_t pattern) {
  const int exponent = static_cast<int>(pattern >> 10 & 31);
  const double fraction = static_cast<double>(pattern & 1023);
  const double magnitude = exponent == 31  ? (fraction == 0 ? HUGE_VAL : std::nan(""))
                           : exponent == 0 ? std::ldexp(fraction, -24)
                                           : std::ldexp(fraction + 1024, exponent - 25);
  return (pattern & 0x8000) != 0 ? -magnitude : magnitude;
}

double value_of(uint64_t pattern, ElementType type) {
  switch (type) {
    case ElementType::kF16:
      return f16_value(pattern);
    case ElementType::kBf16:
      return std::bit_cast<float>(static_cast<uint32_t>(pattern << 16));
    case ElementType::kF32:
      return std::bit_cast<float>(static_cast<uint32_t>(pattern));
    case ElementType::kF64:
      return std::bit_cast<double>(pattern);
    default:
      return static_cast<double>(pattern);
  }
}

bool matches(const CaseBuffer& expected, uint64_t want, uint64_t have) {
  if (want == have) return true;
  if (expected.absolute == 0 && expected.relative == 0) return false;
  const double a = value_of(want, expected.type), b = value_of(have, expected.type);
  if (std::isnan(a) && std::isnan(b)) return true;
  return std::abs(a - b) <= expected.absolute + expected.relative * std::abs(a);
}

void note(std::vector<std::string>& list, size_t& count, std::string text) {
  if (++count <= kMostMismatches) list.push_back(std::move(text));
}

void compare_buffer(const CaseBuffer& expected, const GlobalBuffer& buffer,
                    std::vector<std::string>& list) {
  const unsigned bytes = bytes_of(expected.type);
  size_t count = 0;
  for (size_t i = 0; i < expected.expect.size(); ++i) {
    if (!expected.expect[i]) continue;
    const uint64_t have = pattern_at(buffer, i, bytes);
    if (!matches(expected, *expected.expect[i], have))
      note(list, count,
           fmt::format("{}[{}] is 0x{:0{}x}; expected 0x{:0{}x}", expected.name, i, have, 2 * bytes,
                       *expected.expect[i], 2 * bytes));
  }
  if (count > kMostMismatches)
    list.push_back(fmt::format("{}: {} values differ in all", expected.name, count));
}

void compare_matrix(const CaseMatrix& m, const GlobalBuffer& buffer,
                    std::vector<std::string>& list) {
  const unsigned bytes = bytes_of(m.type);
  std::vector<bool> belongs(buffer.data.size() / bytes, false);
  size_t count = 0, at = 0;
  for (uint64_t batch = 0; batch < m.batches; ++batch)
    for (uint64_t row = 0; row < m.rows; ++row)
      for (uint64_t col = 0; col < m.cols; ++col, ++at) {
        const uint64_t index = batch * m.batch_stride + row * m.row_stride + col;
        if (index >= belongs.size()) {
          list.push_back(fmt::format("expected matrix does not fit into '{}'", m.buffer));
          return;
        }
        belongs[index] = true;
        const double have = value_of(pattern_at(buffer, index, bytes), m.type);
        const bool same = std::isnan(m.value[at]) ? std::isnan(have)
                                                  : std::abs(have - m.value[at]) <= m.bound[at];
        if (!same)
          note(list, count,
               fmt::format("{}[{}][{}][{}] is {}; expected {} within {}", m.buffer, batch, row, col,
                           have, m.value[at], m.bound[at]));
      }
  for (size_t i = 0; i < buffer.written.size(); ++i)
    if (buffer.written[i] && !belongs[i / bytes])
      note(list, count, fmt::format("{}: byte {} outside the matrix was written", m.buffer, i));
  if (count > kMostMismatches)
    list.push_back(fmt::format("{}: {} elements differ in all", m.buffer, count));
}

void compare_printed(const Case& c, CaseResult& result) {
  if (!c.expect_printed) return;
  std::string text;
  for (const PrintedText& printed : result.run.printed.texts) text += printed.text;
  if (text != *c.expect_printed)
    result.mismatches.push_back(
        fmt::format("printed '{}'; expected '{}'", text, *c.expect_printed));
}

void compare_outcome(const Case& c, CaseResult& result) {
  const auto& error = result.run.error;
  if (c.expect_error) {
    if (!error)
      result.mismatches.push_back("no error; expected one with '" + *c.expect_error + "'");
    else if (error->message.find(*c.expect_error) == std::string::npos)
      result.mismatches.push_back("error '" + error->message + "'; expected one with '" +
                                  *c.expect_error + "'");
    return;
  }
  if (error) {
    result.mismatches.push_back(to_string(*error));
    return;
  }
  std::set<int> rules;
  for (const Report& report : result.run.reports.list)
    if (report.severity == Severity::kError) rules.insert(report.rule);
  const std::vector<int> have(rules.begin(), rules.end());
  const std::vector<int> want = c.expect_reports.value_or(std::vector<int>{});
  if (have == want) return;
  std::string text = "rules reported:";
  for (int rule : have) text += fmt::format(" R{}", rule);
  text += "; expected:";
  for (int rule : want) text += fmt::format(" R{}", rule);
  result.mismatches.push_back(text);
  result.unexpected_rules = true;
}

}  // namespace

CaseResult run_case(const Case& description, const std::shared_ptr<const Program>& program,
                    const Options& options, const std::vector<MakeObserver>& observers) {
  CaseResult result;
  for (const CaseBuffer& b : description.buffers) {
    try {
      result.memory.add(b.name, b.address, b.data, b.initialized, b.read_only);
    } catch (const Fault& fault) {
      result.run.error = fault.error();
      result.run.error->place = b.place;
      compare_outcome(description, result);
      return result;
    }
  }
  Options effective = options;
  effective.strict |= description.strict;
  if (!description.suppressions.empty()) {
    std::vector<Suppression> all = description.suppressions;
    if (options.suppressions != nullptr)
      all.insert(all.end(), options.suppressions->begin(), options.suppressions->end());
    effective.suppressions = std::make_shared<const std::vector<Suppression>>(std::move(all));
  }
  effective.check_uninitialized &= description.check_uninitialized;
  result.run = run_launches(description, program, result.memory, effective, observers);
  compare_outcome(description, result);
  if (result.run.stats.clusters_left_out != 0) return result;  // what they write is missing
  compare_printed(description, result);
  if (result.run.error) return result;
  for (const CaseBuffer& b : description.buffers)
    compare_buffer(b, *result.memory.find(b.name), result.mismatches);
  for (const CaseMatrix& m : description.matrices) {
    const GlobalBuffer* buffer = result.memory.find(m.buffer);
    if (buffer == nullptr)
      result.mismatches.push_back("there is no buffer '" + m.buffer + "'");
    else
      compare_matrix(m, *buffer, result.mismatches);
  }
  return result;
}

}  // namespace ptxsim
