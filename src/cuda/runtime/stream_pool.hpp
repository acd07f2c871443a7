// Streams of the library's own, beside the caller's, with the events that join them.
#pragma once

#include <cuda_runtime_api.h>

#include "dualgemm/status.hpp"

namespace dualgemm::cuda {

// A stream and two events of the current GPU, lent for the time in which one call enqueues. None of
// them is made anew once as many exist as calls overlap.
class BorrowedStream {
 public:
  static Expected<BorrowedStream> take();
  BorrowedStream(BorrowedStream&& other) noexcept;
  BorrowedStream& operator=(BorrowedStream&&) = delete;
  ~BorrowedStream();

  cudaStream_t stream() const noexcept;
  // What is enqueued here from now on waits for all that is in `main`.
  Status fork_from(cudaStream_t main);
  // What is enqueued in `main` from now on waits for all that is here.
  Status join_to(cudaStream_t main);

 private:
  struct Entry;
  struct Pool;
  explicit BorrowedStream(Entry* entry) noexcept : entry_(entry) {}
  static Pool& pool();
  static Expected<Entry*> make_entry(int device);

  Entry* entry_;
};

}  // namespace dualgemm::cuda
