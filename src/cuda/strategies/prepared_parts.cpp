#include "cuda/strategies/prepared_parts.hpp"

#include "cuda/runtime/check.hpp"
#include "cuda/runtime/device_memory.hpp"

namespace dualgemm::cuda {

Status clear_parts(const PreparedDescriptor& descriptor, uint8_t* memory, cudaStream_t stream) {
  DUALGEMM_CUDA_TRY(cudaMemsetAsync(memory, 0, static_cast<size_t>(descriptor.bytes), stream));
  return {};
}

Status finish_parts(const PreparedDescriptor& descriptor, uint8_t* memory, cudaStream_t stream) {
  uint8_t header[kPreparedHeaderBytes];
  plan::write_header(descriptor, header);
  for (int64_t expert = 0; expert < descriptor.l; ++expert) {
    DUALGEMM_CUDA_TRY(cudaMemcpyAsync(memory + descriptor.expert_offset(expert), header,
                                      sizeof header, cudaMemcpyHostToDevice, stream));
  }
  return synchronize(stream);
}

const uint8_t* first_part_of(const Buffers& buffers) noexcept {
  const PreparedView* const view = plan::view_of(buffers);
  if (view == nullptr) return nullptr;
  return static_cast<const uint8_t*>(view->memory) + kPreparedHeaderBytes;
}

}  // namespace dualgemm::cuda
