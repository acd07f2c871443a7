// Memory by handles: the calls.
#include "fake_cuda/mapped_memory.hpp"

#include "fake_cuda/driver/call.hpp"

namespace ptxsim::cuda::driver {
namespace {

constexpr int kDevice = 1;           // CUmemLocationType
constexpr int kPosixDescriptor = 1;  // CUmemAllocationHandleType

// f(MappedMemory&) -> Status
template <class F>
int with_mapped(const char* name, F&& f) {
  return call([&](Session& session) {
    const Status status = f(session.mapped);
    if (status == kNotSupported)
      session.recorder.refused(name, status,
                               "memory of other places than the GPU, in two places at once, or a "
                               "part of what a handle has, is not modelled",
                               false);
    return status;
  });
}

}  // namespace

PTXSIM_CUDA_API int cuMemGetAllocationGranularity(size_t* bytes, const abi::PhysicalProperties* p,
                                                  int) {
  if (bytes == nullptr || p == nullptr) return kInvalidValue;
  *bytes = MappedMemory::kGranularity;
  return kSuccess;
}
PTXSIM_CUDA_API int cuMemCreate(uint64_t* handle, size_t bytes, const abi::PhysicalProperties* p,
                                unsigned long long flags) {
  return with_mapped("cuMemCreate", [&](MappedMemory& mapped) {
    if (handle == nullptr || p == nullptr || flags != 0) return kInvalidValue;
    return mapped.create(bytes, *p, *handle);
  });
}
PTXSIM_CUDA_API int cuMemRelease(uint64_t handle) {
  return with_mapped("cuMemRelease", [&](MappedMemory& mapped) { return mapped.release(handle); });
}
PTXSIM_CUDA_API int cuMemRetainAllocationHandle(uint64_t* handle, const void* pointer) {
  return with_mapped("cuMemRetainAllocationHandle", [&](MappedMemory& mapped) {
    return handle == nullptr ? kInvalidValue
                             : mapped.retain(reinterpret_cast<uint64_t>(pointer), *handle);
  });
}
PTXSIM_CUDA_API int cuMemGetAllocationPropertiesFromHandle(abi::PhysicalProperties* p,
                                                           uint64_t handle) {
  return with_mapped("cuMemGetAllocationPropertiesFromHandle", [&](MappedMemory& mapped) {
    const abi::PhysicalProperties* known = mapped.properties_of(handle);
    if (p == nullptr || known == nullptr) return kInvalidValue;
    *p = *known;
    return kSuccess;
  });
}

// By files, as all that is shared between processes is.
PTXSIM_CUDA_API int cuMemExportToShareableHandle(void* descriptor, uint64_t handle, int type,
                                                 unsigned long long flags) {
  return with_mapped("cuMemExportToShareableHandle", [&](MappedMemory& mapped) {
    if (descriptor == nullptr || flags != 0) return kInvalidValue;
    return type != kPosixDescriptor ? kNotSupported
                                    : mapped.export_to(handle, *static_cast<int*>(descriptor));
  });
}
PTXSIM_CUDA_API int cuMemImportFromShareableHandle(uint64_t* handle, void* descriptor, int type) {
  return with_mapped("cuMemImportFromShareableHandle", [&](MappedMemory& mapped) {
    if (handle == nullptr) return kInvalidValue;
    const auto number = static_cast<int>(reinterpret_cast<intptr_t>(descriptor));
    return type != kPosixDescriptor ? kNotSupported : mapped.import_from(number, *handle);
  });
}

// The address that the program would like is passed over, as CUDA may.
PTXSIM_CUDA_API int cuMemAddressReserve(uint64_t* address, size_t bytes, size_t alignment, uint64_t,
                                        unsigned long long flags) {
  return with_mapped("cuMemAddressReserve", [&](MappedMemory& mapped) {
    if (address == nullptr || flags != 0) return kInvalidValue;
    return mapped.reserve(bytes, alignment, *address);
  });
}
PTXSIM_CUDA_API int cuMemAddressFree(uint64_t address, size_t bytes) {
  return with_mapped("cuMemAddressFree",
                     [&](MappedMemory& mapped) { return mapped.free_range(address, bytes); });
}
PTXSIM_CUDA_API int cuMemMap(uint64_t address, size_t bytes, size_t offset, uint64_t handle,
                             unsigned long long flags) {
  return with_mapped("cuMemMap", [&](MappedMemory& mapped) {
    return offset != 0 || flags != 0 ? kInvalidValue : mapped.map(address, bytes, handle);
  });
}
PTXSIM_CUDA_API int cuMemUnmap(uint64_t address, size_t bytes) {
  return call([&](Session& session) {
    if (const Status status = session.streams.synchronize_host(); status != kSuccess) return status;
    return session.mapped.unmap(address, bytes);
  });
}
PTXSIM_CUDA_API int cuMemSetAccess(uint64_t address, size_t bytes,
                                   const abi::AccessDescription* descriptions, size_t count) {
  return with_mapped("cuMemSetAccess", [&](MappedMemory& mapped) {
    if (descriptions == nullptr || count == 0) return kInvalidValue;
    for (size_t i = 0; i < count; ++i) {
      const abi::AccessDescription& one = descriptions[i];
      if (one.location.type != kDevice) return kNotSupported;
      const bool is_known = one.flags == MappedMemory::kNone || one.flags == MappedMemory::kRead ||
                            one.flags == MappedMemory::kReadWrite;
      if (one.location.id != 0 || !is_known) return kInvalidValue;
    }
    return mapped.set_access(address, bytes,
                             static_cast<MappedMemory::Access>(descriptions[count - 1].flags));
  });
}
PTXSIM_CUDA_API int cuMemGetAccess(unsigned long long* flags, const abi::MemoryLocation* location,
                                   uint64_t address) {
  return with_mapped("cuMemGetAccess", [&](MappedMemory& mapped) {
    if (flags == nullptr || location == nullptr || location->type != kDevice || location->id != 0)
      return kInvalidValue;
    MappedMemory::Access access = MappedMemory::kNone;
    const Status status = mapped.access_of(address, access);
    if (status == kSuccess) *flags = static_cast<unsigned long long>(access);
    return status;
  });
}

}  // namespace ptxsim::cuda::driver
