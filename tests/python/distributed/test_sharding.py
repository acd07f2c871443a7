"""DTensor's rules: placements, and bits equal to one process."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from problems import glu_arguments, operand, same_bits
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

import dualgemm

WEIGHTS = ("gate", "gate_scales", "up", "up_scales")


def _mesh(world: int, shape: tuple[int, ...] | None = None) -> Any:
    import dualgemm.distributed  # noqa: F401  registers the rules

    return init_device_mesh("cpu", shape or (world,))


def _distribute(arguments: dict[str, torch.Tensor], mesh: Any, placements: dict[str, Any]) -> dict[str, DTensor]:
    return {
        name: distribute_tensor(tensor, mesh, placements.get(name, [Replicate()] * mesh.ndim))
        for name, tensor in arguments.items()
    }


def _glu(mesh: Any, arguments: dict[str, torch.Tensor], placements: dict[str, Any], expected: Any, **choice: Any) -> None:
    one = dualgemm.glu(**arguments, **choice)
    d = dualgemm.glu(**_distribute(arguments, mesh, placements), **choice)
    assert list(d.placements) == expected, (placements, d.placements)
    assert d.dtype == one.dtype == d.to_local().dtype
    assert same_bits(d.full_tensor(), one)


def _numbers(count: int) -> torch.Tensor:
    return torch.rand(count, generator=torch.Generator().manual_seed(count))


def _rows_and_columns(rank: int, world: int, m: int, n: int) -> None:
    mesh = _mesh(world)
    arguments = glu_arguments(m, n, 64)
    rows = {"a": [Shard(0)], "a_scales": [Shard(0)]}
    columns = {name: [Shard(0)] for name in WEIGHTS}
    _glu(mesh, arguments, {}, [Replicate()])
    _glu(mesh, arguments, columns, [Shard(1)])
    if m >= world:  # DTensor shards no dimension shorter than the mesh
        _glu(mesh, arguments, rows, [Shard(0)])
        for dtype in (torch.float32, torch.bfloat16, torch.float16):  # the cache of rules must not mix them up
            _glu(mesh, arguments, rows, [Shard(0)], out_dtype=dtype)
        _glu(mesh, arguments | {"a_row_scale": _numbers(m)}, rows | {"a_row_scale": [Shard(0)]}, [Shard(0)])
    _glu(
        mesh,
        arguments | {"bias_gate": _numbers(n), "bias_up": -_numbers(n)},
        columns | {"bias_gate": [Shard(0)], "bias_up": [Shard(0)]},
        [Shard(1)],
    )


@pytest.mark.parametrize("world,m,n", [(2, 4, 48), (2, 5, 33), (2, 1, 2), (3, 4, 50)])
def test_rows_and_columns(processes: Any, world: int, m: int, n: int) -> None:
    processes(world).run(_rows_and_columns, m, n)


def _wide_a(rank: int, world: int) -> None:
    mesh = _mesh(world)
    arguments = glu_arguments(6, 32, 64)
    del arguments["a_scales"]
    x = torch.randn(2, 3, 64, generator=torch.Generator().manual_seed(5)).to(torch.bfloat16)
    for dim in (0, 1):
        _glu(mesh, arguments | {"a": x}, {"a": [Shard(dim)]}, [Shard(dim)])
    _glu(mesh, arguments | {"a": x}, {name: [Shard(0)] for name in WEIGHTS}, [Shard(2)])
    _glu(mesh, arguments | {"a": x, "a_row_scale": _numbers(6)}, {"a": [Shard(0)], "a_row_scale": [Shard(0)]}, [Shard(0)])


def test_leading_dimensions(processes: Any) -> None:
    processes(2).run(_wide_a)


def _swizzled(rank: int, world: int) -> None:
    mesh = _mesh(world)
    for n, placement in ((256, [Shard(1)]), (160, [Replicate()])):
        arguments = glu_arguments(3, n, 64)
        for name in ("gate_scales", "up_scales"):
            arguments[name] = dualgemm.swizzle_scales(arguments[name])
        placements = {name: [Shard(0)] for name in (WEIGHTS if n == 256 else ())}
        _glu(mesh, arguments, placements, placement)
    # Sharded all the same: gathered, and right.
    arguments = glu_arguments(3, 160, 64)
    for name in ("gate_scales", "up_scales"):
        arguments[name] = dualgemm.swizzle_scales(arguments[name])
    d = dualgemm.glu(**_distribute(arguments, mesh, {name: [Shard(0)] for name in WEIGHTS}))
    assert same_bits(d.full_tensor(), dualgemm.glu(**arguments))


def test_swizzled_scales(processes: Any) -> None:
    processes(2).run(_swizzled)


def _batched(rank: int, world: int) -> None:
    mesh = _mesh(world)
    arguments = glu_arguments(3, 32, 64, layers=4)
    arguments["alpha_gate"] = torch.tensor([1.0, 0.5, 0.25, 2.0])
    rows = {"a": [Shard(1)], "a_scales": [Shard(1)]}
    _glu(mesh, arguments, rows, [Shard(1)])
    _glu(mesh, arguments, {name: [Shard(1)] for name in WEIGHTS}, [Shard(2)])
    _glu(mesh, arguments, {name: [Shard(0)] for name in arguments}, [Shard(0)])


def test_batches(processes: Any) -> None:
    processes(2).run(_batched)


def _two_dimensions(rank: int, world: int) -> None:
    mesh = _mesh(world, (2, 2))
    arguments = glu_arguments(6, 64, 64)
    placements: dict[str, Any] = {"a": [Shard(0), Replicate()], "a_scales": [Shard(0), Replicate()]}
    placements |= {name: [Replicate(), Shard(0)] for name in WEIGHTS}
    _glu(mesh, arguments, placements, [Shard(0), Shard(1)])


def test_mesh_of_two_dimensions(processes: Any) -> None:
    processes(4).run(_two_dimensions)


def _out(rank: int, world: int) -> None:
    mesh = _mesh(world)
    arguments = glu_arguments(5, 48, 64)
    one = dualgemm.glu(**arguments)
    rows = {"a": [Shard(0)], "a_scales": [Shard(0)]}
    for placements in ({}, rows, {name: [Shard(0)] for name in WEIGHTS}, rows | {name: [Shard(0)] for name in WEIGHTS}):
        for placement in (Replicate(), Shard(0), Shard(1)):
            out = distribute_tensor(torch.zeros_like(one), mesh, [placement])
            result = dualgemm.glu(**_distribute(arguments, mesh, placements), out=out)
            assert result is out and out.placements == (placement,)
            assert same_bits(out.full_tensor(), one)
    with pytest.raises(dualgemm.InvalidArgument, match="out: .*DTensor"):
        dualgemm.glu(**_distribute(arguments, mesh, {}), out=torch.zeros_like(one))


def test_out(processes: Any) -> None:
    processes(2).run(_out)


def _compiled(rank: int, world: int) -> None:
    mesh = _mesh(world)
    down = torch.randint(-2, 3, (32, 48), generator=torch.Generator().manual_seed(9)).to(torch.float16)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def mlp(a: Any, a_scales: Any, gate: Any, gate_scales: Any, up: Any, up_scales: Any, down: Any) -> Any:
        return torch.ops.dualgemm.glu(a, a_scales, gate, gate_scales, up, up_scales) @ down.t()

    for m in (5, 6):
        arguments = glu_arguments(m, 48, 64)
        d = _distribute(arguments | {"down": down}, mesh, {name: [Shard(0)] for name in WEIGHTS} | {"down": [Shard(1)]})
        result = mlp(**d)
        assert result.placements[0].is_partial()
        one = dualgemm.glu(**arguments) @ down.t()
        torch.testing.assert_close(result.full_tensor(), one, rtol=1e-2, atol=1e-1)

    @torch.compile(fullgraph=True, backend="aot_eager")
    def write(out: Any, *arguments: Any) -> None:
        torch.ops.dualgemm.glu.out(*arguments, out=out)

    d = _distribute(arguments, mesh, {"a": [Shard(0)], "a_scales": [Shard(0)]})
    out = distribute_tensor(torch.zeros(6, 48, dtype=torch.float16), mesh, [Shard(0)])
    write(out, *(d[name] for name in ("a", "a_scales", *WEIGHTS)))
    assert same_bits(out.full_tensor(), dualgemm.glu(**arguments))


def test_compiled(processes: Any) -> None:
    processes(2).run(_compiled)


def _packed(rank: int, world: int) -> None:
    mesh = _mesh(world)
    arguments = glu_arguments(5, 48, 64)
    packed = torch.ops.dualgemm.pack_weights(*(arguments[name] for name in WEIGHTS), a_dtype=torch.uint8)
    one = torch.ops.dualgemm.glu_packed(arguments["a"], arguments["a_scales"], packed, 48, 1)
    for placement in (Replicate(), Shard(0)):
        d = _distribute(
            {"a": arguments["a"], "a_scales": arguments["a_scales"], "packed": packed},
            mesh,
            {"a": [placement], "a_scales": [placement]},
        )
        result = torch.ops.dualgemm.glu_packed(d["a"], d["a_scales"], d["packed"], 48, 1)
        assert result.placements == (placement,) and same_bits(result.full_tensor(), one)


def test_packed_weights(processes: Any) -> None:
    processes(2).run(_packed)


def _linear(rank: int, world: int) -> None:
    mesh = _mesh(world)
    a, a_scales = operand(5, 64, 0)
    w, w_scales = operand(48, 64, 1)
    arguments = dict(a=a, a_scales=a_scales, w=w, w_scales=w_scales, alpha=torch.tensor([0.5]))
    one = dualgemm.linear(**arguments, out_dtype=torch.float32)
    rows, columns = ("a", "a_scales"), ("w", "w_scales")
    cases = (((), Replicate(), 0), (rows, Shard(0), 0), (columns, Shard(1), 0), (rows + columns, Partial(), 1))
    for names, placement, dim in cases:
        d = dualgemm.linear(**_distribute(arguments, mesh, {name: [Shard(dim)] for name in names}), out_dtype=torch.float32)
        assert d.placements == (placement,), (names, d.placements)
        if dim == 0:
            assert same_bits(d.full_tensor(), one)
        else:
            torch.testing.assert_close(d.full_tensor(), one)
        if dim == 0:
            out = distribute_tensor(torch.zeros_like(one), mesh, [placement])
            dualgemm.linear(**_distribute(arguments, mesh, {name: [Shard(0)] for name in names}), out=out)
            assert same_bits(out.full_tensor(), one)
    # A bias must be added once: no Partial then.
    extra = {"bias": _numbers(48), "residual": one.clone()}
    whole = dualgemm.linear(**arguments, **extra, out_dtype=torch.float32)
    d = dualgemm.linear(
        **_distribute(arguments | extra, mesh, {name: [Shard(1)] for name in rows + columns}), out_dtype=torch.float32
    )
    assert same_bits(d.full_tensor(), whole)
    d = dualgemm.linear(
        **_distribute(
            arguments | extra, mesh, {"w": [Shard(0)], "w_scales": [Shard(0)], "bias": [Shard(0)], "residual": [Shard(1)]}
        ),
        out_dtype=torch.float32,
    )
    assert d.placements == (Shard(1),) and same_bits(d.full_tensor(), whole)


def test_linear(processes: Any) -> None:
    processes(2).run(_linear)
