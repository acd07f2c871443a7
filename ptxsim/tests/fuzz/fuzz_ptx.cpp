// Any bytes as PTX text: parsed and each entry decoded, or refused with a place; what decodes is
// run for some hundred statements, in each schedule, with the sanitizer.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "ptxsim/ptxsim.hpp"

namespace {

using ptxsim::Entry;
using ptxsim::Module;
using ptxsim::Operand;

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const Entry& entry, const Module& module, const Operand& operand) {
  switch (operand.kind) {
    case Operand::Kind::kRegister:
      return require(operand.reg < entry.registers.size());
    case Operand::Kind::kSymbol:
      return require(operand.symbol < entry.variables.size());
    case Operand::Kind::kLabel:
      return require(operand.label < entry.statements.size());
    case Operand::Kind::kFunction:
      return require(operand.symbol < module.functions.size());
    case Operand::Kind::kPrototype:
      return require(operand.symbol < entry.prototypes.size());
    case Operand::Kind::kAddress:
      require(!operand.parts.empty());
      break;
    case Operand::Kind::kPair:
      require(operand.parts.size() == 2);
      break;
    default:
      break;
  }
  for (const Operand& part : operand.parts) check(entry, module, part);
}

void check(const Entry& entry, const Module& module) {
  require(!entry.statements.empty());  // at least the `ret` that ends the thread
  for (const ptxsim::Register& reg : entry.registers) {
    require(reg.offset % 64 == 0 && reg.offset < entry.register_bytes);
  }
  for (const ptxsim::Statement& statement : entry.statements) {
    if (statement.guarded) require(statement.guard < entry.registers.size());
    require(statement.loc < static_cast<int>(module.locations.size()));
    for (const Operand& operand : statement.operands) check(entry, module, operand);
  }
}

// Threads that a few words of text can ask for; what takes more is decoded only.
bool is_small(const Entry& entry) {
  const auto most = [](const std::array<uint32_t, 3>& extents, uint64_t limit) {
    uint64_t product = 1;
    for (const uint32_t extent : extents) product *= std::min<uint64_t>(extent, 1 << 20);
    return product <= limit;
  };
  return most(entry.reqntid, 128) && most(entry.reqnctapercluster, 4) &&
         entry.local_bytes <= 4096 && entry.register_bytes <= 1 << 17;
}

// Faults, reports and deadlocks are fine; what is not is found by the compiler's sanitizers.
void run(const std::shared_ptr<const ptxsim::Program>& program, ptxsim::Schedule schedule) {
  constexpr uint64_t kAddress = 0x10'0000'0000;
  const Entry& entry = *program->entry;
  ptxsim::GlobalMemory memory;
  std::vector<std::byte> data(4096);  // words of ones, which overflow, among different ones
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = static_cast<std::byte>(i / 16 % 4 == 0 ? 0xff : 37 * i);
  memory.add("data", kAddress, std::move(data), true, false);
  ptxsim::Launch launch;
  launch.block = entry.reqntid[0] != 0 ? ptxsim::Dim3(entry.reqntid) : ptxsim::Dim3{64, 1, 1};
  if (entry.reqnctapercluster[0] != 0) launch.grid = launch.cluster = entry.reqnctapercluster;
  launch.dynamic_shared_bytes = 16 << 10;
  for (uint64_t i = 0; i < entry.param_bytes; ++i)  // pointers to the buffer
    launch.params.push_back(static_cast<uint8_t>(kAddress >> (8 * (i % 8))));
  ptxsim::Options options;
  options.schedule = schedule;
  options.mma = ptxsim::MmaMode::kRounded;
  options.max_warp_instructions = 400;
  const ptxsim::RunResult result = ptxsim::run(program, launch, memory, options);
  if (result.error) require(!result.error->message.empty());
  if (result.error && result.error->kind != ptxsim::ErrorKind::kDeadlock)
    require(result.error->place.ptx_line >= 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // A few bytes of text can ask for a million registers: small limits keep the runs short.
  const ptxsim::ParseLimits limits{
      .text_bytes = 1 << 20, .registers = 2048, .initial_bytes = 1 << 16};
  auto module = ptxsim::parse(text, "fuzz.ptx", limits);
  if (!module) {
    require(module.error().place.ptx_line >= 1 && !module.error().message.empty());
    return 0;
  }
  const auto shared = std::make_shared<const Module>(std::move(module.value()));
  for (const ptxsim::Function& function : shared->functions)
    if (function.is_defined()) check(function.body, *shared);
  for (const Entry& entry : shared->entries) {
    check(entry, *shared);
    const auto program = ptxsim::decode(shared, entry.name);
    if (program) {
      const Entry& linked = *program.value()->entry;
      require(program.value()->insns.size() == linked.statements.size());
      require(program.value()->start + entry.statements.size() == linked.statements.size());
      if (!is_small(linked)) continue;
      for (const auto schedule :
           {ptxsim::Schedule::kEager, ptxsim::Schedule::kLazy, ptxsim::Schedule::kRandom})
        run(program.value(), schedule);
    } else {
      require(!program.error().message.empty());
    }
  }
  return 0;
}
