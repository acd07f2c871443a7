// Public bugs of tensor memory; as order.cu.
#include "tensor_memory.cuh"

#define KERNEL extern "C" __global__ void

__device__ inline void move(uint32_t from, uint32_t to) {
  float v[16];
  for (int i = 0; i < 16; ++i) v[i] = read(from + i);
  for (int i = 0; i < 16; ++i) write(to + i, v[i]);
  pass();
}
// A product by one thread, that all wait for.
__device__ inline void product(Cta& s, uint32_t d, int accumulate, uint64_t* bar, int parity) {
  if (threadIdx.x == 0) {
    multiply(d, s.a, s.b, accumulate);
    commit(bar);
  }
  wait_for_product(bar, parity);
}

// Two products of an iteration go into one sum, which has two places in tensor memory; the loop was
// pipelined so that the wait for the second product comes a round too late.
KERNEL two_products_one_sum(float* y) {
  __shared__ Cta s;
  const uint32_t first = begin(s), second = first + 16;
  for (int k = 0; k < 4; ++k) {
    product(s, first, k > 0, s.bars, k & 1);
    move(first, second);
    if (threadIdx.x == 0) {
      multiply(second, s.a, s.b, 1);
      commit(s.bars + 1);
    }
    REPAIR(wait_for_product(s.bars + 1, k & 1);)
    __syncwarp();
    if (k < 3) move(second, first);
    BUG(wait_for_product(s.bars + 1, k & 1);)
  }
  y[threadIdx.x] = read(second);
  end(first);
}

// A stage is released while tcgen05.ld may still read it.
KERNEL released_before_reads(float* y) {
  __shared__ Cta s;
  const uint32_t d = begin(s, 1, 128);
  product(s, d, 0, s.bars, 0);
  const float value = start_read(d);
  REPAIR(wait_for_reads();)
  fence_before();
  arrive(s.bars + 1);
  if (threadIdx.x == 0) {
    wait(s.bars + 1, 0);
    fence_after();
    multiply(d, s.a, s.b, 1);
    commit(s.bars + 2);
  }
  wait_for_product(s.bars + 2, 0);
  BUG(wait_for_reads();)
  y[threadIdx.x] = value + read(d);
  end(d);
}

// Two warps of the same lanes read a column each, and store where the other one reads.
KERNEL stored_over_unread(float* y) {
  __shared__ Cta s;
  const uint32_t d = begin(s), half = threadIdx.x / 128;
  product(s, d, 0, s.bars, 0);
  const float value = read(d + 8 * half);
  REPAIR(pass();)
  write(d + 8 - 8 * half, 2 * value);
  pass();
  y[threadIdx.x] = read(d + 8 * half);
  end(d);
}

// One warp frees tensor memory that the others may still read.
KERNEL freed_while_others_read(float* y) {
  __shared__ Cta s;
  const uint32_t d = begin(s);
  product(s, d, 0, s.bars, 0);
  y[threadIdx.x] = read(d);
  __syncwarp();
  REPAIR(pass();)
  if (threadIdx.x < 32) release(d);
}

// The address that tcgen05.alloc writes is read by other warps without a barrier.
KERNEL address_of_an_allocation(float* y) {
  __shared__ Cta s;
  fill(s);
  if (threadIdx.x == 0) {
    init(s.bars, 1);
    s.slot = 0;
    fence_init();
  }
  __syncthreads();
  if (threadIdx.x < 32) allocate(&s.slot);
  REPAIR(pass();)
  const uint32_t d = s.slot;
  product(s, d, 0, s.bars, 0);
  y[threadIdx.x] = read(d);
  end(d);
}

__device__ inline void copy_scales(uint32_t to, const void* from) {
  asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(to), "l"(operand(from, 0))
               : "memory");
}
__device__ inline void multiply_scaled(uint32_t d, const Cta& s, uint32_t scales_a,
                                       uint32_t scales_b) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.s32 p, 0, 0;\n"
      "tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.scale_vec::4X [%0], %1, %2, "
      "0x08040480, [%3], [%4], p;\n}" ::"r"(d),
      "l"(operand(s.a, 2048)), "l"(operand(s.b, 256)), "r"(scales_a), "r"(scales_b)
      : "memory");
}

// Scale factors are copied over those that a product of the same thread may still read.
KERNEL scales_of_the_next_block(float* y) {
  __shared__ Cta s;
  const uint32_t d = begin(s);
  if (threadIdx.x == 0) {
    copy_scales(d + 36, s.a);
    for (int block = 0; block < 2; ++block) {
      REPAIR(if (block == 1) wait(s.bars, 0);)
      copy_scales(d + 32, s.a);
      multiply_scaled(d, s, d + 32, d + 36);
      commit(s.bars + block);
    }
  }
  wait_for_product(s.bars + 1, 0);
  y[threadIdx.x] = read(d);
  end(d);
}

// A sum is read before the product that writes it is over.
KERNEL sum_read_early(float* y) {
  __shared__ Cta s;
  const uint32_t d = begin(s);
  if (threadIdx.x == 0) {
    multiply(d, s.a, s.b, 0);
    commit(s.bars);
  }
  REPAIR(wait_for_product(s.bars, 0);)
  __syncwarp();
  const float value = read(d);
  wait(s.bars, 0);
  y[threadIdx.x] = value;
  end(d);
}

// A sum is stored to before the product that writes it is over.
KERNEL sum_written_early(float* y) {
  __shared__ Cta s;
  const uint32_t d = begin(s);
  if (threadIdx.x == 0) {
    multiply(d, s.a, s.b, 0);
    commit(s.bars);
  }
  REPAIR(wait_for_product(s.bars, 0);)
  __syncwarp();
  write(d, 42);
  wait(s.bars, 0);
  __syncwarp();
  y[threadIdx.x] = read(d);
  end(d);
}

// An operand is loaded again before the product that reads it is over.
KERNEL operand_loaded_early(const uint4* x, float* y) {
  __shared__ Cta s;
  const uint32_t d = begin(s);
  if (threadIdx.x == 0) {
    multiply(d, s.a, s.b, 0);
    commit(s.bars);
    REPAIR(wait(s.bars, 0);)
    load(s.a, x, 4096, s.bars + 1);
  }
  wait_for_product(s.bars, 0);
  wait(s.bars + 1, 0);
  __syncwarp();
  y[threadIdx.x] = read(d);
  end(d);
}

// An operand is stored to before the product that reads it is over.
KERNEL operand_stored_early(float* y) {
  __shared__ Cta s;
  const uint32_t d = begin(s);
  if (threadIdx.x == 0) {
    multiply(d, s.a, s.b, 0);
    commit(s.bars);
  }
  REPAIR(wait_for_product(s.bars, 0);)
  s.a[threadIdx.x] = make_uint4(threadIdx.x, 0, 0, 0);
  wait_for_product(s.bars, 0);
  y[threadIdx.x] = read(d);
  end(d);
}
