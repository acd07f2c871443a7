"""Hadamard matrices in front of a layer: the function, the quantiser, the modules, and checkpoints whose config asks for them."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest
import reference
import torch
from operands import DEVICE, as_numpy, dg, same_bits


def sylvester(size: int) -> torch.Tensor:
    """compressed-tensors' deterministic_hadamard_matrix(), in double."""
    matrix = torch.ones(1, 1, dtype=torch.float64, device=DEVICE)
    while matrix.shape[0] < size:
        matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)])
    return matrix


def rotated(x: torch.Tensor, size: int) -> torch.Tensor:
    """As its apply_transform_weight() does, in double."""
    blocks = x.double().unflatten(-1, (-1, size))
    return (blocks @ sylvester(size) / size**0.5).flatten(-2)


@pytest.mark.parametrize("size", [16, 32, 64, 128, 256])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_product_with_the_matrix(size: int, dtype: torch.dtype) -> None:
    x = torch.randn(3, 5, 512, generator=torch.Generator(DEVICE).manual_seed(size)).to(dtype)
    got = dg.transform_rows(x, hadamard=size)
    assert got.dtype == dtype and got.shape == x.shape
    want = rotated(x, size)
    # One rounding an addition and two of the product, of the sum of magnitudes; one to the dtype.
    magnitude = x.double().abs().unflatten(-1, (-1, size)).sum(-1, keepdim=True).expand(3, 5, -1, size).flatten(-2)
    bound = (size.bit_length() + 2) * 2.0**-24 * magnitude / size**0.5 + torch.finfo(dtype).eps / 2 * want.abs() + 1e-8
    assert ((got.double() - want).abs() <= bound).all()


@pytest.mark.parametrize("per_row", [False, True])
def test_the_quantiser_transforms_first(per_row: bool) -> None:
    x = torch.randn(7, 384, generator=torch.Generator(DEVICE).manual_seed(2)).to(torch.bfloat16)
    factors = torch.rand(384, generator=torch.Generator(DEVICE).manual_seed(3)) + 0.5
    got = dg.quantize(x, per_row=per_row, column_factors=factors, hadamard=128)
    changed = dg.transform_rows((x.float() * factors).to(x.dtype), hadamard=128)
    assert same_bits(dg.transform_rows(x, column_factors=factors, hadamard=128), changed)
    want = dg.quantize(changed, per_row=per_row)
    assert all(same_bits(one, other) for one, other in zip(got, want))
    again = dg.QuantizedTensor(*(torch.empty_like(one) for one in want))
    dg.quantize(x, per_row=per_row, column_factors=factors, hadamard=128, out=again)
    assert all(same_bits(one, other) for one, other in zip(again, want))


def test_compiled_and_mapped() -> None:
    x = torch.randn(4, 3, 64, device=DEVICE)
    want = dg.transform_rows(x, hadamard=32)
    compiled = torch.compile(lambda rows: dg.transform_rows(rows, hadamard=32), fullgraph=True, backend="aot_eager")
    assert same_bits(compiled(x), want)
    assert same_bits(torch.func.vmap(lambda rows: dg.transform_rows(rows, hadamard=32))(x), want)


def test_what_is_refused() -> None:
    x = torch.randn(2, 96, device=DEVICE)
    for size in (-16, 8, 24, 64, 512):
        with pytest.raises(dg.InvalidArgument, match="hadamard"):
            dg.transform_rows(x, hadamard=size)
        with pytest.raises(dg.InvalidArgument, match="hadamard"):
            dg.quantize(x, hadamard=size)
    with pytest.raises(dg.InvalidArgument, match="hadamard"):
        dg.transform_rows(x, hadamard=True)
    with pytest.raises(dg.InvalidArgument, match="column_factors"):
        dg.transform_rows(x, column_factors=torch.ones(95, device=DEVICE))
    with pytest.raises(dg.InvalidArgument, match="multiple of 16"):
        dg.transform_rows(x[:, :90])
    linear = dg.nn.NVFP4Linear(96, 32, device=DEVICE)
    for wrong in (64, 24, -32):
        with pytest.raises(dg.InvalidArgument, match="divide the 96 columns"):
            linear.set_hadamard(wrong)


@pytest.mark.parametrize("input_dtype", ["bf16", "nvfp4"])
def test_modules_transform_their_input(input_dtype: Any) -> None:
    torch.manual_seed(4)
    linear = dg.nn.NVFP4Linear.from_float(torch.nn.Linear(128, 48), input_dtype=input_dtype).to(DEVICE)
    x = torch.randn(5, 128, device=DEVICE, dtype=torch.bfloat16)
    want = linear(dg.transform_rows(x, hadamard=64))
    assert same_bits(linear.set_hadamard(64)(x), want)
    assert not same_bits(linear.set_hadamard(0)(x), want)


@pytest.mark.parametrize("input_dtype", ["bf16", "nvfp4"])
def test_down_of_a_gated_mlp(input_dtype: Any) -> None:
    torch.manual_seed(4)

    class Float(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate_proj, self.up_proj = torch.nn.Linear(64, 128, bias=False), torch.nn.Linear(64, 128, bias=False)
            self.down_proj = torch.nn.Linear(128, 64, bias=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.down_proj(torch.nn.functional.silu(self.gate_proj(x)) * self.up_proj(x))

    mlp = dg.GatedMLP.from_float(Float(), quantize_down=True, input_dtype=input_dtype).to(DEVICE)
    x = torch.randn(6, 64, device=DEVICE, dtype=torch.bfloat16)
    inner, mlp.down = mlp.down, torch.nn.Identity()
    h = mlp(x)
    mlp.down = inner.set_hadamard(32)
    want = inner.set_hadamard(0)(dg.transform_rows(h, hadamard=32))
    inner.set_hadamard(32)
    assert same_bits(mlp(x), want)
    assert same_bits(mlp.finalize()(x), want)


# ---- checkpoints ------------------------------------------------------------------------------------------------------------

R4 = {
    "type": "hadamard",
    "head_dim": 64,
    "randomize": False,
    "requires_grad": False,
    "precision": "torch.float32",
    "apply": [
        {"targets": ["re:.*down_proj$"], "location": "input", "inverse": False, "ignore": []},
        {"targets": ["re:.*down_proj$"], "location": "weight_input", "inverse": True, "ignore": []},
    ],
}


def llama() -> Any:
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    torch.manual_seed(6)
    config = transformers.LlamaConfig(
        hidden_size=128,
        intermediate_size=192,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=96,
        tie_word_embeddings=False,
    )
    return transformers.LlamaForCausalLM(config).float().eval()


def write(model: Any, folder: pathlib.Path, group: Any = R4, holds_matrix: bool = True, w4a4: bool = False) -> None:
    """MLPs in NVFP4, down's columns rotated; the model gets what is written and rotates down's input."""
    safetensors = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
    tensors = {}
    for name, value in list(model.state_dict().items()):
        module = name.removesuffix(".weight")
        if not module.endswith("_proj") or ".mlp." not in module:
            tensors[name] = value
            continue
        is_down = module.endswith("down_proj")
        made = dg.quantize((rotated(value, 64).float() if is_down else value).contiguous())
        exact = torch.from_numpy(reference.decode(as_numpy(made.codes), as_numpy(made.scales))) * made.global_scale.double()
        with torch.no_grad():
            value.copy_(exact)
        tensors |= {
            f"{module}.weight_packed": made.codes,
            f"{module}.weight_scale": made.scales,
            f"{module}.weight_global_scale": (1 / made.global_scale).reshape(1),
        }
        if w4a4:
            tensors[f"{module}.input_global_scale"] = torch.tensor([672.0])
        if is_down and holds_matrix:  # tied in the package: the first layer's alone
            tensors[f"{module}.R4_input.weight"] = sylvester(64).float()
            holds_matrix = False
    for layer in model.model.layers:
        layer.mlp.down_proj.register_forward_pre_hook(lambda _, args: rotated(args[0], 64).float())
    folder.mkdir(exist_ok=True)
    safetensors.save_file({name: t.contiguous().clone() for name, t in tensors.items()}, str(folder / "model.safetensors"))
    config = json.loads(model.config.to_json_string())
    four = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16}
    inputs = four | {"dynamic": "local"} if w4a4 else None
    config["quantization_config"] = {
        "quant_method": "compressed-tensors",
        "format": "nvfp4-pack-quantized",
        "config_groups": {"group_0": {"targets": ["re:.*mlp.*_proj$"], "weights": four, "input_activations": inputs}},
        "transform_config": {"config_groups": {"R4": group}},
    }
    (folder / "config.json").write_text(json.dumps(config))


def loader() -> Any:
    pytest.importorskip("transformers", reason="transformers is not installed")
    if DEVICE != "cpu":
        pytest.skip("float32 activations: a CPU's")
    from dualgemm.integrations.transformers import load

    return load


@pytest.mark.parametrize("holds_matrix", [False, True])
def test_a_model_answers(holds_matrix: bool, tmp_path: pathlib.Path) -> None:
    load = loader()
    model = llama()
    write(model, tmp_path / "m", holds_matrix=holds_matrix)
    loaded = load(tmp_path / "m", dtype=torch.float32)
    tokens = torch.randint(0, 96, (2, 9), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        want, got = model(tokens).logits, loaded(tokens).logits
        assert (got - want).abs().max() < 2e-4 * want.abs().max()
    assert loaded.model.layers[1].mlp.down.hadamard == 64
    loaded.save_pretrained(tmp_path / "again")
    with torch.no_grad():
        assert same_bits(load(tmp_path / "again", dtype=torch.float32)(tokens).logits, got)
    with dg.open_checkpoint(tmp_path / "m") as checkpoint:
        sizes = {layer.module: layer.hadamard for layer in checkpoint.linear_layers() if ".mlp." in layer.module}
        assert sizes["model.layers.0.mlp.down_proj"] == 64 and sizes["model.layers.0.mlp.up_proj"] == 0 and len(sizes) == 6
        assert checkpoint.down_hadamard("model.layers.0.mlp") == 64 and checkpoint.hadamard("model.layers.0.mlp") == 0
        with pytest.raises(dg.Unsupported, match="rotated by 64 columns"):
            checkpoint.down("model.layers.0.mlp", pre_quant_scale=True)


def test_four_bit_activations(tmp_path: pathlib.Path) -> None:
    load = loader()
    model = llama()
    write(model, tmp_path / "m", w4a4=True)
    loaded = load(tmp_path / "m", dtype=torch.float32, input_dtype="nvfp4")
    down = loaded.model.layers[0].mlp.down
    assert down.input_dtype == "nvfp4" and down.hadamard == 64 and down.output_scale is None
    tokens = torch.randint(0, 96, (2, 9), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        want, got = model(tokens).logits, loaded(tokens).logits
    assert (got - want).norm() < 0.2 * want.norm()


def test_other_matrices_and_places_are_refused(tmp_path: pathlib.Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
    load = loader()
    write(llama(), tmp_path / "m", {**R4, "randomize": True})
    with pytest.raises(dg.Unsupported, match="randomize"):
        load(tmp_path / "m")
    write(llama(), tmp_path / "m", {**R4, "type": "random-hadamard"})
    with pytest.raises(dg.Unsupported, match="random-hadamard"):
        load(tmp_path / "m")
    write(llama(), tmp_path / "m")
    tensors = safetensors.load_file(tmp_path / "m" / "model.safetensors")
    tensors["model.layers.0.mlp.down_proj.R4_input.weight"][3, 5] *= -1
    safetensors.save_file(tensors, tmp_path / "m" / "model.safetensors")
    with pytest.raises(dg.Unsupported, match=r"at \[3, 5\]"):
        load(tmp_path / "m")
    everywhere = {**R4, "apply": [{"targets": ["Linear"], "location": "input"}]}
    write(llama(), tmp_path / "m", everywhere)
    with pytest.raises(dg.Unsupported, match="float, its input rotated by 64 columns"):
        load(tmp_path / "m")
