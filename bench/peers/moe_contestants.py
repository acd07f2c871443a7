"""Who takes part in moe_bench.py, and the operands that they share. What a contestant is, rounds.py says."""

import ctypes
import math

import torch
import triton

import dualgemm_c as c
import moe_kernels as kernels
import moe_routing as routing
import rounds

VALUE_SQUARE = 22.4  # mean of a value's square: codes uniform, scales as random_scales() has them
TORCH_TYPES = {c.F16: torch.float16, c.BF16: torch.bfloat16}
MAGNITUDES = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]


def decode(codes, scales, dtype):
    """By table; exact in bf16 and wider: shares nothing with the kernels."""
    table = torch.tensor(MAGNITUDES + [-x for x in MAGNITUDES], dtype=dtype, device=codes.device)
    values = torch.stack((table[(codes & 0x0F).int()], table[(codes >> 4).int()]), dim=-1)
    factors = scales.view(torch.float8_e4m3fn).to(dtype)
    blocks = values.reshape(*scales.shape, 16) * factors[..., None]
    return blocks.reshape(*codes.shape[:-1], 2 * codes.shape[-1])


class WeightSet:
    """The weights of all experts: as NVFP4, in both prepared orders, and in bf16, stacked, with the alphas' powers of
    two."""

    def __init__(self, weights, codes, scales):
        shape = (weights.experts, weights.n, weights.k)
        self.gate, self.gate_scales = codes(*shape), scales(*shape)
        self.up, self.up_scales = codes(*shape), scales(*shape)
        self.half = torch.empty((weights.experts, 2 * weights.n, weights.k), dtype=torch.bfloat16, device=self.gate.device)
        for e in range(weights.experts):
            self.half[e, : weights.n] = (
                decode(self.gate[e], self.gate_scales[e], torch.bfloat16) * 2.0 ** weights.gate_powers[e]
            )
            self.half[e, weights.n :] = decode(self.up[e], self.up_scales[e], torch.bfloat16) * 2.0 ** weights.up_powers[e]
        self.prepared = {a_type: self.prepare(weights, a_type) for a_type in (c.E2M1, c.BF16)}

    def pointers(self, expert=0):
        return {
            "gate": self.gate[expert].data_ptr(),
            "gate_scales": self.gate_scales[expert].data_ptr(),
            "up": self.up[expert].data_ptr(),
            "up_scales": self.up_scales[expert].data_ptr(),
        }

    def prepare(self, weights, a_type):
        """(bytes, view of them)."""
        library = weights.library
        plan = c.Plan(library, library.problem(1, weights.n, weights.k, weights.experts, a_type, c.BF16), prepared=True)
        descriptor = plan.prepared_descriptor()
        memory = torch.empty(descriptor.bytes, dtype=torch.uint8, device=self.gate.device)
        buffers = library.buffers(stream=torch.cuda.current_stream().cuda_stream, **self.pointers())
        plan.prepare_into(buffers, memory.data_ptr(), memory.numel())
        return memory, c.PreparedView(descriptor, memory.data_ptr(), memory.numel())


class Weights:
    """Sets of random weights, enough to be cold in L2 when calls take them in turn, and rows of A for all of them."""

    def __init__(self, library, n, k, experts, max_rows, seed):
        device = torch.device("cuda")
        generator = torch.Generator(device).manual_seed(seed)

        def codes(*shape):
            return torch.randint(0, 256, (*shape[:-1], shape[-1] // 2), dtype=torch.uint8, device=device, generator=generator)

        def scales(*shape):  # 1/8 .. 4
            return torch.randint(
                0x20, 0x49, (*shape[:-1], shape[-1] // 16), dtype=torch.uint8, device=device, generator=generator
            )

        self.library, self.n, self.k, self.experts = library, n, k, experts
        self.expert_bytes = 2 * n * k * 9 // 16
        self.gate_powers = [e % 3 - 1 for e in range(experts)]
        self.up_powers = [e // 3 % 3 - 1 for e in range(experts)]
        self.alpha_gate = 1 / (VALUE_SQUARE * math.sqrt(k))
        self.alpha_up = 0.75 * self.alpha_gate
        self.alphas_gate = torch.tensor(
            [self.alpha_gate * 2.0**p for p in self.gate_powers], dtype=torch.float32, device=device
        )
        self.alphas_up = torch.tensor([self.alpha_up * 2.0**p for p in self.up_powers], dtype=torch.float32, device=device)
        self.sets = [
            WeightSet(self, codes, scales) for _ in range(max(1, -(-rounds.COLD_BYTES // (self.expert_bytes * experts))))
        ]
        self.a_codes, self.a_scales = codes(max_rows, k), scales(max_rows, k)
        self.a_half = torch.empty((max_rows, k), dtype=torch.bfloat16, device=device)
        for begin in range(0, max_rows, 4096):
            rows = slice(begin, begin + 4096)
            self.a_half[rows] = decode(self.a_codes[rows], self.a_scales[rows], torch.bfloat16)


class Call:
    """Which weights, and whose rows."""

    def __init__(self, weights, number, rows):
        self.weights = weights.sets[number]
        offsets = routing.offsets(rows)
        self.busy = [(e, offsets[e], offsets[e + 1]) for e in range(len(rows)) if rows[e]]
        self.offsets = torch.tensor(offsets, dtype=torch.int32, device="cuda")
        self.ends = self.offsets[1:].clone()
        self.tiles = {}  # of so many rows

    def tile_table(self, tile_m):
        if tile_m not in self.tiles:
            table = [
                (e, first, min(first + tile_m, end), 0) for e, begin, end in self.busy for first in range(begin, end, tile_m)
            ]
            self.tiles[tile_m] = torch.tensor(table, dtype=torch.int32, device="cuda")
        return self.tiles[tile_m]


class Point:
    """One distribution of rows, and the calls that a graph holds: on weights that are cold. tokens: of a model, whose rows
    are these; else A has the rows in order."""

    def __init__(self, weights, rows, min_calls, seed, d_type=c.BF16, tokens=None):
        self.weights, self.rows, self.d_type, self.m = weights, rows, d_type, sum(rows)
        self.tokens = tokens
        self.rows_of_a = list(range(self.m)) if tokens is None else routing.tokens_of_rows(rows, tokens, seed)
        self.index = torch.tensor(self.rows_of_a, dtype=torch.int32, device="cuda")
        self.a_half = weights.a_half[: self.m] if tokens is None else weights.a_half[self.index]
        self.busy = sum(1 for count in rows if count)
        self.touched_bytes = self.busy * weights.expert_bytes
        sets = len(weights.sets)
        calls = rounds.calls_of(min_calls, self.touched_bytes, sets)
        self.calls = [Call(weights, *of) for of in routing.rotate(rows, sets, calls, seed)]

    def new_d(self):
        return torch.full((self.m, self.weights.n), float("nan"), dtype=TORCH_TYPES[self.d_type], device="cuda")


def buffers_of(point, a_type, d, first_row=0, **others):
    weights, packed = point.weights, a_type == c.E2M1
    a = weights.a_codes if packed else weights.a_half
    return weights.library.buffers(
        a=a[first_row].data_ptr(),
        a_scales=weights.a_scales[first_row].data_ptr() if packed else 0,
        d=d[first_row].data_ptr(),
        stream=torch.cuda.current_stream().cuda_stream,
        **others,
    )


class Ours:
    """One call for all experts."""

    def __init__(self, point, a_type, prepared, config=""):
        weights, library = point.weights, point.weights.library
        self.d = point.new_d()
        problem = library.problem(point.m, weights.n, weights.k, weights.experts, a_type, point.d_type)
        problem.a_rows = point.tokens or 0
        self.plan = c.Plan(library, problem, prepared=prepared, config=config)
        self.workspace = torch.empty(max(self.plan.workspace_bytes, 1), dtype=torch.uint8, device="cuda")
        self.buffers = []
        for call in point.calls:
            of_weights = (
                {"prepared_view": ctypes.pointer(call.weights.prepared[a_type][1])} if prepared else call.weights.pointers()
            )
            self.buffers.append(
                buffers_of(
                    point,
                    a_type,
                    self.d,
                    alpha_gate_per_batch=weights.alphas_gate.data_ptr(),
                    alpha_up_per_batch=weights.alphas_up.data_ptr(),
                    expert_offsets=call.offsets.data_ptr(),
                    a_row_index=point.index.data_ptr() if point.tokens else 0,
                    **of_weights,
                )
            )

    def run(self, call):
        self.plan.run(self.buffers[call], self.workspace.data_ptr())

    def config(self):
        return self.plan.config()


class OursDense:
    """A dense call for each expert that has rows, one after the other."""

    def __init__(self, point, a_type, prepared):
        weights, library = point.weights, point.weights.library
        self.d = point.new_d()
        self.plans = {
            rows: c.Plan(library, library.problem(rows, weights.n, weights.k, None, a_type, point.d_type), prepared=prepared)
            for rows in {end - begin for call in point.calls for _, begin, end in call.busy}
        }
        size = max(plan.workspace_bytes for plan in self.plans.values())
        self.workspace = torch.empty(max(size, 1), dtype=torch.uint8, device="cuda")
        self.calls = []
        for call in point.calls:
            self.calls.append([])
            for e, begin, end in call.busy:
                of_weights = (
                    {"prepared_view": ctypes.pointer(library.one_expert(call.weights.prepared[a_type][1], e))}
                    if prepared
                    else call.weights.pointers(e)
                )
                buffers = buffers_of(
                    point,
                    a_type,
                    self.d,
                    begin,
                    alpha_gate=weights.alpha_gate * 2.0 ** weights.gate_powers[e],
                    alpha_up=weights.alpha_up * 2.0 ** weights.up_powers[e],
                    **of_weights,
                )
                self.calls[-1].append((self.plans[end - begin], buffers))

    def run(self, call):
        for plan, buffers in self.calls[call]:
            plan.run(buffers, self.workspace.data_ptr())

    def config(self):
        return ", ".join(sorted({plan.config() for plan, _ in self.calls[0]}))


def activate_stacked(point, products, d):
    n = point.weights.n
    kernels.activate_all(products[:, :n], products[:, n:], d, point.weights.alpha_gate, point.weights.alpha_up)


class GroupedBf16:
    """torch's grouped product on stacked bf16 weights, then one kernel that activates."""

    def __init__(self, point):
        self.point, self.d = point, point.new_d()
        self.multiply = getattr(torch.nn.functional, "grouped_mm", None) or torch._grouped_mm

    def run(self, call):
        of = self.point.calls[call]
        products = self.multiply(self.point.a_half, of.weights.half.transpose(-2, -1), offs=of.ends)
        activate_stacked(self.point, products, self.d)

    def config(self):
        return ""


class LoopBf16:
    """cuBLAS on the stacked bf16 weights of one expert after the other, then the same kernel; the host knows the counts."""

    def __init__(self, point):
        self.point, self.d = point, point.new_d()
        self.products = torch.empty((point.m, 2 * point.weights.n), dtype=torch.bfloat16, device="cuda")

    def run(self, call):
        of = self.point.calls[call]
        for e, begin, end in of.busy:
            torch.mm(self.point.a_half[begin:end], of.weights.half[e].T, out=self.products[begin:end])
        activate_stacked(self.point, self.products, self.d)

    def config(self):
        return ""


class TritonGrouped:
    """A in bf16, weights as NVFP4; the table of tiles lies there beforehand."""

    def __init__(self, point, config):
        weights = point.weights
        self.point, self.tile, self.d = point, config, point.new_d()
        split = config[3]
        self.parts = torch.empty((split, 2, point.m, weights.n), dtype=torch.float32, device="cuda") if split > 1 else None
        self.tiles = [call.tile_table(config[0]) for call in point.calls]

    @staticmethod
    def suits(point, config, lowest, highest):
        bn, bk, split = config[1:4]
        k = point.weights.k
        even = k % (bk * split) == 0 or (split == 1 and bk <= 128)
        return lowest <= -(-point.m // point.busy) <= highest and point.weights.n % bn == 0 and k % 64 == 0 and even

    def run(self, call):
        weights, of = self.point.weights, self.point.calls[call].weights
        bm, bn, bk, split, warps, stages = self.tile
        count = self.point.m * weights.n
        kernels.grouped_dual_gemm[(len(self.tiles[call]) * (weights.n // bn), split)](
            self.point.a_half,
            of.gate,
            of.gate_scales,
            of.up,
            of.up_scales,
            weights.alphas_gate,
            weights.alphas_up,
            self.tiles[call],
            self.d if split == 1 else self.parts,
            count,
            weights.n,
            weights.k,
            BM=bm,
            BN=bn,
            BK=bk,
            SPLIT=split,
            UNIT=bk if weights.k % bk == 0 else 64,
            num_warps=warps,
            num_stages=stages,
        )
        if split > 1:
            kernels.add_parts[(triton.cdiv(count, 1024),)](self.parts, self.d, count, SPLIT=split, CHUNK=1024)

    def config(self):
        return "_".join(map(str, self.tile))


def read_parts(point):
    """For each call as many packed bytes as the weights of the busy experts have, one after the other."""
    words, begin, parts = point.touched_bytes // 4, {}, []
    for call in point.calls:
        memory = call.weights.prepared[c.E2M1][0].view(torch.int32)
        at = begin.get(memory.data_ptr(), 0)
        if at + words > memory.numel():
            at = 0
        begin[memory.data_ptr()] = at + words
        parts.append(memory[at : at + words])
    return parts


class PlainRead:
    """A call reads parts[call] and computes nothing; the parts are int32, all of the same size."""

    d = None

    def __init__(self, parts, config):
        self.parts, self.launch, self.words = parts, config, parts[0].numel()
        block, loads, _, per_sm = config
        steps = -(-self.words // (block * loads))
        sms = torch.cuda.get_device_properties(0).multi_processor_count
        self.programs = min(steps, per_sm * sms) if per_sm else steps
        self.out = torch.empty(self.programs, dtype=torch.int32, device="cuda")

    def run(self, call):
        block, loads, warps, _ = self.launch
        kernels.read[(self.programs,)](self.parts[call], self.out, self.words, BLOCK=block, LOADS=loads, num_warps=warps)

    def config(self):
        return "_".join(map(str, self.launch))
