#include "kernels/suite/case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "core/enum_table.hpp"
#include "support/every_activation.hpp"

namespace dualgemm::test {
namespace {

struct Word {
  std::string text;
  int64_t value;
};
using Words = std::vector<Word>;

template <class Enum>
Words words_of() {
  Words words;
  for (const auto& row : core::kEnumRows<Enum>)
    words.push_back({row.name, static_cast<int64_t>(row.value)});
  return words;
}

const Words kLayouts{{"linear", static_cast<int64_t>(ScaleLayout::kLinear)},
                     {"swizzled", static_cast<int64_t>(ScaleLayout::kSwizzled128x4)}};
const Words kValues{{"random", static_cast<int64_t>(Values::kRandom)},
                    {"exact", static_cast<int64_t>(Values::kExact)},
                    {"challenge", static_cast<int64_t>(Values::kChallenge)},
                    {"wide", static_cast<int64_t>(Values::kWide)}};
const Words kTypeBits{{"e2m1", 1}, {"f16", 2}, {"bf16", 4}};

// every_activation(), and behind them each kind without a parameter.
const std::vector<Activation>& activations() {
  static const std::vector<Activation> all = [] {
    std::vector<Activation> list = every_activation();
    for (const auto& row : core::kEnumRows<ActivationKind>) list.push_back({.kind = row.value});
    return list;
  }();
  return all;
}
Words words_of_activations() {
  Words words;
  const auto behind = static_cast<int64_t>(every_activation().size());
  for (const auto& row : core::kEnumRows<ActivationKind>)
    words.push_back({row.name, behind + static_cast<int64_t>(row.value)});
  return words;
}

struct Field {
  std::string name;
  Words words;
  void (*set)(TestCase& c, int64_t value);
};

#define DUALGEMM_SET(target) \
  [](TestCase& c, int64_t v) { target = static_cast<decltype(target)>(v); }

std::vector<Field> fields_of_problem() {
  const Words types = words_of<DataType>();
  return {
      {"m", {}, DUALGEMM_SET(c.problem.m)},
      {"n", {}, DUALGEMM_SET(c.problem.n)},
      {"k", {}, DUALGEMM_SET(c.problem.k)},
      {"l", {}, DUALGEMM_SET(c.problem.l)},
      {"a", types, DUALGEMM_SET(c.problem.a.type)},
      {"d", types, DUALGEMM_SET(c.problem.d.type)},
      {"scales", kLayouts,  // of all three
       [](TestCase& c, int64_t v) {
         for (Matrix* matrix : {&c.problem.a, &c.problem.gate, &c.problem.up})
           matrix->scale_layout = static_cast<ScaleLayout>(v);
       }},
      {"weight_scales", kLayouts,
       [](TestCase& c, int64_t v) {
         for (Matrix* matrix : {&c.problem.gate, &c.problem.up})
           matrix->scale_layout = static_cast<ScaleLayout>(v);
       }},
      {"a.scales", kLayouts, DUALGEMM_SET(c.problem.a.scale_layout)},
      {"gate.scales", kLayouts, DUALGEMM_SET(c.problem.gate.scale_layout)},
      {"up.scales", kLayouts, DUALGEMM_SET(c.problem.up.scale_layout)},
      {"d.scales", kLayouts, DUALGEMM_SET(c.problem.d.scale_layout)},
      {"a.ld", {}, DUALGEMM_SET(c.problem.a.ld)},
      {"gate.ld", {}, DUALGEMM_SET(c.problem.gate.ld)},
      {"up.ld", {}, DUALGEMM_SET(c.problem.up.ld)},
      {"d.ld", {}, DUALGEMM_SET(c.problem.d.ld)},
      {"a.batch_stride", {}, DUALGEMM_SET(c.problem.a.batch_stride)},
      {"gate.batch_stride", {}, DUALGEMM_SET(c.problem.gate.batch_stride)},
      {"d.batch_stride", {}, DUALGEMM_SET(c.problem.d.batch_stride)},
      {"a.scale_ld", {}, DUALGEMM_SET(c.problem.a.scale_ld)},
      {"gate.scale_ld", {}, DUALGEMM_SET(c.problem.gate.scale_ld)},
      {"up.scale_ld", {}, DUALGEMM_SET(c.problem.up.scale_ld)},
      {"a.scale_batch_stride", {}, DUALGEMM_SET(c.problem.a.scale_batch_stride)},
      {"up.scale_batch_stride", {}, DUALGEMM_SET(c.problem.up.scale_batch_stride)},
      {"act", words_of_activations(),
       [](TestCase& c, int64_t v) { c.problem.act = activations().at(static_cast<size_t>(v)); }},
      {"half_beta",
       {},  // of activations with parameters
       [](TestCase& c, int64_t v) {
         if (v != 0 && core::takes_parameters(c.problem.act.kind)) c.problem.act.beta = 0.5f;
       }},
      {"bias", words_of<BiasType>(), DUALGEMM_SET(c.problem.bias)},
      {"batch_invariant", {}, DUALGEMM_SET(c.problem.batch_invariant)},
      {"up_column",
       {},  // of two products side by side
       [](TestCase& c, int64_t v) {
         c.problem.combine = Combine::kSideBySide;
         c.problem.up_column = v;
       }},
  };
}

std::vector<Field> fields_of_setting() {
  return {
      {"tile_m", {}, DUALGEMM_SET(c.setting.tile_m)},
      {"tile_n", {}, DUALGEMM_SET(c.setting.tile_n)},
      {"split", {}, DUALGEMM_SET(c.setting.split)},
      {"max_ctas", {}, DUALGEMM_SET(c.setting.max_ctas)},
      {"passes", {{"fused", 0}, {"sequential", 1}, {"gate_up", 2}}, DUALGEMM_SET(c.setting.passes)},
      {"prepared", {}, DUALGEMM_SET(c.setting.prepared)},
      {"other_kernel", {}, DUALGEMM_SET(c.setting.other_kernel)},
      {"misalign", {}, DUALGEMM_SET(c.setting.misalign)},
      {"misalign_a_scales", {}, DUALGEMM_SET(c.setting.misalign_a_scales)},
      {"seed", {}, DUALGEMM_SET(c.setting.seed)},
  };
}

std::vector<Field> fields_of_checks() {
  return {
      {"values", kValues, DUALGEMM_SET(c.values)},
      {"factors", {}, DUALGEMM_SET(c.factors)},
      {"bits", {}, DUALGEMM_SET(c.bits)},
      {"extreme", {}, DUALGEMM_SET(c.extreme)},
      {"gaps", {}, DUALGEMM_SET(c.gaps)},
      {"nan_a", {}, [](TestCase& c, int64_t v) { c.nan_a = v; }},
      {"nan_gate", {}, [](TestCase& c, int64_t v) { c.nan_gate.push_back(v); }},
      {"nan_gate_2", {}, [](TestCase& c, int64_t v) { c.nan_gate.push_back(v); }},
      {"nan_up", {}, [](TestCase& c, int64_t v) { c.nan_up.push_back(v); }},
      {"nan_up_2", {}, [](TestCase& c, int64_t v) { c.nan_up.push_back(v); }},
      {"types", kTypeBits, DUALGEMM_SET(c.types)},
      {"rows", {}, DUALGEMM_SET(c.rows)},
      {"columns", {}, DUALGEMM_SET(c.columns)},
      {"groups", {}, DUALGEMM_SET(c.groups)},
      {"wrap_m", {}, DUALGEMM_SET(c.wrap_m)},
      {"clamp_m", {}, DUALGEMM_SET(c.clamp_m)},
      {"dense_d", {}, DUALGEMM_SET(c.dense_d)},
      {"any_misalign", {}, DUALGEMM_SET(c.any_misalign)},
      {"changing_ctas", {}, DUALGEMM_SET(c.changing_ctas)},
  };
}
#undef DUALGEMM_SET

const std::vector<Field>& fields() {
  static const std::vector<Field> all = [] {
    std::vector<Field> list = fields_of_problem();
    for (const auto& more : {fields_of_setting(), fields_of_checks()})
      list.insert(list.end(), more.begin(), more.end());
    return list;
  }();
  return all;
}

const Field* find_field(const std::string& name) {
  const auto found = std::find_if(fields().begin(), fields().end(),
                                  [&](const Field& field) { return field.name == name; });
  return found == fields().end() ? nullptr : &*found;
}

using Instances = std::vector<CaseValues>;

CaseVocabulary vocabulary_of(const Instances& instances) {
  return {
      .has = [](const std::string& key) { return key == "instance" || find_field(key) != nullptr; },
      .word = [](const std::string& key, const std::string& text) -> std::optional<int64_t> {
        const Field* const field = find_field(key);
        if (field == nullptr) return std::nullopt;
        for (const Word& word : field->words) {
          if (word.text == text) return word.value;
        }
        return std::nullopt;
      },
      .count = [&instances](const std::string& key) -> int64_t {
        if (key == "instance") return static_cast<int64_t>(instances.size());
        return key == "act" ? static_cast<int64_t>(every_activation().size()) : 0;
      },
      .implied =
          [&instances](const std::string& key, int64_t value) {
            return key == "instance" ? instances.at(static_cast<size_t>(value)) : CaseValues{};
          }};
}

// In the order of the fields: activations come before what changes them.
TestCase made_of(const CaseValues& values) {
  TestCase c;
  for (const Field& field : fields()) {
    const auto found = values.find(field.name);
    if (found != values.end()) field.set(c, found->second);
  }
  return c;
}

}  // namespace

Expected<std::vector<TestCase>> cases_of(const CaseSection& section, const KernelRow& row) {
  const Instances instances = row.instances == nullptr ? Instances{} : row.instances();
  std::vector<TestCase> cases;
  for (const CaseLine& line : section.lines) {
    const auto expanded = expand(line, vocabulary_of(instances));
    if (!expanded.ok()) return expanded.status();
    for (const CaseValues& values : *expanded) cases.push_back(made_of(values));
  }
  return cases;
}

std::string describe(const TestCase& c) {
  const Problem& p = c.problem;
  const Setting& s = c.setting;
  return fmt::format(
      "m {} n {} k {} l {}, a {}, {} scales, d {} {} ld {}, {}, bias {}, tile {} x {}, split {}, "
      "max_ctas {}, passes {}, misalign {} and {}, seed {}{}{}",
      p.m, p.n, p.k, p.l, name_of(p.a.type), name_of(p.gate.scale_layout), name_of(p.d.type),
      name_of(p.d.scale_layout), p.d.ld, name_of(p.act.kind), name_of(p.bias), s.tile_m, s.tile_n,
      s.split, s.max_ctas, s.passes, s.misalign, s.misalign_a_scales, s.seed,
      s.prepared ? ", prepared" : "", s.other_kernel ? ", by the other kernel" : "");
}

}  // namespace dualgemm::test
