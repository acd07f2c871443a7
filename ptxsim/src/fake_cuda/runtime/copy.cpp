#include "fake_cuda/runtime/copy.hpp"

#include <string>

#include "fake_cuda/runtime/array.hpp"

namespace ptxsim::cuda::runtime {
namespace {

enum Direction : int { kHostToHost, kHostToDevice, kDeviceToHost, kDeviceToDevice, kDefault };

bool is_of_device(const Session& session, const void* pointer, uint64_t bytes, bool& valid) {
  Location location;
  // What a graph will have allocated when the copy is done.
  if (session.memory.find_promised(pointer, bytes) != nullptr) return valid = true;
  valid = session.memory.locate(pointer, bytes, location) == kSuccess;
  return location.allocation != nullptr && !is_seen_by_host(*location.allocation);
}

Status check_direction(const Session& session, const void* to, const void* from, size_t bytes,
                       int direction) {
  if (direction < kHostToHost || direction > kDefault) return kInvalidMemcpyDirection;
  bool valid_to = false, valid_from = false;
  const bool to_device = is_of_device(session, to, bytes, valid_to);
  const bool from_device = is_of_device(session, from, bytes, valid_from);
  if (!valid_to || !valid_from) return kInvalidValue;
  const bool host_to = direction == kHostToHost || direction == kDeviceToHost;
  const bool host_from = direction == kHostToHost || direction == kHostToDevice;
  if (direction == kDefault) return kSuccess;
  return (host_to && to_device) || (host_from && from_device) ? kInvalidValue : kSuccess;
}

char* row_of(const abi::PitchedPointer& at, const abi::Position& begin, size_t y, size_t z) {
  return static_cast<char*>(at.pointer) + begin.x +
         (begin.y + y + (begin.z + z) * at.height) * at.pitch;
}

// f(to, from) -> Status, for each row of the box, until one fails.
template <class F>
Status for_rows(const abi::Copy3D& p, F&& f) {
  Status status = kSuccess;
  for (size_t z = 0; z < p.extent.depth; ++z)
    for (size_t y = 0; y < p.extent.height && status == kSuccess; ++y)
      status = f(row_of(p.to, p.to_begin, y, z), row_of(p.from, p.from_begin, y, z));
  return status;
}

}  // namespace

Status check_copy(const Session& session, const void* to, const void* from, size_t bytes,
                  int direction) {
  const Status status = check_direction(session, to, from, bytes, direction);
  if (status != kSuccess)
    session.recorder.refused(
        "cudaMemcpy", status,
        std::to_string(bytes) +
            " bytes that are not inside one allocation, or not of that direction");
  return status;
}

abi::Copy3D copy_of_bytes(void* to, const void* from, size_t bytes, int direction) {
  abi::Copy3D p{};
  p.from = {const_cast<void*>(from), bytes, bytes, 1};
  p.to = {to, bytes, bytes, 1};
  p.extent = {bytes, 1, 1};
  p.direction = direction;
  return p;
}

Status make_copy(Session& session, const abi::Copy3D& p, NodeWork& work) {
  work = {NodeType::kMemcpy, nullptr, nullptr, nullptr, p};
  if (p.from_array != nullptr || p.to_array != nullptr)
    return make_copy_of_arrays(session, p, work.operation);
  const size_t bytes = p.extent.width;
  if (bytes == 0 || p.extent.height == 0 || p.extent.depth == 0) return kSuccess;
  if (bytes > p.to.pitch || bytes > p.from.pitch) return kInvalidValue;
  const Status status = for_rows(p, [&](const char* to, const char* from) {
    return check_copy(session, to, from, bytes, p.direction);
  });
  if (status != kSuccess) return status;
  work.operation = [&session, p, bytes] {
    return for_rows(p, [&](char* to, const char* from) {
      session.touched("cudaMemcpyAsync", to, from, bytes);
      const Status copied = session.memory.copy(to, from, bytes);
      if (copied != kSuccess)
        session.recorder.refused("cudaMemcpy", copied,
                                 std::to_string(bytes) +
                                     " bytes that are not allocated any more, "
                                     "or not yet");
      return copied;
    });
  };
  return kSuccess;
}

}  // namespace ptxsim::cuda::runtime
