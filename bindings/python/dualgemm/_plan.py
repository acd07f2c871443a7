"""Plans and runs on arrays of any library, and what this machine offers. Needs ctypes alone."""
from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping
from ctypes import byref, c_int64, c_size_t, c_void_p
from typing import Any

from . import _library as library
from ._arrays import Array, array_of
from ._arguments import checked
from ._errors import InvalidArgument
from ._names import Activation, OwnLayout, Strategy
from ._structs import Buffers, DeviceInfo, OperandBytes, PlanInfo, PlanOptions, Problem

BIAS_TYPES = {"torch.float32": 1, "torch.bfloat16": 2}  # dualgemm_bias_type
_LAYOUTS = {"linear": 0, "swizzled_128x4": 1}


def _text(function: str, handle: c_void_p) -> str:
    needed = c_size_t()
    library.check(getattr(library.c, function)(handle, None, c_size_t(0), byref(needed)))
    buffer = ctypes.create_string_buffer(needed.value)
    library.check(getattr(library.c, function)(handle, buffer, needed, None))
    return buffer.value.decode()


def _int64(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidArgument(name, repr(value), "must be an integer")
    if not -2**63 <= value < 2**63:
        raise InvalidArgument(name, str(value), "must fit in 64 bits")
    return value


def _float(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgument(name, repr(value), "must be a number") from None


def activation_numbers(kind: str, alpha: Any, beta: Any, limit: Any) -> tuple[int, list[float]]:
    """The activation's number, and alpha, beta and limit, NaN where not given. What is given counts: 0 in alpha or limit, which
    the C interface takes for "not given", is refused, and swiglu_oai with beta 0 is clamped_swiglu with its other defaults."""
    number = library.parse("activation", kind)
    values = [math.nan if value is None else _float(f"act_{name}", value)
              for name, value in (("alpha", alpha), ("beta", beta), ("limit", limit))]
    for name, given, value, rule in (("alpha", alpha, values[0], "must be finite and not 0"), ("beta", beta, values[1], ""),
                                     ("limit", limit, values[2], "must be > 0")):
        if given is not None and (math.isnan(value) or (value == 0 and rule)):
            raise InvalidArgument(f"act_{name}", repr(value), rule or "must be finite")
    if kind == "swiglu_oai" and values[1] == 0:
        number = library.parse("activation", "clamped_swiglu")
        values = [1.702 if alpha is None else values[0], 0.0, 7.0 if limit is None else values[2]]
    return number, values


class Plan:
    """How a problem will run here; immutable, shareable between threads. Made by plan()."""

    def __init__(self, problem: Problem, options: PlanOptions) -> None:
        self._problem = problem
        self._handle = c_void_p()
        library.check(library.c.dualgemm_plan_create(byref(problem), byref(options), byref(self._handle)))
        info = PlanInfo(struct_size=ctypes.sizeof(PlanInfo))
        library.check(library.c.dualgemm_plan_get_info(self._handle, byref(info)))
        self.strategy = library.name_of("strategy", info.strategy)
        self.device = library.name_of("device", info.device)
        self.isa = library.name_of("isa", info.isa)
        self.workspace_bytes = int(info.workspace_bytes)
        self.prepared_bytes = int(info.prepared_bytes)
        self.config = _text("dualgemm_plan_config", self._handle)

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle:
            library.c.dualgemm_plan_destroy(handle)

    def __repr__(self) -> str:
        return f"<dualgemm.Plan {self.config}>"

    def __reduce__(self) -> Any:
        raise TypeError("a dualgemm.Plan belongs to its process; make it anew with dualgemm.plan()")

    def explain(self) -> str:
        """What will run and why; what was rejected and why."""
        return _text("dualgemm_plan_explain", self._handle)


@checked
def plan(m: int, n: int, k: int, *, l: int = 1, a_type: str = "e2m1", d_type: str = "f16", device: str = "cpu",
         strategy: Strategy = "auto", activation: Activation = "silu", act_alpha: float | None = None, act_beta: float | None = None,
         act_limit: float | None = None, batch_invariant: bool = False, threads: int = 0, prepared: bool = False,
         config: str = "", scale_layout: OwnLayout = "linear") -> Plan:
    """Chooses how to compute D [l, m, n] from A [l, m, k] and Gate, Up [l, n, k], all tight.

    Types and names as the command line spells them: "e2m1", "f16", "bf16", "f32"; "cpu", "cuda". act_*: as the activation
    has them; "clamped_swiglu" wants a limit. ``scale_layout`` is that of all scales, "linear" or "swizzled_128x4".
    InvalidArgument: a broken rule; Unsupported: this machine cannot do it.
    """
    return make_plan(m, n, k, l=l, a_type=a_type, d_type=d_type, device=device, strategy=strategy, activation=activation,
                     act_alpha=act_alpha, act_beta=act_beta, act_limit=act_limit, batch_invariant=batch_invariant,
                     threads=threads, prepared=prepared, config=config, scale_layout=scale_layout)


def make_plan(m: int, n: int, k: int, *, l: int, a_type: str, d_type: str, device: str, strategy: str, activation: str,
              act_alpha: float | None, act_beta: float | None, act_limit: float | None, batch_invariant: bool,
              prepared: bool, config: str, scale_layout: str, threads: int = 0, bias: int = 0) -> Plan:
    """plan(), and with biases: one of BIAS_TYPES."""
    if scale_layout not in _LAYOUTS:
        raise InvalidArgument("scale_layout", repr(scale_layout), "must be linear or swizzled_128x4")
    problem = library.new(Problem, "problem")
    for name, value in (("m", m), ("n", n), ("k", k), ("l", l)):
        setattr(problem, name, _int64(name, value))
    problem.a.type, problem.d.type = library.parse("data_type", a_type, "a_type"), library.parse("data_type", d_type, "d_type")
    for matrix in (problem.a, problem.gate, problem.up, problem.d):
        if matrix.type == 0:
            matrix.scale_layout = _LAYOUTS[scale_layout]
    problem.act.kind, (problem.act.alpha, problem.act.beta, problem.act.limit) = activation_numbers(
        activation, act_alpha, act_beta, act_limit)
    problem.bias = bias
    problem.batch_invariant = int(bool(batch_invariant))
    options = library.new(PlanOptions, "plan_options")
    options.device, options.strategy = library.parse("device", device), library.parse("strategy", strategy)
    options.threads, options.prepared = _int64("threads", threads), int(bool(prepared))
    if not isinstance(config, str):
        raise InvalidArgument("config", repr(config), "must be a text")
    options.config = config.encode()
    return Plan(problem, options)


def _operand(name: str, value: Any, wanted: int, is_cuda: bool, written: bool = False) -> Array | None:
    if value is None:
        if wanted:
            raise InvalidArgument(name, "None", f"must be {wanted} bytes")
        return None
    array = array_of(name, value)
    if array.is_cuda != is_cuda:
        raise InvalidArgument(name, "on a GPU" if array.is_cuda else "in host memory", "must lie on the device of the plan")
    if array.bytes != wanted:
        raise InvalidArgument(name, f"{array.bytes} bytes", f"must be {wanted}")
    if written and array.is_read_only:
        raise InvalidArgument(name, "read-only", "must be writable")
    return array


def run(plan: Plan, *, a: Any, a_scales: Any | None = None, gate: Any, gate_scales: Any, up: Any, up_scales: Any, d: Any,
        alpha_gate: float = 1.0, alpha_up: float = 1.0, stream: int = 0) -> None:
    """The C call on arrays of any library (NumPy, CuPy, JAX, torch), tight in memory; ``d`` is written.

    Each operand must have exactly the bytes that the plan's problem says. ``stream``: the cudaStream_t as a number, CUDA only.
    A plan that was made with ``prepared`` or that wants prepared weights is refused: torch's Weights has those.
    """
    if not isinstance(plan, Plan):
        raise InvalidArgument("plan", type(plan).__name__, "must be a dualgemm.Plan, as plan() makes it")
    sizes = OperandBytes(struct_size=ctypes.sizeof(OperandBytes))
    library.check(library.c.dualgemm_operand_sizes(byref(plan._problem), byref(sizes)))
    is_cuda = plan.device == "cuda"
    values = {"a": a, "a_scales": a_scales, "gate": gate, "gate_scales": gate_scales, "up": up, "up_scales": up_scales, "d": d}
    arrays = {name: _operand(name, value, getattr(sizes, name), is_cuda, name == "d") for name, value in values.items()}
    buffers = library.new(Buffers, "buffers")
    for name, array in arrays.items():
        setattr(buffers, name, array.address if array else None)
    buffers.alpha_gate, buffers.alpha_up = _float("alpha_gate", alpha_gate), _float("alpha_up", alpha_up)
    buffers.stream = _int64("stream", stream) or None
    workspace = c_void_p()
    library.check(library.c.dualgemm_workspace_create(plan._handle, byref(workspace)))
    try:
        library.c.dualgemm_workspace_data.restype = c_void_p
        library.check(library.c.dualgemm_run(plan._handle, byref(buffers), c_void_p(library.c.dualgemm_workspace_data(workspace)),
                                             c_int64(plan.workspace_bytes), None))
    finally:
        library.c.dualgemm_workspace_destroy(workspace)


@checked
def device_info(device: str = "cpu") -> Mapping[str, Any]:
    """What this machine's CPU offers: name, cores, cache sizes in bytes, isas (best first)."""
    if device != "cpu":
        raise InvalidArgument("device", repr(device), 'must be "cpu"; plan(device="cuda").explain() tells of the GPU')
    info = DeviceInfo(struct_size=ctypes.sizeof(DeviceInfo))
    library.check(library.c.dualgemm_get_device_info(byref(info)))
    return {"device": library.name_of("device", info.kind), "name": info.name.decode(errors="replace"), "cores": info.cores,
            "l1d_bytes": info.l1d_bytes, "l2_bytes": info.l2_bytes, "l3_bytes": info.l3_bytes,
            "isas": [library.name_of("isa", isa) for isa in info.isas[:info.num_isas]]}
