"""Plans and runs without torch: NumPy arrays, foreign arrays by their interfaces, and what is refused."""

from __future__ import annotations

import array
import subprocess
import sys

import dualgemm
import numpy as np
import pytest
import reference


def operands(m: int, n: int, k: int, seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    codes = {name: random.integers(0, 256, (rows, k // 2), np.uint8) for name, rows in (("a", m), ("gate", n), ("up", n))}
    scales = {f"{name}_scales": random.integers(0x20, 0x40, (len(value), k // 16), np.uint8) for name, value in codes.items()}
    return {**codes, **scales}


def check(values: dict[str, np.ndarray], d: np.ndarray, alpha_gate: float = 1.0, alpha_up: float = 1.0) -> None:
    a, gate, up = (reference.decode(values[name], values[f"{name}_scales"]) for name in ("a", "gate", "up"))
    exact, bound = reference.glu(a, gate, up, alpha_gate, alpha_up, "silu", d.dtype.name)
    assert (np.abs(d - exact) <= bound).all()


@pytest.mark.parametrize("m,n,k", [(1, 1, 16), (3, 5, 32), (17, 100, 256), (130, 33, 512)])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_numpy_arrays(m: int, n: int, k: int, dtype: str) -> None:
    values = operands(m, n, k, seed=m)
    d = np.full((m, n), np.nan, dtype)
    plan = dualgemm.plan(m, n, k, d_type={"float16": "f16", "float32": "f32"}[dtype])
    dualgemm.run(plan, **values, d=d, alpha_gate=0.03, alpha_up=0.05)
    check(values, d, 0.03, 0.05)


def test_one_lost_element_is_seen() -> None:
    values = operands(4, 32, 64)
    d = np.zeros((4, 32), np.float32)
    dualgemm.run(dualgemm.plan(4, 32, 64, d_type="f32"), **values, d=d, alpha_gate=0.03, alpha_up=0.05)
    d[2, 7] = 0
    with pytest.raises(AssertionError):
        check(values, d, 0.03, 0.05)


def test_swizzled_scales_give_the_same_bits() -> None:
    m, n, k = 70, 150, 192
    values = operands(m, n, k)
    linear, swizzled = np.zeros((m, n), np.float16), np.zeros((m, n), np.float16)
    dualgemm.run(dualgemm.plan(m, n, k), **values, d=linear)
    for name in ("a", "gate", "up"):
        values[f"{name}_scales"] = reference.swizzle(values[f"{name}_scales"])
    dualgemm.run(dualgemm.plan(m, n, k, scale_layout="swizzled_128x4"), **values, d=swizzled)
    assert (linear.view(np.uint16) == swizzled.view(np.uint16)).all()


class OnlyDlpack:
    """An array of a library that knows DLPack and nothing else."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __dlpack__(self, **wishes: object) -> object:
        return self.values.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def test_dlpack() -> None:
    values = operands(2, 16, 32)
    d, other = np.zeros((2, 16), np.float16), np.zeros((2, 16), np.float16)
    plan = dualgemm.plan(2, 16, 32)
    dualgemm.run(plan, **values, d=d)
    dualgemm.run(plan, **{name: OnlyDlpack(value) for name, value in values.items()}, d=OnlyDlpack(other))
    assert (d == other).all() and d.any()


def test_a_plan_tells_of_itself() -> None:
    plan = dualgemm.plan(8, 64, 128, strategy="two_pass")
    assert plan.strategy == "two_pass" and plan.device == "cpu" and plan.isa in dualgemm.device_info()["isas"]
    assert plan.config in plan.explain() and "two_pass" in plan.explain()
    assert plan.workspace_bytes > 0
    assert dualgemm.device_info()["cores"] >= 1


def test_activations_with_parameters() -> None:
    values = operands(2, 16, 32)
    results = []
    for limit in (0.5, 1e30):
        d = np.zeros((2, 16), np.float32)
        dualgemm.run(dualgemm.plan(2, 16, 32, d_type="f32", activation="clamped_swiglu", act_limit=limit), **values, d=d)
        results.append(d)
    plain = np.zeros((2, 16), np.float32)
    dualgemm.run(dualgemm.plan(2, 16, 32, d_type="f32"), **values, d=plain)
    assert (results[1] == plain).all() and (results[0] != plain).any()
    with pytest.raises(dualgemm.InvalidArgument, match="alpha_gate: 'x'"):
        dualgemm.run(dualgemm.plan(2, 16, 32, d_type="f32"), **values, d=plain, alpha_gate="x")


def test_the_referee_without_torch() -> None:
    code = "import sys; sys.modules['torch'] = None; from dualgemm.gpumode.__main__ import main; sys.exit(main())"
    for arguments in (["rank"], ["test", "submission.py"]):
        done = subprocess.run([sys.executable, "-P", "-c", code, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 2 and "torch" in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


REFUSED = [
    (dict(k=40), "k", "40"),
    (dict(m=0), "m", "0"),
    (dict(n=-3), "n", "-3"),
    (dict(m=2**62, n=2**62), None, None),
    (dict(m=2**70), "m", str(2**70)),
    (dict(m=1.5), "m", "1.5"),
    (dict(m=True), "m", "True"),
    (dict(a_type="int4"), "a_type", "int4"),
    (dict(activation="swish"), "activation", "swish"),
    (dict(strategy="quick"), "strategy", "quick"),
    (dict(scale_layout="rows"), "scale_layout", "'rows'"),
    (dict(device="tpu"), "device", "tpu"),
    (dict(threads=-1), "threads", "-1"),
    (dict(config=5), "config", "5"),
    (dict(act_limit="no"), "act_limit", "'no'"),
    (dict(act_limit=2.0), "act.limit", "2"),
    (dict(activation="clamped_swiglu"), "act.limit", "not given"),
]


@pytest.mark.parametrize("change,argument,observed", REFUSED)
def test_bad_plans(change: dict[str, object], argument: str | None, observed: str | None) -> None:
    with pytest.raises(dualgemm.DualGemmError) as caught:
        dualgemm.plan(**{**dict(m=4, n=16, k=32), **change})
    error = caught.value
    assert isinstance(error, ValueError) and error.rule
    if argument is not None:
        assert argument in error.argument and observed is not None and observed in error.observed


def test_bad_operands() -> None:
    values, d = operands(4, 16, 32), np.full((4, 16), 7, np.float16)
    plan = dualgemm.plan(4, 16, 32)
    frozen = d.copy()
    frozen.flags.writeable = False
    for change, argument in [
        (dict(gate=values["gate"][:-1]), "gate"),
        (dict(up=None), "up"),
        (dict(a=values["a"][:, ::2]), "a"),
        (dict(a=3), "a"),
        (dict(a_scales=None), "a_scales"),
        (dict(d=d.astype(np.float32)), "d"),
        (dict(d=frozen), "d"),
        (dict(a=array.array("B", bytes(64))), "a"),
        (dict(gate=np.asfortranarray(values["gate"])), "gate"),
    ]:
        with pytest.raises(dualgemm.InvalidArgument) as caught:
            dualgemm.run(plan, **{**values, "d": d, **change})
        assert caught.value.argument == argument
    assert (d == 7).all() and (frozen == 7).all()


def test_errors_survive_pickling() -> None:
    import pickle

    with pytest.raises(dualgemm.InvalidArgument) as caught:
        dualgemm.plan(4, 16, 40)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.argument, again.observed, again.rule) == (caught.value.argument, caught.value.observed, caught.value.rule)
    assert str(again) == f"{again.argument}: {again.observed}; {again.rule}"
    with pytest.raises(TypeError, match="belongs to its process"):
        pickle.dumps(dualgemm.plan(1, 16, 16))


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)


def test_import_needs_nothing_else() -> None:
    run = python(
        "import sys\n"
        "class Refuse:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name.split('.')[0] in ('torch', 'numpy', 'jax', 'transformers'): raise ImportError('refused: ' + name)\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "import dualgemm\n"
        "print(dualgemm.plan(1, 16, 16).strategy)"
    )
    assert run.returncode == 0 and run.stdout == "fused\n", run.stderr


def test_a_subinterpreter_is_refused() -> None:
    run = python(
        "try:\n    import _interpreters as i\nexcept ImportError:\n    import _xxsubinterpreters as i\n"
        "one = i.create()\n"
        "code = '''try:\\n    import dualgemm\\nexcept ImportError as error:\\n    print(error)\\nelse:\\n    print('loaded')'''\n"
        "(i.exec if hasattr(i, 'exec') else i.run_string)(one, code)"
    )
    assert "main interpreter" in run.stdout, run.stdout + run.stderr


def test_threads_share_a_plan() -> None:
    import threading

    values = operands(9, 64, 128)
    plan = dualgemm.plan(9, 64, 128)
    expected = np.zeros((9, 64), np.float16)
    dualgemm.run(plan, **values, d=expected)
    results = [np.zeros((9, 64), np.float16) for _ in range(8)]
    threads = [threading.Thread(target=lambda d=d: [dualgemm.run(plan, **values, d=d) for _ in range(50)]) for d in results]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((d == expected).all() for d in results)


def test_nothing_leaks() -> None:
    import gc
    import resource

    values, d = operands(4, 64, 64), np.zeros((4, 64), np.float16)

    def work(times: int) -> int:
        for _ in range(times):
            dualgemm.run(dualgemm.plan(4, 64, 64), **values, d=d)
        gc.collect()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = work(200)
    counts = [sys.getrefcount(value) for value in values.values()]
    assert work(2000) - before < 4096  # KiB
    assert counts == [sys.getrefcount(value) for value in values.values()]
