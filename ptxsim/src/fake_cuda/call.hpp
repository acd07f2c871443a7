// Around every call of the interface: one at a time, nothing is thrown into the program, and a
// kernel that faulted leaves no call working.
#pragma once

#include <new>

#include "fake_cuda/session.hpp"

namespace ptxsim::cuda {

// f(Session&) -> Status
template <class F>
Status guarded(F&& f) {
  try {
    Session& session = Session::get();
    const std::lock_guard<std::recursive_mutex> lock(session.mutex);
    return f(session);
  } catch (const std::bad_alloc&) {
    return kOutOfMemory;
  } catch (const std::exception&) {
    return kUnknown;
  }
}

template <class F>
Status guarded_unless_sticky(F&& f) {
  return guarded(
      [&](Session& session) { return session.sticky != kSuccess ? session.sticky : f(session); });
}

// A call that CUDA has and the stand-in has not; recorded, because what the program does then is
// not what it would do.
inline Status not_modelled(const char* call) {
  return guarded([&](Session& session) {
    session.recorder.refused(call, kNotSupported, "not modelled", false);
    return kNotSupported;
  });
}

}  // namespace ptxsim::cuda
