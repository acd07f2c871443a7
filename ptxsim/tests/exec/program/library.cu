// A library with a kernel, and with NVIDIA's runtime linked into it: it registers the kernel before
// the program's own constructors run.
namespace {

__global__ void write_41(int* p) { *p = 41; }

}  // namespace

extern "C" int forty_one() {
  int* device = nullptr;
  int value = 0;
  cudaMalloc(&device, sizeof value);
  write_41<<<1, 1>>>(device);
  cudaMemcpy(&value, device, sizeof value, cudaMemcpyDefault);
  cudaFree(device);
  return value;
}
