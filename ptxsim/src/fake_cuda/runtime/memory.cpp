// cudaMalloc and its like, copies and fills.
#include <string>

#include "fake_cuda/runtime/call.hpp"
#include "fake_cuda/runtime/copy.hpp"

namespace ptxsim::cuda::runtime {
namespace {

constexpr int kDefault = 4;  // cudaMemcpyDefault

int allocate(Home home, void** pointer, size_t bytes) {
  return call([&](Session& session) {
    if (pointer == nullptr) return kInvalidValue;
    uint64_t address = 0;
    const Status status = session.memory.allocate(home, bytes, address);
    if (status == kOutOfMemory)
      session.recorder.refused("allocation", status,
                               std::to_string(bytes) + " bytes of " + name_of(home));
    if (status == kSuccess) *pointer = reinterpret_cast<void*>(address);
    return status;
  });
}

Status issue(Session& session, const NodeWork& work, void* stream) {
  return work.operation == nullptr
             ? kSuccess
             : session.streams.issue(stream, work.operation, work.type, work.parameters);
}

Status copy(Session& session, void* to, const void* from, size_t bytes, int direction,
            void* stream) {
  NodeWork work;
  const Status status = make_copy(session, copy_of_bytes(to, from, bytes, direction), work);
  return status != kSuccess ? status : issue(session, work, stream);
}

Status copy_rows(Session& session, void* to, size_t to_pitch, const void* from, size_t from_pitch,
                 size_t width, size_t height, int direction, void* stream) {
  abi::Copy3D p = copy_of_bytes(to, from, width, direction);
  p.to.pitch = to_pitch;
  p.from.pitch = from_pitch;
  p.extent.height = height;
  NodeWork work;
  if (width > to_pitch || width > from_pitch) return kInvalidValue;
  const Status status = make_copy(session, p, work);
  return status != kSuccess ? status : issue(session, work, stream);
}

Status fill(Session& session, void* to, int value, size_t bytes, void* stream) {
  if (bytes == 0) return kSuccess;
  Location location;
  if (session.memory.find_promised(to, bytes) == nullptr &&
      (session.memory.locate(to, bytes, location) != kSuccess || location.allocation == nullptr))
    return kInvalidValue;
  const auto fill_it = [&session, to, value, bytes] {
    const auto byte = static_cast<unsigned char>(value);
    session.touched("cudaMemsetAsync", to, nullptr, bytes);
    return session.memory.fill(to, &byte, 1, bytes);
  };
  return session.streams.issue(stream, fill_it, NodeType::kMemset);
}

Status fill_rows(Session& session, char* to, size_t pitch, int value, size_t width, size_t height,
                 void* stream) {
  Status status = kSuccess;
  for (size_t row = 0; row < height && status == kSuccess; ++row)
    status = fill(session, to + row * pitch, value, width, stream);
  return status;
}

}  // namespace

PTXSIM_CUDA_API int cudaMalloc(void** pointer, size_t bytes) {
  return allocate(Home::kDevice, pointer, bytes);
}
PTXSIM_CUDA_API int cudaMallocManaged(void** pointer, size_t bytes, unsigned) {
  return allocate(Home::kManaged, pointer, bytes);
}
PTXSIM_CUDA_API int cudaMallocHost(void** pointer, size_t bytes) {
  return allocate(Home::kPinned, pointer, bytes);
}
PTXSIM_CUDA_API int cudaHostAlloc(void** pointer, size_t bytes, unsigned) {
  return allocate(Home::kPinned, pointer, bytes);
}

PTXSIM_CUDA_API int cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  *pitch = (width + 511) / 512 * 512;
  return allocate(Home::kDevice, pointer, *pitch * height);
}

PTXSIM_CUDA_API int cudaFree(void* pointer) {
  return call([&](Session& session) {
    if (const Status status = session.streams.synchronize_host(); status != kSuccess) return status;
    return session.memory.release(reinterpret_cast<uint64_t>(pointer), false);
  });
}
PTXSIM_CUDA_API int cudaFreeHost(void* pointer) {
  return call([&](Session& session) {
    if (const Status status = session.streams.finish_waiting(); status != kSuccess) return status;
    return session.memory.release(reinterpret_cast<uint64_t>(pointer), true);
  });
}

PTXSIM_CUDA_API int cudaHostRegister(void* pointer, size_t bytes, unsigned) {
  return call([&](Session& session) { return session.memory.register_host(pointer, bytes); });
}
PTXSIM_CUDA_API int cudaHostUnregister(void* pointer) { return cudaFreeHost(pointer); }

PTXSIM_CUDA_API int cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  return call([&](Session& session) {
    Location location;
    if (session.memory.locate(host, 1, location) != kSuccess || location.allocation == nullptr)
      return kInvalidValue;
    *device = reinterpret_cast<void*>(location.allocation->address + location.offset);
    return kSuccess;
  });
}

PTXSIM_CUDA_API int cudaMemcpy(void* to, const void* from, size_t bytes, int direction) {
  return call([&](Session& session) { return copy(session, to, from, bytes, direction, nullptr); });
}
PTXSIM_CUDA_ALIAS(cudaMemcpy, _ptds);
PTXSIM_CUDA_API int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int direction,
                                    void* stream) {
  return call([&](Session& session) { return copy(session, to, from, bytes, direction, stream); });
}
PTXSIM_CUDA_ALIAS(cudaMemcpyAsync, _ptsz);
PTXSIM_CUDA_API int cudaMemcpyPeer(void* to, int, const void* from, int, size_t bytes) {
  return cudaMemcpy(to, from, bytes, kDefault);
}

PTXSIM_CUDA_API int cudaMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                 size_t width, size_t height, int direction) {
  return call([&](Session& session) {
    return copy_rows(session, to, to_pitch, from, from_pitch, width, height, direction, nullptr);
  });
}
PTXSIM_CUDA_ALIAS(cudaMemcpy2D, _ptds);
PTXSIM_CUDA_API int cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from,
                                      size_t from_pitch, size_t width, size_t height, int direction,
                                      void* stream) {
  return call([&](Session& session) {
    return copy_rows(session, to, to_pitch, from, from_pitch, width, height, direction, stream);
  });
}
PTXSIM_CUDA_ALIAS(cudaMemcpy2DAsync, _ptsz);

PTXSIM_CUDA_API int cudaMemset(void* to, int value, size_t bytes) {
  return call([&](Session& session) { return fill(session, to, value, bytes, nullptr); });
}
PTXSIM_CUDA_ALIAS(cudaMemset, _ptds);
PTXSIM_CUDA_API int cudaMemsetAsync(void* to, int value, size_t bytes, void* stream) {
  return call([&](Session& session) { return fill(session, to, value, bytes, stream); });
}
PTXSIM_CUDA_ALIAS(cudaMemsetAsync, _ptsz);
PTXSIM_CUDA_API int cudaMemset2D(void* to, size_t pitch, int value, size_t width, size_t height) {
  return call([&](Session& session) {
    return fill_rows(session, static_cast<char*>(to), pitch, value, width, height, nullptr);
  });
}

PTXSIM_CUDA_API int cudaMemset2DAsync(void* to, size_t pitch, int value, size_t width,
                                      size_t height, void* stream) {
  return call([&](Session& session) {
    return fill_rows(session, static_cast<char*>(to), pitch, value, width, height, stream);
  });
}
PTXSIM_CUDA_ALIAS(cudaMemset2DAsync, _ptsz);

PTXSIM_CUDA_API int cudaMalloc3D(abi::PitchedPointer* pointer, abi::Extent extent) {
  *pointer = {nullptr, 0, extent.width, extent.height};
  return cudaMallocPitch(&pointer->pointer, &pointer->pitch, extent.width,
                         extent.height * extent.depth);
}
PTXSIM_CUDA_API int cudaMemset3DAsync(abi::PitchedPointer to, int value, abi::Extent extent,
                                      void* stream) {
  return call([&](Session& session) {
    Status status = kSuccess;
    for (size_t z = 0; z < extent.depth && status == kSuccess; ++z)
      status = fill_rows(session, static_cast<char*>(to.pointer) + z * to.pitch * to.height,
                         to.pitch, value, extent.width, extent.height, stream);
    return status;
  });
}
PTXSIM_CUDA_ALIAS(cudaMemset3DAsync, _ptsz);
PTXSIM_CUDA_API int cudaMemset3D(abi::PitchedPointer to, int value, abi::Extent extent) {
  return cudaMemset3DAsync(to, value, extent, nullptr);
}
PTXSIM_CUDA_ALIAS(cudaMemset3D, _ptds);

PTXSIM_CUDA_API int cudaMemcpy3DAsync(const abi::Copy3D* p, void* stream) {
  return call([&](Session& session) {
    NodeWork work;
    const Status status = make_copy(session, *p, work);
    return status != kSuccess ? status : issue(session, work, stream);
  });
}
PTXSIM_CUDA_ALIAS(cudaMemcpy3DAsync, _ptsz);
PTXSIM_CUDA_API int cudaMemcpy3D(const abi::Copy3D* p) { return cudaMemcpy3DAsync(p, nullptr); }
PTXSIM_CUDA_ALIAS(cudaMemcpy3D, _ptds);
PTXSIM_CUDA_API int cudaMemcpyPeerAsync(void* to, int, const void* from, int, size_t bytes,
                                        void* stream) {
  return cudaMemcpyAsync(to, from, bytes, kDefault, stream);
}

PTXSIM_CUDA_API int cudaMemGetInfo(size_t* free, size_t* total) {
  return call([&](Session& session) {
    *free = session.memory.capacity() - session.memory.used();
    *total = session.memory.capacity();
    return kSuccess;
  });
}

// Hints: everything is where it is needed.
// What is attached may be seen by the stream's kernels alone, or by the host while they run: no
// kernel runs while the host does, so that either is true already.
PTXSIM_CUDA_API int cudaStreamAttachMemAsync(void*, void* pointer, size_t bytes, unsigned) {
  return call([&](Session& session) {
    Location location;
    if (session.memory.locate(pointer, bytes, location) != kSuccess ||
        location.allocation == nullptr || !is_managed(location.allocation->home))
      return kInvalidValue;
    return kSuccess;
  });
}
PTXSIM_CUDA_ALIAS(cudaStreamAttachMemAsync, _ptsz);
PTXSIM_CUDA_API int cudaMemAdvise() { return kSuccess; }
PTXSIM_CUDA_API int cudaMemPrefetchAsync() { return kSuccess; }

// As an H200 answers: memory of the host that is not registered has type 0 and device -2.
PTXSIM_CUDA_API int cudaPointerGetAttributes(abi::PointerAttributes* attributes,
                                             const void* pointer) {
  return call([&](Session& session) {
    enum Type { kUnregistered, kHost, kDevice, kManaged };
    if (attributes == nullptr) return kInvalidValue;
    Location location;
    if (session.memory.locate(pointer, 1, location) != kSuccess || location.allocation == nullptr) {
      *attributes = {kUnregistered, -2, nullptr, const_cast<void*>(pointer)};
      return kSuccess;
    }
    const Allocation& a = *location.allocation;
    const Type type = !is_seen_by_host(a) ? kDevice : is_managed(a.home) ? kManaged : kHost;
    *attributes = {type, 0, reinterpret_cast<void*>(a.address + location.offset),
                   is_seen_by_host(a) ? a.host + location.offset : nullptr};
    return kSuccess;
  });
}

}  // namespace ptxsim::cuda::runtime
