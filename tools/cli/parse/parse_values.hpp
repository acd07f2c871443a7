// Text to values, with the rule in the message when the text is wrong. Nothing here saturates,
// wraps or ignores a rest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/cli/options.hpp"

namespace dualgemm::cli {

// '-' and '_' mean the same in names, as people type both.
std::string with_underscores(std::string text);

// The parts between separators, empty ones too: one more than there are separators.
std::vector<std::string> split(const std::string& text, char separator);

// Decimal digits with an optional minus; nothing else.
Expected<int64_t> parse_int(const std::string& text);
Expected<int64_t> parse_positive_int(const std::string& text);  // >= 1
Expected<int> parse_thread_count(const std::string& text);      // 0 (all cores) .. 4096
Expected<int64_t> parse_expert(const std::string& text);        // >= 0
Expected<uint64_t> parse_seed(const std::string& text);
Expected<double> parse_number(const std::string& text);  // finite
Expected<double> parse_positive_number(
    const std::string& text);  // finite, > 0, fits in a float as normal or subnormal
Expected<double> parse_limit(const std::string& text);  // number or "inf"

// "1,16,256", "1024:4096:256" (first:last:step, last included when hit), or both mixed; every value
// >= 1, at most kMaxListLength of them.
inline constexpr int64_t kMaxListLength = 4096;
Expected<std::vector<int64_t>> parse_int_list(const std::string& text);

Expected<std::vector<StrategyId>> parse_strategy_list(
    const std::string& text);  // "fused,two_pass" or "all"
// The library's spellings, with '-' accepted for '_'.
Expected<checkpoint::Convention> parse_target_convention(const std::string& text);  // written
Expected<checkpoint::Convention> parse_source_convention(const std::string& text);  // NVFP4, read
Expected<checkpoint::NibbleOrder> parse_nibble_order(const std::string& text);
Expected<checkpoint::StackedOrder> parse_stacked_order(const std::string& text);

}  // namespace dualgemm::cli
