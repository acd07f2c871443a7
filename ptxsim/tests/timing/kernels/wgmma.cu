// Chains of wgmma: products of one warpgroup on the same sums, with a wait behind all of them or
// behind each. wgmma.json has the launches. sm_90a alone.
#define KERNEL extern "C" __global__ void

// Rows of 16 halves, K in two cores of 8 x 16 bytes: nothing is swizzled.
__device__ unsigned long long descriptor(const void* at, unsigned rows) {
  const auto address = static_cast<unsigned>(__cvta_generic_to_shared(at));
  return (address >> 4 & 0x3fff) | static_cast<unsigned long long>(rows * 16 >> 4) << 16 |
         8ull << 32;
}
__device__ void begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ void end() {
  asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;" ::: "memory");
}

// Where a register gets its number or is read no wgmma is under way: or ptxas waits behind each.
template <int kRegisters>
__device__ void settle(float (&d)[kRegisters]) {
#pragma unroll
  for (float& number : d) asm volatile("" : "+f"(number)::"memory");
}

template <int kRegisters>
__device__ void multiply(float (&d)[kRegisters], unsigned long long a, unsigned long long b) {
  if constexpr (kRegisters == 4) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "l"(a), "l"(b));
  } else {
    static_assert(kRegisters == 32);
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
        "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,"
        "%24,%25,%26,%27,%28,%29,%30,%31}, %32, %33, 1, 1, 1, 0, 0;"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]),
          "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]),
          "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]),
          "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
          "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
        : "l"(a), "l"(b));
  }
}

template <int kRegisters>
__device__ void chain(float* y, int n, bool waits_for_each) {
  __shared__ alignas(128) unsigned tiles[2][512];
  for (unsigned k = threadIdx.x; k < 1024; k += 128) tiles[k / 512][k % 512] = 0;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  const unsigned long long a = descriptor(tiles[0], 64), b = descriptor(tiles[1], kRegisters * 2);
  float d[kRegisters] = {};
  settle(d);
  begin();
  if (waits_for_each) {
    for (int k = 0; k < n; ++k) {
      multiply(d, a, b);
      end();
      begin();
    }
  } else {
#pragma unroll 1
    for (int k = 0; k < n; ++k) multiply(d, a, b);
  }
  end();
  settle(d);
  y[blockIdx.x * 128 + threadIdx.x] = d[0] + d[kRegisters - 1];
}

KERNEL chain_n8(float* y, int n) { chain<4>(y, n, false); }
KERNEL chain_n64(float* y, int n) { chain<32>(y, n, false); }
KERNEL waits_n8(float* y, int n) { chain<4>(y, n, true); }
KERNEL waits_n64(float* y, int n) { chain<32>(y, n, true); }
