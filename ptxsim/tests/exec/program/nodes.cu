// Graphs whose nodes are made one by one, looked at and changed.
#include "program.hpp"

namespace {

__global__ void scale(int* values, int by) { values[threadIdx.x] *= by; }
__global__ void raise(int* values, int by) { values[threadIdx.x] += by; }

constexpr int kCount = 32;
int told = 0;
void tell(void* value) { told += *static_cast<int*>(value); }

cudaGraph_t captured(cudaStream_t stream, int* values, int by) {
  cudaGraph_t graph;
  CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  scale<<<1, kCount, 0, stream>>>(values, by);
  cudaStreamCaptureStatus state;
  unsigned long long id;
  CHECK_CUDA(cudaStreamGetCaptureInfo(stream, &state, &id));
  CHECK(state == cudaStreamCaptureStatusActive);
  raise<<<1, kCount, 0, stream>>>(values, 1);
  CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
  return graph;
}

// The last of the values after a launch of the graph that began with 2 everywhere.
int result_of(cudaGraphExec_t executable, cudaStream_t stream, int* values) {
  int host[kCount];
  for (int& value : host) value = 2;
  CHECK_CUDA(cudaMemcpy(values, host, sizeof host, cudaMemcpyHostToDevice));
  CHECK_CUDA(cudaGraphLaunch(executable, stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  CHECK_CUDA(cudaMemcpy(host, values, sizeof host, cudaMemcpyDeviceToHost));
  return host[kCount - 1];
}

void change_captured(cudaStream_t stream, int* values) {
  cudaGraph_t graph = captured(stream, values, 3), other = captured(stream, values, 5);
  cudaGraphExec_t executable;
  CHECK_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(result_of(executable, stream, values) == 7);
  cudaGraphExecUpdateResultInfo info;
  CHECK_CUDA(cudaGraphExecUpdate(executable, other, &info));
  CHECK(info.result == cudaGraphExecUpdateSuccess);
  CHECK(result_of(executable, stream, values) == 11);
  size_t count = 0;
  CHECK_CUDA(cudaGraphGetNodes(graph, nullptr, &count));
  CHECK(count == 2);
  cudaGraphNode_t nodes[2], before[2];
  CHECK_CUDA(cudaGraphGetNodes(graph, nodes, &count));
  CHECK_CUDA(cudaGraphNodeGetDependencies(nodes[1], before, nullptr, &count));
  CHECK(count == 1 && before[0] == nodes[0]);
  cudaGraphNodeType type;
  CHECK_CUDA(cudaGraphNodeGetType(nodes[0], &type));
  CHECK(type == cudaGraphNodeTypeKernel);
  cudaKernelNodeParams parameters;
  CHECK_CUDA(cudaGraphKernelNodeGetParams(nodes[0], &parameters));
  CHECK(parameters.func == reinterpret_cast<void*>(scale) && parameters.blockDim.x == kCount);
  CHECK(*static_cast<int*>(parameters.kernelParams[1]) == 3);
  int by = 7;
  void* arguments[] = {&values, &by};
  parameters.kernelParams = arguments;
  CHECK_CUDA(cudaGraphExecKernelNodeSetParams(executable, nodes[0], &parameters));
  CHECK(result_of(executable, stream, values) == 15);
  CHECK_CUDA(cudaGraphDestroyNode(nodes[1]));
  CHECK(cudaGraphExecUpdate(executable, graph, &info) == cudaErrorGraphExecUpdateFailure);
  CHECK(info.result == cudaGraphExecUpdateErrorTopologyChanged);
  cudaGetLastError();
  CHECK_CUDA(cudaGraphExecDestroy(executable));
  CHECK_CUDA(cudaGraphDestroy(graph));
  CHECK_CUDA(cudaGraphDestroy(other));
}

// Nodes are added in another order than that of their edges.
void make_by_hand(cudaStream_t stream, int* values) {
  int host[kCount] = {}, by_three = 3, by_four = 4, added = 5;
  void *scaled[] = {&values, &by_three}, *raised[] = {&values, &by_four};
  cudaGraph_t graph;
  CHECK_CUDA(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t copy, multiply, add, zero, last;
  CHECK_CUDA(cudaGraphAddMemcpyNode1D(&copy, graph, nullptr, 0, host, values, sizeof host,
                                      cudaMemcpyDeviceToHost));
  cudaKernelNodeParams parameters{};
  parameters.gridDim = dim3(1);
  parameters.blockDim = dim3(kCount);
  parameters.func = reinterpret_cast<void*>(scale);
  parameters.kernelParams = scaled;
  CHECK_CUDA(cudaGraphAddKernelNode(&multiply, graph, nullptr, 0, &parameters));
  cudaMemsetParams zeros{};
  zeros.dst = values;
  zeros.elementSize = 4;
  zeros.width = kCount;
  zeros.height = 1;
  CHECK_CUDA(cudaGraphAddMemsetNode(&zero, graph, nullptr, 0, &zeros));
  parameters.func = reinterpret_cast<void*>(raise);
  parameters.kernelParams = raised;
  CHECK_CUDA(cudaGraphAddKernelNode(&add, graph, &zero, 1, &parameters));
  const cudaGraphNode_t from[] = {add, multiply}, to[] = {multiply, copy};
  CHECK_CUDA(cudaGraphAddDependencies(graph, from, to, nullptr, 2));
  cudaHostNodeParams hosts{tell, &added};
  CHECK_CUDA(cudaGraphAddHostNode(&last, graph, &copy, 1, &hosts));
  cudaGraphExec_t executable;
  CHECK_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  CHECK_CUDA(cudaGraphLaunch(executable, stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  CHECK(host[0] == 12 && host[kCount - 1] == 12 && told == 5);
  by_four = 10;
  CHECK_CUDA(cudaGraphExecKernelNodeSetParams(executable, add, &parameters));
  CHECK_CUDA(cudaGraphLaunch(executable, stream));
  CHECK_CUDA(cudaStreamSynchronize(stream));
  CHECK(host[7] == 30 && told == 10);
  const cudaGraphNode_t back_from[] = {last}, back_to[] = {zero};
  CHECK_CUDA(cudaGraphAddDependencies(graph, back_from, back_to, nullptr, 1));
  cudaGraphExec_t circle;
  CHECK(cudaGraphInstantiate(&circle, graph, 0) == cudaErrorInvalidValue);
  cudaGetLastError();
  CHECK_CUDA(cudaGraphExecDestroy(executable));
  CHECK_CUDA(cudaGraphDestroy(graph));
}

}  // namespace

void graph_nodes() {
  int* values;
  cudaStream_t stream;
  CHECK_CUDA(cudaMalloc(&values, kCount * sizeof(int)));
  CHECK_CUDA(cudaStreamCreate(&stream));
  change_captured(stream, values);
  make_by_hand(stream, values);
  CHECK_CUDA(cudaStreamDestroy(stream));
  CHECK_CUDA(cudaFree(values));
}
