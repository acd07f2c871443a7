// Asynchronous operations as the sanitizer remembers them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "check/clock.hpp"
#include "ptxsim/ir/traits.hpp"
#include "ptxsim/machine/observer.hpp"
#include "ptxsim/report.hpp"

namespace ptxsim::check {

// An operation is complete when this phase of this barrier is.
struct Publication {
  uint32_t slot;
  uint32_t phase;  // number of completed phases that shows it
  int rank;        // of the CTA whose memory it is about; -1: of any
  bool operator==(const Publication&) const = default;
};

// An error of racing lanes of a load, where something uses what they have loaded.
struct Deferred {
  uint32_t lanes;
  Report report;
};

// A load whose results may stay unused, and the errors that it is if they do not.
struct FollowedLoad {
  uint32_t used = 0;  // lanes
  std::vector<Deferred> errors;
};

struct Record {
  AsyncKind kind;
  TensorWork work;
  bool is_generic;  // its accesses to shared memory are made by the generic proxy
  uint32_t queue;
  uint32_t write_queue;  // of bulk stores, whose reads and writes are waited for apart; or `queue`
  uint32_t sequence;
  uint32_t warp;
  int lane;
  uint32_t statement;
  uint32_t epoch;      // of its warp, and
  uint32_t own_async;  // of its lane, when it was issued
  std::vector<Publication> publications;
  SharedClock clock;        // of the issuer, for operations that others are committed with
  uint32_t unanswered = 0;  // of a request for a cluster: CTAs that have yet to hear the answer
  // cp.async: what it writes from this offset on, if that is known.
  std::optional<std::array<std::byte, 16>> values = std::nullopt;
  uint32_t values_at = 0;
  uint32_t all_read =
      0;  // tcgen05.ld: epoch of its warp when every result had been read; 0: not yet
  // Copies into shared memory: whether somebody has read what was copied, and the errors that it is
  // if somebody does.
  bool is_read = false;
  std::shared_ptr<std::vector<Deferred>> errors = nullptr;
};

}  // namespace ptxsim::check
