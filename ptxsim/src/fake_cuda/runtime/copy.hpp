// Copies that are checked when they are made and done later: as work of a stream, or as a node of a
// graph.
#pragma once

#include "fake_cuda/abi.hpp"
#include "fake_cuda/session.hpp"

namespace ptxsim::cuda::runtime {

// The pointers must be what the direction says, and inside of one allocation each (an H200 refuses
// the others). What is refused is recorded.
Status check_copy(const Session& session, const void* to, const void* from, size_t bytes,
                  int direction);
// A box of rows and slices, of memory or CUDA arrays.
Status make_copy(Session& session, const abi::Copy3D& p, NodeWork& work);
// The one row that a copy from a pointer to another is.
abi::Copy3D copy_of_bytes(void* to, const void* from, size_t bytes, int direction);

}  // namespace ptxsim::cuda::runtime
