"""Checkpoints, opened and mapped: what their layers are, and their weights as containers."""

from __future__ import annotations

import ctypes
import os
import re
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from ctypes import byref, c_float, c_int32, c_int64, c_void_p
from typing import Any, NamedTuple, Optional, TypeVar, Union

import torch
from torch import Tensor, nn

from . import _library as library
from ._arguments import checked
from ._errors import FileError, InvalidArgument, Unsupported, printable
from ._structs import Buffers, LayerInfo, LinearInfo, MatrixInfo, Problem
from .weights import LinearWeights, Weights

_FLAGS = {"up_first": 1, "max_input_scale": 2, "allow_nan": 4, "pre_quant_scale": 8, "hadamard": 16}
_TYPES = {1: torch.float16, 2: torch.bfloat16, 3: torch.float32}
_ONE_LAYER = -1
_Container = TypeVar("_Container", Weights, LinearWeights)


def _mapped(address: int, dtype: torch.dtype, *shape: int) -> Tensor:
    """What lies at an address: read-only, and only as long as its owner is there."""
    count = 1
    for size in shape:
        count *= size
    bytes_of_one = torch.empty(0, dtype=dtype).element_size()
    return torch.frombuffer((ctypes.c_uint8 * (count * bytes_of_one)).from_address(address), dtype=dtype).view(shape)


def _scales(address: int, n: int, k: int, layout: int) -> Tensor:
    shape = (n, k // 16) if layout == 0 else (-(-n // 128) * -(-k // 64) * 512,)
    return _mapped(address, torch.float8_e4m3fn, *shape)


class LinearLayer(NamedTuple):
    """A linear layer of any format: what its tensors are, and what the configs beside them say of it."""

    module: str
    n: int
    k: int
    experts: int  # > 0: its tensors hold so many matrices
    bytes: int  # of its data and scales in the files
    format: str  # float, nvfp4, mxfp4, fp8, mxfp8, other
    granularity: str  # of its scales: tensor, channel, block, group; "": none
    block: tuple[int, int]  # rows and columns of a block; (0, columns) of a group
    activations: str  # none, static, dynamic, local
    description: str  # of "other"
    contradiction: str  # what the config says instead; the tensors count
    hadamard: int  # by so many columns its input is rotated while the model runs; 0: it is not


class _Owned:
    """A handle of the C interface and what frees it."""

    def __init__(self, handle: c_void_p, free: Any) -> None:
        self.handle = handle
        self._finalizer = weakref.finalize(self, free, handle)

    def close(self) -> None:
        self._finalizer()


class Checkpoint:
    """An open checkpoint; files are mapped, not read. open_checkpoint() makes it; ``with`` or close() ends it."""

    @checked
    def __init__(self, path: Union[str, os.PathLike[str]], *, allow_nan: bool = False) -> None:
        self._c = library.checkpoint_library()
        if not isinstance(path, (str, bytes, os.PathLike)):
            raise InvalidArgument("path", type(path).__name__, "must be a path")
        try:
            name = os.fsencode(path)
        except UnicodeEncodeError:
            name = b"\0"
        if b"\0" in name:  # the system takes a name to its first zero
            raise InvalidArgument("path", repr(path), "must be a path that the system can have")
        self.path = os.fspath(path)
        self.allow_nan = allow_nan
        handle = c_void_p()
        self._check(self._c.dualgemm_checkpoint_open(name, byref(handle)))
        self._owned: Optional[_Owned] = _Owned(handle, self._c.dualgemm_checkpoint_close)
        count = self._c.dualgemm_checkpoint_layer_count(handle)
        self._layers = {
            self._c.dualgemm_checkpoint_layer_name(handle, c_int64(index)).decode(): int(
                self._c.dualgemm_checkpoint_layer_experts(handle, c_int64(index))
            )
            for index in range(count)
        }

    @staticmethod
    def _check(status: int) -> None:
        try:
            library.check(status)
        except InvalidArgument as error:  # the command's options have other names here
            raise InvalidArgument(error.argument, error.observed, error.rule.replace("--expert 0", "expert=0")) from None
        except FileError as error:
            rule = error.rule.replace("--max-input-scale (LayerOptions::max_input_scale)", "max_input_scale=True")
            raise FileError(error.argument, error.observed, rule.replace("--allow-nan (allow_nan)", "allow_nan=True")) from None

    @property
    def _handle(self) -> c_void_p:
        if self._owned is None:
            raise InvalidArgument("checkpoint", "closed", "must be open")
        return self._owned.handle

    def close(self) -> None:
        """What it gave stays."""
        if self._owned is not None:
            self._owned.close()
            self._owned = None

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<dualgemm.Checkpoint {printable(self.path)}, {len(self._layers)} layers>"

    def __reduce__(self) -> Any:
        return _reopened, (self.path, self.allow_nan)

    def layers(self) -> Iterator[str]:
        """Every gated MLP layer's prefix, sorted; experts that are modules of their own are layers of their own."""
        return iter(self._layers)

    def expert_layers(self) -> list[str]:
        """Prefixes of layers that have experts: what weights() stacks."""
        parents = {name.rpartition(".")[0] for name in self._layers if re.search(r"experts\.\d+$", name)}
        return sorted(parents | {name for name, experts in self._layers.items() if experts})

    def linear_layers(self) -> list[LinearLayer]:
        """Every linear layer, sorted by module; embeddings, norms and convolutions are none.

        Formats are those of the tensors; config.json and hf_quant_config.json beside them say the activations. FileError: a
        config that breaks its format. Unsupported: one that asks for what is not computed, as most transforms of activations.
        """
        handle = c_void_p()
        self._check(self._c.dualgemm_checkpoint_list_linears(self._handle, byref(handle)))
        owned = _Owned(handle, self._c.dualgemm_checkpoint_linears_free)
        layers = []
        for index in range(self._c.dualgemm_checkpoint_linears_count(handle)):
            info = LinearInfo(struct_size=ctypes.sizeof(LinearInfo))
            self._check(self._c.dualgemm_checkpoint_linears_get_info(handle, c_int64(index), byref(info)))
            texts = (info.format, info.granularity, info.activations, info.description, info.contradiction)
            kind, granularity, activations, description, contradiction = (text.decode(errors="replace") for text in texts)
            layers.append(
                LinearLayer(
                    info.module.decode(errors="replace"),
                    info.n,
                    info.k,
                    info.experts,
                    info.bytes,
                    kind,
                    granularity,
                    (info.block_rows, info.block_cols),
                    activations,
                    description,
                    contradiction,
                    int(info.hadamard),
                )
            )
        owned.close()
        return layers

    @checked
    def experts(self, prefix: str) -> int:
        """How many experts the layer has; 0: it is one."""
        if self._layers.get(prefix) == 0:
            return 0
        count = c_int64()
        self._check(self._c.dualgemm_checkpoint_count_experts(self._handle, prefix.encode(), byref(count)))
        return count.value

    def _numbers(self, prefix: str, expert: Optional[int]) -> list[int]:
        """Which experts are meant: [-1] for a layer that is one; see _stacks."""
        if expert is not None:
            if expert < 0:
                raise InvalidArgument("expert", str(expert), "must be a number from 0")
            return [expert]
        if self._layers.get(prefix) == 0:
            return [_ONE_LAYER]
        try:
            return list(range(self.experts(prefix)))
        except FileError:
            return [_ONE_LAYER]  # load says what is near

    def _flags(self, allow_nan: bool, **flags: bool) -> int:
        wanted = {"allow_nan": allow_nan or self.allow_nan, **flags}
        return sum(_FLAGS[name] for name, given in wanted.items() if given)

    def _load(self, prefix: str, expert: int, flags: int) -> _Owned:
        layer = c_void_p()
        self._check(
            self._c.dualgemm_checkpoint_load(self._handle, prefix.encode(), c_int64(expert), c_int32(flags), byref(layer))
        )
        return _Owned(layer, self._c.dualgemm_checkpoint_layer_free)

    def _layer_weights(self, prefix: str, expert: int, flags: int) -> tuple[Weights, _Owned]:
        """Mapped, to be copied before the second goes."""
        owned = self._load(prefix, expert, flags)
        problem, buffers = library.new(Problem, "problem"), library.new(Buffers, "buffers")
        self._check(self._c.dualgemm_checkpoint_layer_apply(owned.handle, c_float(1.0), byref(problem), byref(buffers)))
        n, k = problem.n, problem.k
        parts = [
            (_mapped(codes, torch.uint8, n, k // 2), _scales(scales, n, k, matrix.scale_layout))
            for codes, scales, matrix in (
                (buffers.gate, buffers.gate_scales, problem.gate),
                (buffers.up, buffers.up_scales, problem.up),
            )
        ]
        biases = [_mapped(bias, torch.float32, n) if bias else None for bias in (buffers.bias_gate, buffers.bias_up)]
        (gate, gate_scales), (up, up_scales) = parts
        return Weights.from_tensors(
            gate,
            gate_scales,
            up,
            up_scales,
            alpha_gate=buffers.alpha_gate,
            alpha_up=buffers.alpha_up,
            bias_gate=biases[0],
            bias_up=biases[1],
            prepare=False,
        ), owned

    @checked
    def weights(
        self,
        prefix: str,
        *,
        expert: Optional[int] = None,
        device: Any = "cpu",
        shard: Optional[tuple[int, int]] = None,
        prepare: bool = True,
        keep_original: bool = False,
        a_dtype: torch.dtype = torch.bfloat16,
        order: str = "gate_up",
        max_input_scale: bool = False,
        allow_nan: bool = False,
        pre_quant_scale: bool = False,
        hadamard: bool = False,
    ) -> Weights:
        """Gate and up of a layer; of one with experts all, [E, ...], or ``expert``. Alphas are the global scales of the
        weights: activations in NVFP4 bring theirs, input_scale(prefix) or their own.

        shard: (rank, world_size), rows. order: "gate_up" or "up_gate", of a tensor that stacks both. max_input_scale: gate
        and up that were calibrated differently share the larger input scale. allow_nan: scales that are NaN or infinite are
        taken as they are, not refused. pre_quant_scale, hadamard: the caller changes the input as transform_rows() does with
        pre_quant_scale(prefix) and hadamard(prefix); without them a layer that wants it is Unsupported. Raises
        FileError, Unsupported, InvalidArgument.
        """
        if shard is not None and not (isinstance(shard, (tuple, list)) and len(shard) == 2):
            raise InvalidArgument("shard", type(shard).__name__, "must be (rank, world_size)")
        if order not in ("gate_up", "up_gate"):
            raise InvalidArgument("order", repr(order), "must be gate_up or up_gate")
        flags = self._flags(
            allow_nan,
            up_first=order == "up_gate",
            max_input_scale=max_input_scale,
            pre_quant_scale=pre_quant_scale,
            hadamard=hadamard,
        )

        def part(number: int) -> tuple[Weights, _Owned]:
            weights, owned = self._layer_weights(prefix, number, flags)
            return (weights if shard is None else weights.shard(*shard)), owned

        numbers = self._numbers(prefix, expert)
        return _gathered(part, numbers, _stacks(numbers, expert), Weights, device, prepare, keep_original, a_dtype)

    @checked
    def input_scale(
        self, prefix: str, *, expert: Optional[int] = None, max_input_scale: bool = False, allow_nan: bool = False
    ) -> Optional[float]:
        """The calibrated global scale of the layer's input, a dequantising multiplier; None: there is none. For experts, the
        largest of theirs."""
        flags = self._flags(allow_nan, max_input_scale=max_input_scale, pre_quant_scale=True, hadamard=True)
        scales = [float(self._layer_info(prefix, number, flags)[0].input_scale) for number in self._numbers(prefix, expert)]
        return max(scales) if all(scales) else None

    def _layer_info(self, prefix: str, expert: int, flags: int) -> tuple[LayerInfo, _Owned]:
        info, layer = LayerInfo(struct_size=ctypes.sizeof(LayerInfo)), self._load(prefix, expert, flags)
        self._check(self._c.dualgemm_checkpoint_layer_get_info(layer.handle, byref(info)))
        return info, layer

    @checked
    def pre_quant_scale(self, prefix: str, *, expert: Optional[int] = None, allow_nan: bool = False) -> Optional[Tensor]:
        """AWQ's factors of the columns of the layer's input, float32 [K]; None: there are none. All experts of a layer must
        have the same: Unsupported."""
        flags = self._flags(allow_nan, max_input_scale=True, pre_quant_scale=True, hadamard=True)
        return _one_factor_each(prefix, (self._layer_info(prefix, number, flags) for number in self._numbers(prefix, expert)))

    @checked
    def hadamard(self, prefix: str, *, expert: Optional[int] = None, allow_nan: bool = False) -> int:
        """The size of the Hadamard matrices by which the model's config.json has the layer's input rotated; 0: none."""
        flags = self._flags(allow_nan, max_input_scale=True, pre_quant_scale=True, hadamard=True)
        infos = (self._layer_info(prefix, number, flags)[0] for number in self._numbers(prefix, expert))
        return _one_size(prefix, (info.hadamard for info in infos))

    def _matrix(
        self, load: Any, name: str, expert: int, allow_nan: bool, pre_quant_scale: bool = True, hadamard: bool = True
    ) -> tuple[MatrixInfo, _Owned]:
        handle, info = c_void_p(), MatrixInfo(struct_size=ctypes.sizeof(MatrixInfo))
        flags = self._flags(allow_nan, pre_quant_scale=pre_quant_scale, hadamard=hadamard)
        self._check(load(self._handle, name.encode(), c_int64(expert), c_int32(flags), byref(handle)))
        owned = _Owned(handle, self._c.dualgemm_checkpoint_matrix_free)
        self._check(self._c.dualgemm_checkpoint_matrix_get_info(handle, byref(info)))
        return info, owned

    def _linear(
        self,
        load: Any,
        name: str,
        numbers: list[int],
        stacks: bool,
        device: Any,
        prepare: bool,
        keep_original: bool,
        a_dtype: torch.dtype,
        *asked: bool,
    ) -> Union[LinearWeights, nn.Linear]:
        info, owned = self._matrix(load, name, numbers[0], *asked)
        if info.type in _TYPES:
            if stacks:
                raise Unsupported(name, f"experts in {_TYPES[info.type]}", "must be NVFP4; `dualgemm quantize` makes it")
            weight = _mapped(info.data, _TYPES[info.type], info.n, info.k)
            return _plain_linear(weight, _mapped(info.bias, torch.float32, info.n) if info.bias else None, device)

        def part(number: int) -> tuple[LinearWeights, _Owned]:
            found, owner = self._matrix(load, name, number, *asked)
            if found.type in _TYPES:
                raise Unsupported(f"{name}, expert {number}", str(_TYPES[found.type]), "must be NVFP4 as the others")
            return _linear_weights(found), owner

        del owned
        return _gathered(part, numbers, stacks, LinearWeights, device, prepare, keep_original, a_dtype)

    @checked
    def down(
        self,
        prefix: str,
        *,
        expert: Optional[int] = None,
        device: Any = "cpu",
        prepare: bool = True,
        keep_original: bool = False,
        a_dtype: torch.dtype = torch.bfloat16,
        allow_nan: bool = False,
        pre_quant_scale: bool = False,
        hadamard: bool = False,
    ) -> Union[LinearWeights, nn.Linear]:
        """Down of the same layer: LinearWeights, or an nn.Linear of the file's dtype where it was left unquantised.
        allow_nan, pre_quant_scale and hadamard: as weights(), for down_pre_quant_scale(prefix) and down_hadamard(prefix)."""
        numbers = self._numbers(prefix, expert)
        return self._linear(
            self._c.dualgemm_checkpoint_load_down_flags,
            prefix,
            numbers,
            _stacks(numbers, expert),
            device,
            prepare,
            keep_original,
            a_dtype,
            allow_nan,
            pre_quant_scale,
            hadamard,
        )

    @checked
    def linear(
        self,
        name: str,
        *,
        device: Any = "cpu",
        prepare: bool = True,
        keep_original: bool = False,
        a_dtype: torch.dtype = torch.bfloat16,
        allow_nan: bool = False,
        pre_quant_scale: bool = False,
        hadamard: bool = False,
    ) -> Union[LinearWeights, nn.Linear]:
        """Any linear layer by the name of its module, "model.layers.0.self_attn.q_proj"; as down(), for
        linear_pre_quant_scale(name) and linear_hadamard(name)."""
        return self._linear(
            self._c.dualgemm_checkpoint_load_matrix_flags,
            name,
            [_ONE_LAYER],
            False,
            device,
            prepare,
            keep_original,
            a_dtype,
            allow_nan,
            pre_quant_scale,
            hadamard,
        )

    @checked
    def linears(self, names: Sequence[str], *, device: Any = "cpu", prepare: bool = True, **kw: Any) -> LinearWeights:
        """Linear layers of one shape as [E, ...]: experts that are modules of their own. kw: as linear()."""
        asked = [bool(kw.pop(flag, False)) for flag in ("allow_nan", "pre_quant_scale", "hadamard")]
        load = self._c.dualgemm_checkpoint_load_matrix_flags
        first: list[MatrixInfo] = []

        def part(number: int) -> tuple[LinearWeights, _Owned]:
            found, owned = self._matrix(load, names[number], _ONE_LAYER, *asked)
            if found.type in _TYPES:
                raise Unsupported(names[number], str(_TYPES[found.type]), "experts must be NVFP4; `dualgemm quantize` makes it")
            first.append(found)
            if (found.n, found.k) != (first[0].n, first[0].k):
                raise FileError(names[number], f"{found.n} x {found.k}", "all experts must have the same shape")
            return _linear_weights(found), owned

        numbers = list(range(len(names)))
        return _gathered(
            part, numbers, True, LinearWeights, device, prepare, bool(kw.pop("keep_original", False)), torch.bfloat16
        )

    @checked
    def down_input_scale(self, prefix: str, *, expert: Optional[int] = None, allow_nan: bool = False) -> Optional[float]:
        """That of what goes into down; of experts the largest."""
        load = self._c.dualgemm_checkpoint_load_down_flags
        scales = [
            float(self._matrix(load, prefix, number, allow_nan)[0].input_scale) for number in self._numbers(prefix, expert)
        ]
        return max(scales) if all(scales) else None

    @checked
    def linear_input_scale(self, name: str, *, allow_nan: bool = False) -> Optional[float]:
        """That of what goes into a linear layer."""
        load = self._c.dualgemm_checkpoint_load_matrix_flags
        return float(self._matrix(load, name, _ONE_LAYER, allow_nan)[0].input_scale) or None

    @checked
    def down_pre_quant_scale(self, prefix: str, *, expert: Optional[int] = None, allow_nan: bool = False) -> Optional[Tensor]:
        """As pre_quant_scale(), of what goes into down."""
        load = self._c.dualgemm_checkpoint_load_down_flags
        return _one_factor_each(prefix, (self._matrix(load, prefix, one, allow_nan) for one in self._numbers(prefix, expert)))

    @checked
    def linear_pre_quant_scale(self, name: str, *, allow_nan: bool = False) -> Optional[Tensor]:
        """As pre_quant_scale(), of what goes into a linear layer."""
        load = self._c.dualgemm_checkpoint_load_matrix_flags
        return _one_factor_each(name, [self._matrix(load, name, _ONE_LAYER, allow_nan)])

    @checked
    def down_hadamard(self, prefix: str, *, expert: Optional[int] = None, allow_nan: bool = False) -> int:
        """As hadamard(), of what goes into down."""
        load = self._c.dualgemm_checkpoint_load_down_flags
        infos = (self._matrix(load, prefix, one, allow_nan)[0] for one in self._numbers(prefix, expert))
        return _one_size(prefix, (info.hadamard for info in infos))

    @checked
    def linear_hadamard(self, name: str, *, allow_nan: bool = False) -> int:
        """As hadamard(), of what goes into a linear layer."""
        load = self._c.dualgemm_checkpoint_load_matrix_flags
        return int(self._matrix(load, name, _ONE_LAYER, allow_nan)[0].hadamard)


def _one_size(name: str, sizes: Iterable[Any]) -> int:
    """The rotation of an input, which all of a layer's experts must have in common."""
    found = sorted(set(map(int, sizes)))
    if len(found) > 1:
        raise Unsupported(name, f"experts whose inputs are rotated by {found} columns", "all must have the same")
    return found[0]


def _one_factor_each(name: str, layers: Iterable[tuple[Union[LayerInfo, MatrixInfo], _Owned]]) -> Optional[Tensor]:
    """Factors of the columns of an input, which all of a layer's experts must have in common."""
    first: Optional[Tensor] = None
    for number, (info, owned) in enumerate(layers):
        found = _mapped(info.pre_quant_scale, torch.float32, info.k).clone() if info.pre_quant_scale else None
        if number == 0:
            first = found
        elif (found is None) != (first is None) or (found is not None and first is not None and not torch.equal(found, first)):
            raise Unsupported(name, f"expert {number} has another pre_quant_scale", "all experts must have the same")
        del owned
    return first


def _linear_weights(found: MatrixInfo) -> LinearWeights:
    """Mapped, to be copied before the matrix goes."""
    return LinearWeights.from_tensors(
        _mapped(found.data, torch.uint8, found.n, found.k // 2),
        _scales(found.scales, found.n, found.k, found.scale_layout),
        alpha=found.global_scale,
        bias=_mapped(found.bias, torch.float32, found.n) if found.bias else None,
        prepare=False,
    )


def _stacks(numbers: list[int], expert: Optional[int]) -> bool:
    """Do all experts of a layer go into one tensor?"""
    return expert is None and numbers[0] != _ONE_LAYER


def _plain_linear(weight: Tensor, bias: Optional[Tensor], device: Any) -> nn.Linear:
    made = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, device="meta")
    made.weight = nn.Parameter(weight.to(device, copy=True), requires_grad=False)
    if bias is not None:
        made.bias = nn.Parameter(bias.to(device, weight.dtype, copy=True), requires_grad=False)
    return made


def _gathered(
    part: Callable[[int], tuple[_Container, _Owned]],
    numbers: list[int],
    stacks: bool,
    kind: type[_Container],
    device: Any,
    prepare: bool,
    keep_original: bool,
    a_dtype: torch.dtype,
) -> _Container:
    """One layer, or its experts stacked, copied out of the mapped files."""
    tensors: dict[str, Tensor] = {}
    for index, number in enumerate(numbers):
        weights, owned = part(number)
        for name, tensor in weights._tensors.items():
            if not stacks:
                tensors[name] = tensor.to(device, copy=True)
                continue
            if index == 0:
                sizes: list[int] = list(tensor.shape[1:] if name in kind._factors else tensor.shape)
                tensors[name] = torch.empty([len(numbers), *sizes], dtype=tensor.dtype, device=device)
            if name not in tensors or tensors[name][0].numel() != tensor.numel():
                raise FileError(
                    f"expert {number}",
                    f"{name} of {tensor.numel()} values",
                    "all experts of a layer must have the same tensors",
                )
            tensors[name][index].view(-1).view(torch.uint8).copy_(tensor.reshape(-1).view(torch.uint8))
        shape = weights._shape
        del owned
    made = kind(tensors, shape._replace(experts=len(numbers) if stacks else 0), a_dtype)
    return made.prepare(keep_original=keep_original) if prepare else made


def open_checkpoint(path: Union[str, os.PathLike[str]], *, allow_nan: bool = False) -> Checkpoint:
    """A .safetensors or .gguf file, a *.safetensors.index.json, or a folder (a snapshot of the Hub) that holds one. Memory
    mapped: it must not be cut short while it is open. allow_nan: as weights(), for all that is read from it. FileError:
    missing, or not of that format."""
    return Checkpoint(path, allow_nan=allow_nan)


def _reopened(path: str, allow_nan: bool) -> Checkpoint:
    return Checkpoint(path, allow_nan=allow_nan)
