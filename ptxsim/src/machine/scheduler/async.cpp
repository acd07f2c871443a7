#include "machine/scheduler/async.hpp"

#include <algorithm>
#include <utility>

#include "ptxsim/error.hpp"

namespace ptxsim {

void AsyncEngine::submit(Complete complete) { submit(0, std::move(complete)); }

void AsyncEngine::submit(uint64_t channel, Complete complete) {
  Pending pending{channel, statement, op, std::move(complete)};
  ++in_flight_;
  const bool head =
      channel == 0 || std::none_of(ready_.begin(), ready_.end(),
                                   [&](const Pending& p) { return p.channel == channel; });
  if (eager && head && (channel == 0 || channel != running_)) {
    run(pending);
    return;
  }
  if (head && (channel == 0 || channel != running_)) {
    ready_.push_back(std::move(pending));
    return;
  }
  auto queue = std::find_if(behind_.begin(), behind_.end(),
                            [&](const auto& q) { return q.first == channel; });
  if (queue == behind_.end()) queue = behind_.insert(behind_.end(), {channel, {}});
  queue->second.push_back(std::move(pending));
}

void AsyncEngine::complete_one(Random& random) {
  const size_t index = random() % ready_.size();
  Pending pending = std::move(ready_[index]);
  ready_[index] = std::move(ready_.back());
  ready_.pop_back();
  run(pending);
}

void AsyncEngine::run(Pending& pending) {
  const uint64_t outer = std::exchange(running_, pending.channel);
  const AsyncOp outer_op = std::exchange(op, pending.op);  // what it submits in turn belongs to it
  --in_flight_;
  try {
    pending.complete();
  } catch (Fault& fault) {
    running_ = outer;
    if (fault.error().place.ptx_line == 0) fault.issued_by(pending.statement);
    throw;
  }
  running_ = outer;
  op = outer_op;
  if (pending.op) observers->tell([&](Observer& o) { o.completed(pending.op); });
  if (pending.channel == 0) return;
  const auto queue = std::find_if(behind_.begin(), behind_.end(),
                                  [&](const auto& q) { return q.first == pending.channel; });
  if (queue == behind_.end()) return;
  Pending next = std::move(queue->second.front());
  queue->second.pop_front();
  if (queue->second.empty()) behind_.erase(queue);
  if (eager) {
    run(next);
  } else {
    ready_.push_back(std::move(next));
  }
}

}  // namespace ptxsim
