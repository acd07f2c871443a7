#include "ptxsim/parse/scope.hpp"

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

}  // namespace

void Scopes::open(const Token& at) {
  if (blocks_.size() == kMaxNesting) {
    lexer_.fail(at, fmt::format("blocks nested more than {} deep", kMaxNesting));
  }
  blocks_.emplace_back();
}

void Scopes::declare(const Token& name, std::string_view spelling, Symbol symbol) {
  Block& block = blocks_.back();
  if (block.labels.contains(spelling) || !block.symbols.emplace(spelling, symbol).second) {
    lexer_.fail(name, fmt::format("{} is already declared in this block", in_quotes(spelling)));
  }
}

const Symbol* Scopes::find(std::string_view name) const {
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
    const auto found = block->symbols.find(name);
    if (found != block->symbols.end()) return &found->second;
  }
  return nullptr;
}

void Scopes::declare_label(const Token& name, Label label) {
  Block& block = blocks_.back();
  if (block.symbols.contains(name.text) || !block.labels.emplace(name.text, label).second) {
    lexer_.fail(name, fmt::format("{} is already declared in this block", in_quotes(name.text)));
  }
}

uint32_t Scopes::add_target_list(const std::vector<Token>& names) {
  const auto list = static_cast<uint32_t>(target_lists_.size());
  target_lists_.emplace_back(names.size());
  for (uint32_t i = 0; i < names.size(); ++i) {
    blocks_.back().pending.push_back({names[i], true, list, i, {}});
  }
  return list;
}

void Scopes::use_label(const Token& name, uint32_t statement, uint32_t operand) {
  blocks_.back().pending.push_back({name, false, statement, operand, {}});
}

// Moves the uses of this block's labels to resolved_ and leaves the others in block.pending.
void Scopes::resolve(Block& block) {
  std::vector<Use> left;
  for (Use& use : block.pending) {
    const auto found = block.labels.find(use.name.text);
    if (found == block.labels.end()) {
      left.push_back(use);
      continue;
    }
    use.label = found->second;
    if (use.in_list && use.label.is_list) {
      lexer_.fail(use.name,
                  fmt::format("{} is a list of targets, not a label", in_quotes(use.name.text)));
    }
    resolved_.push_back(use);
  }
  block.pending = std::move(left);
}

void Scopes::close() {
  resolve(blocks_.back());
  std::vector<Use> left = std::move(blocks_.back().pending);
  blocks_.pop_back();
  std::vector<Use>& outer = blocks_.back().pending;
  outer.insert(outer.end(), left.begin(), left.end());
}

void Scopes::finish(std::vector<Statement>& statements) {
  resolve(blocks_.front());
  if (!blocks_.front().pending.empty()) {
    const Token& name = blocks_.front().pending.front().name;
    lexer_.fail(name, fmt::format("{} is not declared, and no label of this block or one around it",
                                  in_quotes(name.text)));
  }
  for (const Use& use : resolved_) {
    if (use.in_list) target_lists_[use.owner][use.position] = use.label.index;
  }
  for (const Use& use : resolved_) {
    if (use.in_list) continue;
    Operand& operand = statements[use.owner].operands[use.position];
    if (!use.label.is_list) {
      operand = label_operand(use.label.index);
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
