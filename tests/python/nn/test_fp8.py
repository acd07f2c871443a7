"""FP8Linear on this machine's device: which product it takes, and each element within the bound of that product."""

from __future__ import annotations

import pytest
import torch
from operands import DEVICE, dg

E4M3 = torch.float8_e4m3fn
HAS_FP8 = DEVICE == "cuda" and torch.cuda.get_device_capability() >= (8, 9)


def matrix(n: int, k: int, form: str) -> tuple[torch.Tensor, torch.Tensor, tuple[int, int], torch.Tensor]:
    """Codes, scales, sides of a block, and the values in double."""
    noise = torch.Generator("cpu").manual_seed(n + k)
    codes = (torch.randn(n, k, generator=noise, device="cpu") * 60).clamp(-448, 448).to(E4M3)
    block = (128, 128) if form == "block" else (0, 0)
    shape = {"tensor": (1,), "channel": (n, 1), "block": (-(-n // 128), -(-k // 128))}[form]
    scales = torch.rand(shape, generator=noise, device="cpu") * 1e-3 + 1e-4
    wide = scales.double()
    if form == "block":
        wide = wide.repeat_interleave(128, 0)[:n].repeat_interleave(128, 1)[:, :k]
    return (
        codes.to(DEVICE),
        scales.to(DEVICE),
        block,
        (codes.double() * wide.reshape(1, 1) if form == "tensor" else codes.double() * wide),
    )


@pytest.mark.parametrize("rows", [0, 1, 5, 64])
@pytest.mark.parametrize("activations", ["none", "static", "dynamic"])
@pytest.mark.parametrize("form", ["tensor", "channel", "block"])
def test_every_element(form: str, activations: str, rows: int) -> None:
    n, k = 208, 272
    codes, scales, block, exact = matrix(n, k, form)
    bias = torch.linspace(-1, 1, n, device=DEVICE)
    static = torch.tensor([0.02], device=DEVICE)
    layer = dg.nn.FP8Linear(codes, scales, block=block, bias=bias, activations=activations, input_scale=static)
    assert (layer.product == "fp8") == (HAS_FP8 and activations != "none" and form != "block")
    x = torch.randn(rows, k, generator=torch.Generator("cpu").manual_seed(rows), device="cpu").bfloat16()
    got = layer(x.to(DEVICE)).double().cpu()
    assert got.shape == (rows, n)
    if rows == 0:
        return
    read = x.double()
    if layer.product == "fp8":  # the input as it is quantised: once by a rule of its own
        scale = (
            torch.tensor(0.02, device="cpu").double()
            if activations == "static"
            else read.abs().amax(-1, keepdim=True).float() * (1 / 448)
        )
        read = (x.float() / scale.float()).clamp(-448, 448).to(E4M3).double() * scale.double()
    product = read @ exact.T
    want = product + bias.double().cpu()
    # Sums in FP32 (of an FP8 product on Hopper in 14 bits); rounded to bf16 once, by blocks once a block, and after the bias.
    sums = (read.abs() @ exact.abs().T) * (2.0**-11 if layer.product == "fp8" else 2.0**-8)
    bound = sums + product.abs() * 2.0**-8 + want.abs() * 2.0**-7 + 1e-6
    assert bool(((got - want).abs() <= bound).all()), float(((got - want).abs() / bound).max())


def test_shapes_of_rows_and_moves() -> None:
    codes, scales, block, _ = matrix(64, 128, "channel")
    layer = dg.nn.FP8Linear(codes, scales, activations="dynamic")
    x = torch.randn(2, 3, 128, device=DEVICE, dtype=torch.bfloat16)
    assert layer(x).shape == (2, 3, 64)
    assert torch.equal(layer(x[0, 0]), layer(x)[0, 0]) or HAS_FP8
    on_cpu = layer.to("cpu", torch.float16)
    assert on_cpu.product == "16 bits, scaled after" and on_cpu.weight_scale.dtype == torch.float32
    assert on_cpu(x.cpu()).shape == (2, 3, 64)
