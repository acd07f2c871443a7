"""A program with Triton's launcher, for `ptxsim exec`: it compiles while it runs, and its launcher encodes the tensor maps.

PYTHONPATH=ptxsim/python TRITON_CACHE_DIR=cache ptxsim exec --device h200 --ptx cache -- python ptxsim/tests/peers/triton_program.py
"""

import numpy as np
import triton
import triton.language as tl
from ptxsim.triton import array
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def product(of_a, of_b, of_c, k, TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr):
    row, col = tl.program_id(0) * TILE_M, tl.program_id(1) * TILE_N
    acc = tl.zeros((TILE_M, TILE_N), tl.float32)
    for begin in range(0, k, TILE_K):
        acc = tl.dot(of_a.load([row, begin]), of_b.load([col, begin]).T, acc)
    of_c.store([row, col], acc)


def main() -> None:
    random, m, n, k = np.random.default_rng(1), 192, 96, 160
    a, b = random.integers(-2, 3, (m, k)).astype(np.float16), random.integers(-2, 3, (n, k)).astype(np.float16)
    arrays = [array(a), array(b), array(np.zeros((m, n), np.float32))]
    tiles = [[128, 64], [64, 64], [128, 64]]
    maps = [TensorDescriptor(x, list(x.shape), [x.shape[1], 1], tile) for x, tile in zip(arrays, tiles)]
    product[(2, 2)](*maps, k, TILE_M=128, TILE_N=64, TILE_K=64)
    np.testing.assert_array_equal(arrays[2].numpy(), a.astype(np.float32) @ b.astype(np.float32).T)
    print("Triton's launcher: right")


if __name__ == "__main__":
    main()
