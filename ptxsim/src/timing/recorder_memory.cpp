// Accesses of ordinary instructions: shared memory and its banks, global memory through L1 and L2,
// atomics.
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "timing/recorder_state.hpp"

namespace ptxsim::timing {
namespace {

constexpr uint32_t kBanks = 32, kBankBytes = 4;
constexpr uint32_t kWidestLoad = 16;
constexpr size_t kMergedLoads = 8;  // that may be under way between each other
// What memory reads at least: a gather of single sectors from it takes as long as twice its bytes
// (held against microbenchmarks.json, "gather in memory").
constexpr uint64_t kMemoryBytes = 64;
// A store of a part of a sector takes as long as 128 bytes ("stores by 32 words").
constexpr double kMemoryOfAPart = 4;
// How long L2 is busy with a write, in bytes that it would deliver meanwhile: for each sector, or,
// if that is longer, for each line ("copy 32 MiB in L2"; "scatter" of ordinary.json: 62 lines a
// ns).
constexpr size_t kMergedSectors = 64;
constexpr double kMerged = 0.35;     // of a write that fills a sector of the stores before
constexpr double kReadOfALine = 58;  // "gather in L2": 138 lines a ns
constexpr double kWriteOfASector = 55, kWriteOfALine = 129;
// Atomics of as many lines, in sectors of lines that all lanes use ("histogram_global").
constexpr double kAtomicOfALine = 1.85;
// More of its time than their bytes is taken by sectors that lie in lines of their own.
constexpr double kScattered = 0.5, kScatteredFactor = 1.15;
// What a load of global memory takes of L1, in accesses of the banks: one line after the other, and
// for the first of them more when all lanes want parts of their own (32 lanes of 4 bytes take 1.85
// clk of an H100's SM, "L1 rate"; 32 lanes of 16 bytes 4).
double accesses_of_l1(double lines, double sectors) {
  const double bytes = sectors * kSectorBytes / kLineBytes;  // in lines
  return std::max({0.95 * lines - (lines <= 2 ? 0.4 : 0), 1 + 0.6 * std::min(1.0, bytes), bytes});
}
// How long a line is busy with a warp's atomics, as atomics of one address: for each sector, 0.6 of
// 0.73 ns on an H100 ("atomics, 32 words", "atomics, one word"); those of floating-point numbers
// ("float_bins" of the third list).
constexpr double kSectorOfAtomics = 0.83, kFloatAtomic = 3.3;
// Atomics of lanes at one address, in sectors ("largest_of_groups" of the third list).
constexpr double kRepeatedAtomic = 3.3;
// Atomics of shared memory that meet in a bank, in accesses ("histogram_shared" of ordinary.json).
constexpr double kConflictOfAtomics = 1.6;
// On a GPU of no particular kind, as in latency.cpp.
constexpr double kNominalLoadClk = 600;

template <class T>
void sort_unique(std::vector<T>& list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

double lines_of(const std::vector<uint64_t>& sorted_sectors) {
  constexpr uint64_t kSectors = kLineBytes / kSectorBytes;
  double lines = 0;
  for (size_t i = 0; i < sorted_sectors.size(); ++i)
    if (i == 0 || sorted_sectors[i] / kSectors != sorted_sectors[i - 1] / kSectors) ++lines;
  return lines;
}

// How often the busiest bank is asked for words that differ. Lanes of 8 and 16 bytes go in two and
// four parts. Atomics of the same word come one after the other.
double accesses_of(const std::vector<SharedAccess>& lanes, bool one_by_one) {
  const uint32_t bytes = lanes.front().bytes;
  const bool is_one = std::all_of(lanes.begin(), lanes.end(), [&](const SharedAccess& lane) {
    return lane.offset == lanes.front().offset;
  });
  const size_t at_once = bytes <= kBankBytes || (is_one && !one_by_one) ? 32 : bytes <= 8 ? 16 : 8;
  double accesses = 0;
  for (size_t first = 0; first < lanes.size(); first += at_once) {
    std::vector<uint32_t> words;
    for (size_t i = first; i < std::min(first + at_once, lanes.size()); ++i)
      for (uint32_t w = lanes[i].offset / kBankBytes;
           w <= (lanes[i].offset + lanes[i].bytes - 1) / kBankBytes; ++w)
        words.push_back(w);
    if (!one_by_one) sort_unique(words);
    std::array<uint32_t, kBanks> of_bank{};
    for (const uint32_t word : words) ++of_bank[word % kBanks];
    accesses += *std::max_element(of_bank.begin(), of_bank.end());
  }
  return accesses;
}

}  // namespace

void Recorder::shared_access(const Execution& x, int, Cta&, uint32_t offset, uint32_t bytes,
                             AccessKind kind) {
  WarpState& w = state(x);
  w.shared.push_back({offset, bytes});
  w.reads_shared |= kind != AccessKind::kWrite;
  w.updates_shared |= kind == AccessKind::kAtomic;
}

void Recorder::add_shared(const Insn& insn, WarpState& w) {
  // A constant that all lanes add to one word is added once.
  const bool all_of_one = costs_[insn.statement].counts_up &&
                          std::all_of(w.shared.begin(), w.shared.end(), [&](const SharedAccess& a) {
                            return a.offset == w.shared.front().offset;
                          });
  const bool one_by_one = w.updates_shared && !all_of_one;
  if (w.reads_shared && !w.updates_shared && merges_with_earlier(w)) {
    w.slots -= costs_[insn.statement].expansion.slots;
    return;
  }
  if (w.reads_shared) w.flow.loads_after_stores(Space::kShared);
  if (!w.reads_shared || w.updates_shared) w.flow.stores(Space::kShared);
  double accesses = accesses_of(w.shared, one_by_one);
  if (w.updates_shared) accesses = 1 + kConflictOfAtomics * (accesses - 1);
  w.shared_bytes += accesses * kBanks * kBankBytes;
  if (w.reads_shared)
    w.more.add(Latency::kShared).add(Latency::kConflict, std::max(0.0, accesses - 1));
  w.shared.clear();
  w.reads_shared = w.updates_shared = false;
}

// ptxas makes one load of several whose words follow each other in 16 bytes that are aligned.
bool Recorder::merges_with_earlier(WarpState& w) {
  const auto follows = [&](const SharedLoad& load) {
    if (load.lanes.size() != w.shared.size()) return false;
    for (size_t i = 0; i < w.shared.size(); ++i) {
      const SharedAccess &before = load.lanes[i], &now = w.shared[i];
      if (now.offset != before.offset + before.bytes ||
          before.offset / kWidestLoad != (now.offset + now.bytes - 1) / kWidestLoad)
        return false;
    }
    return true;
  };
  const auto found = std::find_if(w.shared_loads.begin(), w.shared_loads.end(), follows);
  const bool merges = found != w.shared_loads.end();
  SharedLoad load = merges ? std::move(*found) : SharedLoad{};
  if (merges) w.shared_loads.erase(found);
  if (merges)
    for (size_t i = 0; i < w.shared.size(); ++i) load.lanes[i].bytes += w.shared[i].bytes;
  else
    load.lanes = w.shared;
  const double accesses = accesses_of(load.lanes, false);
  if (merges) {
    w.shared_bytes += std::max(0.0, accesses - load.accesses) * kBanks * kBankBytes;
    w.more.add(Latency::kShared).add(Latency::kConflict, accesses - 1);
    w.shared.clear();
    w.reads_shared = false;
  }
  load.accesses = std::max(accesses, load.accesses);
  w.shared_loads.insert(w.shared_loads.begin(), std::move(load));
  if (w.shared_loads.size() > kMergedLoads) w.shared_loads.pop_back();
  return merges;
}

void Recorder::global_access(const Execution& x, int, const MemoryAt& at, uint32_t bytes,
                             AccessKind kind) {
  if (at.space != Space::kGlobal) return;
  WarpState& w = state(x);
  if (kind == AccessKind::kAtomic) {
    w.atomics.push_back(at.offset);
    return;
  }
  if (kind == AccessKind::kWrite) {
    note_written(at.offset, bytes);
  }
  std::vector<uint64_t>& sectors = kind == AccessKind::kWrite ? w.written_sectors : w.read_sectors;
  for (uint64_t s = at.offset / kSectorBytes; s <= (at.offset + bytes - 1) / kSectorBytes; ++s)
    sectors.push_back(s);
}

void Recorder::note_written(uint64_t address, uint32_t bytes) {
  for (uint32_t i = 0; i < bytes; ++i)
    bytes_written_[(address + i) / kSectorBytes] |= 1u << ((address + i) % kSectorBytes);
}

// Memory reads what it is to write a part of, and has to write it whole.
double Recorder::written_factor() const {
  if (bytes_written_.empty()) return 1;
  const auto whole = static_cast<double>(std::count_if(
      bytes_written_.begin(), bytes_written_.end(), [](const auto& s) { return s.second == ~0u; }));
  const auto all = static_cast<double>(bytes_written_.size());
  return (whole + kMemoryOfAPart * (all - whole)) / all;
}

void Recorder::note_use(uint64_t buffer, bool is_write) {
  out_.uses.push_back({static_cast<uint32_t>(work().demands.size() - 1), buffer, is_write});
}

uint64_t Recorder::buffer_of(uint64_t sector) {
  const GlobalBuffer* buffer =
      cluster_.machine.global().find(sector * kSectorBytes + kSectorBytes - 1);
  return buffer == nullptr ? 0 : buffer->address;
}

double Recorder::new_bytes(std::unordered_set<uint64_t>& seen, const std::vector<uint64_t>& sectors,
                           uint64_t block) {
  double bytes = 0;
  for (const uint64_t sector : sectors)
    if (seen.insert(sector * kSectorBytes / block).second) bytes += static_cast<double>(block);
  return bytes;
}

// A piece of the CTA's global memory, when the statement under way has been issued.
uint32_t Recorder::add_access(const Execution& x, WarpState& w, const char* what, Delay delay,
                              std::span<const Demand> demands) {
  const Moment& when = w.flow.issued_now();
  std::vector<After> after{{w.flow.piece()}};
  if (when.piece != w.flow.piece()) after.push_back({when.piece});
  return work().add({.actor = ctas_[x.cta.rank].global,
                     .what = what,
                     .delay = delay,
                     .delay_first = true,
                     .chain = when.after},
                    demands, after);
}

void Recorder::add_global_read(const Execution& x, const Insn& insn, WarpState& w) {
  std::vector<uint64_t> sectors = std::exchange(w.read_sectors, {});
  sort_unique(sectors);
  const double lines = lines_of(sectors);
  if (!costs_[insn.statement].is_constant) w.flow.loads_after_stores(Space::kGlobal);
  w.shared_bytes += accesses_of_l1(lines, static_cast<double>(sectors.size())) * kLineBytes;
  if (!costs_[insn.statement].passes_l1)
    std::erase_if(sectors, [&](uint64_t s) { return l1_[x.cta.rank].read(s); });
  if (sectors.empty()) {
    w.more.add(Latency::kL1).add(Latency::kClk, lines - 1);
    w.flow.completes(insn, w.more);
    return;
  }
  const double bytes = static_cast<double>(sectors.size() * kSectorBytes);
  std::vector<Demand> needs{
      {Server::kIngest, x.cta.rank, bytes},
      {Server::kL2Access, 0, std::max(bytes, kReadOfALine * lines_of(sectors))}};
  const bool is_scattered = lines > kScattered * static_cast<double>(sectors.size());
  const double fresh =
      new_bytes(read_, sectors, kMemoryBytes) * (is_scattered ? kScatteredFactor : 1);
  if (fresh > 0) needs.push_back({Server::kHbm, 0, fresh});
  const uint32_t load =
      add_access(x, w, "global load", fresh > 0 ? Delay::kGlobalLoad : Delay::kL2Load, needs);
  if (fresh > 0) note_use(buffer_of(sectors.front()), false);
  w.flow.completes_with_load(insn, load, kNominalLoadClk);
}

void Recorder::add_global_write(const Execution& x, WarpState& w) {
  std::vector<uint64_t> sectors = std::exchange(w.written_sectors, {});
  sort_unique(sectors);
  w.stores = true;
  w.flow.stores(Space::kGlobal);
  const double lines = lines_of(sectors);
  w.shared_bytes += lines * kLineBytes;
  // Stores that follow each other and fill the same sectors become one.
  const auto merged = [&](uint64_t sector) {
    return std::find(w.latest_written.begin(), w.latest_written.end(), sector) !=
           w.latest_written.end();
  };
  std::vector<uint64_t> sent = sectors;
  std::erase_if(sent, merged);
  w.latest_written.insert(w.latest_written.begin(), sent.begin(), sent.end());
  w.latest_written.resize(std::min(w.latest_written.size(), kMergedSectors));
  std::vector<Demand> needs{
      {Server::kL2Access, 0,
       kMerged * kWriteOfASector * static_cast<double>(sectors.size() - sent.size()) +
           std::max(kWriteOfASector * static_cast<double>(sent.size()),
                    kWriteOfALine * lines_of(sent))}};
  const double fresh = new_bytes(written_, sectors, kSectorBytes);
  if (fresh > 0) needs.push_back({Server::kHbm, 0, fresh});
  add_access(x, w, "global store", Delay::kNone, needs);
  if (fresh > 0) note_use(buffer_of(sectors.front()), true);
}

// Lanes at one address wait for each other.
void Recorder::add_atomics(const Execution& x, const Insn& insn, WarpState& w) {
  std::vector<uint64_t> addresses = std::exchange(w.atomics, {});
  std::map<uint64_t, double> of_address, of_line;
  std::vector<uint64_t> sectors;
  for (const uint64_t address : addresses) {
    sectors.push_back(address / kSectorBytes);
    double& longest = of_line[address / kLineBytes];
    longest = std::max(longest, ++of_address[address]);
  }
  sort_unique(sectors);
  for (const auto& entry : of_line) {
    const uint64_t line = entry.first;
    const double longest = entry.second;
    const auto in_line =
        static_cast<double>(std::count_if(sectors.begin(), sectors.end(), [&](uint64_t sector) {
          return sector * kSectorBytes / kLineBytes == line;
        }));
    const double least =
        costs_[insn.statement].adds_floats ? kFloatAtomic : kSectorOfAtomics * in_line;
    out_.atomics[line] += std::max(longest, least);
  }
  double repeated = 0;  // atomics of addresses that several lanes have
  for (const auto& [address, times] : of_address) repeated += times > 1 ? times : 0;
  w.stores = true;
  const double lines = lines_of(sectors);
  w.shared_bytes += lines * kLineBytes;
  const auto count = static_cast<double>(sectors.size());
  const Demand needs[] = {
      {Server::kL2Access, 0, count * kSectorBytes},
      {Server::kAtomics, 0, std::max({count, kAtomicOfALine * lines, kRepeatedAtomic * repeated})}};
  const uint32_t piece = add_access(x, w, "atomics", Delay::kAtomic, needs);
  w.flow.completes_with_load(insn, piece, kNominalLoadClk);
}

double count_memory_once(Recording& recording, const GlobalMemory& memory, double clusters) {
  using Key = std::pair<uint64_t, bool>;
  std::map<Key, double> used;
  for (const RecordedCluster& cluster : recording.clusters)
    for (const BufferUse& u : cluster.uses)
      used[{u.buffer, u.is_write}] += cluster.work.demands[u.demand].amount;
  const double scale = clusters / static_cast<double>(recording.clusters.size());
  std::map<Key, double> part;
  double bytes = 0;
  for (const GlobalBuffer& buffer : memory.buffers()) {
    const auto size = static_cast<double>(buffer.data.size());
    double most = 0;
    for (const bool is_write : {false, true}) {
      const auto found = used.find({buffer.address, is_write});
      if (found == used.end()) continue;
      part[found->first] = std::min(1.0, size / (found->second * scale));
      most = std::max(most, std::min(size, found->second * scale));
    }
    bytes += most;
  }
  for (RecordedCluster& cluster : recording.clusters)
    for (const BufferUse& u : cluster.uses) {
      const auto found = part.find({u.buffer, u.is_write});
      if (found != part.end())
        cluster.work.demands[u.demand].amount *=
            found->second * (u.is_write ? cluster.written_factor : 1);
    }
  return bytes;
}

}  // namespace ptxsim::timing
