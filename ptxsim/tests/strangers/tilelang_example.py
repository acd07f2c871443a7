"""One of TileLang's examples below `ptxsim exec`: its kernel with a size of ours, beside NumPy. Arguments: the example, the target.

TileLang is told to compile to PTX and to leave the runtime to the loader; the kernel and its host code are its own.
"""

import ctypes
import importlib
import sys

import numpy as np
import ptxsim.triton as on_gpu
import tilelang.language as T


def compiled(function, target, **sizes):
    function.target, function.execution_backend = {"kind": "cuda", "arch": target}, "cython"
    compute = target.replace("sm_", "compute_")
    function.compile_flags = ["-cudart=shared", "-lineinfo", f"-gencode=arch={compute},code={compute}"]
    return function.compile(**sizes)


def run(kernel, *arrays):
    given = [on_gpu.array(one) for one in arrays]
    status = kernel.adapter.lib.call(*[ctypes.c_void_p(one.data_ptr()) for one in given], None)
    if status:
        raise RuntimeError(f"TileLang's host code: {status}; must be 0")
    return given[-1].numpy()


def addition(module, target):
    sizes = {"block_M": 32, "block_N": 32, "threads": 128, "in_dtype": T.float32, "out_dtype": T.float32}
    kernel = compiled(module.elementwise_add, target, M=256, N=128, **sizes)
    a, b = (np.random.default_rng(seed).normal(size=(256, 128)).astype(np.float32) for seed in (1, 2))
    np.testing.assert_array_equal(run(kernel, a, b, np.zeros_like(a)), a + b)


def product(module, target):
    m, n, k = 256, 128, 192
    kernel = compiled(module.matmul, target, M=m, N=n, K=k, block_M=128, block_N=128, block_K=32)
    random = np.random.default_rng(1)
    a, b = (random.integers(-2, 3, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    c = run(kernel, a, b, np.zeros((m, n), np.float16))
    np.testing.assert_array_equal(c.astype(np.float32), a.astype(np.float32) @ b.astype(np.float32))


def norm(module, target):
    kernel = compiled(module.rms_norm, target, M=64, N=512, blk_m=1)
    a = np.random.default_rng(1).normal(size=(64, 512)).astype(np.float32)
    want = a / np.sqrt((a.astype(np.float64) ** 2).mean(axis=1, keepdims=True) + 1e-12)
    np.testing.assert_allclose(run(kernel, a, np.zeros_like(a)), want, rtol=1e-4, atol=1e-5)


def attention(module, target):
    batch, heads, length, dim = 1, 2, 128, 64
    shape = (batch, length, heads, dim)
    kernel = compiled(module.flashattn, target, batch=batch, heads=heads, seq_len=length, dim=dim, is_causal=True)
    random = np.random.default_rng(1)
    q, k, v = (random.normal(size=shape).astype(np.float16) for _ in range(3))
    out = run(kernel, q, k, v, np.zeros(shape, np.float16)).astype(np.float64)
    scores = np.einsum("bqhd,bkhd->bhqk", q.astype(np.float64), k.astype(np.float64)) / np.sqrt(dim)
    scores = np.where(np.tril(np.ones((length, length), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(out, np.einsum("bhqk,bkhd->bqhd", weights, v.astype(np.float64)), rtol=1e-2, atol=1e-2)


EXAMPLES = {"example_elementwise_add": addition, "example_gemm": product, "rms_norm": norm, "example_mha_fwd_bshd": attention}

if __name__ == "__main__":
    sys.path.insert(0, ".")
    EXAMPLES[sys.argv[1]](importlib.import_module(sys.argv[1]), sys.argv[2])
    print("TileLang's example: right")
