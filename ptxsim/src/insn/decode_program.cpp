// An entry as a whole: its shared memory, its statements one after the other, what they mean
// together.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "insn/registry.hpp"
#include "insn/undefined_registers.hpp"
#include "ir/link.hpp"
#include "ptxsim/insn/decode.hpp"

namespace ptxsim {
namespace {

// Shared variables in the order of their declaration, the dynamic array after them at its own
// alignment.
void lay_out_shared(Program& program) {
  const auto& variables = program.entry->variables;
  program.shared_offsets.assign(variables.size(), 0);
  uint64_t offset = kSharedLayoutBegin;
  const auto align = [&](uint64_t alignment) {
    offset = (offset + alignment - 1) / alignment * alignment;
  };
  for (size_t i = 0; i < variables.size(); ++i) {
    if (variables[i].space != Space::kShared || variables[i].is_extern) continue;
    align(std::max<uint32_t>(variables[i].alignment, 1));
    program.shared_offsets[i] = offset;
    offset += variables[i].bytes;
  }
  const uint64_t static_end = offset;
  uint64_t dynamic_begin = static_end;
  for (const Variable& variable :
       variables)  // all extern arrays are one, at the strictest alignment
    if (variable.space == Space::kShared && variable.is_extern) {
      align(std::max<uint32_t>(variable.alignment, 16));
      dynamic_begin = std::max(dynamic_begin, offset);
    }
  for (size_t i = 0; i < variables.size(); ++i)
    if (variables[i].space == Space::kShared && variables[i].is_extern)
      program.shared_offsets[i] = dynamic_begin;
  program.static_shared_bytes = dynamic_begin - kSharedLayoutBegin;
}

void decode_statement(Program& program, uint32_t index) {
  const Statement& statement = program.entry->statements[index];
  Insn& insn = program.insns[index];
  insn.statement = index;
  insn.first_use = static_cast<uint32_t>(program.uses.size());
  const Decoder* decoder = find_decoder(statement.root);
  if (decoder == nullptr)
    throw Fault(fmt::format("unknown instruction '{}'", statement.root), ErrorKind::kInput);
  program.traits[index] = decoder->traits_of(statement);
  Decode decode(program, statement, insn);
  if (statement.guarded) {
    Operand guard;
    guard.kind = Operand::Kind::kRegister;
    guard.reg = statement.guard;
    insn.guard = decode.predicate(guard);
    insn.guard_negated = statement.guard_negated;
  }
  decoder->decode(decode);
  decode.finish();
  insn.num_uses = static_cast<uint32_t>(program.uses.size()) - insn.first_use;
}

// Marks the statements that touch registers which asynchronous operations own for a time, and those
// that write registers which wgmma.mma_async takes as D or A.
void mark_owned_registers(Program& program) {
  const size_t lines = program.register_bytes / 64;
  std::vector<bool> is_ownable(lines, false), is_operand(lines, false);
  for (const Insn& insn : program.insns) {
    if (!insn.owns_registers) continue;
    for (const RegisterUse& use : program.uses_of(insn)) {
      is_ownable[use.at / 64] = true;
      if (insn.may_touch_owned) is_operand[use.at / 64] = true;
    }
  }
  for (Insn& insn : program.insns) {
    for (const RegisterUse& use : program.uses_of(insn)) {
      if (is_ownable[use.at / 64]) insn.touches_ownable = true;
      if (use.is_write && is_operand[use.at / 64] && !insn.may_touch_owned)
        insn.writes_operand = true;
    }
  }
}

const Entry* find_entry(const Module& module, std::string_view name) {
  const bool is_only = name.empty() && module.entries.size() == 1;
  for (const Entry& entry : module.entries) {
    if (!is_only && entry.name != name) continue;
    if (entry.is_read()) return &entry;
    throw Fault(fmt::format("entry '{}' was passed over: the module was loaded for another one",
                            entry.name),
                ErrorKind::kInput);
  }
  std::string names;
  for (const Entry& entry : module.entries) names += (names.empty() ? "" : ", ") + entry.name;
  throw Fault(fmt::format("entry '{}' is not in the module; it has: {}", name,
                          names.empty() ? "none" : names),
              ErrorKind::kInput);
}

// Registers with addresses of a function's own variables: each call fills them.
void find_frame_addresses(Program& program) {
  for (CalledFunction& function : program.functions)
    for (const StartValue& v : program.start_values) {
      const auto& own = function.frame_variables;
      if (v.kind != StartValue::Kind::kLocalAddress ||
          std::find(own.begin(), own.end(), v.symbol) == own.end())
        continue;
      const uint64_t offset = program.entry->variables[v.symbol].offset;
      function.frame_addresses.push_back(
          {v.slot, v.bytes, offset + static_cast<uint64_t>(v.offset)});
    }
}

// `find`: gives the entry; may throw.
template <class Find>
Result<std::shared_ptr<const Program>> decode_from(std::shared_ptr<const Module> module,
                                                   Find&& find) {
  auto program = std::make_shared<Program>();
  program->module = std::move(module);
  uint32_t index = 0;
  try {
    link(*program, find(*program->module),
         [](const Statement& s) { return traits_of(s).has(Trait::kCalls); });
    program->register_bytes = program->entry->register_bytes;
    lay_out_shared(*program);
    program->insns.resize(program->entry->statements.size());
    program->traits.resize(program->insns.size());
    for (; index < program->insns.size(); ++index) decode_statement(*program, index);
    find_frame_addresses(*program);
    mark_owned_registers(*program);
    program->poisoned = may_be_read_unwritten(*program);
  } catch (const Fault& fault) {
    Error error = fault.error();
    error.place.ptx_name = program->module->name;
    if (program->entry != nullptr && index < program->insns.size()) {
      error.place = place_of(*program, index);
      error.message += " in '" + program->entry->statements[index].text + "'";
    }
    return error;
  }
  return std::shared_ptr<const Program>(std::move(program));
}

}  // namespace

Result<std::shared_ptr<const Program>> decode(std::shared_ptr<const Module> module,
                                              std::string_view entry_name) {
  return decode_from(std::move(module),
                     [&](const Module& m) -> const Entry& { return *find_entry(m, entry_name); });
}

std::optional<Error> check_function(std::shared_ptr<const Module> module, uint32_t function) {
  const std::string name = module->functions.at(function).body.name;
  const auto program = decode_from(std::move(module), [&](const Module& m) -> const Entry& {
    return m.functions.at(function).body;
  });
  if (program.ok()) return std::nullopt;
  Error error = program.error();
  if (error.place.function.empty()) error.place.function = name;
  return error;
}

Place place_of(const Program& program, uint32_t statement) {
  Place place;
  place.ptx_name = program.module->name;
  if (statement >= program.entry->statements.size()) return place;
  const Statement& s = program.entry->statements[statement];
  place.ptx_line = s.line;
  if (const CalledFunction* function = program.function_of(statement))
    place.function = program.module->functions[function->function].body.name;
  if (s.loc >= 0) {
    const Location& location = program.module->locations[s.loc];
    const auto file = program.module->files.find(location.file);
    if (file != program.module->files.end()) place.source_file = file->second;
    place.source_line = location.line;
  }
  return place;
}

}  // namespace ptxsim
