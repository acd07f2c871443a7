#include "cuda/runtime/stream_pool.hpp"

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "cuda/runtime/check.hpp"

namespace dualgemm::cuda {
namespace {

// Making a stream is allowed while another one records a graph, if this says so.
class RelaxedCapture {
 public:
  RelaxedCapture() { static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  ~RelaxedCapture() { static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode_)); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace

// Lives as long as the process: at its end the driver may be gone before this is.
struct BorrowedStream::Entry {
  int device = 0;
  bool lent = false;
  cudaStream_t stream = nullptr;
  cudaEvent_t fork = nullptr, join = nullptr;
};

struct BorrowedStream::Pool {
  std::mutex mutex;
  std::vector<std::unique_ptr<Entry>> entries;
};

BorrowedStream::Pool& BorrowedStream::pool() {
  static Pool* const pool = new Pool;
  return *pool;
}

Expected<BorrowedStream::Entry*> BorrowedStream::make_entry(int device) {
  auto entry = std::make_unique<Entry>();
  entry->device = device;
  const RelaxedCapture relaxed;
  DUALGEMM_CUDA_TRY(cudaStreamCreateWithFlags(&entry->stream, cudaStreamNonBlocking));
  DUALGEMM_CUDA_TRY(cudaEventCreateWithFlags(&entry->fork, cudaEventDisableTiming));
  DUALGEMM_CUDA_TRY(cudaEventCreateWithFlags(&entry->join, cudaEventDisableTiming));
  pool().entries.push_back(std::move(entry));
  return pool().entries.back().get();
}

Expected<BorrowedStream> BorrowedStream::take() {
  int device = 0;
  DUALGEMM_CUDA_TRY(cudaGetDevice(&device));
  const std::lock_guard lock(pool().mutex);
  for (const auto& entry : pool().entries) {
    if (entry->lent || entry->device != device) continue;
    // A stream that took part in a recording belongs to it until the recording ends.
    cudaStreamCaptureStatus recording = cudaStreamCaptureStatusNone;
    DUALGEMM_CUDA_TRY(cudaStreamIsCapturing(entry->stream, &recording));
    if (recording != cudaStreamCaptureStatusNone) continue;
    entry->lent = true;
    return BorrowedStream(entry.get());
  }
  Expected<Entry*> entry = make_entry(device);
  if (!entry) return entry.status();
  (*entry)->lent = true;
  return BorrowedStream(*entry);
}

BorrowedStream::BorrowedStream(BorrowedStream&& other) noexcept
    : entry_(std::exchange(other.entry_, nullptr)) {}

BorrowedStream::~BorrowedStream() {
  if (entry_ == nullptr) return;
  const std::lock_guard lock(pool().mutex);
  entry_->lent = false;
}

cudaStream_t BorrowedStream::stream() const noexcept { return entry_->stream; }

Status BorrowedStream::fork_from(cudaStream_t main) {
  DUALGEMM_CUDA_TRY(cudaEventRecord(entry_->fork, main));
  DUALGEMM_CUDA_TRY(cudaStreamWaitEvent(entry_->stream, entry_->fork, 0));
  return {};
}

Status BorrowedStream::join_to(cudaStream_t main) {
  DUALGEMM_CUDA_TRY(cudaEventRecord(entry_->join, entry_->stream));
  DUALGEMM_CUDA_TRY(cudaStreamWaitEvent(main, entry_->join, 0));
  return {};
}

}  // namespace dualgemm::cuda
