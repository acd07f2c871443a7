// Streams and events. All work is done when it is issued, but for what waits for the host.
#include <cstring>

#include "fake_cuda/runtime/call.hpp"

namespace ptxsim::cuda::runtime {
namespace {

int create_stream(void** stream, unsigned flags, int priority) {
  return call([&](Session& session) {
    if (stream == nullptr) return kInvalidValue;
    *stream = session.streams.create(flags, priority);
    return kSuccess;
  });
}

template <class F>
int with_stream(void* handle, F&& f) {
  return call([&](Session& session) {
    Stream* stream = session.streams.find(handle);
    return stream == nullptr ? kInvalidHandle : f(*stream);
  });
}

// cudaErrorNotReady is no error, and not remembered as one.
template <class F>
int query(F&& f) {
  const Status status = guarded_unless_sticky([&](Session& session) {
    const Status tried = session.streams.try_waiting();
    return tried == kSuccess ? f(session) : tried;
  });
  return status == kNotReady ? status : remember(status);
}

int create_event(void** event, unsigned flags) {
  return call([&](Session& session) {
    if (event == nullptr) return kInvalidValue;
    *event = session.streams.create_event(flags);
    return kSuccess;
  });
}

}  // namespace

PTXSIM_CUDA_API int cudaStreamCreate(void** stream) { return create_stream(stream, 0, 0); }
PTXSIM_CUDA_API int cudaStreamCreateWithFlags(void** stream, unsigned flags) {
  return create_stream(stream, flags, 0);
}
PTXSIM_CUDA_API int cudaStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  return create_stream(stream, flags, priority);
}
PTXSIM_CUDA_API int cudaStreamDestroy(void* stream) {
  return call([&](Session& session) { return session.streams.destroy(stream); });
}
PTXSIM_CUDA_API int cudaStreamSynchronize(void* stream) {
  return call([&](Session& session) { return session.streams.synchronize(stream); });
}
PTXSIM_CUDA_ALIAS(cudaStreamSynchronize, _ptsz);
PTXSIM_CUDA_API int cudaStreamQuery(void* stream) {
  return query([&](Session& session) { return session.streams.synchronize(stream); });
}
PTXSIM_CUDA_ALIAS(cudaStreamQuery, _ptsz);
PTXSIM_CUDA_API int cudaStreamWaitEvent(void* stream, void* event, unsigned) {
  return call([&](Session& session) { return session.streams.wait(stream, event); });
}
PTXSIM_CUDA_ALIAS(cudaStreamWaitEvent, _ptsz);

PTXSIM_CUDA_API int cudaStreamGetFlags(void* stream, unsigned* flags) {
  return with_stream(stream, [&](const Stream& s) {
    *flags = s.flags;
    return kSuccess;
  });
}
PTXSIM_CUDA_API int cudaStreamGetPriority(void* stream, int* priority) {
  return with_stream(stream, [&](const Stream& s) {
    *priority = s.priority;
    return kSuccess;
  });
}
PTXSIM_CUDA_API int cudaStreamGetId(void* stream, unsigned long long* id) {
  return with_stream(stream, [&](const Stream& s) {
    *id = s.id;
    return kSuccess;
  });
}
PTXSIM_CUDA_API int cudaStreamGetDevice(void* stream, int* device) {
  return with_stream(stream, [&](const Stream&) {
    *device = 0;
    return kSuccess;
  });
}

// cudaStreamSetAttribute (pool.cpp) keeps nothing: hints but for the priority, which is as it was
// made.
PTXSIM_CUDA_API int cudaStreamGetAttribute(void* stream, int attribute, void* value) {
  constexpr int kPriority = 8;  // cudaStreamAttributePriority
  constexpr size_t kValueBytes = 64;
  return with_stream(stream, [&](const Stream& s) {
    std::memset(value, 0, kValueBytes);
    if (attribute == kPriority) std::memcpy(value, &s.priority, sizeof s.priority);
    return kSuccess;
  });
}

PTXSIM_CUDA_API int cudaLaunchHostFunc(void* stream, void (*function)(void*), void* argument) {
  return call([&](Session& session) {
    const auto call_it = [=] {
      function(argument);
      return kSuccess;
    };
    return session.streams.issue(stream, call_it, NodeType::kHost);
  });
}
PTXSIM_CUDA_ALIAS(cudaLaunchHostFunc, _ptsz);
PTXSIM_CUDA_API int cudaStreamAddCallback(void* stream, void (*function)(void*, int, void*),
                                          void* argument, unsigned) {
  return call([&](Session& session) {
    const auto call_it = [=] {
      function(stream, kSuccess, argument);
      return kSuccess;
    };
    return session.streams.issue(stream, call_it, NodeType::kHost);
  });
}

PTXSIM_CUDA_API int cudaEventCreate(void** event) { return create_event(event, 0); }
PTXSIM_CUDA_API int cudaEventCreateWithFlags(void** event, unsigned flags) {
  return create_event(event, flags);
}
PTXSIM_CUDA_API int cudaEventDestroy(void* event) {
  return call([&](Session& session) { return session.streams.destroy_event(event); });
}
PTXSIM_CUDA_API int cudaEventRecord(void* event, void* stream) {
  return call([&](Session& session) { return session.streams.record(event, stream); });
}
PTXSIM_CUDA_ALIAS(cudaEventRecord, _ptsz);
PTXSIM_CUDA_API int cudaEventRecordWithFlags(void* event, void* stream, unsigned) {
  return cudaEventRecord(event, stream);
}
PTXSIM_CUDA_ALIAS(cudaEventRecordWithFlags, _ptsz);
PTXSIM_CUDA_API int cudaEventSynchronize(void* event) {
  return call([&](Session& session) { return session.streams.synchronize_event(event); });
}
PTXSIM_CUDA_API int cudaEventQuery(void* event) {
  return query([&](Session& session) { return session.streams.synchronize_event(event); });
}

// Time of the host, between the two calls of cudaEventRecord: how long the interpreter took, not a
// GPU.
PTXSIM_CUDA_API int cudaEventElapsedTime(float* milliseconds, void* start, void* end) {
  return call([&](Session& session) { return session.streams.elapsed(start, end, *milliseconds); });
}

}  // namespace ptxsim::cuda::runtime
