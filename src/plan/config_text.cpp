#include "plan/config_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "core/enum_table.hpp"

namespace dualgemm::plan {
namespace {

constexpr const char* kExample = "cuda_sm90a_fused_wgmma_c128_w4_t8x32x256_s12_f16";

struct Key {
  const char* name;
  int64_t PlanConstraints::*wanted;
};
constexpr Key kKeys[] = {{"tile_m", &PlanConstraints::tile_m},
                         {"tile_n", &PlanConstraints::tile_n},
                         {"tile_k", &PlanConstraints::tile_k},
                         {"stages", &PlanConstraints::stages},
                         {"k_warpgroups", &PlanConstraints::k_warpgroups},
                         {"ctas", &PlanConstraints::ctas}};

Status bad_text(std::string_view observed, std::string rule) {
  return Status::invalid("config", fmt::format("'{}'", observed), std::move(rule));
}

// Takes pieces off the front of a text.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}
  bool done() const noexcept { return rest_.empty(); }

  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  // Up to the next '_' or the text's end.
  std::string take_word() {
    const std::string word(rest_.substr(0, rest_.find('_')));
    rest_.remove_prefix(word.size());
    return word;
  }
  // Nothing is taken if it is not there.
  bool take_number(std::string_view before, int64_t& value) {
    if (!rest_.starts_with(before)) return false;
    const std::string_view digits = rest_.substr(before.size());
    if (digits.empty() || digits[0] < '0' || digits[0] > '9') return false;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc()) return false;
    rest_ = digits.substr(static_cast<size_t>(end - digits.data()));
    return true;
  }

  // The longest of the enumerators' names that stands here and ends at a '_' or the text's end.
  template <class Enum>
  std::optional<Enum> take_name(Enum first, Enum last) {
    std::optional<Enum> found;
    size_t length = 0;
    for (int32_t i = static_cast<int32_t>(first); i <= static_cast<int32_t>(last); ++i) {
      const std::string_view name = name_of(static_cast<Enum>(i));
      const bool ends =
          name.size() == rest_.size() || (name.size() < rest_.size() && rest_[name.size()] == '_');
      if (!rest_.starts_with(name) || !ends || name.size() <= length) continue;
      found = static_cast<Enum>(i);
      length = name.size();
    }
    rest_.remove_prefix(length);
    return found;
  }

 private:
  std::string_view rest_;
};

// cuda_<isa>_<strategy>_<kernel>[_c<ctas>][_w<k_warpgroups>][_t<m>x<n>x<k>][_s<stages>]_<type of D>
// [_prepared]. A number that is missing is one that the kernel does not have.
Expected<ConfigRequest> parse_words(const std::string& text) {
  const auto wrong = [&] {
    return bad_text(text,
                    fmt::format("must be a plan's config, such as {}, or key=value,...", kExample));
  };
  ConfigRequest request;
  PlanConstraints& constraints = request.constraints;
  Reader reader(text);
  if (reader.take("cpu_")) return bad_text(text, "is for the CPU; plans can be named on cuda only");
  if (!reader.take("cuda_")) return wrong();
  request.isa = reader.take_name(Isa::kScalar, core::kLastOf<Isa>);
  if (!request.isa || !reader.take("_")) return wrong();
  request.strategy = reader.take_name(StrategyId::kReference, core::kLastOf<StrategyId>);
  if (!request.strategy) return wrong();
  if (!reader.take("_")) return wrong();
  constraints.kernel = reader.take_word();
  if (constraints.kernel.any()) return wrong();
  constraints.k_warpgroups = constraints.stages = 0;
  constraints.tile_m = constraints.tile_n = constraints.tile_k = 0;
  if (!reader.take_number("_c", constraints.ctas)) constraints.ctas = PlanConstraints::kUnnamed;
  reader.take_number("_w", constraints.k_warpgroups);
  if (reader.take_number("_t", constraints.tile_m) &&
      !(reader.take_number("x", constraints.tile_n) && reader.take_number("x", constraints.tile_k)))
    return wrong();
  reader.take_number("_s", constraints.stages);
  if (!reader.take("_")) return wrong();
  request.d_type = reader.take_name(DataType::kE2M1, core::kLastOf<DataType>);
  if (!request.d_type) return wrong();
  request.prepared = reader.take("_prepared");
  if (!reader.done()) return wrong();
  return request;
}

Status set_constraint(std::string_view key, std::string_view value, ConfigRequest& request) {
  std::string names = "strategy, isa, kernel";
  for (const Key& known : kKeys) {
    names += std::string(", ") + known.name;
    if (key != known.name) continue;
    int64_t& wanted = request.constraints.*known.wanted;
    if (wanted != PlanConstraints::kAny) return bad_text(key, "is given twice");
    Reader reader(value);
    if (reader.take_number("", wanted) && reader.done()) return {};
    return bad_text(fmt::format("{}={}", key, value), "must be a whole number");
  }
  return bad_text(key, "is no key; there are " + names);
}

// One "key=value".
Status parse_pair(std::string_view pair, ConfigRequest& request) {
  const size_t equals = pair.find('=');
  if (equals == std::string_view::npos) return bad_text(pair, "must be key=value");
  const std::string_view key = pair.substr(0, equals);
  const std::string value(pair.substr(equals + 1));
  if (key == "strategy") {
    if (request.strategy) return bad_text(key, "is given twice");
    const Expected<StrategyId> strategy = parse_strategy(value);
    if (!strategy) return bad_text(pair, strategy.status().rule());
    request.strategy = *strategy;
    return {};
  }
  if (key == "isa") {
    if (request.isa) return bad_text(key, "is given twice");
    const Expected<Isa> isa = parse_isa(value);
    if (!isa) return bad_text(pair, isa.status().rule());
    request.isa = *isa;
    return {};
  }
  if (key == "kernel") {
    if (!request.constraints.kernel.any()) return bad_text(key, "is given twice");
    if (value.empty()) return bad_text(pair, "must be a kernel's name");
    request.constraints.kernel = value;
    return {};
  }
  return set_constraint(key, value, request);
}

}  // namespace

Expected<ConfigRequest> parse_config(const std::string& text) {
  if (text.empty()) return ConfigRequest{};
  if (text.find('=') == std::string::npos) return parse_words(text);
  ConfigRequest request;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    DUALGEMM_TRY(parse_pair(std::string_view(text).substr(begin, end - begin), request));
    begin = end + 1;
  }
  return request;
}

std::string text_of(const PlanConstraints& constraints) {
  std::string text = constraints.kernel.any() ? "" : "kernel=" + constraints.kernel.name();
  for (const Key& key : kKeys) {
    const int64_t wanted = constraints.*key.wanted;
    if (wanted < 0) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", key.name, wanted);
  }
  return text;
}

}  // namespace dualgemm::plan
