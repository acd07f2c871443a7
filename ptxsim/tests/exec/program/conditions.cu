// Conditional nodes of graphs: IF with and without ELSE, WHILE, SWITCH, one inside of another.
#include "program.hpp"

namespace {

__global__ void set(cudaGraphConditionalHandle handle, const int* value) {
  cudaGraphSetConditional(handle, static_cast<unsigned>(*value));
}
__global__ void add(int* value, int by) { *value += by; }
// The condition is set where it changes, and nowhere else.
__global__ void count_down(cudaGraphConditionalHandle handle, int* left) {
  if (--*left == 0) cudaGraphSetConditional(handle, 0);
}

void add_kernel(cudaGraph_t graph, cudaGraphNode_t* node, const cudaGraphNode_t* after,
                void* kernel, void** arguments) {
  cudaKernelNodeParams p{};
  p.func = kernel;
  p.gridDim = p.blockDim = dim3(1);
  p.kernelParams = arguments;
  CHECK_CUDA(cudaGraphAddKernelNode(node, graph, after, after == nullptr ? 0 : 1, &p));
}

cudaGraph_t* add_condition(cudaGraph_t graph, const cudaGraphNode_t* after,
                           cudaGraphConditionalHandle handle, cudaGraphConditionalNodeType type,
                           unsigned size) {
  cudaGraphNodeParams p{};
  p.type = cudaGraphNodeTypeConditional;
  p.conditional.handle = handle;
  p.conditional.type = type;
  p.conditional.size = size;
  cudaGraphNode_t node;
  CHECK_CUDA(cudaGraphAddNode(&node, graph, after, nullptr, after == nullptr ? 0 : 1, &p));
  cudaGraphNodeType is;
  CHECK_CUDA(cudaGraphNodeGetType(node, &is));
  CHECK(is == cudaGraphNodeTypeConditional);
  return p.conditional.phGraph_out;
}

void body_adds(cudaGraph_t body, int* value, int by) {
  void* arguments[] = {&value, &by};
  cudaGraphNode_t node;
  add_kernel(body, &node, nullptr, reinterpret_cast<void*>(add), arguments);
}

// What a launch makes of `condition` and 0.
int launched(cudaGraphExec_t executable, int* values, int condition) {
  const int before[2] = {condition, 0};
  int after = -1;
  CHECK_CUDA(cudaMemcpy(values, before, sizeof before, cudaMemcpyHostToDevice));
  CHECK_CUDA(cudaGraphLaunch(executable, nullptr));
  CHECK_CUDA(cudaMemcpy(&after, values + 1, sizeof after, cudaMemcpyDeviceToHost));
  return after;
}

// A kernel sets the condition to values[0]; body i adds 10^i to values[1].
void check_choice(int* values, cudaGraphConditionalNodeType type, unsigned size,
                  const int (&expected)[4]) {
  cudaGraph_t graph;
  CHECK_CUDA(cudaGraphCreate(&graph, 0));
  cudaGraphConditionalHandle handle;
  CHECK_CUDA(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0));
  int* result = values + 1;
  void* arguments[] = {&handle, &values};
  cudaGraphNode_t setter;
  add_kernel(graph, &setter, nullptr, reinterpret_cast<void*>(set), arguments);
  cudaGraph_t* bodies = add_condition(graph, &setter, handle, type, size);
  for (int i = 0, by = 1; i < static_cast<int>(size); ++i, by *= 10)
    body_adds(bodies[i], result, by);
  cudaGraphExec_t executable;
  CHECK_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  for (int condition = 0; condition < 4; ++condition)
    CHECK(launched(executable, values, condition) == expected[condition]);
  CHECK_CUDA(cudaGraphExecDestroy(executable));
  CHECK_CUDA(cudaGraphDestroy(graph));
}

// As long as values[0] is not 0: that times, values[1] grows by 3, and by 100 in a node inside that
// runs when it is set.
void check_loop(int* values, cudaStream_t stream) {
  cudaGraph_t graph;
  CHECK_CUDA(cudaGraphCreate(&graph, 0));
  cudaGraphConditionalHandle loop, inner;
  CHECK_CUDA(cudaGraphConditionalHandleCreate(&loop, graph, 1, cudaGraphCondAssignDefault));
  CHECK_CUDA(cudaGraphConditionalHandleCreate(&inner, graph, 1, cudaGraphCondAssignDefault));
  cudaGraph_t body = add_condition(graph, nullptr, loop, cudaGraphCondTypeWhile, 1)[0];
  cudaGraph_t filled = nullptr;
  CHECK_CUDA(cudaStreamBeginCaptureToGraph(stream, body, nullptr, nullptr, 0,
                                           cudaStreamCaptureModeGlobal));
  add<<<1, 1, 0, stream>>>(values + 1, 3);
  count_down<<<1, 1, 0, stream>>>(loop, values);
  CHECK_CUDA(cudaStreamEndCapture(stream, &filled));
  CHECK(filled == body);
  cudaGraph_t own;
  CHECK_CUDA(cudaGraphCreate(&own, 0));
  CHECK_CUDA(
      cudaStreamBeginCaptureToGraph(stream, own, nullptr, nullptr, 0, cudaStreamCaptureModeGlobal));
  CHECK_CUDA(cudaStreamEndCapture(stream, nullptr));
  CHECK_CUDA(cudaGraphDestroy(own));
  size_t count = 0;
  CHECK_CUDA(cudaGraphGetNodes(body, nullptr, &count));
  CHECK(count == 2);
  body_adds(add_condition(body, nullptr, inner, cudaGraphCondTypeIf, 1)[0], values + 1, 100);
  cudaGraphExec_t executable;
  CHECK_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(launched(executable, values, 1) == 103);
  CHECK(launched(executable, values, 7) == 721);
  body_adds(body, values + 1, 50);  // the instance has the body of its time
  CHECK(launched(executable, values, 2) == 206);
  CHECK_CUDA(cudaGraphExecDestroy(executable));
  CHECK_CUDA(cudaGraphDestroy(graph));
}

void check_refusals() {
  cudaGraph_t graph, clone;
  CHECK_CUDA(cudaGraphCreate(&graph, 0));
  cudaGraphConditionalHandle handle;
  CHECK_CUDA(cudaGraphConditionalHandleCreate(&handle, graph, 0, 0));
  cudaGraphNodeParams p{};
  p.type = cudaGraphNodeTypeConditional;
  p.conditional.handle = handle;
  p.conditional.type = cudaGraphCondTypeWhile;
  p.conditional.size = 2;
  cudaGraphNode_t node;
  CHECK(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &p) == cudaErrorInvalidValue);
  p.conditional.size = 1;
  p.conditional.handle = 0;
  CHECK(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &p) == cudaErrorInvalidValue);
  p.conditional.handle = handle;
  CHECK_CUDA(cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &p));
  CHECK(cudaGraphClone(&clone, graph) != cudaSuccess);
  cudaHostNodeParams host{[](void*) {}, nullptr};
  CHECK_CUDA(cudaGraphAddHostNode(&node, p.conditional.phGraph_out[0], nullptr, 0, &host));
  cudaGraphExec_t executable;
  CHECK(cudaGraphInstantiate(&executable, graph, 0) != cudaSuccess);
  cudaGetLastError();
  CHECK_CUDA(cudaGraphDestroy(graph));
}

}  // namespace

void graph_conditions() {
  int* values;
  cudaStream_t stream;
  CHECK_CUDA(cudaMalloc(&values, 2 * sizeof(int)));
  CHECK_CUDA(cudaStreamCreate(&stream));
  check_choice(values, cudaGraphCondTypeIf, 1, {0, 1, 1, 1});
  check_choice(values, cudaGraphCondTypeIf, 2, {10, 1, 1, 1});
  check_choice(values, cudaGraphCondTypeSwitch, 3, {1, 10, 100, 0});
  check_loop(values, stream);
  check_refusals();
  CHECK_CUDA(cudaStreamDestroy(stream));
  CHECK_CUDA(cudaFree(values));
}

// Without a default, and without a kernel that sets it before the node: undefined on a GPU.
void graph_condition_unset() {
  cudaGraph_t graph;
  CHECK_CUDA(cudaGraphCreate(&graph, 0));
  cudaGraphConditionalHandle handle;
  CHECK_CUDA(cudaGraphConditionalHandleCreate(&handle, graph, 1, 0));
  add_condition(graph, nullptr, handle, cudaGraphCondTypeIf, 1);
  cudaGraphExec_t executable;
  CHECK_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  CHECK(cudaGraphLaunch(executable, nullptr) != cudaSuccess);
}
