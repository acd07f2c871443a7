// A pool of helper threads without a lock in the way of a call. Teams have slots in static memory.
// A helper that was descheduled may look at a slot whose team has long gone, so it touches nothing
// but the slot's atomics until a compare-and-swap has given it a ticket; a helper with a ticket
// keeps the team alive, because the caller waits for all tickets. The number of the phase stands in
// the same word as the tickets: a stale helper's compare-and-swap fails.
#include "core/team.hpp"

#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "core/futex.hpp"
#include "core/usable_cores.hpp"

namespace dualgemm::core {
namespace {

using Clock = std::chrono::steady_clock;

// Long enough to bridge the gap between the calls of one layer and the next, and for a unit that
// is on its way to end; a wake-up costs about as much.
constexpr auto kSpin = std::chrono::microseconds(50);

constexpr int kMaxHelpers = kMaxTeam - 1;
constexpr int kSlots = 64;  // teams at a time; one more runs on its caller's thread alone
constexpr int kTicketBits = 24;
constexpr uint64_t kTicketMask = (uint64_t{1} << kTicketBits) - 1;
constexpr int64_t kMaxTickets = int64_t{1} << 20;
constexpr uint32_t kCallerSleeps = uint32_t{1} << 31;

// A wake-up costs the thread that makes it some microseconds: every thread that joins makes a few,
// so that the first unit begins soon and 16 threads are awake after two steps.
constexpr int kWakesOfCaller = 4, kWakesOfHelper = 3;

// What a team asks for between two barriers. Valid for a thread that holds one of its tickets.
struct Phase {
  void (*call)(const void* function, int64_t unit, int seat);
  const void* function;
  int64_t units, units_a_ticket;
  uint32_t tickets;

  void run_ticket(uint64_t left, int seat) const {
    const int64_t begin = static_cast<int64_t>(tickets - left) * units_a_ticket;
    const int64_t end = std::min(begin + units_a_ticket, units);
    for (int64_t unit = begin; unit < end; ++unit) call(function, unit, seat);
  }
};

// Which helpers may take part, and their seats: `count` of `of`, from `first` on, around the end.
struct Admission {
  uint16_t first = 0, count = 0, of = 1;
  int seat(int helper) const noexcept {  // 0: none
    if (helper >= of) return 0;
    const int offset = (helper + of - first) % of;
    return offset < count ? offset + 1 : 0;
  }
  int helper(int offset) const noexcept { return (first + offset) % of; }
};
uint64_t packed(const Admission& a) noexcept {
  return uint64_t{a.first} | uint64_t{a.count} << 16 | uint64_t{a.of} << 32;
}
Admission unpacked(uint64_t bits) noexcept {
  return {static_cast<uint16_t>(bits), static_cast<uint16_t>(bits >> 16),
          static_cast<uint16_t>(bits >> 32)};
}

struct alignas(64) Slot {
  std::atomic<uint64_t> tickets{0};  // number of the phase << kTicketBits | tickets left
  std::atomic<uint64_t> admission{0};
  std::atomic<uint32_t> to_wake{0};           // the next offset of Admission to look at
  std::atomic<int> processor{-1};             // that the caller was last seen on
  alignas(64) std::atomic<uint32_t> done{0};  // tickets of this phase; perhaps | kCallerSleeps
  alignas(64) std::atomic<bool> taken{false};
  Phase phase{};
  fenv_t environment{};  // of the caller
};

enum HelperState : uint32_t { kAwake = 0, kAsleep = 1 };

struct Pool {
  Slot slots[kSlots];
  alignas(64) std::atomic<uint32_t> published{0};  // phases so far
  std::atomic<bool> stop{false};
  std::atomic<int> used_slots{0};         // at the most, so far: what a helper has to look through
  alignas(64) std::atomic<int> seats{0};  // of all teams, callers not counted
  std::atomic<int> helpers{0};
  std::atomic<bool> creating{false};  // a lock that only stop_threads() waits for
  bool watches_fork = false;          // under `creating`, as the two below
  pid_t process = 0;
  pthread_t threads[kMaxHelpers]{};
  alignas(64) std::atomic<uint32_t> state[kMaxHelpers]{};  // HelperState
};
constinit Pool pool;  // no constructor runs, and none of its parts needs a destructor

void pause() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif  // Arm's yield: a hint for cores with several threads, of which GCC 12 has no builtin
}

// Until `ready` or `deadline`; the last answer of `ready`.
template <class Ready>
bool spin(Clock::time_point deadline, const Ready& ready) noexcept {
  do {
    for (int i = 0; i < 16; ++i) {
      if (ready()) return true;
      pause();
    }
  } while (Clock::now() < deadline);
  return ready();
}

// Wakes up to `wakes` sleeping helpers of the team; for a thread that holds a ticket of it, or owns
// it.
void wake_some(Slot& slot, int wakes) noexcept {
  const Admission team = unpacked(slot.admission.load(std::memory_order_relaxed));
  while (wakes > 0) {
    uint32_t offset = slot.to_wake.load(std::memory_order_relaxed);
    if (offset >= team.count) return;
    if (!slot.to_wake.compare_exchange_weak(offset, offset + 1, std::memory_order_relaxed))
      continue;
    std::atomic<uint32_t>& state = pool.state[team.helper(static_cast<int>(offset))];
    if (state.load(std::memory_order_seq_cst) != kAsleep) continue;
    if (state.exchange(kAwake, std::memory_order_seq_cst) != kAsleep) continue;
    futex_wake_one(state);
    --wakes;
  }
}

// The tickets that were left when one was taken; 0: none is.
uint64_t take_ticket(Slot& slot) noexcept {
  uint64_t seen = slot.tickets.load(std::memory_order_acquire);
  while ((seen & kTicketMask) != 0) {
    if (slot.tickets.compare_exchange_weak(seen, seen - 1, std::memory_order_acquire,
                                           std::memory_order_acquire))
      return seen & kTicketMask;
  }
  return 0;
}

// The same for a helper: a thread without a seat may not take a ticket. The admission belongs to
// the phase that the compare-and-swap confirms: it changes only while there are no tickets.
uint64_t take_ticket_as(int helper, Slot& slot, int& seat) noexcept {
  uint64_t seen = slot.tickets.load(std::memory_order_acquire);
  while ((seen & kTicketMask) != 0) {
    seat = unpacked(slot.admission.load(std::memory_order_relaxed)).seat(helper);
    if (seat == 0) return 0;
    if (slot.tickets.compare_exchange_weak(seen, seen - 1, std::memory_order_acquire,
                                           std::memory_order_acquire))
      return seen & kTicketMask;
  }
  return 0;
}

// The modes of the thread's arithmetic as the callers have them.
class Environment {
 public:
  void become(const fenv_t& wanted) noexcept {
    if (known_ && std::memcmp(&wanted, &current_, sizeof wanted) == 0) return;
    current_ = wanted;
    known_ = fesetenv(&wanted) == 0;
  }

 private:
  fenv_t current_{};
  bool known_ = false;
};

// A helper that runs here keeps the team's caller from running: the scheduler has woken it on the
// caller's processor because no other one was free.
bool is_in_the_way(const Slot& slot) noexcept {
  return sched_getcpu() == slot.processor.load(std::memory_order_relaxed);
}

// Takes tickets until none is left; whether there was one.
bool serve(Slot& slot, int helper, Environment& environment) noexcept {
  bool served = false;
  int seat = 0;
  if ((slot.tickets.load(std::memory_order_relaxed) & kTicketMask) != 0 && is_in_the_way(slot))
    sched_yield();
  while (!pool.stop.load(std::memory_order_relaxed)) {
    const uint64_t left = take_ticket_as(helper, slot, seat);
    if (left == 0) break;
    wake_some(slot, served ? 1 : kWakesOfHelper);
    environment.become(slot.environment);
    slot.phase.run_ticket(left, seat);
    const uint32_t all = slot.phase.tickets;
    const uint32_t before = slot.done.fetch_add(1, std::memory_order_acq_rel);
    if (before + 1 == (all | kCallerSleeps)) futex_wake_one(slot.done);
    served = true;
  }
  return served;
}

// The slot that was served last; null: none was.
const Slot* serve_all(int helper, Environment& environment) noexcept {
  const Slot* served = nullptr;
  const int slots = pool.used_slots.load(std::memory_order_acquire);
  for (int i = 0; i < slots; ++i) {
    Slot& slot = pool.slots[(helper + i) % slots];
    if (serve(slot, helper, environment)) served = &slot;
  }
  return served;
}

void* helper_main(void* argument) {
  const int helper = static_cast<int>(reinterpret_cast<intptr_t>(argument));
  std::atomic<uint32_t>& state = pool.state[helper];
  Environment environment;
  Clock::time_point idle_at = Clock::now() + kSpin;
  while (!pool.stop.load(std::memory_order_seq_cst)) {
    const uint32_t seen = pool.published.load(std::memory_order_seq_cst);
    if (const Slot* served = serve_all(helper, environment); served != nullptr) {
      idle_at = Clock::now();
      if (!is_in_the_way(*served)) idle_at += kSpin;
      continue;
    }
    // Other teams' phases do not keep a helper awake that has no seat in them.
    const auto news = [&] { return pool.published.load(std::memory_order_acquire) != seen; };
    if (spin(idle_at, news) && Clock::now() < idle_at) continue;
    state.store(kAsleep, std::memory_order_seq_cst);
    if (pool.published.load(std::memory_order_seq_cst) == seen &&
        !pool.stop.load(std::memory_order_seq_cst)) {
      futex_wait(state, kAsleep);
      idle_at = Clock::now() + kSpin;
    }
    state.store(kAwake, std::memory_order_seq_cst);
  }
  return nullptr;
}

// After fork() only the thread that called it exists. Stores to atomics alone: a signal handler may
// do no more, and neither may this.
void forget_threads() {
  for (Slot& slot : pool.slots) {
    const uint64_t tickets = slot.tickets.load(std::memory_order_relaxed);
    slot.tickets.store(tickets & ~kTicketMask, std::memory_order_relaxed);
    slot.taken.store(false, std::memory_order_relaxed);
  }
  for (std::atomic<uint32_t>& state : pool.state) state.store(kAwake, std::memory_order_relaxed);
  pool.seats.store(0, std::memory_order_relaxed);
  pool.helpers.store(0, std::memory_order_relaxed);
  pool.creating.store(false, std::memory_order_release);
}

// Without a handler for fork() there are no helpers either. Signals are for the program's threads.
void start_threads(int wanted) noexcept {
  int count = pool.helpers.load(std::memory_order_relaxed);
  if (!pool.watches_fork) pool.watches_fork = pthread_atfork(nullptr, nullptr, forget_threads) == 0;
  if (!pool.watches_fork || pool.stop.load(std::memory_order_relaxed)) return;
  pool.process = getpid();
  sigset_t all, before;
  sigfillset(&all);
  // A signal that a thread causes by itself, such as SIGBUS where a mapped file was cut, ends the
  // process at once where it is blocked, whatever handler the process has.
  for (const int own : {SIGBUS, SIGSEGV, SIGILL, SIGFPE, SIGTRAP, SIGSYS}) sigdelset(&all, own);
  if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return;
  while (count < wanted &&
         pthread_create(&pool.threads[count], nullptr, helper_main,
                        reinterpret_cast<void*>(static_cast<intptr_t>(count))) == 0)
    pool.helpers.store(++count, std::memory_order_release);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// Teams that run at the same time share as many helpers as there are cores for.
int helpers_for(int seats, int seats_of_all) noexcept {
  const int have = pool.helpers.load(std::memory_order_acquire);
  if (have >= std::min(seats_of_all, kMaxHelpers)) return have;
  const int wanted =
      std::min({seats_of_all, std::max(seats, usable_cores() - 1), int{kMaxHelpers}});
  if (have >= wanted || pool.creating.exchange(true, std::memory_order_acquire)) return have;
  start_threads(wanted);
  pool.creating.store(false, std::memory_order_release);
  return pool.helpers.load(std::memory_order_acquire);
}

// Runs when the library is unloaded and when the process ends; calls from then on have one thread.
[[gnu::destructor]] void stop_threads() {
  pool.stop.store(true, std::memory_order_seq_cst);
  if (pool.process != getpid()) return;  // a child that no handler of ours has seen
  while (pool.creating.exchange(true, std::memory_order_acquire)) pause();
  const int count = pool.helpers.exchange(0, std::memory_order_acq_rel);
  for (int i = 0; i < count; ++i) {
    pool.state[i].store(kAwake, std::memory_order_seq_cst);
    futex_wake_one(pool.state[i]);
  }
  for (int i = 0; i < count; ++i) pthread_join(pool.threads[i], nullptr);
}

int take_slot() noexcept {
  for (int i = 0; i < kSlots; ++i) {
    std::atomic<bool>& taken = pool.slots[i].taken;
    if (taken.load(std::memory_order_relaxed) || taken.exchange(true, std::memory_order_acquire))
      continue;
    int used = pool.used_slots.load(std::memory_order_relaxed);
    while (used <= i &&
           !pool.used_slots.compare_exchange_weak(used, i + 1, std::memory_order_release)) {
    }
    return i;
  }
  return -1;
}

// All tickets of the phase are done.
void wait_for(Slot& slot, uint32_t all) noexcept {
  const auto ready = [&] { return slot.done.load(std::memory_order_acquire) == all; };
  if (ready() || spin(Clock::now() + kSpin, ready)) return;
  uint32_t done = slot.done.fetch_or(kCallerSleeps, std::memory_order_acq_rel) | kCallerSleeps;
  while (done != (all | kCallerSleeps)) {
    futex_wait(slot.done, done);
    done = slot.done.load(std::memory_order_acquire);
  }
}

}  // namespace

Team::Team(int threads) noexcept {
  const int wanted = std::min(threads, kMaxTeam) - 1;
  if (wanted < 1 || (slot_ = take_slot()) < 0) return;
  const int before = pool.seats.fetch_add(wanted, std::memory_order_relaxed);
  const int helpers = helpers_for(wanted, before + wanted);
  const int count = std::min(wanted, helpers);
  pool.seats.fetch_sub(wanted - count, std::memory_order_relaxed);
  threads_ = 1 + count;
  Slot& slot = pool.slots[slot_];
  const int first = helpers > 0 ? before % helpers : 0;
  slot.admission.store(packed({static_cast<uint16_t>(first), static_cast<uint16_t>(count),
                               static_cast<uint16_t>(std::max(helpers, 1))}),
                       std::memory_order_relaxed);
  slot.processor.store(sched_getcpu(), std::memory_order_relaxed);
  fegetenv(&slot.environment);
  slot.to_wake.store(0, std::memory_order_relaxed);
  wake_some(slot, kWakesOfCaller);
}

Team::~Team() {
  if (slot_ < 0) return;
  pool.seats.fetch_sub(threads_ - 1, std::memory_order_relaxed);
  pool.slots[slot_].taken.store(false, std::memory_order_release);
}

void Team::run_units(int64_t units, Call call, const void* function) noexcept {
  if (threads_ == 1 || units <= 1) {
    for (int64_t unit = 0; unit < units; ++unit) call(function, unit, 0);
    return;
  }
  Slot& slot = pool.slots[slot_];
  const int64_t units_a_ticket = (units + kMaxTickets - 1) / kMaxTickets;
  const auto tickets = static_cast<uint32_t>((units + units_a_ticket - 1) / units_a_ticket);
  slot.phase = {call, function, units, units_a_ticket, tickets};
  slot.done.store(0, std::memory_order_relaxed);
  slot.to_wake.store(0, std::memory_order_relaxed);
  const uint64_t phase = slot.tickets.load(std::memory_order_relaxed) >> kTicketBits;
  slot.tickets.store((phase + 1) << kTicketBits | tickets, std::memory_order_release);
  pool.published.fetch_add(1, std::memory_order_seq_cst);
  uint32_t mine = 0;
  for (uint64_t left; (left = take_ticket(slot)) != 0; ++mine) {
    slot.processor.store(sched_getcpu(), std::memory_order_relaxed);
    wake_some(slot, 1);
    slot.phase.run_ticket(left, 0);
  }
  slot.done.fetch_add(mine, std::memory_order_acq_rel);
  wait_for(slot, tickets);
}

}  // namespace dualgemm::core
