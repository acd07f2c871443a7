// Nodes of graphs that allocate and free, made one by one and captured; captures whose graph the
// program changes while they go on.
#include "program.hpp"

namespace {

constexpr int kCount = 32;
constexpr size_t kBytes = kCount * sizeof(int);

__global__ void set(int* values, int to) { values[threadIdx.x] = to; }
__global__ void add(int* to, const int* values) { to[threadIdx.x] += values[threadIdx.x]; }
__global__ void count_down(cudaGraphConditionalHandle handle, int* left) {
  cudaGraphSetConditional(handle, --*left != 0);
}

cudaGraphNode_t add_allocation(cudaGraph_t graph, int** pointer) {
  cudaMemAllocNodeParams p{}, known;
  p.poolProps.allocType = cudaMemAllocationTypePinned;
  p.poolProps.location.type = cudaMemLocationTypeDevice;
  p.bytesize = kBytes;
  cudaGraphNode_t node;
  CHECK_CUDA(cudaGraphAddMemAllocNode(&node, graph, nullptr, 0, &p));
  CHECK_CUDA(cudaGraphMemAllocNodeGetParams(node, &known));
  CHECK(known.dptr == p.dptr && known.bytesize == kBytes && p.dptr != nullptr);
  *pointer = static_cast<int*>(p.dptr);
  return node;
}

unsigned long long memory_of_graphs(cudaGraphMemAttributeType attribute) {
  unsigned long long bytes = 0;
  CHECK_CUDA(cudaDeviceGetGraphMemAttribute(0, attribute, &bytes));
  return bytes;
}

// The allocation is set to `to`, and copied to `host`.
cudaGraphExec_t make_by_hand(int** allocated, int* host, bool frees, unsigned long long flags) {
  cudaGraph_t graph, clone;
  CHECK_CUDA(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t last = add_allocation(graph, allocated);
  int to = 3;
  void* arguments[] = {allocated, &to};
  cudaKernelNodeParams p{};
  p.func = reinterpret_cast<void*>(set);
  p.gridDim = dim3(1);
  p.blockDim = dim3(kCount);
  p.kernelParams = arguments;
  CHECK_CUDA(cudaGraphAddKernelNode(&last, graph, &last, 1, &p));
  CHECK_CUDA(cudaGraphAddMemcpyNode1D(&last, graph, &last, 1, host, *allocated, kBytes,
                                      cudaMemcpyDeviceToHost));
  cudaGraphNode_t freed;
  if (frees) {
    CHECK_CUDA(cudaGraphAddMemFreeNode(&freed, graph, &last, 1, *allocated));
    CHECK(cudaGraphAddMemFreeNode(&freed, graph, &last, 1, *allocated) == cudaErrorInvalidValue);
  }
  CHECK(cudaGraphAddMemFreeNode(&freed, graph, &last, 1, host) == cudaErrorInvalidValue);
  CHECK(cudaGraphClone(&clone, graph) == cudaErrorInvalidValue);
  cudaGraphExec_t executable, second;
  CHECK_CUDA(cudaGraphInstantiate(&executable, graph, flags));
  CHECK(cudaGraphInstantiate(&second, graph, flags) == cudaErrorInvalidValue);
  CHECK_CUDA(cudaGraphDestroy(graph));
  cudaGetLastError();
  return executable;
}

void check_freed_inside(cudaStream_t stream) {
  int *allocated, host[kCount] = {};
  cudaGraphExec_t executable = make_by_hand(&allocated, host, true, 0);
  CHECK(memory_of_graphs(cudaGraphMemAttrReservedMemCurrent) == 0);
  for (int launch = 0; launch < 2; ++launch) {
    host[kCount - 1] = 0;
    CHECK_CUDA(cudaGraphLaunch(executable, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    CHECK(host[kCount - 1] == 3);
    CHECK(memory_of_graphs(cudaGraphMemAttrUsedMemCurrent) == 0);
    CHECK(memory_of_graphs(cudaGraphMemAttrUsedMemHigh) == kBytes);
    CHECK(memory_of_graphs(cudaGraphMemAttrReservedMemCurrent) == kBytes);
  }
  CHECK(cudaFree(allocated) != cudaSuccess);  // it is not there
  cudaGetLastError();
  CHECK_CUDA(cudaDeviceGraphMemTrim(0));
  CHECK(memory_of_graphs(cudaGraphMemAttrReservedMemCurrent) == 0);
  unsigned long long zero = 0;
  CHECK_CUDA(cudaDeviceSetGraphMemAttribute(0, cudaGraphMemAttrUsedMemHigh, &zero));
  CHECK(memory_of_graphs(cudaGraphMemAttrUsedMemHigh) == 0);
  CHECK_CUDA(cudaGraphExecDestroy(executable));
}

// By the host, in a stream, by another graph.
void check_freed_outside(cudaStream_t stream) {
  int *allocated, *sums, host[kCount] = {};
  CHECK_CUDA(cudaMalloc(&sums, kBytes));
  CHECK_CUDA(cudaMemsetAsync(sums, 0, kBytes, stream));
  cudaGraphExec_t executable = make_by_hand(&allocated, host, false, 0);
  cudaGraph_t free_it;
  cudaGraphNode_t node;
  void* known = nullptr;
  CHECK_CUDA(cudaGraphCreate(&free_it, 0));
  CHECK_CUDA(cudaGraphAddMemFreeNode(&node, free_it, nullptr, 0, allocated));
  CHECK_CUDA(cudaGraphMemFreeNodeGetParams(node, &known));
  CHECK(known == allocated);
  cudaGraphExec_t freeing;
  CHECK_CUDA(cudaGraphInstantiate(&freeing, free_it, 0));
  CHECK_CUDA(cudaGraphDestroy(free_it));
  for (int how = 0; how < 3; ++how) {
    CHECK_CUDA(cudaGraphLaunch(executable, stream));
    add<<<1, kCount, 0, stream>>>(sums, allocated);
    if (how == 0) CHECK_CUDA(cudaFreeAsync(allocated, stream));
    if (how == 1) CHECK_CUDA(cudaGraphLaunch(freeing, stream));
    CHECK_CUDA(cudaStreamSynchronize(stream));
    if (how == 2) CHECK_CUDA(cudaFree(allocated));
  }
  CHECK_CUDA(cudaMemcpy(host, sums, kBytes, cudaMemcpyDeviceToHost));
  CHECK(host[0] == 9 && host[kCount - 1] == 9);
  CHECK_CUDA(cudaGraphExecDestroy(executable));
  CHECK_CUDA(cudaGraphExecDestroy(freeing));
  executable = make_by_hand(&allocated, host, false, cudaGraphInstantiateFlagAutoFreeOnLaunch);
  CHECK_CUDA(cudaGraphLaunch(executable, stream));
  CHECK_CUDA(cudaGraphLaunch(executable, stream));
  CHECK_CUDA(cudaFreeAsync(allocated, stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  CHECK_CUDA(cudaGraphExecDestroy(executable));
  CHECK_CUDA(cudaFree(sums));
}

void check_captured(cudaStream_t stream) {
  int *allocated, *sums, host[kCount] = {};
  CHECK_CUDA(cudaMalloc(&sums, kBytes));
  CHECK_CUDA(cudaMemset(sums, 0, kBytes));
  cudaGraph_t graph;
  CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK_CUDA(cudaMallocAsync(&allocated, kBytes, stream));
  CHECK_CUDA(cudaMemsetAsync(allocated, 0, kBytes, stream));
  set<<<1, kCount, 0, stream>>>(allocated, 4);
  add<<<1, kCount, 0, stream>>>(sums, allocated);
  CHECK_CUDA(cudaFreeAsync(allocated, stream));
  CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
  cudaGraphNode_t nodes[5];
  size_t count = 5;
  CHECK_CUDA(cudaGraphGetNodes(graph, nodes, &count));
  CHECK(count == 5);
  cudaGraphNodeType first, last;
  CHECK_CUDA(cudaGraphNodeGetType(nodes[0], &first));
  CHECK_CUDA(cudaGraphNodeGetType(nodes[4], &last));
  CHECK(first == cudaGraphNodeTypeMemAlloc && last == cudaGraphNodeTypeMemFree);
  cudaGraphExec_t executable;
  CHECK_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  CHECK_CUDA(cudaGraphLaunch(executable, stream));
  CHECK_CUDA(cudaGraphLaunch(executable, stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  CHECK_CUDA(cudaMemcpy(host, sums, kBytes, cudaMemcpyDeviceToHost));
  CHECK(host[0] == 8);
  CHECK_CUDA(cudaGraphExecDestroy(executable));
  CHECK_CUDA(cudaGraphDestroy(graph));
  CHECK_CUDA(cudaFree(sums));
}

}  // namespace

void graph_memory() {
  cudaStream_t stream;
  CHECK_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  check_freed_inside(stream);
  check_freed_outside(stream);
  check_captured(stream);
  CHECK_CUDA(cudaStreamDestroy(stream));
}

// A second launch, though the first one's memory is there still: refused, and a warning.
void graph_memory_kept() {
  int *allocated, host[kCount];
  cudaGraphExec_t executable = make_by_hand(&allocated, host, false, 0);
  CHECK_CUDA(cudaGraphLaunch(executable, nullptr));
  CHECK(cudaGraphLaunch(executable, nullptr) == cudaErrorInvalidValue);
  CHECK_CUDA(cudaFree(allocated));
  cudaGetLastError();
}

// The memory that a graph has freed is not there for the kernel behind it.
void graph_memory_after_free() {
  int *allocated, host[kCount];
  cudaGraphExec_t executable = make_by_hand(&allocated, host, true, 0);
  CHECK_CUDA(cudaGraphLaunch(executable, nullptr));
  set<<<1, 1>>>(allocated, 1);
  CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
}

// A WHILE node is put into a capture that goes on, before the copy behind it.
void graph_of_capture() {
  int *left, after = -1, before = 5;
  cudaStream_t stream, beside;
  CHECK_CUDA(cudaMalloc(&left, sizeof(int)));
  CHECK_CUDA(cudaStreamCreate(&stream));
  CHECK_CUDA(cudaStreamCreate(&beside));
  cudaStreamCaptureStatus status;
  cudaGraph_t graph = nullptr, ended;
  const cudaGraphNode_t* nodes;
  size_t count = 1;
  CHECK_CUDA(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, &nodes, nullptr, &count));
  CHECK(status == cudaStreamCaptureStatusNone && graph == nullptr && count == 0);
  cudaGraphNode_t condition;
  CHECK(cudaStreamUpdateCaptureDependencies(stream, nullptr, nullptr, 0,
                                            cudaStreamSetCaptureDependencies) ==
        cudaErrorIllegalState);
  CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK_CUDA(cudaMemcpyAsync(left, &before, sizeof before, cudaMemcpyHostToDevice, stream));
  CHECK_CUDA(cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, &nodes, nullptr, &count));
  CHECK(status == cudaStreamCaptureStatusActive && graph != nullptr && count == 1);
  cudaGraphConditionalHandle handle;
  CHECK_CUDA(cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault));
  cudaGraphNodeParams p{};
  p.type = cudaGraphNodeTypeConditional;
  p.conditional.handle = handle;
  p.conditional.type = cudaGraphCondTypeWhile;
  p.conditional.size = 1;
  CHECK_CUDA(cudaGraphAddNode(&condition, graph, nodes, nullptr, count, &p));
  CHECK_CUDA(cudaStreamUpdateCaptureDependencies(stream, &condition, nullptr, 1,
                                                 cudaStreamSetCaptureDependencies));
  CHECK_CUDA(cudaStreamGetCaptureInfo(stream, &status, nullptr, nullptr, &nodes, nullptr, &count));
  CHECK(count == 1 && nodes[0] == condition);
  CHECK_CUDA(cudaStreamBeginCaptureToGraph(beside, p.conditional.phGraph_out[0], nullptr, nullptr,
                                           0, cudaStreamCaptureModeRelaxed));
  count_down<<<1, 1, 0, beside>>>(handle, left);
  CHECK_CUDA(cudaStreamEndCapture(beside, nullptr));
  CHECK_CUDA(cudaMemcpyAsync(&after, left, sizeof after, cudaMemcpyDeviceToHost, stream));
  CHECK_CUDA(cudaStreamEndCapture(stream, &ended));
  CHECK(ended == graph);
  cudaGraphExec_t executable;
  CHECK_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  CHECK_CUDA(cudaGraphLaunch(executable, stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  CHECK(after == 0);
  // Launches of one instance never overlap, in two streams neither.
  CHECK_CUDA(cudaGraphLaunch(executable, stream));
  CHECK_CUDA(cudaGraphLaunch(executable, beside));
  CHECK_CUDA(cudaDeviceSynchronize());
  CHECK_CUDA(cudaGraphExecDestroy(executable));
  CHECK_CUDA(cudaGraphDestroy(graph));
  CHECK_CUDA(cudaStreamDestroy(stream));
  CHECK_CUDA(cudaStreamDestroy(beside));
  CHECK_CUDA(cudaFree(left));
}
