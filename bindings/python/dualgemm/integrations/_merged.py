"""What the adapters to engines share: a merged gate/up layer whose weights stay as the checkpoint has them."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Collection
from typing import Any, Optional

import torch
from torch import Tensor, nn

from .. import _probes as probes
from .._errors import DualGemmError
from .._explain import explain
from .._products import glu, linear


def _is_skipped(statement: ast.stmt, absent: Collection[str]) -> bool:
    """A text, or what is done where self.NAME is not None, of a NAME that is None."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
        return True
    return (
        isinstance(statement, ast.If)
        and not statement.orelse
        and any(ast.unparse(statement.test) == f"self.{name} is not None" for name in absent)
    )


def is_plain_forward(source: str, absent: Collection[str] = ()) -> bool:
    """Whether a forward(self, x) is down_proj(act_fn(gate_up_proj(x))) and nothing else. absent: attributes that are None.

    Engines have MLPs with factors, clamps or gates of their own beside the same three submodules, so names do not suffice.
    """
    try:
        function = ast.parse(textwrap.dedent(source)).body[0]
    except SyntaxError:
        return False
    if not isinstance(function, ast.FunctionDef) or function.decorator_list:
        return False
    arguments = function.args
    if (
        [argument.arg for argument in arguments.args][:1] != ["self"]
        or len(arguments.args) != 2
        or (arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.posonlyargs)
    ):
        return False
    body = [statement for statement in function.body if not _is_skipped(statement, absent)]
    if len(body) != 4 or not isinstance(body[3], ast.Return) or body[3].value is None:
        return False
    name = arguments.args[1].arg
    for statement, wanted in zip(
        body, (("({y}, _)", "self.gate_up_proj({x})"), ("{y}", "self.act_fn({x})"), ("({y}, _)", "self.down_proj({x})"))
    ):
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            return False
        target = statement.targets[0]
        first = target.elts[0] if isinstance(target, ast.Tuple) else target
        if not isinstance(first, ast.Name) or ast.unparse(target) != wanted[0].format(y=first.id):
            return False
        # vLLM: the activation, with down_proj's quantisation where that can be fused.
        fused = f"maybe_fused_act_quant(self.act_fn, {name}, self.down_proj)"
        if ast.unparse(statement.value) not in (wanted[1].format(x=name), fused if "act_fn" in wanted[1] else ""):
            return False
        name = first.id
    return ast.unparse(body[3].value) == name


# Parts of their own that engines' MLPs may have or not: the gate of a shared expert (Qwen2-MoE, Qwen3-MoE).
_OPTIONAL = ("expert_gate",)


def has_plain_forward(module: torch.nn.Module) -> bool:
    absent = [name for name in _OPTIONAL if getattr(module, name, None) is None]
    try:
        return is_plain_forward(inspect.getsource(type(module).forward), absent)
    except (OSError, TypeError):
        return False


class _StandIn(nn.Module):
    """In the place of a linear layer of an engine: notes what it gets, and answers what it is told. Other attributes are the
    layer's own, for forwards that look at them."""

    def __init__(self, layer: nn.Module, answer: Optional[Tensor]) -> None:
        super().__init__()
        self.answer, self.got = answer, []  # type: ignore[var-annotated]
        self.__dict__["_layer"] = layer

    def forward(self, x: Tensor, *_: Any, **__: Any) -> tuple[Tensor, None]:
        self.got.append(x)
        return (x if self.answer is None else self.answer), None

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.__dict__["_layer"], name)


_COLUMNS = 64  # of gate and of up in what is asked


def reason_of_forward(mlp: Any, dtype: torch.dtype = torch.bfloat16) -> Optional[str]:
    """Why an engine's MLP may not be computed as down(silu(gate) * up); None: its own forward computes that, of rows of every
    magnitude and sign, with stand-ins for its two products. So clamps, factors and norms between them show, whatever the
    names and the source say."""
    layer, down = mlp.gate_up_proj, mlp.down_proj
    device = next((one.device for one in (*layer.parameters(), *layer.buffers())), torch.device("cpu"))
    both = probes.columns(2 * _COLUMNS, device).to(dtype)
    x = torch.zeros(both.shape[0], 16, dtype=dtype, device=device)
    first, second = _StandIn(layer, both), _StandIn(down, None)
    gate, up = both.float().chunk(2, -1)
    try:
        mlp.gate_up_proj, mlp.down_proj = first, second
        with torch.no_grad():
            found = probes.foreign("forward", mlp, x)
        if [id(one) for one in first.got] != [id(x)] or len(second.got) != 1:
            return "its forward calls gate_up_proj and down_proj otherwise than once, with its input"
        name = type(mlp).__name__
        probes.check(name, probes.distance(name, found, torch.nn.functional.silu(gate) * up))
    except DualGemmError as error:
        return str(error)
    finally:
        mlp.gate_up_proj, mlp.down_proj = layer, down
    return None


def reason_against(weight: Tensor, scales: Tensor, widths: Any) -> Optional[str]:
    """Why the library cannot take the merged weight, uint8 [2N, K/2] with linear scales [2N, K/16]; None: it can."""
    if weight.dtype != torch.uint8 or weight.dim() != 2 or weight.shape[0] % 2 or weight.shape[1] % 8:
        return f"weight {weight.dtype} {list(weight.shape)} is not uint8 [2N, K/2]"
    if scales.dtype != torch.float8_e4m3fn or tuple(scales.shape) != (weight.shape[0], weight.shape[1] // 8):
        return f"scales {scales.dtype} {list(scales.shape)} are not linear, float8_e4m3fn [2N, K/16]"
    n = weight.shape[0] // 2
    if list(widths or ()) != [n, n]:
        return f"parts of {list(widths or ())} rows are not two of {n}"
    try:
        # One row is enough: the question is whether there is a kernel for this device at all.
        x = torch.empty((1, weight.shape[1] * 2), dtype=torch.bfloat16, device=weight.device)
        explain(x, weight[:n])
    except DualGemmError as error:
        return str(error)
    return None


def gated(x: Tensor, weight: Tensor, scales: Tensor, alpha_gate: Tensor, alpha_up: Tensor, batch_invariant: bool) -> Tensor:
    """silu(gate x) * (up x), [..., N] of x's dtype. Gate comes first in the merged weight."""
    n = weight.shape[0] // 2
    return glu(
        x,
        weight[:n],
        weight[n:],
        gate_scales=scales[:n],
        up_scales=scales[n:],
        alpha_gate=alpha_gate,
        alpha_up=alpha_up,
        batch_invariant=batch_invariant,
    )


def side_by_side(
    x: Tensor, weight: Tensor, scales: Tensor, alpha_gate: Tensor, alpha_up: Tensor, batch_invariant: bool
) -> Tensor:
    """Both products without the activation, [..., 2N]: for code that calls the merged layer by itself."""
    n = weight.shape[0] // 2
    return torch.cat(
        [
            linear(x, weight[part], w_scales=scales[part], alpha=alpha, batch_invariant=batch_invariant)
            for part, alpha in ((slice(0, n), alpha_gate), (slice(n, None), alpha_up))
        ],
        -1,
    )
