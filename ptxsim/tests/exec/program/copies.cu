// Copies as nodes of graphs: boxes, bytes, variables; looked at, and given other parameters.
#include <cstring>

#include "program.hpp"

namespace {

__device__ int variable[4];

constexpr int kWidth = 3, kHeight = 2, kDepth = 2, kPitch = 5;  // ints
constexpr int kAll = kPitch * kHeight * kDepth;

cudaMemcpy3DParms box(int* from, int* to, int to_pitch, cudaMemcpyKind kind) {
  cudaMemcpy3DParms p{};
  p.srcPtr = make_cudaPitchedPtr(from, kPitch * sizeof(int), kWidth, kHeight);
  p.dstPtr = make_cudaPitchedPtr(to, to_pitch * sizeof(int), kWidth, kHeight);
  p.extent = make_cudaExtent(kWidth * sizeof(int), kHeight, kDepth);
  p.kind = kind;
  return p;
}

void launch(cudaGraphExec_t executable) {
  CHECK_CUDA(cudaGraphLaunch(executable, nullptr));
  CHECK_CUDA(cudaDeviceSynchronize());
}

bool is_box_of(const int* dense, const int* padded) {
  for (int z = 0; z < kDepth; ++z)
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x)
        if (dense[x + kWidth * (y + kHeight * z)] != padded[x + kPitch * (y + kHeight * z)])
          return false;
  return true;
}

// To the device, and back in the next node; then from other memory, in the graph's instance alone.
void copy_boxes(int* device) {
  int host[kAll], other[kAll], back[kWidth * kHeight * kDepth] = {};
  for (int i = 0; i < kAll; ++i) {
    host[i] = 100 + i;
    other[i] = 500 + i;
  }
  cudaGraph_t graph;
  CHECK_CUDA(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t to_device, to_host;
  cudaMemcpy3DParms first = box(host, device, kPitch, cudaMemcpyHostToDevice),
                    second = box(device, back, kWidth, cudaMemcpyDeviceToHost);
  CHECK_CUDA(cudaGraphAddMemcpyNode(&to_device, graph, nullptr, 0, &first));
  CHECK_CUDA(cudaGraphAddMemcpyNode(&to_host, graph, &to_device, 1, &second));
  cudaMemcpy3DParms read{};
  CHECK_CUDA(cudaGraphMemcpyNodeGetParams(to_device, &read));
  CHECK(read.srcPtr.ptr == host && read.dstPtr.ptr == device && read.extent.height == kHeight);
  cudaGraphExec_t executable;
  CHECK_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  launch(executable);
  CHECK(is_box_of(back, host));
  first = box(other, device, kPitch, cudaMemcpyHostToDevice);
  CHECK_CUDA(cudaGraphExecMemcpyNodeSetParams(executable, to_device, &first));
  launch(executable);
  CHECK(is_box_of(back, other));
  CHECK_CUDA(
      cudaGraphMemcpyNodeSetParams1D(to_device, device, host, sizeof host, cudaMemcpyHostToDevice));
  CHECK_CUDA(cudaGraphMemcpyNodeGetParams(to_device, &read));
  CHECK(read.extent.width == sizeof host && read.extent.height == 1);
  cudaGraphExecUpdateResultInfo info;
  CHECK_CUDA(cudaGraphExecUpdate(executable, graph, &info));
  launch(executable);
  CHECK(is_box_of(back, host));
  first.kind = cudaMemcpyDeviceToHost;
  CHECK(cudaGraphMemcpyNodeSetParams(to_device, &first) == cudaErrorInvalidValue);
  cudaGetLastError();
  CHECK_CUDA(cudaGraphExecDestroy(executable));
  CHECK_CUDA(cudaGraphDestroy(graph));
}

void copy_variables() {
  int host[2] = {7, 8}, other[2] = {9, 10}, back = 0;
  cudaGraph_t graph;
  CHECK_CUDA(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t set, get;
  CHECK_CUDA(cudaGraphAddMemcpyNodeToSymbol(&set, graph, nullptr, 0, variable, host, sizeof host,
                                            sizeof(int), cudaMemcpyHostToDevice));
  CHECK_CUDA(cudaGraphAddMemcpyNodeFromSymbol(&get, graph, &set, 1, &back, variable, sizeof back,
                                              2 * sizeof(int), cudaMemcpyDeviceToHost));
  cudaGraphExec_t executable;
  CHECK_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  launch(executable);
  CHECK(back == 8);
  CHECK_CUDA(cudaGraphExecMemcpyNodeSetParamsToSymbol(
      executable, set, variable, other, sizeof other, sizeof(int), cudaMemcpyHostToDevice));
  CHECK_CUDA(cudaGraphExecMemcpyNodeSetParamsFromSymbol(
      executable, get, &back, variable, sizeof back, sizeof(int), cudaMemcpyDeviceToHost));
  launch(executable);
  CHECK(back == 9);
  CHECK(cudaGraphMemcpyNodeSetParamsToSymbol(set, variable, host, sizeof host, 3 * sizeof(int),
                                             cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  cudaGetLastError();
  CHECK_CUDA(cudaGraphExecDestroy(executable));
  CHECK_CUDA(cudaGraphDestroy(graph));
}

// cudaGraphAddNode and what sets parameters of any type; a captured copy has its parameters as
// well.
void nodes_of_any_type(int* device, cudaStream_t stream) {
  int host[4] = {1, 2, 3, 4}, back[4] = {};
  cudaGraph_t graph;
  CHECK_CUDA(cudaGraphCreate(&graph, 0));
  cudaGraphNodeParams copy{}, fill{};
  copy.type = cudaGraphNodeTypeMemcpy;
  copy.memcpy.copyParams.srcPtr = make_cudaPitchedPtr(host, sizeof host, sizeof host, 1);
  copy.memcpy.copyParams.dstPtr = make_cudaPitchedPtr(device, sizeof host, sizeof host, 1);
  copy.memcpy.copyParams.extent = make_cudaExtent(sizeof host, 1, 1);
  copy.memcpy.copyParams.kind = cudaMemcpyDefault;
  fill.type = cudaGraphNodeTypeMemset;
  fill.memset.dst = device;
  fill.memset.elementSize = 4;
  fill.memset.value = 77;
  fill.memset.width = 2;
  fill.memset.height = 1;
  cudaGraphNode_t first, second, last;
  CHECK_CUDA(cudaGraphAddNode(&first, graph, nullptr, nullptr, 0, &copy));
  CHECK_CUDA(cudaGraphAddNode(&second, graph, &first, nullptr, 1, &fill));
  CHECK_CUDA(cudaGraphAddMemcpyNode1D(&last, graph, &second, 1, back, device, sizeof back,
                                      cudaMemcpyDeviceToHost));
  cudaMemsetParams read{};
  CHECK_CUDA(cudaGraphMemsetNodeGetParams(second, &read));
  CHECK(read.dst == device && read.value == 77 && read.width == 2);
  cudaGraphExec_t executable;
  CHECK_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  launch(executable);
  CHECK(back[0] == 77 && back[1] == 77 && back[2] == 3 && back[3] == 4);
  fill.memset.value = 5;
  CHECK_CUDA(cudaGraphExecNodeSetParams(executable, second, &fill));
  launch(executable);
  CHECK(back[0] == 5);
  CHECK_CUDA(cudaGraphExecDestroy(executable));
  CHECK_CUDA(cudaGraphDestroy(graph));

  CHECK_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  CHECK_CUDA(cudaMemcpy2DAsync(device, 8, host, 8, 4, 2, cudaMemcpyHostToDevice, stream));
  CHECK_CUDA(cudaStreamEndCapture(stream, &graph));
  size_t count = 1;
  CHECK_CUDA(cudaGraphGetNodes(graph, &first, &count));
  cudaMemcpy3DParms captured{};
  CHECK_CUDA(cudaGraphMemcpyNodeGetParams(first, &captured));
  CHECK(count == 1 && captured.extent.width == 4 && captured.extent.height == 2);
  CHECK_CUDA(cudaGraphDestroy(graph));
}

}  // namespace

void graph_copies() {
  int* device;
  cudaStream_t stream;
  CHECK_CUDA(cudaMalloc(&device, kAll * sizeof(int)));
  CHECK_CUDA(cudaStreamCreate(&stream));
  copy_boxes(device);
  copy_variables();
  nodes_of_any_type(device, stream);
  CHECK_CUDA(cudaStreamDestroy(stream));
  CHECK_CUDA(cudaFree(device));
}
