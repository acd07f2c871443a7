// Lays out memory, and starts clusters: registers that hold special values and
// addresses.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "machine/execution.hpp"
#include "machine/machine.hpp"

namespace ptxsim {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw Fault(message, ErrorKind::kInput); }

Dim3 unflatten(uint64_t index, const Dim3& extent) {
  return {static_cast<uint32_t>(index % extent[0]),
          static_cast<uint32_t>(index / extent[0] % extent[1]),
          static_cast<uint32_t>(index / extent[0] / extent[1])};
}

uint64_t lane_mask(SpecialKind kind, uint32_t lane) {
  const uint32_t eq = 1u << lane;
  switch (kind) {
    case SpecialKind::kLanemaskEq:
      return eq;
    case SpecialKind::kLanemaskLt:
      return eq - 1;
    case SpecialKind::kLanemaskLe:
      return eq | (eq - 1);
    case SpecialKind::kLanemaskGt:
      return ~(eq | (eq - 1)) & 0xffffffffu;
    default:
      return ~(eq - 1) & 0xffffffffu;  // ge
  }
}

// PTX ISA 9.0, "Special Registers".
uint64_t special_value(const Machine& machine, const Cta& cta, const Warp& warp, uint32_t lane,
                       const StartValue& v) {
  const Launch& launch = machine.launch();
  const uint32_t thread = warp.index * kWarpSize + lane;
  const Dim3 clusters{launch.grid[0] / launch.cluster[0], launch.grid[1] / launch.cluster[1],
                      launch.grid[2] / launch.cluster[2]};
  const uint64_t linear_cta =
      cta.ctaid[0] +
      uint64_t{launch.grid[0]} * (cta.ctaid[1] + uint64_t{launch.grid[1]} * cta.ctaid[2]);
  switch (v.special) {
    case SpecialKind::kTid:
      return unflatten(thread, launch.block)[v.axis];
    case SpecialKind::kNtid:
      return launch.block[v.axis];
    case SpecialKind::kCtaid:
      return cta.ctaid[v.axis];
    case SpecialKind::kNctaid:
      return launch.grid[v.axis];
    case SpecialKind::kClusterid:
      return cta.cluster.clusterid[v.axis];
    case SpecialKind::kNclusterid:
      return clusters[v.axis];
    case SpecialKind::kClusterCtaid:
      return unflatten(cta.rank, launch.cluster)[v.axis];
    case SpecialKind::kClusterNctaid:
      return launch.cluster[v.axis];
    case SpecialKind::kClusterCtarank:
      return cta.rank;
    case SpecialKind::kClusterNctarank:
      return volume(launch.cluster);
    case SpecialKind::kIsExplicitCluster:
      return volume(launch.cluster) > 1;
    case SpecialKind::kLaneid:
      return lane;
    case SpecialKind::kWarpid:
      return warp.index;
    case SpecialKind::kNwarpid:
      return (cta.threads + kWarpSize - 1) / kWarpSize;
    case SpecialKind::kSmid:
      return linear_cta % machine.options().num_sms;
    case SpecialKind::kNsmid:
      return machine.options().num_sms;
    case SpecialKind::kGridid:
      return 1;
    case SpecialKind::kDynamicSmemSize:
      return launch.dynamic_shared_bytes;
    case SpecialKind::kTotalSmemSize:
      return cta.shared.bytes() - kSharedBegin;
    case SpecialKind::kAggrSmemSize:
      return cta.shared.bytes();
    case SpecialKind::kReservedSmemOffsetBegin:
      return 0;
    case SpecialKind::kReservedSmemOffsetEnd:
      return kReservedEnd;
    case SpecialKind::kReservedSmemOffsetCap:
      return kSharedBegin;
    case SpecialKind::kReservedSmemOffset0:
      return 0;
    case SpecialKind::kReservedSmemOffset1:
      return kReservedForGroups;
    case SpecialKind::kWarpSz:
      return kWarpSize;
    case SpecialKind::kCurrentGraphExec:
      return 0;  // not launched by a graph
    case SpecialKind::kLanemaskEq:
    case SpecialKind::kLanemaskLe:
    case SpecialKind::kLanemaskLt:
    case SpecialKind::kLanemaskGe:
    case SpecialKind::kLanemaskGt:
      return lane_mask(v.special, lane);
    default:
      return 0;  // the clocks: read when executed (insn/alu/mov.cpp)
  }
}

uint64_t start_value(const Machine& machine, const Cta& cta, const Warp& warp, uint32_t lane,
                     const StartValue& v) {
  const Program& program = machine.program();
  switch (v.kind) {
    case StartValue::Kind::kSpecial:
      return special_value(machine, cta, warp, lane, v);
    case StartValue::Kind::kSharedAddress:
      return shared_address(cta,
                            static_cast<uint32_t>(program.shared_offsets[v.symbol] + v.offset));
    case StartValue::Kind::kParamAddress:
      return program.entry->variables[v.symbol].offset + v.offset;
    case StartValue::Kind::kLocalAddress:
      return program.entry->variables[v.symbol].offset + v.offset;
    case StartValue::Kind::kConstAddress:
      return machine.const_address(v.symbol) + v.offset;
    case StartValue::Kind::kGlobalAddress:
      return machine.module_global_address(v.symbol) + v.offset;
  }
  return 0;
}

void start_warp(const Machine& machine, Cta& cta, uint32_t index) {
  auto warp = std::make_unique<Warp>();
  warp->cta = &cta;
  warp->index = index;
  const uint32_t lanes = std::min<uint32_t>(kWarpSize, cta.threads - index * kWarpSize);
  warp->live = lanes == kWarpSize ? 0xffffffffu : (1u << lanes) - 1;
  const Program& program = machine.program();
  const size_t lines = (program.register_bytes + 63) / 64;
  warp->registers = take_register_file(lines);
  // An unwritten register holds NaN.
  for (const RegisterRange& range : program.poisoned)
    std::fill_n(reinterpret_cast<uint32_t*>(warp->file() + range.at), range.bytes / 4, kPoisonWord);
  warp->pc.fill(program.start);
  warp->local_stride = program.entry->local_bytes;
  warp->local_top.fill(program.entry->local_bytes);
  warp->local.resize(warp->local_stride * kWarpSize);
  for (const StartValue& v : program.start_values)
    for (uint32_t lane = 0; lane < kWarpSize; ++lane) {
      const uint64_t value = start_value(machine, cta, *warp, lane, v);
      std::memcpy(warp->file() + v.slot.at + size_t{v.bytes} * lane, &value,
                  v.bytes);  // little endian
    }
  cta.warps.push_back(std::move(warp));
}

}  // namespace

Machine::Machine(std::shared_ptr<const Program> program, const Launch& launch, GlobalMemory& global,
                 const Options& options, Reports& reports, std::vector<MakeObserver> observers)
    : program_(std::move(program)),
      launch_(launch),
      global_(global),
      options_(options),
      reports_(reports),
      make_observers_(std::move(observers)),
      random_(options.seed) {
  check_launch(*program_, launch_);
  reports_.strict = options_.strict;
  if (options_.resident_clusters == 0) refuse("resident clusters: 0; at least 1");
  shared_bytes_ = static_cast<uint32_t>(kSharedBegin + program_->static_shared_bytes +
                                        launch_.dynamic_shared_bytes);
  global_.check_uninitialized = options_.check_uninitialized;
  places_ = options_.resident_clusters;
  most_places_ = options_.admits_more
                     ? std::max(places_, clusters_that_fit(launch_,
                                                           program_->static_shared_bytes +
                                                               launch_.dynamic_shared_bytes,
                                                           options_))
                     : places_;
  lay_out_module_memory();
  const uint64_t clusters = volume(launch_.grid) / volume(launch_.cluster);
  const uint64_t run =
      options_.sample == 0 ? clusters : std::min<uint64_t>(clusters, options_.sample);
  for (uint64_t i = 0; i < run; ++i)
    pending_clusters_.push_back(static_cast<uint32_t>(i * clusters / run));
  stats_.clusters_left_out = clusters - run;
  stats_.by_warp.assign((volume(launch_.block) + kWarpSize - 1) / kWarpSize, 0);
  stats_.by_statement.assign(program_->insns.size(), 0);
}

Machine::~Machine() = default;

// .const and .global variables of the module.
void Machine::lay_out_module_memory() {
  uint64_t next_global = kModuleGlobalBase;
  const auto& variables = program_->entry->variables;
  std::vector<uint32_t> to_resolve;  // those whose initial values are addresses
  for (uint32_t i = 0; i < variables.size(); ++i) {
    const Variable& v = variables[i];
    const uint64_t bytes = std::max<uint64_t>(v.bytes, 1);
    if (v.space == Space::kConst) {
      const uint64_t offset = (const_bank_.size() + 63) / 64 * 64;
      const_bank_.resize(offset + bytes);
      std::memcpy(const_bank_.data() + offset, v.initial.data(), v.initial.size());
      symbol_addresses_[i] = kConstWindow + offset;
      if (!v.addresses.empty()) to_resolve.push_back(i);
    } else if (v.space == Space::kGlobal) {
      const std::string name = "module variable " + v.name;
      GlobalBuffer* buffer = global_.find(name);
      if (buffer == nullptr) {
        std::vector<std::byte> data(bytes);
        std::memcpy(data.data(), v.initial.data(), v.initial.size());
        while (global_.find(next_global) != nullptr) next_global += 1 << 20;
        buffer = &global_.add(name, next_global, std::move(data), true, false);
        if (!v.addresses.empty()) to_resolve.push_back(i);
      }
      symbol_addresses_[i] = buffer->address;
      next_global = (buffer->address + bytes + 0xffff) / 0x1'0000 * 0x1'0000;
    }
  }
  for (const uint32_t i : to_resolve) set_initial_addresses(i);
}

void Machine::set_initial_addresses(uint32_t symbol) {
  const uint64_t at = symbol_addresses_.at(symbol);
  const Variable& v = program_->entry->variables[symbol];
  std::byte* bytes = v.space == Space::kConst ? const_bank_.data() + (at - kConstWindow)
                                              : global_.write(at, v.bytes);
  for (const InitialAddress& a : v.addresses) {
    const uint64_t value =
        (a.is_function ? code_address(a.symbol) : symbol_addresses_.at(a.symbol)) + a.offset;
    std::memcpy(bytes + a.at, &value, sizeof value);  // little endian
  }
}

uint64_t Machine::module_global_address(uint32_t symbol) const {
  return symbol_addresses_.at(symbol);
}
uint64_t Machine::const_address(uint32_t symbol) const { return symbol_addresses_.at(symbol); }

void Machine::launch_next_cluster() {
  const uint32_t index = pending_clusters_.front();
  pending_clusters_.pop_front();
  auto cluster =
      std::make_unique<Cluster>(*this, index, options_.seed * 0x9e3779b97f4a7c15u + index);
  const Dim3 clusters{launch_.grid[0] / launch_.cluster[0], launch_.grid[1] / launch_.cluster[1],
                      launch_.grid[2] / launch_.cluster[2]};
  cluster->clusterid = unflatten(index, clusters);
  const uint32_t threads = static_cast<uint32_t>(volume(launch_.block));
  for (uint32_t rank = 0; rank < volume(launch_.cluster); ++rank) {
    auto cta = std::make_unique<Cta>(*cluster, rank, shared_bytes_, threads);
    const Dim3 in_cluster = unflatten(rank, launch_.cluster);
    for (int i = 0; i < 3; ++i)
      cta->ctaid[i] = cluster->clusterid[i] * launch_.cluster[i] + in_cluster[i];
    for (uint32_t w = 0; w * kWarpSize < threads; ++w) start_warp(*this, *cta, w);
    cluster->live_threads += threads;
    cluster->ctas.push_back(std::move(cta));
  }
  for (const MakeObserver& make : make_observers_) cluster->observers.add(make(*cluster));
  resident_.push_back(std::move(cluster));
}

bool Machine::cancel_pending_cluster(Dim3& first_ctaid) {
  if (pending_clusters_.empty() || options_.all_clusters_started) return false;
  const Dim3 clusters{launch_.grid[0] / launch_.cluster[0], launch_.grid[1] / launch_.cluster[1],
                      launch_.grid[2] / launch_.cluster[2]};
  const Dim3 id = unflatten(pending_clusters_.front(), clusters);
  pending_clusters_.pop_front();
  for (int i = 0; i < 3; ++i) first_ctaid[i] = id[i] * launch_.cluster[i];
  return true;
}

}  // namespace ptxsim
