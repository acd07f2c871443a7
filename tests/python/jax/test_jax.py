"""dualgemm.jax.glu against dualgemm.glu on torch's CPU tensors: the same bits, under jit and vmap, too."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

pytest.importorskip("jax", minversion="0.6")
torch = pytest.importorskip("torch", minversion="2.10")

import jax
import jax.numpy as jnp
import numpy as np

import dualgemm

try:
    import dualgemm.jax as dualgemm_jax
except ImportError as error:
    pytest.skip(str(error), allow_module_level=True)

ROWS = ("a", "a_scales", "a_row_scale")


def operands(m: int, n: int, k: int, layers: int | None = None, wide: Any = None) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(m * 1000 + n)
    lead = () if layers is None else (layers,)
    made: dict[str, Any] = {}
    for name, rows in (("a", m), ("gate", n), ("up", n)):
        x = torch.randn((*lead, rows, k), generator=generator)
        if name == "a" and wide is not None:
            made[name] = x.to(wide)
            continue
        quantized = dualgemm.quantize(x, global_scale=1.0)
        made[name], made[f"{name}_scales"] = quantized.codes, quantized.scales.view(torch.uint8)
    return made


def as_jax(x: Any) -> Any:
    if not isinstance(x, torch.Tensor):
        return x
    if x.dtype == torch.bfloat16:
        return jnp.asarray(x.view(torch.uint16).numpy()).view(jnp.bfloat16)
    return jnp.asarray(x.numpy())


def bits(x: Any) -> Any:
    if isinstance(x, torch.Tensor):
        return x.contiguous().view(torch.uint8).numpy()
    return np.asarray(x).view(np.uint8)


def check(given: dict[str, Any], torch_extra: dict[str, Any] | None = None, **choice: Any) -> None:
    expected = dualgemm.glu(**given, **choice, **(torch_extra or {}))
    arrays = {name: as_jax(value) for name, value in given.items()}
    for function in (dualgemm_jax.glu, jax.jit(dualgemm_jax.glu, static_argnames=tuple(choice))):
        d = function(**arrays, **choice)
        assert d.shape == tuple(expected.shape) and str(d.dtype) == str(expected.dtype).removeprefix("torch.")
        assert np.array_equal(bits(d), bits(expected))


@pytest.mark.parametrize("m,n,k", [(1, 1, 16), (5, 48, 64), (130, 33, 80)])
def test_nvfp4(m: int, n: int, k: int) -> None:
    check(operands(m, n, k))
    check(
        operands(m, n, k) | {"alpha_gate": torch.tensor([0.5]), "alpha_up": 0.25, "a_row_scale": torch.rand(m)},
        activation="gelu_tanh",
    )
    check(operands(m, n, k), activation="clamped_swiglu", act_limit=7.0, act_alpha=1.5, batch_invariant=True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_wide_rows_and_results(dtype: Any) -> None:
    check(operands(5, 48, 64, wide=dtype))
    given = operands(6, 48, 64, wide=dtype)
    given["a"] = given["a"].reshape(2, 3, 64)
    check(given)
    expected = dualgemm.glu(**operands(5, 48, 64), out_dtype=dtype)
    d = dualgemm_jax.glu(
        **{name: as_jax(value) for name, value in operands(5, 48, 64).items()}, out_dtype=as_jax(expected).dtype
    )
    assert np.array_equal(bits(d), bits(expected))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_biases(dtype: Any) -> None:
    given = operands(5, 48, 64) | {"bias_gate": torch.randn(48).to(dtype), "bias_up": torch.randn(48).to(dtype)}
    check(given)
    check(operands(5, 48, 64, layers=2) | {"bias_gate": torch.randn(2, 48).to(dtype), "bias_up": torch.randn(2, 48).to(dtype)})


def test_layers() -> None:
    check(operands(5, 48, 64, layers=3) | {"alpha_gate": torch.tensor([1.0, 0.5, 2.0]), "alpha_up": 0.5})


@pytest.mark.parametrize("layers", [None, 2])
def test_swizzled_scales(layers: int | None) -> None:
    given = operands(5, 130, 80, layers)
    for name in ("a_scales", "gate_scales", "up_scales"):
        given[name] = dualgemm.swizzle_scales(given[name])
    check(given)
    mixed = operands(5, 130, 80, layers)
    mixed["gate_scales"] = dualgemm.swizzle_scales(mixed["gate_scales"])
    check(mixed)


def test_scales_of_float8_and_of_six_dimensions() -> None:
    given = {name: as_jax(value) for name, value in operands(5, 48, 64).items()}
    expected = bits(dualgemm_jax.glu(**given))
    as_float8 = given | {name: value.view(jnp.float8_e4m3fn) for name, value in given.items() if name.endswith("scales")}
    assert np.array_equal(bits(dualgemm_jax.glu(**as_float8)), expected)
    flat = dualgemm.swizzle_scales(operands(5, 48, 64)["gate_scales"]).numpy()  # one tile
    six = jnp.asarray(flat.reshape(1, 1, 1, 32, 4, 4).transpose(3, 4, 1, 5, 2, 0))
    assert np.array_equal(bits(dualgemm_jax.glu(**given | {"gate_scales": six})), expected)
    assert np.array_equal(bits(dualgemm_jax.glu(**given | {"gate_scales": flat})), expected)


def test_no_rows() -> None:
    given = {name: as_jax(value) for name, value in operands(5, 48, 64).items()}
    d = dualgemm_jax.glu(**given | {"a": given["a"][:0], "a_scales": given["a_scales"][:0]})
    assert d.shape == (0, 48) and d.dtype == jnp.float16


def each(given: dict[str, Any], axes: dict[str, int | None], size: int, **choice: Any) -> Any:
    """One call for each index of the new dimension."""
    return np.stack(
        [
            np.asarray(
                dualgemm_jax.glu(
                    **{
                        name: value if axes.get(name) is None else jnp.take(value, i, axes[name])
                        for name, value in given.items()
                    },
                    **choice,
                )
            )
            for i in range(size)
        ]
    )


def check_vmap(given: dict[str, Any], axes: dict[str, int | None], size: int, **choice: Any) -> None:
    names = tuple(given)
    mapped = jax.vmap(
        lambda *values: dualgemm_jax.glu(**dict(zip(names, values)), batch_invariant=True, **choice),
        in_axes=tuple(axes.get(name) for name in names),
    )
    expected = each(given, axes, size, batch_invariant=True, **choice)
    for function in (mapped, jax.jit(mapped)):
        assert np.array_equal(bits(function(*given.values())), bits(expected))


def stacked(
    count: int, layers: int | None, names: tuple[str, ...], swizzle: tuple[str, ...] = (), **extra: Any
) -> dict[str, Any]:
    """The named operands with a first dimension more, different for each index."""
    made = []
    for index in range(count):
        one = operands(5, 48, 64, layers)
        for position, name in enumerate(sorted(one)):
            if index and not name.endswith("scales"):
                one[name] = torch.roll(one[name], index + position, -2)
        one.update({name: value(index) for name, value in extra.items()})
        for name in swizzle:
            one[name] = dualgemm.swizzle_scales(one[name])
        made.append({name: as_jax(value) for name, value in one.items()})
    return {name: jnp.stack([one[name] for one in made]) if name in names else made[0][name] for name in made[0]}


@pytest.mark.parametrize("layers", [None, 2])
@pytest.mark.parametrize(
    "names",
    [
        ("a", "a_scales"),
        ("a",),
        ("a_scales",),
        ("gate", "gate_scales"),
        ("a", "a_scales", "up"),
        ("alpha_gate",),
        ("a_row_scale",),
        ("a_row_scale", "a"),
        ("bias_up",),
    ],
)
@pytest.mark.parametrize("swizzle", [(), ("a_scales", "gate_scales")])
def test_vmap(layers: int | None, names: tuple[str, ...], swizzle: tuple[str, ...]) -> None:
    count = layers or 1
    given = stacked(
        3,
        layers,
        names,
        swizzle,
        alpha_gate=lambda i: torch.full((count,), 0.5 + i),
        a_row_scale=lambda i: torch.arange(1.0, 5 * count + 1) + i,
        bias_gate=lambda i: torch.ones((count, 48) if layers else (48,)),
        bias_up=lambda i: torch.full((count, 48) if layers else (48,), float(i)),
    )
    check_vmap(given, {name: 0 for name in names}, 3)


def test_vmap_of_another_axis_and_nested() -> None:
    given = stacked(3, None, ("a", "a_scales"))
    moved = given | {"a": jnp.moveaxis(given["a"], 0, 1)}
    check_vmap(moved, {"a": 1, "a_scales": 0}, 3)
    weights = stacked(2, None, ("gate", "up"))
    rest = {name: value for name, value in given.items() if name not in ("a", "a_scales", "gate", "up")}

    def one(a: Any, a_scales: Any, gate: Any, up: Any) -> Any:
        return dualgemm_jax.glu(a, gate, up, a_scales=a_scales, batch_invariant=True, **rest)

    both = jax.jit(jax.vmap(jax.vmap(one, (0, 0, None, None)), (None, None, 0, 0)))
    d = both(given["a"], given["a_scales"], weights["gate"], weights["up"])
    for i in range(2):
        for j in range(3):
            expected = one(given["a"][j], given["a_scales"][j], weights["gate"][i], weights["up"][i])
            assert np.array_equal(bits(d[i, j]), bits(expected))


def test_alphas_are_traced() -> None:
    given = {name: as_jax(value) for name, value in operands(5, 48, 64).items()}
    traces = []

    @jax.jit
    def product(alpha: Any) -> Any:
        traces.append(None)
        return dualgemm_jax.glu(**given, alpha_gate=alpha)

    for value in (0.5, 1.0, 2.0):
        assert np.array_equal(bits(product(jnp.float32(value))), bits(dualgemm_jax.glu(**given, alpha_gate=value)))
    assert len(traces) == 1


def test_scan() -> None:
    given = stacked(3, None, ("a", "a_scales"))
    rest = {name: value for name, value in given.items() if name not in ("a", "a_scales")}
    _, d = jax.lax.scan(
        lambda carry, x: (carry, dualgemm_jax.glu(x[0], a_scales=x[1], **rest)), None, (given["a"], given["a_scales"])
    )
    assert np.array_equal(bits(d), bits(each(given, {"a": 0, "a_scales": 0}, 3)))


@pytest.mark.parametrize(
    "change,argument",
    [
        (dict(gate=np.zeros((48, 32), np.int8)), "gate"),
        (dict(a=np.zeros((5, 32), np.float64)), "a"),
        (dict(a=[[1]]), "a"),
        (dict(up=np.zeros((47, 32), np.uint8)), "up"),
        (dict(a=np.zeros((5, 16), np.uint8)), "a"),
        (dict(a_scales=None), "a_scales"),
        (dict(a=np.zeros((5, 64), np.float32)), "a_scales"),
        (dict(gate_scales=np.zeros((48, 5), np.uint8)), "gate_scales"),
        (dict(gate_scales=np.zeros(100, np.uint8)), "gate_scales"),
        (dict(gate_scales=np.zeros((48, 4), np.float32)), "gate_scales"),
        (dict(alpha_gate=np.zeros(2, np.float32)), "alpha_gate"),
        (dict(alpha_gate=np.zeros(1, np.float16)), "alpha_gate"),
        (dict(a_row_scale=np.zeros(4, np.float32)), "a_row_scale"),
        (dict(bias_gate=np.zeros(48, np.float32)), "bias_up"),
        (dict(bias_gate=np.zeros(47, np.float32), bias_up=np.zeros(48, np.float32)), "bias_gate"),
        (dict(bias_gate=np.zeros(48, np.float32), bias_up=jnp.zeros(48, jnp.bfloat16)), "bias_up"),
        (dict(activation="swish"), "activation"),
        (dict(activation="clamped_swiglu"), "act.limit"),
        (dict(out_dtype="int8"), "out_dtype"),
        (dict(scale_layout="wide"), "scale_layout"),
        (dict(strategy="fast"), "strategy"),
        (dict(act_limit="x"), "act_limit"),
        (dict(gate=np.zeros((48, 4), np.uint8), up=np.zeros((48, 4), np.uint8), a=np.zeros((5, 4), np.uint8)), "k"),
    ],
)
def test_refuses_when_traced(change: dict[str, Any], argument: str) -> None:
    given = {name: as_jax(value) for name, value in operands(5, 48, 64).items()} | change
    arrays = {name: value for name, value in given.items() if hasattr(value, "dtype")}
    others = {name: value for name, value in given.items() if name not in arrays}
    if argument == "k":
        arrays |= {f"{name}_scales": np.zeros((rows, 0), np.uint8) for name, rows in (("a", 5), ("gate", 48), ("up", 48))}
    for function in (dualgemm_jax.glu, lambda **kw: jax.jit(lambda x: dualgemm_jax.glu(**x, **others))(arrays)):
        with pytest.raises(dualgemm.InvalidArgument) as raised:
            function(**(arrays | others))
        assert raised.value.argument == argument and raised.value.observed and raised.value.rule, raised.value


def test_refuses_derivatives() -> None:
    given = {name: as_jax(value) for name, value in operands(5, 48, 64, wide=torch.float32).items()}

    def loss(a: Any) -> Any:
        return dualgemm_jax.glu(**given | {"a": a}).sum()

    for transformed in (
        jax.grad(loss),
        jax.jit(jax.grad(loss)),
        lambda a: jax.jvp(loss, (a,), (a,)),
        jax.grad(lambda a: jax.vmap(loss)(a[None]).sum()),
    ):
        with pytest.raises(dualgemm.Unsupported, match="stop_gradient"):
            transformed(given["a"])
    jax.grad(lambda a: loss(jax.lax.stop_gradient(a)) + a.sum())(given["a"])


def test_what_only_the_run_finds_out_is_an_error_of_xla() -> None:
    given = {name: as_jax(value) for name, value in operands(5, 48, 64).items()}
    with pytest.raises(Exception, match="dualgemm: .*config"):
        jax.block_until_ready(dualgemm_jax.glu(**given, config="nothing=1"))


def test_does_not_import_torch() -> None:
    code = "import sys, dualgemm.jax; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_registered_for_cuda() -> None:
    """Not run there: lowered for it, which needs the registration and no GPU."""
    given = {name: as_jax(value) for name, value in operands(5, 48, 64).items()}
    lowered = jax.jit(lambda: dualgemm_jax.glu(**given)).trace().lower(lowering_platforms=("cuda",))
    assert "dualgemm_glu" in lowered.as_text()
