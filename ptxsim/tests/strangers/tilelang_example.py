"""One of TileLang's examples below `ptxsim exec`: its kernel with a size of ours, beside NumPy. Arguments: the example, the target.

TileLang is told to compile to PTX and to leave the runtime to the loader; the kernel and its host code are its own. What an
example does besides, when it is imported, is left out: it multiplies matrices of a GPU's size, and times that.
"""

import ast
import ctypes
import pathlib
import sys
import types

import ml_dtypes
import numpy as np
import ptxsim.triton as on_gpu
import tilelang.language as T


def compiled(function, target, **sizes):
    function = getattr(function, "jit_impl", function)  # without the tuner, which times kernels
    function.target, function.execution_backend = {"kind": "cuda", "arch": target}, "cython"
    compute = target.replace("sm_", "compute_")
    function.compile_flags = ["-cudart=shared", "-lineinfo", f"-gencode=arch={compute},code={compute}"]
    return function.compile(**sizes)


def definitions(name):
    """The example's imports, functions and dictionaries of options, as a module."""
    path = pathlib.Path(f"{name}.py")
    kept = (ast.Import, ast.ImportFrom, ast.FunctionDef)
    body = ast.parse(path.read_text(encoding="utf-8"), str(path)).body
    options = [one for one in body if isinstance(one, ast.Assign) and isinstance(one.value, ast.Dict)]
    wanted = [one for one in body if isinstance(one, kept) or one in options]
    module = types.ModuleType(name)
    module.__file__ = str(path)
    exec(compile(ast.Module(wanted, []), str(path), "exec"), vars(module))
    return module


def whole(shape, seed, kind=np.float16, most=2):
    """Small whole numbers, whose products have exact sums."""
    return np.random.default_rng(seed).integers(-most, most + 1, shape).astype(kind)


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
    np.testing.assert_allclose(out, attended(q, k, v), rtol=1e-2, atol=1e-2)


def attended(q, k, v):
    """Causal attention in double; shapes are batch, length, heads, dim."""
    length, dim = q.shape[1], q.shape[3]
    scores = np.einsum("bqhd,bkhd->bhqk", q.astype(np.float64), k.astype(np.float64)) / np.sqrt(dim)
    scores = np.where(np.tril(np.ones((length, length), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.einsum("bhqk,bkhd->bqhd", weights, v.astype(np.float64))


def quickstart(module, target):
    m, n, k = 256, 128, 192
    kernel = compiled(module.matmul, target, M=m, N=n, K=k, block_M=128, block_N=128, block_K=32)
    a, b = whole((m, k), 1), whole((k, n), 2)
    c = run(kernel, a, b, np.zeros((m, n), np.float16))
    np.testing.assert_array_equal(c.astype(np.float32), np.maximum(a.astype(np.float32) @ b.astype(np.float32), 0))


def gemv(module, target):
    """All that the example has but its tuned one."""
    n, k = 256, 512
    a, b = whole(k, 1), whole((n, k), 2)
    want = b.astype(np.float32) @ a.astype(np.float32)
    blocks = {"BLOCK_N": 32, "BLOCK_K": 32}
    for name, sizes in {
        "naive_gemv": {"BLOCK_N": 128, "BLOCK_K": 128},
        "naive_splitk_gemv": blocks,
        "splitk_gemv": {**blocks, "reduce_threads": 8},
        "splitk_gemv_vectorized": {"BLOCK_N": 2, "reduce_threads": 32},
        "splitk_gemv_vectorized_tvm": {"BLOCK_N": 2, "reduce_threads": 32},
    }.items():
        kernel = compiled(getattr(module, name), target, N=n, K=k, **sizes)
        np.testing.assert_array_equal(run(kernel, a, b, np.zeros(n, np.float16)).astype(np.float32), want, err_msg=name)


def softmax(module, target):
    m, n = 8, 2048
    module.M, module.N = m, n
    kernel = compiled(module.softmax_kernel, target, BLOCK_N=1024)
    x = np.random.default_rng(1).normal(size=(m, n)).astype(np.float16)
    weights = np.exp(x.astype(np.float64))
    want = weights / weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(run(kernel, x, np.zeros_like(x)).astype(np.float64), want, rtol=4e-3, atol=1e-6)


def split_product(module, target):
    m, n, k = 256, 128, 256
    kernel = compiled(module.matmul, target, M=m, N=n, K=k, block_M=128, block_N=128, block_K=32, split_k=4)
    a, b = whole((m, k), 1), whole((k, n), 2)
    c = run(kernel, a, b, np.zeros((m, n), np.float32))
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def specialized_product(module, target):
    m, n, k = 256, 128, 192
    blocks = {"block_M": 128, "block_N": 128, "block_K": 64}
    kernel = compiled(module.matmul_warp_specialize_copy_0_gemm_1, target, M=m, N=n, K=k, **blocks)
    a, b = whole((m, k), 1), whole((k, n), 2)
    c = run(kernel, a, b, np.zeros((m, n), np.float16))
    np.testing.assert_array_equal(c.astype(np.float32), a.astype(np.float32) @ b.astype(np.float32))


def blackwell_product(function, target, shape, transposed=False, **sizes):
    m, n, k = shape
    types_ = {"in_dtype": T.bfloat16, "out_dtype": T.bfloat16, "accum_dtype": T.float}
    kernel = compiled(function, target, M=m, N=n, K=k, **sizes, **types_)
    a, b = whole((m, k), 1, ml_dtypes.bfloat16), whole((n, k) if transposed else (k, n), 2, ml_dtypes.bfloat16)
    c = run(kernel, a, b, np.zeros((m, n), ml_dtypes.bfloat16))
    want = a.astype(np.float32) @ (b.T if transposed else b).astype(np.float32)
    np.testing.assert_array_equal(c.astype(np.float32), want.astype(ml_dtypes.bfloat16).astype(np.float32))


def tcgen05(module, target):
    blocks = {"block_M": 128, "block_N": 128, "block_K": 128}
    more = {"trans_A": False, "trans_B": True, "num_stages": 2, "threads": 256}
    blackwell_product(module.matmul, target, (256, 128, 384), True, **blocks, **more)


def tcgen05_specialized(module, target):
    blocks = {"block_M": 128, "block_N": 256, "block_K": 64}
    blackwell_product(module.gemm, target, (256, 512, 384), num_stages=4, **blocks)
    blackwell_product(module.gemm_2cta, target, (256, 512, 512), num_stages=6, **blocks)


def tcgen05_persistent(module, target):
    blocks = {"block_M": 128, "block_N": 256, "store_block_N": 64, "block_K": 64, "num_stages": 4, "group_size": 1}
    blackwell_product(module.gemm_clc_persistent_2cta, target, (512, 512, 512), **blocks)
    pipelined = module.gemm_clc_persistent_2cta_pipelined_clc
    blackwell_product(pipelined, target, (512, 512, 512), clc_stages=2, **blocks)


def blackwell_attention(module, target):
    batch, heads, length, dim = 1, 2, 256, 128
    shape = (batch, length, heads, dim)
    random = np.random.default_rng(1)
    q, k, v = (random.normal(size=shape).astype(ml_dtypes.bfloat16) for _ in range(3))
    for function, more in (
        (module.flashattn, {"variant": "ss"}),
        (module.flashattn, {"variant": "ts"}),
        (module.flashattn_wasp, {}),
    ):
        sizes = {"batch": batch, "heads": heads, "seq_len": length, "dim": dim, "is_causal": True}
        kernel = compiled(function, target, **sizes, **more)
        found = run(kernel, q, k, v, np.zeros(shape, ml_dtypes.bfloat16)).astype(np.float64)
        np.testing.assert_allclose(found, attended(q, k, v), rtol=2e-2, atol=2e-2, err_msg=str(more))


EXAMPLES = {
    "example_elementwise_add": addition,
    "example_gemm": product,
    "rms_norm": norm,
    "example_mha_fwd_bshd": attention,
    "quickstart": quickstart,
    "example_gemv": gemv,
    "online_softmax": softmax,
    "example_tilelang_gemm_splitk": split_product,
    "example_warp_specialize_gemm_copy_0_gemm_1": specialized_product,
    "gemm_tcgen5mma": tcgen05,
    "gemm_tcgen5mma_ws": tcgen05_specialized,
    "gemm_tcgen5mma_ws_clc": tcgen05_persistent,
    "mha_fwd_bshd": blackwell_attention,
}

if __name__ == "__main__":
    EXAMPLES[sys.argv[1]](definitions(sys.argv[1]), sys.argv[2])
    print("TileLang's example: right")
