#include "parse/scope.hpp"

#include <utility>

#include <fmt/format.h>

namespace ptxsim {
namespace {

constexpr size_t kMaxNesting = 64;  // the deepest seen in compiled code is 3

Operand label_operand(uint32_t statement) {
  Operand operand;
  operand.kind = Operand::Kind::kLabel;
  operand.label = statement;
  return operand;
}

Operand prototype_operand(uint32_t prototype) {
  Operand operand;
  operand.kind = Operand::Kind::kPrototype;
  operand.symbol = prototype;
  return operand;
}

}  // namespace

void Scopes::open(const Token& at) {
  if (scopes_.size() == kMaxNesting) {
    lexer_.fail(at, fmt::format("scopes nested more than {} deep", kMaxNesting));
  }
  scopes_.emplace_back();
}

void Scopes::declare(const Token& name, std::string_view spelling, Symbol symbol) {
  Scope& scope = scopes_.back();
  if (scope.labels.contains(spelling) || !scope.symbols.emplace(spelling, symbol).second) {
    lexer_.fail(name, fmt::format("{} is already declared in this scope", in_quotes(spelling)));
  }
}

const Symbol* Scopes::find(std::string_view name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto found = scope->symbols.find(name);
    if (found != scope->symbols.end()) return &found->second;
  }
  return nullptr;
}

void Scopes::declare_label(const Token& name, Label label) {
  Scope& scope = scopes_.back();
  if (scope.symbols.contains(name.text) || !scope.labels.emplace(name.text, label).second) {
    lexer_.fail(name, fmt::format("{} is already declared in this scope", in_quotes(name.text)));
  }
}

uint32_t Scopes::add_target_list(const std::vector<Token>& names) {
  const auto list = static_cast<uint32_t>(target_lists_.size());
  target_lists_.emplace_back(names.size());
  for (uint32_t i = 0; i < names.size(); ++i) {
    scopes_.back().pending.push_back({names[i], true, list, i, {}});
  }
  return list;
}

void Scopes::use_label(const Token& name, uint32_t statement, uint32_t operand) {
  scopes_.back().pending.push_back({name, false, statement, operand, {}});
}

// Moves the uses of this scope's labels to resolved_ and leaves the others in scope.pending.
void Scopes::resolve(Scope& scope) {
  std::vector<Use> left;
  for (Use& use : scope.pending) {
    const auto found = scope.labels.find(use.name.text);
    if (found == scope.labels.end()) {
      left.push_back(use);
      continue;
    }
    use.label = found->second;
    if (use.in_list && use.label.kind != Label::Kind::kStatement) {
      lexer_.fail(use.name,
                  fmt::format("{} is {}, not a label", in_quotes(use.name.text),
                              use.label.kind == Label::Kind::kTargets ? "a list of targets"
                                                                      : "a prototype"));
    }
    resolved_.push_back(use);
  }
  scope.pending = std::move(left);
}

void Scopes::close() {
  resolve(scopes_.back());
  std::vector<Use> left = std::move(scopes_.back().pending);
  scopes_.pop_back();
  std::vector<Use>& outer = scopes_.back().pending;
  outer.insert(outer.end(), left.begin(), left.end());
}

void Scopes::finish(std::vector<Statement>& statements) {
  resolve(scopes_.front());
  if (!scopes_.front().pending.empty()) {
    const Token& name = scopes_.front().pending.front().name;
    lexer_.fail(name, fmt::format("{} is not declared, and no label of this scope or one around it",
                                  in_quotes(name.text)));
  }
  for (const Use& use : resolved_) {
    if (use.in_list) target_lists_[use.owner][use.position] = use.label.index;
  }
  for (const Use& use : resolved_) {
    if (use.in_list) continue;
    Operand& operand = statements[use.owner].operands[use.position];
    if (use.label.kind != Label::Kind::kTargets) {
      operand = use.label.kind == Label::Kind::kStatement ? label_operand(use.label.index)
                                                          : prototype_operand(use.label.index);
      continue;
    }
    operand = {};
    operand.kind = Operand::Kind::kVector;
    for (uint32_t target : target_lists_[use.label.index]) {
      operand.parts.push_back(label_operand(target));
    }
  }
}

}  // namespace ptxsim
