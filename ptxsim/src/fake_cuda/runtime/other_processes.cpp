// Memory and events of other processes on this machine: handles that a program sends to another
// one, by whatever way it has.
#include <unistd.h>

#include <cstring>

#include "fake_cuda/runtime/call.hpp"
#include "fake_cuda/runtime/calls.hpp"

namespace ptxsim::cuda::runtime {
namespace {

constexpr int kPosixDescriptor = 1;  // cudaMemHandleTypePosixFileDescriptor

// What cudaIpcMemHandle_t and cudaMemPoolPtrExportData have of theirs, 64 bytes each.
struct MemoryHandle {
  char kind[8];
  int process, descriptor;
  uint64_t identity;
  uint64_t offset;  // in the allocation
  std::byte unused[32];
};
static_assert(sizeof(MemoryHandle) == 64);
constexpr char kMemory[8] = "memory", kEvent[8] = "event";

struct EventHandle {  // cudaIpcEventHandle_t
  char kind[8];
  std::byte unused[56];
};
static_assert(sizeof(EventHandle) == 64);

Status export_memory(Session& session, void* pointer, MemoryHandle* handle) {
  Location location;
  if (handle == nullptr || session.memory.locate(pointer, 1, location) != kSuccess ||
      location.allocation == nullptr)
    return kInvalidValue;
  std::shared_ptr<SharedBytes> bytes;
  if (const Status status = session.memory.share(location.allocation->address, bytes);
      status != kSuccess)
    return status;
  *handle = {};
  std::memcpy(handle->kind, kMemory, sizeof kMemory);
  handle->process = getpid();
  handle->descriptor = bytes->descriptor();
  handle->identity = bytes->identity();
  handle->offset = location.offset;
  return kSuccess;
}

Status import_memory(Session& session, void** pointer, const MemoryHandle& handle) {
  if (pointer == nullptr || std::memcmp(handle.kind, kMemory, sizeof kMemory) != 0)
    return kInvalidValue;
  if (handle.process == getpid()) return kInvalidContext;  // as CUDA: not by its own process
  const auto bytes = SharedBytes::of_process(handle.process, handle.descriptor, handle.identity);
  if (bytes == nullptr || handle.offset >= bytes->bytes()) return kInvalidValue;
  uint64_t address = 0;
  const Status status = session.memory.import(bytes, address);
  if (status == kSuccess) *pointer = reinterpret_cast<void*>(address + handle.offset);
  return status;
}

}  // namespace

PTXSIM_CUDA_API int cudaIpcGetMemHandle(MemoryHandle* handle, void* pointer) {
  return call([&](Session& session) { return export_memory(session, pointer, handle); });
}
PTXSIM_CUDA_API int cudaIpcOpenMemHandle(void** pointer, MemoryHandle handle, unsigned) {
  return call([&](Session& session) { return import_memory(session, pointer, handle); });
}
PTXSIM_CUDA_API int cudaIpcCloseMemHandle(void* pointer) {
  return call([&](Session& session) {
    if (const Status status = session.streams.synchronize_host(); status != kSuccess) return status;
    Location location;
    if (session.memory.locate(pointer, 1, location) != kSuccess || location.allocation == nullptr ||
        location.allocation->home != Home::kImported)
      return kInvalidValue;
    return session.memory.release(location.allocation->address, false);
  });
}

// Work is done when it is issued, or its process has not come further: what another process has
// recorded is over, and what it has not recorded is not waited for, as CUDA has it.
PTXSIM_CUDA_API int cudaIpcGetEventHandle(EventHandle* handle, void* event) {
  return call([&](Session& session) {
    if (handle == nullptr) return kInvalidValue;
    if (session.streams.find_event(event) == nullptr) return kInvalidHandle;
    *handle = {};
    std::memcpy(handle->kind, kEvent, sizeof kEvent);
    return kSuccess;
  });
}
PTXSIM_CUDA_API int cudaIpcOpenEventHandle(void** event, EventHandle handle) {
  return call([&](Session& session) {
    if (event == nullptr || std::memcmp(handle.kind, kEvent, sizeof kEvent) != 0)
      return kInvalidValue;
    *event = session.streams.create_event(kEventDisableTiming);
    return kSuccess;
  });
}

// A pool's handle is a descriptor that stands for it; all pools are one.
PTXSIM_CUDA_API int cudaMemPoolExportToShareableHandle(void* handle, void*, int type, unsigned) {
  return call([&](Session&) {
    const auto token = SharedBytes::make(1);
    if (handle == nullptr || type != kPosixDescriptor) return kInvalidValue;
    if (token == nullptr) return kOutOfMemory;
    *static_cast<int*>(handle) = token->new_descriptor();
    return kSuccess;
  });
}
PTXSIM_CUDA_API int cudaMemPoolImportFromShareableHandle(void** pool, void* handle, int type,
                                                         unsigned) {
  const auto descriptor = static_cast<int>(reinterpret_cast<intptr_t>(handle));
  if (type != kPosixDescriptor || SharedBytes::of_descriptor(descriptor) == nullptr)
    return remember(kInvalidValue);
  return cudaDeviceGetDefaultMemPool(pool, 0);
}
PTXSIM_CUDA_API int cudaMemPoolExportPointer(MemoryHandle* handle, void* pointer) {
  return cudaIpcGetMemHandle(handle, pointer);
}
PTXSIM_CUDA_API int cudaMemPoolImportPointer(void** pointer, void*, const MemoryHandle* handle) {
  return call([&](Session& session) {
    return handle == nullptr ? kInvalidValue : import_memory(session, pointer, *handle);
  });
}

}  // namespace ptxsim::cuda::runtime
