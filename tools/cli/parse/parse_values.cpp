#include "tools/cli/parse/parse_values.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>

namespace dualgemm::cli {
namespace {

Status bad_value(const std::string& text, std::string rule) {
  return Status::invalid("value", "'" + text + "'", std::move(rule));
}

template <class T>
Expected<T> parse_whole(const std::string& text, const char* rule) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc::result_out_of_range)
    return bad_value(text, std::string("does not fit; ") + rule);
  if (error != std::errc() || stop != end) return bad_value(text, rule);
  return value;
}

// first:last[:step]
Status append_range(const std::string& text, std::vector<int64_t>& values) {
  const std::vector<std::string> parts = split(text, ':');
  if (parts.size() > 3) return bad_value(text, "a range is first:last or first:last:step");
  int64_t bounds[3] = {0, 0, 1};
  for (size_t i = 0; i < parts.size(); ++i) {
    const Expected<int64_t> value = parse_positive_int(parts[i]);
    if (!value) return value.status();
    bounds[i] = *value;
  }
  const auto [first, last, step] = bounds;
  if (last < first) return bad_value(text, "the last value of a range must not be below the first");
  const int64_t count = (last - first) / step + 1;
  if (count > kMaxListLength - static_cast<int64_t>(values.size())) {
    return bad_value(text, "a list may hold at most " + std::to_string(kMaxListLength) + " values");
  }
  for (int64_t i = 0; i < count; ++i) values.push_back(first + i * step);
  return {};
}

Expected<checkpoint::Convention> parse_convention_of(
    const std::string& text, bool (*is_one)(const checkpoint::ConventionRow&)) {
  const Expected<checkpoint::Convention> convention =
      checkpoint::parse_convention(with_underscores(text));
  if (convention && is_one(checkpoint::row_of(*convention))) return convention;
  return bad_value(text, "must be " + checkpoint::names_of(is_one));
}

}  // namespace

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (true) {
    const size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

std::string with_underscores(std::string text) {
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
}

Expected<int64_t> parse_int(const std::string& text) {
  return parse_whole<int64_t>(text, "must be a whole number in 64 bits");
}

Expected<int64_t> parse_positive_int(const std::string& text) {
  const Expected<int64_t> value =
      parse_whole<int64_t>(text, "must be a whole number from 1 to 9223372036854775807");
  if (value && *value < 1) return bad_value(text, "must be at least 1");
  return value;
}

Expected<int64_t> parse_expert(const std::string& text) {
  const Expected<int64_t> value =
      parse_whole<int64_t>(text, "must be a whole number from 0 to 9223372036854775807");
  if (value && *value < 0) return bad_value(text, "must be at least 0");
  return value;
}

Expected<int> parse_thread_count(const std::string& text) {
  const Expected<int64_t> value =
      parse_whole<int64_t>(text, "must be a whole number from 0 (all cores) to 4096");
  if (!value) return value.status();
  if (*value < 0 || *value > 4096) return bad_value(text, "must be from 0 (all cores) to 4096");
  return static_cast<int>(*value);
}

Expected<uint64_t> parse_seed(const std::string& text) {
  return parse_whole<uint64_t>(text, "must be a whole number from 0 to 18446744073709551615");
}

Expected<double> parse_number(const std::string& text) {
  const Expected<double> value = parse_whole<double>(text, "must be a finite number");
  if (value && !std::isfinite(*value)) return bad_value(text, "must be a finite number");
  return value;
}

Expected<double> parse_positive_number(const std::string& text) {
  const Expected<double> value = parse_number(text);
  if (!value) return value.status();
  const float rounded = static_cast<float>(*value);
  if (!(rounded > 0.0f) || !std::isfinite(rounded))
    return bad_value(text, "must be above 0 and fit in 32-bit floating point");
  return value;
}

Expected<double> parse_limit(const std::string& text) {
  if (text == "inf") return std::numeric_limits<double>::infinity();
  return parse_number(text);
}

Expected<std::vector<int64_t>> parse_int_list(const std::string& text) {
  std::vector<int64_t> values;
  for (const std::string& part : split(text, ',')) {
    if (part.find(':') != std::string::npos) {
      DUALGEMM_TRY(append_range(part, values));
      continue;
    }
    const Expected<int64_t> value = parse_positive_int(part);
    if (!value) return value.status();
    if (static_cast<int64_t>(values.size()) == kMaxListLength) {
      return bad_value(part,
                       "a list may hold at most " + std::to_string(kMaxListLength) + " values");
    }
    values.push_back(*value);
  }
  return values;
}

Expected<std::vector<StrategyId>> parse_strategy_list(const std::string& text) {
  if (text == "all") return all_strategies();
  std::vector<StrategyId> strategies;
  for (const std::string& part : split(text, ',')) {
    if (part == "all") return bad_value(part, "must stand alone");
    const Expected<StrategyId> strategy = parse_strategy(part);
    if (!strategy) {
      std::string names;
      for (const StrategyId id : all_strategies()) names += std::string(", ") + name_of(id);
      return bad_value(part, "must be all, or some of " + names.substr(2));
    }
    if (*strategy == StrategyId::kAuto) return bad_value(part, "name the strategies, or say 'all'");
    if (std::find(strategies.begin(), strategies.end(), *strategy) != strategies.end()) {
      return bad_value(part, "is named twice");
    }
    strategies.push_back(*strategy);
  }
  return strategies;
}

Expected<checkpoint::Convention> parse_target_convention(const std::string& text) {
  return parse_convention_of(text, checkpoint::is_target);
}
Expected<checkpoint::Convention> parse_source_convention(const std::string& text) {
  return parse_convention_of(text, checkpoint::is_nvfp4);
}

Expected<checkpoint::NibbleOrder> parse_nibble_order(const std::string& text) {
  return checkpoint::parse_nibble_order(with_underscores(text));
}

Expected<checkpoint::StackedOrder> parse_stacked_order(const std::string& text) {
  return checkpoint::parse_stacked_order(with_underscores(text));
}

}  // namespace dualgemm::cli
