"""Who takes part in mlp_bench.py, and the operands that they share. What a contestant is, rounds.py says."""

import ctypes
import math

import torch

import dualgemm_c as c
import moe_kernels as kernels
from moe_contestants import VALUE_SQUARE, PlainRead, decode

H_SCALE_POWER = -6  # of h's global scale: 2688 times it is 42, more than nearly all of h
H_SIZE = 0.25  # about what h's values are


def power_of_two(value):
    return 2.0 ** round(math.log2(value))


def random_rows(rows, columns, device, generator):
    """bf16 that NVFP4 with a scale for each row has exactly, so that W4A16 and W4A4 multiply the same x.

    A row's largest value is 2688 times a power of two, and every block of 16 has a 6.
    """

    def random(begin, end, *shape):
        return torch.randint(begin, end, shape, dtype=torch.uint8, device=device, generator=generator)

    blocks = columns // 16
    codes, scales = random(0, 16, rows, blocks, 16), random(0x6E, 0x7F, rows, blocks)  # 112 .. 448
    six = random(0, 16, rows, blocks, 1).long()
    codes.scatter_(2, six, codes.gather(2, six) | 7)
    scales[torch.arange(rows, device=device), random(0, min(blocks, 256), rows).long()] = 0x7E
    codes = codes.reshape(rows, columns // 2, 2)
    powers = -10.0 - random(0, 2, rows, 1)
    return decode(codes[..., 0] | codes[..., 1] << 4, scales, torch.bfloat16) * torch.exp2(powers).to(torch.bfloat16)


def quantized(h, scale):
    """h as NVFP4 with that global scale, decoded: docs/formats.md, 'Quantisation recipe', step by step in FP32."""
    blocks = h.float().reshape(*h.shape[:-1], -1, 16)
    inverse = torch.tensor(1.0 / scale, dtype=torch.float32, device=h.device)
    largest = blocks.abs().amax(-1, keepdim=True)
    scales = torch.clamp(inverse * largest / 6.0, max=448.0).to(torch.float8_e4m3fn).float()
    size = torch.where(scales == 0, 0.0, blocks.abs() * inverse / scales)
    code = (size > 0.25).int() + (size >= 0.75) + (size > 1.25) + (size >= 1.75) + (size > 2.5) + (size >= 3.5) + (size > 5.0)
    values = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0], dtype=torch.float64, device=h.device)[code]
    return (torch.copysign(values, blocks.double()) * scales.double() * scale).reshape(h.shape)


class WeightSet:
    """Gate, Up and Down: their packed bytes, one after the other; in bf16, with the alphas, powers of two, in the values."""

    PIECES = ("gate", "gate_scales", "up", "up_scales", "down", "down_scales")

    def __init__(self, weights, device, generator):
        self.weights, self.prepared = weights, {}
        intermediate, hidden = weights.intermediate, weights.hidden
        wide, tall = (intermediate, hidden), (hidden, intermediate)
        shapes = [(n, k // of) for n, k in (wide, wide, tall) for of in (2, 16)]
        self.packed = torch.randint(
            0, 256, (sum(n * k for n, k in shapes),), dtype=torch.uint8, device=device, generator=generator
        )
        self.pieces, at = {}, 0
        for name, (n, k) in zip(self.PIECES, shapes):
            piece = self.packed[at : at + n * k].view(n, k)
            if name.endswith("_scales"):
                piece.random_(0x20, 0x49, generator=generator)  # 1/8 .. 4
            self.pieces[name], at = piece, at + n * k
        self.gate_up_half = torch.empty((2 * intermediate, hidden), dtype=torch.bfloat16, device=device)
        self.gate_up_half[:intermediate] = self.decoded("gate", torch.bfloat16) * weights.alpha_gate
        self.gate_up_half[intermediate:] = self.decoded("up", torch.bfloat16) * weights.alpha_up
        self.down_half = self.decoded("down", torch.bfloat16) * weights.alpha_down

    def decoded(self, name, dtype, rows=slice(None)):
        return decode(self.pieces[name][rows], self.pieces[f"{name}_scales"][rows], dtype)

    def pointers(self):
        return {name: piece.data_ptr() for name, piece in self.pieces.items()}

    def view(self, mlp, product):
        """A view of the bytes that are prepared for that product; those for other numbers of rows are the same."""
        plan = getattr(mlp, product)
        descriptor = plan.prepared_descriptor()
        key = (product, descriptor.format)
        if key not in self.prepared:
            memory = torch.empty(descriptor.bytes, dtype=torch.uint8, device=self.packed.device)
            buffers = mlp.library.mlp_buffers(stream=stream(), **self.pointers())
            plan.prepare_into(mlp.weights(product, buffers), memory.data_ptr(), memory.numel())
            self.prepared[key] = memory
        memory = self.prepared[key]
        return ctypes.pointer(c.PreparedView(descriptor, memory.data_ptr(), memory.numel()))


class Weights:
    """Sets of random weights, enough to be cold in L2 when calls take them in turn, and rows of x for all of them."""

    def __init__(self, library, intermediate, hidden, sets, max_rows, seed, device="cuda"):
        device = torch.device(device)
        generator = torch.Generator(device).manual_seed(seed)
        self.library, self.intermediate, self.hidden = library, intermediate, hidden
        self.x = random_rows(max_rows, hidden, device, generator)
        root_mean_square = self.x.float().square().mean().sqrt().item()
        self.alpha_gate = power_of_two(1 / (root_mean_square * math.sqrt(VALUE_SQUARE * hidden)))
        self.alpha_up = self.alpha_gate / 2
        self.alpha_down = power_of_two(1 / (H_SIZE * math.sqrt(VALUE_SQUARE * intermediate)))
        self.sets = [WeightSet(self, device, generator) for _ in range(sets)]


class Point:
    """So many rows; call i of a graph takes the weights set_of(i)."""

    def __init__(self, weights, m, calls):
        self.weights, self.m, self.calls = weights, m, calls
        self.x = weights.x[:m]

    def set_of(self, call):
        return self.weights.sets[call % len(self.weights.sets)]

    def empty(self, *shape):
        return torch.full(shape, float("nan"), dtype=torch.bfloat16, device=self.x.device)


def expected(point, rows, columns):
    """The last call's y in float64, of h as it is and of h as NVFP4."""
    weights, of = point.weights, point.set_of(point.calls - 1)
    x = point.x[rows].double()
    gate = weights.alpha_gate * (x @ of.decoded("gate", torch.float64).T)
    up = weights.alpha_up * (x @ of.decoded("up", torch.float64).T)
    h = gate * torch.sigmoid(gate) * up
    down = of.decoded("down", torch.float64, columns).T
    return tuple(weights.alpha_down * (of_h @ down) for of_h in (h, quantized(h, 2.0**H_SCALE_POWER)))


def stream():
    return torch.cuda.current_stream().cuda_stream


def workspace_of(plan, device):
    return torch.empty(max(plan.workspace_bytes, 1), dtype=torch.uint8, device=device)


class Ours:
    """GatedMlp; with x and h in bf16, or both quantised."""

    def __init__(self, point, quantize, prepared, device=c.CUDA):
        weights, library = point.weights, point.weights.library
        self.d = point.empty(point.m, weights.hidden)
        problem = library.mlp_problem(point.m, weights.intermediate, weights.hidden, c.BF16, quantize)
        self.mlp = c.Mlp(library, problem, device=device, prepared=prepared)
        self.workspace = workspace_of(self.mlp, self.d.device)
        power = H_SCALE_POWER if quantize else 0
        self.buffers = []
        for call in range(point.calls):
            of = point.set_of(call)
            of_weights = (
                {f"prepared_{product}": of.view(self.mlp, product) for product in ("gate_up", "down")}
                if prepared
                else of.pointers()
            )
            self.buffers.append(
                library.mlp_buffers(
                    x=point.x.data_ptr(),
                    y=self.d.data_ptr(),
                    alpha_gate=weights.alpha_gate,
                    alpha_up=weights.alpha_up,
                    alpha_down=weights.alpha_down * 2.0**power,
                    h_global_scale=2.0**power,
                    stream=stream(),
                    **of_weights,
                )
            )

    def run(self, call):
        self.mlp.run(self.buffers[call], self.workspace.data_ptr())

    def config(self):
        return f"{self.mlp.gate_up.config()}, {self.mlp.down.config()}"


class Product:
    """One product of Ours with h in bf16, on prepared weights: 'gate_up', which activates, or 'down'."""

    d = None

    def __init__(self, point, product):
        weights, library = point.weights, point.weights.library
        problem = library.mlp_problem(point.m, weights.intermediate, weights.hidden, c.BF16, False)
        self.mlp = c.Mlp(library, problem, prepared=True)
        self.plan = getattr(self.mlp, product)
        self.workspace = workspace_of(self.plan, point.x.device)
        if product == "gate_up":
            self.a, self.out = point.x, point.empty(point.m, weights.intermediate)
            alphas = {"alpha_gate": weights.alpha_gate, "alpha_up": weights.alpha_up}
        else:
            self.a, self.out = (
                torch.randn_like(point.empty(point.m, weights.intermediate)),
                point.empty(point.m, weights.hidden),
            )
            alphas = {"alpha_gate": weights.alpha_down, "alpha_up": weights.alpha_down}
        self.buffers = [
            library.buffers(
                a=self.a.data_ptr(),
                d=self.out.data_ptr(),
                stream=stream(),
                prepared_view=point.set_of(call).view(self.mlp, product),
                **alphas,
            )
            for call in range(point.calls)
        ]

    def run(self, call):
        self.plan.run(self.buffers[call], self.workspace.data_ptr())

    def config(self):
        return self.plan.config()


class Bf16:
    """torch's products on bf16 weights by one of the two libraries that it has, and a kernel between them that activates."""

    def __init__(self, point, stacked, blas):
        m, n = point.m, point.weights.intermediate
        self.point, self.stacked, self.blas = point, stacked, blas
        self.d, self.h = point.empty(m, point.weights.hidden), point.empty(m, n)
        if stacked:
            self.products = point.empty(m, 2 * n)
            self.gate, self.up = self.products[:, :n], self.products[:, n:]
        else:
            self.gate, self.up = point.empty(m, n), point.empty(m, n)

    def run(self, call):
        of, n = self.point.set_of(call), self.point.weights.intermediate
        torch.backends.cuda.preferred_blas_library(self.blas)
        if self.stacked:
            torch.mm(self.point.x, of.gate_up_half.T, out=self.products)
        else:
            torch.mm(self.point.x, of.gate_up_half[:n].T, out=self.gate)
            torch.mm(self.point.x, of.gate_up_half[n:].T, out=self.up)
        kernels.activate_all(self.gate, self.up, self.h, 1.0, 1.0)
        torch.mm(self.h, of.down_half.T, out=self.d)
        torch.backends.cuda.preferred_blas_library("default")

    def config(self):
        return self.blas


def plain_read(point, config):
    return PlainRead([point.set_of(call).packed.view(torch.int32) for call in range(point.calls)], config)
