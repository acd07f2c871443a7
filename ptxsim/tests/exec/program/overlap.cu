// Programmatic dependent launch: grids that may begin before the one ahead of them has ended.
#include "program.hpp"

namespace {

constexpr int kThreads = 64;
enum class Wait { kFirst, kNever, kLate, kOneWarp, kHandedOn };

__global__ void produce(int* data) {
  cudaTriggerProgrammaticLaunchCompletion();
  data[threadIdx.x] = static_cast<int>(threadIdx.x) + 1;
}

__global__ void produce_alone(int* data) { data[threadIdx.x] = static_cast<int>(threadIdx.x) + 1; }

__global__ void stand_between(bool waits) {
  if (waits) cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();
}

// The weights are no grid's output, and may be read at once.
template <Wait wait>
__global__ void consume(const int* weights, const int* data, int* out) {
  const int weight = weights[threadIdx.x];
  if (wait == Wait::kFirst || (wait == Wait::kOneWarp && threadIdx.x < 32))
    cudaGridDependencySynchronize();
  if (wait == Wait::kHandedOn) {
    if (threadIdx.x < 32) cudaGridDependencySynchronize();
    __syncthreads();
  }
  const int value = *const_cast<const volatile int*>(data + threadIdx.x);
  if (wait == Wait::kLate) cudaGridDependencySynchronize();
  out[threadIdx.x] = value * weight;
}

// Reads `in` after the next grid may have begun.
__global__ void read_on(const int* in, int* out) {
  cudaTriggerProgrammaticLaunchCompletion();
  out[threadIdx.x] = in[threadIdx.x];
}
template <bool waits>
__global__ void overwrite(int* in) {
  if (waits) cudaGridDependencySynchronize();
  in[threadIdx.x] = 0;
}

template <class... Parameters, class... Arguments>
void launch(cudaStream_t stream, void (*kernel)(Parameters...), Arguments... arguments) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = 1;
  config.blockDim = kThreads;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  CHECK_CUDA(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...));
}

struct Problem {
  cudaStream_t stream;
  int *weights, *data, *out;

  Problem() {
    CHECK_CUDA(cudaStreamCreate(&stream));
    for (int** buffer : {&weights, &data, &out}) {
      CHECK_CUDA(cudaMalloc(buffer, kThreads * sizeof(int)));
      CHECK_CUDA(cudaMemset(*buffer, 0, kThreads * sizeof(int)));
    }
  }
  ~Problem() {
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK_CUDA(cudaStreamDestroy(stream));
    for (int* buffer : {weights, data, out}) CHECK_CUDA(cudaFree(buffer));
  }

  template <Wait wait>
  void pair() const {
    launch(stream, produce, data);
    launch(stream, consume<wait>, weights, data, out);
  }
};

}  // namespace

void overlap_right() {
  const Problem p;
  p.pair<Wait::kFirst>();
  p.pair<Wait::kHandedOn>();
  // The one before lets no grid begin early.
  CHECK_CUDA(cudaMemsetAsync(p.out, 0, sizeof(int), p.stream));
  launch(p.stream, produce_alone, p.data);
  launch(p.stream, consume<Wait::kNever>, p.weights, p.data, p.out);
  // Something else stands between, the host waits, or the launch is an ordinary one.
  launch(p.stream, produce, p.data);
  CHECK_CUDA(cudaMemsetAsync(p.out, 0, sizeof(int), p.stream));
  launch(p.stream, consume<Wait::kNever>, p.weights, p.data, p.out);
  launch(p.stream, produce, p.data);
  CHECK_CUDA(cudaStreamSynchronize(p.stream));
  launch(p.stream, consume<Wait::kNever>, p.weights, p.data, p.out);
  CHECK_CUDA(cudaStreamSynchronize(p.stream));
  launch(p.stream, produce, p.data);
  consume<Wait::kNever><<<1, kThreads, 0, p.stream>>>(p.weights, p.data, p.out);
  // A chain of three: a grid that begins after one that has waited begins after what that waited
  // for.
  for (const bool third_waits : {true, false}) {
    launch(p.stream, produce, p.data);
    launch(p.stream, stand_between, true);
    if (third_waits)
      launch(p.stream, consume<Wait::kFirst>, p.weights, p.data, p.out);
    else
      launch(p.stream, consume<Wait::kNever>, p.weights, p.data, p.out);
    CHECK_CUDA(cudaStreamSynchronize(p.stream));
  }
  launch(p.stream, read_on, p.data, p.out);
  launch(p.stream, overwrite<true>, p.data);
}

void overlap_missing() { Problem().pair<Wait::kNever>(); }
void overlap_late() { Problem().pair<Wait::kLate>(); }
void overlap_one_warp() { Problem().pair<Wait::kOneWarp>(); }

void overlap_chain() {
  const Problem p;
  launch(p.stream, produce, p.data);
  launch(p.stream, stand_between, false);
  launch(p.stream, consume<Wait::kFirst>, p.weights, p.data, p.out);
}

void overlap_overwrite() {
  const Problem p;
  launch(p.stream, read_on, p.data, p.out);
  launch(p.stream, overwrite<false>, p.data);
}

// Once right, once not, in a graph that is launched twice.
void overlap_graph() {
  const Problem p;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  CHECK_CUDA(cudaStreamBeginCapture(p.stream, cudaStreamCaptureModeRelaxed));
  p.pair<Wait::kFirst>();
  p.pair<Wait::kNever>();
  CHECK_CUDA(cudaStreamEndCapture(p.stream, &graph));
  CHECK_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  for (int i = 0; i < 2; ++i) CHECK_CUDA(cudaGraphLaunch(executable, p.stream));
  CHECK_CUDA(cudaGraphExecDestroy(executable));
  CHECK_CUDA(cudaGraphDestroy(graph));
}
