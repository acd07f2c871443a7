// Prepared weights in device memory: what is around the experts' weights.
#pragma once

#include <cuda_runtime_api.h>

#include "plan/prepared_bytes.hpp"

namespace dualgemm::cuda {

// Makes every byte zero, for what no kernel writes.
Status clear_parts(const PreparedDescriptor& descriptor, uint8_t* memory, cudaStream_t stream);

// Writes the header of every part, the last step: before it the bytes are not prepared weights.
// Returns when all of the stream's work is done.
Status finish_parts(const PreparedDescriptor& descriptor, uint8_t* memory, cudaStream_t stream);

// The first expert's weights; null: none are given.
const uint8_t* first_part_of(const Buffers& buffers) noexcept;

}  // namespace dualgemm::cuda
