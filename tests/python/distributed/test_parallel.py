"""GatedMLPParallel against the same module in one process."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from problems import Gated, same_bits
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import parallelize_module

import dualgemm
from dualgemm.distributed import GatedMLPParallel

HIDDEN, INTERMEDIATE = 64, 96


def _input(rows: int, dtype: torch.dtype) -> Tensor:
    return torch.randn(rows, HIDDEN, generator=torch.Generator().manual_seed(7)).to(dtype)


def _parallel(mesh: Any, style: Any, **kw: Any) -> tuple[nn.Module, nn.Module]:
    one = Gated(HIDDEN, INTERMEDIATE, **kw)
    return one, parallelize_module(nn.Sequential(Gated(HIDDEN, INTERMEDIATE, **kw)), mesh, {"0": style})


def _replicated(rank: int, world: int, bias: bool, swizzled: bool) -> None:
    mesh = init_device_mesh("cpu", (world,))
    one, many = _parallel(mesh, GatedMLPParallel(), bias=bias, swizzled=swizzled)
    mlp = many[0]
    assert mlp.gate_codes.shape == (INTERMEDIATE // world, HIDDEN // 2) and mlp.intermediate_size == INTERMEDIATE // world
    assert mlp.down.weight.shape == (HIDDEN, INTERMEDIATE // world)
    assert set(mlp.state_dict()) == set(one.state_dict())
    with torch.no_grad():
        for rows in (1, 5):
            x = _input(rows, torch.float32)
            # The part that the library computes has the bits of one process.
            part = one.hidden(x).chunk(world, 1)[rank]
            assert same_bits(mlp.hidden(x), part.contiguous())
            torch.testing.assert_close(many(x), one(x), rtol=1e-5, atol=1e-4)
            d = many(distribute_tensor(x, mesh, [Replicate()]))
            assert d.placements == (Replicate(),) and same_bits(d.to_local(), many(x))
        compiled = torch.compile(many, fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(x), one(x), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("world,bias,swizzled", [(2, False, False), (2, True, True), (3, True, False)])
def test_replicated_rows(processes: Any, world: int, bias: bool, swizzled: bool) -> None:
    processes(world).run(_replicated, bias, swizzled)


def _nvfp4_down(rank: int, world: int, bias: bool) -> None:
    mesh = init_device_mesh("cpu", (world,))
    x = _input(4 * world, torch.float32)
    with torch.no_grad():
        one, many = _parallel(mesh, GatedMLPParallel(), bias=bias, nvfp4_down=True)
        assert many[0].down.in_features == many[0].down.shape.k == INTERMEDIATE // world
        torch.testing.assert_close(many(x), one(x), rtol=1e-4, atol=1e-3)
        one, many = _parallel(mesh, GatedMLPParallel(sequence_parallel=True), bias=bias, nvfp4_down=True)
        own = slice(rank * 4, rank * 4 + 4)
        torch.testing.assert_close(many(x[own]), _gathered(one, x)[own], rtol=1e-4, atol=1e-3)
    with pytest.raises(dualgemm.InvalidArgument, match="module.down: 16 columns; .*16"):
        GatedMLPParallel()._apply(Gated(HIDDEN, 16, nvfp4_down=True), mesh)


@pytest.mark.parametrize("bias", [False, True])
def test_down_in_nvfp4(processes: Any, bias: bool) -> None:
    processes(2).run(_nvfp4_down, bias)


def _gathered(one: Any, x: Tensor) -> Tensor:
    """What every row must be: quantised by itself, multiplied in one process."""
    a = dualgemm.quantize(x, per_row=True)
    return one.down(one.hidden(a.codes, a_scales=a.scales, a_row_scale=a.global_scale, out_dtype=x.dtype))


def _rows(rank: int, world: int, rows: int, bias: bool, dtype: torch.dtype) -> None:
    mesh = init_device_mesh("cpu", (world,))
    one, many = _parallel(mesh, GatedMLPParallel(sequence_parallel=True), bias=bias)
    for module in (one, many[0]):
        module.down.to(dtype)
    tolerance = dict(rtol=1e-5, atol=1e-4) if dtype == torch.float32 else dict(rtol=2e-2, atol=0.5)
    x = _input(rows * world, dtype)
    with torch.no_grad():
        expected = _gathered(one, x)
        own = x[rank * rows : (rank + 1) * rows]
        result = many(own)
        assert result.shape == own.shape and result.dtype == dtype
        torch.testing.assert_close(result, expected[rank * rows : (rank + 1) * rows], **tolerance)
        assert same_bits(many(own.reshape(1, rows, HIDDEN))[0], result)
        assert many(own[:0]).shape == (0, HIDDEN)
        # Uneven: a DTensor knows its shape.
        uneven = x[: rows * world - 1] if rows > 1 else x
        d = many(distribute_tensor(uneven, mesh, [Shard(0)]))
        assert d.placements == (Shard(0),) and d.shape == uneven.shape
        torch.testing.assert_close(d.full_tensor(), expected[: len(uneven)], **tolerance)
        d = many(distribute_tensor(uneven[None], mesh, [Shard(1)]))
        assert d.placements == (Shard(1),) and d.shape == (1, *uneven.shape)
        torch.testing.assert_close(d.full_tensor()[0], expected[: len(uneven)], **tolerance)


@pytest.mark.parametrize(
    "world,rows,bias,dtype", [(2, 7, True, torch.float32), (2, 1, False, torch.bfloat16), (3, 5, False, torch.float32)]
)
def test_rows_of_a_rank(processes: Any, world: int, rows: int, bias: bool, dtype: torch.dtype) -> None:
    processes(world).run(_rows, rows, bias, dtype)


def _exact(rank: int, world: int) -> None:
    """Where the sums of down are exact, everything has the bits of one process."""
    mesh = init_device_mesh("cpu", (world,))
    for style in (GatedMLPParallel(), GatedMLPParallel(sequence_parallel=True)):
        one, many = _parallel(mesh, style)
        for module in (one, many[0]):
            module.activation = "identity"
            for name in ("gate_codes", "up_codes"):  # 1, -1 or 0 in the first 16 columns
                codes = getattr(module, name)
                codes.copy_(torch.where(codes % 3 == 0, 0x22, torch.where(codes % 3 == 1, 0xA0, 0)).to(torch.uint8))
                codes[:, 8:] = 0
            for name in ("gate_scales", "up_scales"):  # 1
                getattr(module, name).view(torch.uint8).fill_(0x38)
            module.alpha_gate.fill_(1)
            module.alpha_up.fill_(1)
        # Values of 2688 times a power of two, so that the scales of rows are such powers.
        x = torch.randint(-1, 2, (6 * world, HIDDEN), generator=torch.Generator().manual_seed(1)).float() * (2688 / 2**11)
        with torch.no_grad():
            if style.sequence_parallel:
                found = many(x[rank * 6 : (rank + 1) * 6])
                assert found.abs().max() > 0 and same_bits(found, _gathered(one, x)[rank * 6 : (rank + 1) * 6])
            else:
                assert same_bits(many(x), one(x))


@pytest.mark.parametrize("world", [2, 3])
def test_exact_sums_have_the_bits_of_one_process(processes: Any, world: int) -> None:
    processes(world).run(_exact)


def _compiled(rank: int, world: int) -> None:
    mesh = init_device_mesh("cpu", (world,))
    one, many = _parallel(mesh, GatedMLPParallel(sequence_parallel=True))
    x = _input(4 * world, torch.float32)
    compiled = torch.compile(many, fullgraph=True, backend="aot_eager")
    with torch.no_grad():
        own = x[rank * 4 : (rank + 1) * 4]
        assert same_bits(compiled(own), many(own))


def test_compiled(processes: Any) -> None:
    processes(2).run(_compiled)


def _finalized(rank: int, world: int, sequence_parallel: bool, down: str, dtype: torch.dtype) -> None:
    """Packed after it was cut, on a device that packs by rows, as GPUs do."""
    from dualgemm import _container

    mesh = init_device_mesh("cpu", (world,))
    torch.manual_seed(0)
    linear = nn.Linear(96, 64, dtype=dtype)
    x = _input(4 * world, dtype)
    own = slice(rank * 4, rank * 4 + 4) if sequence_parallel else slice(None)
    before = _container.packs_by_rows
    _container.packs_by_rows = lambda device: True
    try:
        with torch.no_grad():
            for a_dtype in (dtype, torch.uint8, None) if sequence_parallel else (dtype,):
                whole = dualgemm.quantize(torch.randn(192, 64, generator=torch.Generator().manual_seed(1)))
                w = dualgemm.Weights.from_stacked(
                    whole.codes, whole.scales, alpha_gate=whole.global_scale, alpha_up=whole.global_scale, prepare=False
                )
                inner = linear
                if down != "linear":
                    scales = dualgemm.LinearWeights.from_linear(linear, prepare=False)
                    if down == "swizzled":
                        scales = dualgemm.LinearWeights.from_tensors(
                            scales._tensors["w"],
                            dualgemm.swizzle_scales(scales._tensors["w_scales"]),
                            alpha=scales.alpha,
                            bias=scales.bias,
                            prepare=False,
                        )
                    inner = dualgemm.nn.NVFP4Linear.from_weights(scales)
                one = dualgemm.GatedMLP.from_weights(w, copy.deepcopy(inner))
                many = parallelize_module(
                    nn.Sequential(copy.deepcopy(one)), mesh, {"0": GatedMLPParallel(sequence_parallel=sequence_parallel)}
                )
                wanted = many(x[own])
                torch.testing.assert_close(wanted, one(x)[own], rtol=0.5, atol=0.5 * float(wanted.abs().max()))
                dualgemm.nn.finalize(many, a_dtype=a_dtype)
                assert many[0].is_packed
                torch.testing.assert_close(many(x[own]), wanted, rtol=5e-2, atol=5e-2 * float(wanted.abs().max()))
    finally:
        _container.packs_by_rows = before


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("down", ["linear", "nvfp4", "swizzled"])
@pytest.mark.parametrize("sequence_parallel", [False, True])
def test_finalized_afterwards(processes: Any, sequence_parallel: bool, down: str, dtype: torch.dtype) -> None:
    processes(2).run(_finalized, sequence_parallel, down, dtype)


def _refusals(rank: int, world: int) -> None:
    mesh = init_device_mesh("cpu", (world,))

    def refused(argument: str, module: nn.Module, on: Any = mesh) -> None:
        with pytest.raises(dualgemm.InvalidArgument) as raised:
            GatedMLPParallel()._apply(module, on)
        assert raised.value.argument == argument, raised.value

    refused("module", nn.Linear(4, 4))
    refused("module.gate_codes", Gated(64, 95))
    wrong = Gated(64, 96)
    wrong.down = nn.Identity()
    refused("module.down", wrong)
    refused("device_mesh", Gated(64, 96), init_device_mesh("cpu", (1, world)))
    many = parallelize_module(Gated(64, 96), mesh, GatedMLPParallel(sequence_parallel=True))
    with pytest.raises(dualgemm.InvalidArgument, match="x: placement"):
        many(distribute_tensor(torch.zeros(4, 64), mesh, [Shard(1)]))


def test_refuses(processes: Any) -> None:
    processes(2).run(_refusals)


def test_shows_itself() -> None:
    assert repr(GatedMLPParallel(sequence_parallel=True)) == "GatedMLPParallel(sequence_parallel=True)"


def _disagree(rank: int, world: int, what: str) -> None:
    mesh = init_device_mesh("cpu", (world,))
    style = GatedMLPParallel()
    kw: dict[str, Any] = {}
    own = rule = ""
    if what == "shape" and rank == 1:
        kw["intermediate"] = 2 * INTERMEDIATE
    elif what == "down":
        kw["nvfp4_down"] = rank == 1
    elif what == "bias":
        kw["bias"] = rank == 0
    elif what == "style":
        style = GatedMLPParallel(sequence_parallel=rank == 1)
    module: Any = Gated(HIDDEN, kw.pop("intermediate", INTERMEDIATE), **kw)
    if what == "shape":
        rule = r"module.gate_codes.shape: \(96, 32\) in process 0, \(192, 32\) in process 1; must be the same"
    elif what == "down":
        rule = "module.down: Linear, 96 columns in process 0, Nvfp4Down, 96 columns in process 1; must be the same"
    elif what == "rows":
        rule = "module.down, rows: 64 in process 0, 32 in process 1; must be the same in every process"
        if rank == 1:
            module.down = nn.Linear(INTERMEDIATE, HIDDEN // 2)
    elif what == "bias":
        rule = "module.down.bias: True in process 0, False in process 1"
    elif what == "style":
        rule = "style: GatedMLPParallel.sequence_parallel=False.* in process 0, .*True.* in process 1"
    else:
        rule, own = "module: refused in process 1: module.gate_codes: shape", r"module.gate_codes: shape \[95, 32\]; must be"
        if rank == 1:
            module.gate_codes = module.gate_codes[:-1]
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    with pytest.raises(dualgemm.InvalidArgument, match=own if own and rank == 1 else rule):
        parallelize_module(nn.Sequential(module), mesh, {"0": style})
    assert all(torch.equal(before[name].view(torch.uint8), one.view(torch.uint8)) for name, one in module.state_dict().items())


@pytest.mark.parametrize("what", ["shape", "down", "rows", "bias", "style", "refused"])
def test_every_process_refuses_what_does_not_agree(processes: Any, what: str) -> None:
    processes(2).run(_disagree, what)
