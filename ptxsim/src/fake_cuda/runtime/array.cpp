// CUDA arrays, plain and mipmapped, and copies from and to them.
#include "fake_cuda/runtime/array.hpp"

#include "fake_cuda/runtime/call.hpp"

namespace ptxsim::cuda::runtime {
namespace {

// The begin of a box, and how far its rows and slices lie apart.
struct Side {
  char* begin = nullptr;
  size_t pitch = 0, slice = 0;
};

// A box of an array: bytes in a row, rows, slices or layers. False: it does not fit.
bool side_of(const DeviceArray& array, const abi::Position& begin, const abi::Extent& extent,
             Side& side) {
  const ImageLevel& level = array.level;
  const auto fits = [](size_t at, size_t count, size_t all) {
    return at <= all && count <= all - at;
  };
  if (!fits(begin.x, extent.width, level.row_bytes) ||
      !fits(begin.y, extent.height, level.extents[1]) ||
      !fits(begin.z, extent.depth, size_t{level.extents[2]} * level.layers))
    return false;
  side = {reinterpret_cast<char*>(level.address) + begin.x + begin.y * level.row_bytes +
              begin.z * level.slice_bytes,
          level.row_bytes, level.slice_bytes};
  return true;
}

Status make_copy_of_box(Session& session, const Side& to, const Side& from,
                        const abi::Extent& extent, Operation& copy) {
  if (extent.width > to.pitch || extent.width > from.pitch) return kInvalidValue;
  copy = [&session, to, from, extent] {
    Status status = kSuccess;
    for (size_t z = 0; z < extent.depth; ++z)
      for (size_t y = 0; y < extent.height && status == kSuccess; ++y)
        status = session.memory.copy(to.begin + z * to.slice + y * to.pitch,
                                     from.begin + z * from.slice + y * from.pitch, extent.width);
    return status;
  };
  return kSuccess;
}

Status copy_box(Session& session, const Side& to, const Side& from, const abi::Extent& extent,
                void* stream) {
  Operation copy;
  const Status status = make_copy_of_box(session, to, from, extent, copy);
  return status != kSuccess ? status : session.streams.issue(stream, copy);
}

Status refuse_box(Session& session, const char* function) {
  session.recorder.refused(function, kInvalidValue,
                           "an array that is none, or a box that is not inside it");
  return kInvalidValue;
}

// One side is an array, of which `x` and `width` count bytes, the other are rows of memory.
int copy_rows(const char* function, const void* array, abi::Position begin, void* memory,
              size_t pitch, abi::Extent extent, bool to_array, void* stream) {
  return call([&](Session& session) {
    const DeviceArray* found = session.images.find_array(array);
    Side side;
    if (found == nullptr || !side_of(*found, begin, extent, side))
      return refuse_box(session, function);
    const Side rows{static_cast<char*>(memory), pitch, pitch * extent.height};
    return copy_box(session, to_array ? side : rows, to_array ? rows : side, extent, stream);
  });
}

// `count` bytes from byte `x` of row `y` on, to the end of a row and on with the next; nullptr
// where they do not fit. The rows of an array have nothing between them.
char* run_of(const DeviceArray* array, size_t x, size_t y, size_t count) {
  if (array == nullptr) return nullptr;
  const ImageLevel& level = array->level;
  if (x > level.row_bytes || y > level.extents[1]) return nullptr;
  const size_t begin = y * level.row_bytes + x, all = level.extents[1] * level.row_bytes;
  if (begin > all || count > all - begin) return nullptr;
  return reinterpret_cast<char*>(level.address) + begin;
}

Status copy_run(Session& session, const char* function, void* to, const void* from, size_t count,
                void* stream) {
  if (to == nullptr || from == nullptr) return refuse_box(session, function);
  return session.streams.issue(
      stream, [&session, to, from, count] { return session.memory.copy(to, from, count); });
}

int make_array(const char* function, void** handle, const abi::ChannelFormat* format,
               const abi::Extent& extent, unsigned flags) {
  return call([&](Session& session) {
    if (handle == nullptr || format == nullptr) return kInvalidValue;
    DeviceArray* array = nullptr;
    const Status status =
        report_refusal(session, function, session.images.make_array(*format, extent, flags, array));
    if (status == kSuccess) *handle = array;
    return status;
  });
}

}  // namespace

PTXSIM_CUDA_API abi::ChannelFormat cudaCreateChannelDesc(int x, int y, int z, int w, int kind) {
  return {{x, y, z, w}, kind};
}

PTXSIM_CUDA_API int cudaMallocArray(void** handle, const abi::ChannelFormat* format, size_t width,
                                    size_t height, unsigned flags) {
  return make_array("cudaMallocArray", handle, format, {width, height, 0}, flags);
}
PTXSIM_CUDA_API int cudaMalloc3DArray(void** handle, const abi::ChannelFormat* format,
                                      abi::Extent extent, unsigned flags) {
  return make_array("cudaMalloc3DArray", handle, format, extent, flags);
}
PTXSIM_CUDA_API int cudaFreeArray(void* handle) {
  return call([&](Session& session) { return session.images.free_array(handle); });
}
PTXSIM_CUDA_API int cudaArrayGetInfo(abi::ChannelFormat* format, abi::Extent* extent,
                                     unsigned* flags, void* handle) {
  return call([&](Session& session) {
    const DeviceArray* array = session.images.find_array(handle);
    if (array == nullptr) return kInvalidHandle;
    if (format != nullptr) *format = array->format;
    if (extent != nullptr) *extent = array->extent;
    if (flags != nullptr) *flags = array->flags;
    return kSuccess;
  });
}
PTXSIM_CUDA_API int cudaGetChannelDesc(abi::ChannelFormat* format, const void* handle) {
  return cudaArrayGetInfo(format, nullptr, nullptr, const_cast<void*>(handle));
}

PTXSIM_CUDA_API int cudaMallocMipmappedArray(void** handle, const abi::ChannelFormat* format,
                                             abi::Extent extent, unsigned levels, unsigned flags) {
  return call([&](Session& session) {
    if (handle == nullptr || format == nullptr) return kInvalidValue;
    DeviceMipmap* mipmap = nullptr;
    const Status status =
        report_refusal(session, "cudaMallocMipmappedArray",
                       session.images.make_mipmap(*format, extent, levels, flags, mipmap));
    if (status == kSuccess) *handle = mipmap;
    return status;
  });
}
PTXSIM_CUDA_API int cudaGetMipmappedArrayLevel(void** level, const void* handle, unsigned number) {
  return call([&](Session& session) {
    const DeviceMipmap* mipmap = session.images.find_mipmap(handle);
    if (level == nullptr || mipmap == nullptr || number >= mipmap->levels.size())
      return kInvalidValue;
    *level = mipmap->levels[number].get();
    return kSuccess;
  });
}
PTXSIM_CUDA_API int cudaFreeMipmappedArray(void* handle) {
  return call([&](Session& session) { return session.images.free_mipmap(handle); });
}

PTXSIM_CUDA_API int cudaMemcpy2DToArrayAsync(void* to, size_t x, size_t y, const void* from,
                                             size_t pitch, size_t width, size_t height, int,
                                             void* stream) {
  return copy_rows("cudaMemcpy2DToArray", to, {x, y, 0}, const_cast<void*>(from), pitch,
                   {width, height, 1}, true, stream);
}
PTXSIM_CUDA_ALIAS(cudaMemcpy2DToArrayAsync, _ptsz);
PTXSIM_CUDA_API int cudaMemcpy2DToArray(void* to, size_t x, size_t y, const void* from,
                                        size_t pitch, size_t width, size_t height, int direction) {
  return cudaMemcpy2DToArrayAsync(to, x, y, from, pitch, width, height, direction, nullptr);
}
PTXSIM_CUDA_ALIAS(cudaMemcpy2DToArray, _ptds);
PTXSIM_CUDA_API int cudaMemcpy2DFromArrayAsync(void* to, size_t pitch, const void* from, size_t x,
                                               size_t y, size_t width, size_t height, int,
                                               void* stream) {
  return copy_rows("cudaMemcpy2DFromArray", from, {x, y, 0}, to, pitch, {width, height, 1}, false,
                   stream);
}
PTXSIM_CUDA_ALIAS(cudaMemcpy2DFromArrayAsync, _ptsz);
PTXSIM_CUDA_API int cudaMemcpy2DFromArray(void* to, size_t pitch, const void* from, size_t x,
                                          size_t y, size_t width, size_t height, int direction) {
  return cudaMemcpy2DFromArrayAsync(to, pitch, from, x, y, width, height, direction, nullptr);
}
PTXSIM_CUDA_ALIAS(cudaMemcpy2DFromArray, _ptds);

PTXSIM_CUDA_API int cudaMemcpy2DArrayToArray(void* to, size_t to_x, size_t to_y, const void* from,
                                             size_t from_x, size_t from_y, size_t width,
                                             size_t height, int) {
  return call([&](Session& session) {
    const DeviceArray *a = session.images.find_array(to), *b = session.images.find_array(from);
    const abi::Extent extent{width, height, 1};
    Side to_side, from_side;
    if (a == nullptr || b == nullptr || !side_of(*a, {to_x, to_y, 0}, extent, to_side) ||
        !side_of(*b, {from_x, from_y, 0}, extent, from_side))
      return refuse_box(session, "cudaMemcpy2DArrayToArray");
    return copy_box(session, to_side, from_side, extent, nullptr);
  });
}
PTXSIM_CUDA_ALIAS(cudaMemcpy2DArrayToArray, _ptds);

PTXSIM_CUDA_API int cudaMemcpyToArrayAsync(void* to, size_t x, size_t y, const void* from,
                                           size_t count, int, void* stream) {
  return call([&](Session& session) {
    return copy_run(session, "cudaMemcpyToArray",
                    run_of(session.images.find_array(to), x, y, count), from, count, stream);
  });
}
PTXSIM_CUDA_ALIAS(cudaMemcpyToArrayAsync, _ptsz);
PTXSIM_CUDA_API int cudaMemcpyToArray(void* to, size_t x, size_t y, const void* from, size_t count,
                                      int direction) {
  return cudaMemcpyToArrayAsync(to, x, y, from, count, direction, nullptr);
}
PTXSIM_CUDA_ALIAS(cudaMemcpyToArray, _ptds);
PTXSIM_CUDA_API int cudaMemcpyFromArrayAsync(void* to, const void* from, size_t x, size_t y,
                                             size_t count, int, void* stream) {
  return call([&](Session& session) {
    return copy_run(session, "cudaMemcpyFromArray", to,
                    run_of(session.images.find_array(from), x, y, count), count, stream);
  });
}
PTXSIM_CUDA_ALIAS(cudaMemcpyFromArrayAsync, _ptsz);
PTXSIM_CUDA_API int cudaMemcpyFromArray(void* to, const void* from, size_t x, size_t y,
                                        size_t count, int direction) {
  return cudaMemcpyFromArrayAsync(to, from, x, y, count, direction, nullptr);
}
PTXSIM_CUDA_ALIAS(cudaMemcpyFromArray, _ptds);
PTXSIM_CUDA_API int cudaMemcpyArrayToArray(void* to, size_t to_x, size_t to_y, const void* from,
                                           size_t from_x, size_t from_y, size_t count, int) {
  return call([&](Session& session) {
    return copy_run(session, "cudaMemcpyArrayToArray",
                    run_of(session.images.find_array(to), to_x, to_y, count),
                    run_of(session.images.find_array(from), from_x, from_y, count), count, nullptr);
  });
}
PTXSIM_CUDA_ALIAS(cudaMemcpyArrayToArray, _ptds);

Status report_refusal(Session& session, const char* function,
                      const std::optional<Refusal>& refusal) {
  if (!refusal) return kSuccess;
  const bool modelled = refusal->status != kNotSupported;
  session.recorder.refused(function, refusal->status, refusal->reason, modelled);
  return refusal->status;
}

// Extents and positions count the array's elements, those of plain memory bytes.
Status make_copy_of_arrays(Session& session, const abi::Copy3D& p, Operation& copy) {
  const DeviceArray* to = session.images.find_array(p.to_array);
  const DeviceArray* from = session.images.find_array(p.from_array);
  const DeviceArray* any = to != nullptr ? to : from;
  if (any == nullptr || (p.to_array != nullptr) != (to != nullptr) ||
      (p.from_array != nullptr) != (from != nullptr))
    return refuse_box(session, "cudaMemcpy3D");
  const size_t texel = any->texel.bytes();
  const abi::Extent bytes{p.extent.width * texel, p.extent.height, p.extent.depth};
  const auto side = [&](const DeviceArray* array, const abi::Position& begin,
                        const abi::PitchedPointer& memory, Side& result) {
    if (array != nullptr)
      return side_of(*array, {begin.x * array->texel.bytes(), begin.y, begin.z}, bytes, result);
    const size_t slice = memory.pitch * memory.height;
    result = {
        static_cast<char*>(memory.pointer) + begin.x + begin.y * memory.pitch + begin.z * slice,
        memory.pitch, slice};
    return true;
  };
  Side to_side, from_side;
  if (!side(to, p.to_begin, p.to, to_side) || !side(from, p.from_begin, p.from, from_side))
    return refuse_box(session, "cudaMemcpy3D");
  return make_copy_of_box(session, to_side, from_side, bytes, copy);
}

}  // namespace ptxsim::cuda::runtime
