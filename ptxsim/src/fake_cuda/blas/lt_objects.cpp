// The objects of cuBLASLt: made, in memory of the program or on the heap, and given attributes.
#include "fake_cuda/blas/lt_objects.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "fake_cuda/abi.hpp"

namespace ptxsim::cuda::blas {
namespace {

struct Field {
  void* at = nullptr;  // nullptr: the attribute has none here
  size_t bytes = 0;
};
template <class T>
Field field(T& value) {
  return {&value, sizeof value};
}

Field field_of(LtLayout& l, int attribute) {  // cublasLtMatrixLayoutAttribute_t
  switch (attribute) {
    case 0:
      return field(l.type);
    case 1:
      return field(l.row_major);
    case 2:
      return field(l.rows);
    case 3:
      return field(l.columns);
    case 4:
      return field(l.ld);
    case 5:
      return field(l.batches);
    case 6:
      return field(l.batch_stride);
    default:
      return {};
  }
}

Field field_of(LtDescriptor& d, int attribute) {  // cublasLtMatmulDescAttributes_t
  switch (attribute) {
    case 0:
      return field(d.compute);
    case 1:
      return field(d.scale);
    case 2:
      return field(d.pointer_mode);
    case 3:
      return field(d.transpose_a);
    case 4:
      return field(d.transpose_b);
    case 7:
      return field(d.epilogue);
    case 8:
      return field(d.bias);
    case 10:
      return field(d.bias_stride);
    case 26:
      return field(d.bias_type);
    default:
      return {};
  }
}

// CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET, ..._FAST_ACCUM: permissions, of which no use is made.
bool is_permission(const LtDescriptor&, int attribute) {
  return attribute == 15 || attribute == 25;
}
bool is_permission(const LtLayout&, int) { return false; }

// An attribute without a field is remembered when it is set to anything but 0, its default; the
// product is then refused by its number.
template <class T>
int set_attribute(T* object, int attribute, const void* value, size_t bytes) {
  if (object == nullptr || value == nullptr) return kBlasInvalidValue;
  const Field field = field_of(*object, attribute);
  if (field.at != nullptr) {
    if (bytes != field.bytes) return kBlasInvalidValue;
    std::memcpy(field.at, value, bytes);
    return kBlasSuccess;
  }
  const auto* begin = static_cast<const unsigned char*>(value);
  const bool is_default =
      std::all_of(begin, begin + bytes, [](unsigned char byte) { return byte == 0; });
  if (!is_default && !is_permission(*object, attribute)) object->refused = attribute;
  return kBlasSuccess;
}

template <class T>
int get_attribute(T* object, int attribute, void* value, size_t bytes, size_t* written) {
  if (object == nullptr) return kBlasInvalidValue;
  const Field field = field_of(*object, attribute);
  if (field.at == nullptr) return kBlasNotSupported;
  if (written != nullptr) *written = field.bytes;
  if (bytes == 0) return written == nullptr ? kBlasInvalidValue : kBlasSuccess;
  if (bytes != field.bytes || value == nullptr) return kBlasInvalidValue;
  std::memcpy(value, field.at, bytes);
  return kBlasSuccess;
}

template <class T>
int make_in(void* room, size_t bytes, const T& value) {
  if (room == nullptr) return kBlasInvalidValue;
  if (bytes < sizeof(T)) return kBlasAllocFailed;
  std::memset(room, 0, bytes);
  std::memcpy(room, &value, sizeof value);
  return kBlasSuccess;
}
template <class T>
int make_on_heap(T** object, const T& value) {
  if (object == nullptr) return kBlasInvalidValue;
  *object = new (std::nothrow) T(value);
  return *object == nullptr ? kBlasAllocFailed : kBlasSuccess;
}

LtLayout layout_of(int type, uint64_t rows, uint64_t columns, int64_t ld) {
  LtLayout layout;
  layout.type = static_cast<Type>(type);
  layout.rows = rows;
  layout.columns = columns;
  layout.ld = ld;
  return layout;
}
LtDescriptor descriptor_of(int compute, int scale) {
  LtDescriptor descriptor;
  descriptor.compute = compute;
  descriptor.scale = static_cast<Type>(scale);
  return descriptor;
}

}  // namespace

PTXSIM_CUDA_API int cublasLtMatrixLayoutInit_internal(void* room, size_t bytes, int type,
                                                      uint64_t rows, uint64_t columns, int64_t ld) {
  return make_in(room, bytes, layout_of(type, rows, columns, ld));
}
PTXSIM_CUDA_API int cublasLtMatrixLayoutCreate(LtLayout** layout, int type, uint64_t rows,
                                               uint64_t columns, int64_t ld) {
  return make_on_heap(layout, layout_of(type, rows, columns, ld));
}
PTXSIM_CUDA_API int cublasLtMatrixLayoutDestroy(LtLayout* layout) {
  delete layout;
  return kBlasSuccess;
}
PTXSIM_CUDA_API int cublasLtMatrixLayoutSetAttribute(LtLayout* layout, int attribute,
                                                     const void* value, size_t bytes) {
  return set_attribute(layout, attribute, value, bytes);
}
PTXSIM_CUDA_API int cublasLtMatrixLayoutGetAttribute(LtLayout* layout, int attribute, void* value,
                                                     size_t bytes, size_t* written) {
  return get_attribute(layout, attribute, value, bytes, written);
}

PTXSIM_CUDA_API int cublasLtMatmulDescInit_internal(void* room, size_t bytes, int compute,
                                                    int scale) {
  return make_in(room, bytes, descriptor_of(compute, scale));
}
PTXSIM_CUDA_API int cublasLtMatmulDescCreate(LtDescriptor** descriptor, int compute, int scale) {
  return make_on_heap(descriptor, descriptor_of(compute, scale));
}
PTXSIM_CUDA_API int cublasLtMatmulDescDestroy(LtDescriptor* descriptor) {
  delete descriptor;
  return kBlasSuccess;
}
PTXSIM_CUDA_API int cublasLtMatmulDescSetAttribute(LtDescriptor* descriptor, int attribute,
                                                   const void* value, size_t bytes) {
  return set_attribute(descriptor, attribute, value, bytes);
}
PTXSIM_CUDA_API int cublasLtMatmulDescGetAttribute(LtDescriptor* descriptor, int attribute,
                                                   void* value, size_t bytes, size_t* written) {
  return get_attribute(descriptor, attribute, value, bytes, written);
}

PTXSIM_CUDA_API int cublasLtMatmulPreferenceInit_internal(void* room, size_t bytes) {
  return make_in(room, bytes, LtPreference{});
}
PTXSIM_CUDA_API int cublasLtMatmulPreferenceCreate(LtPreference** preference) {
  return make_on_heap(preference, LtPreference{});
}
PTXSIM_CUDA_API int cublasLtMatmulPreferenceDestroy(LtPreference* preference) {
  delete preference;
  return kBlasSuccess;
}
// The one algorithm that there is keeps every preference.
PTXSIM_CUDA_API int cublasLtMatmulPreferenceSetAttribute(LtPreference* preference, int attribute,
                                                         const void* value, size_t bytes) {
  constexpr int kMaxWorkspaceBytes = 1;
  if (preference == nullptr || value == nullptr) return kBlasInvalidValue;
  if (attribute != kMaxWorkspaceBytes) return kBlasSuccess;
  if (bytes != sizeof preference->workspace_bytes) return kBlasInvalidValue;
  std::memcpy(&preference->workspace_bytes, value, bytes);
  return kBlasSuccess;
}

}  // namespace ptxsim::cuda::blas
