"""Whole models from checkpoints as people download them: writes a small one with random weights, validates it, loads it, and
compares logits and greedy tokens with those of the same model with exactly decoded weights.

    python examples/python/whole_models.py qwen3_moe [--device cuda] [--dtype bfloat16] [--folder DIR]
    python examples/python/whole_models.py --list

Needs torch, transformers, safetensors and this package. What is written has the tensors' names of its real writers: ModelOpt's or
compressed-tensors' NVFP4, FP8 for each row, gpt-oss's MXFP4.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import dualgemm as dg
import torch
import transformers
from dualgemm.integrations.transformers import load
from safetensors.torch import save_file

SMALL = dict(hidden_size=64, num_attention_heads=4, num_key_value_heads=2, vocab_size=128, tie_word_embeddings=False)
DENSE = dict(SMALL, intermediate_size=96, num_hidden_layers=2)
MOE = dict(DENSE, moe_intermediate_size=96, num_experts_per_tok=2, head_dim=16)


def llama() -> Any:
    return transformers.LlamaConfig(**DENSE)


def qwen3() -> Any:
    return transformers.Qwen3Config(**DENSE, head_dim=16)


def qwen3_mixed() -> Any:
    return transformers.Qwen3Config(**DENSE, head_dim=16)


def qwen3_moe() -> Any:
    return transformers.Qwen3MoeConfig(**MOE, num_experts=4, decoder_sparse_step=1, mlp_only_layers=[])


def mixtral() -> Any:
    return transformers.MixtralConfig(**DENSE, num_local_experts=4, num_experts_per_tok=2)


def gpt_oss() -> Any:
    kinds = ["full_attention", "full_attention"]
    return transformers.GptOssConfig(**DENSE, head_dim=16, num_local_experts=4, num_experts_per_tok=2, layer_types=kinds)


def deepseek_v3() -> Any:
    sizes = dict(MOE, num_key_value_heads=4, n_routed_experts=4, n_group=1, topk_group=1, first_k_dense_replace=1)
    heads = dict(q_lora_rank=32, kv_lora_rank=32, qk_rope_head_dim=16, qk_nope_head_dim=16, v_head_dim=16)
    sizes.pop("head_dim")
    return transformers.DeepseekV3Config(**sizes, **heads)


def llama4() -> Any:
    sizes = dict(DENSE, intermediate_size_mlp=128, head_dim=16, num_local_experts=4, num_experts_per_tok=1)
    return transformers.Llama4TextConfig(**sizes, interleave_moe_layer_step=2)


def nemotron_h() -> Any:
    sizes = dict(
        DENSE, moe_intermediate_size=96, moe_shared_expert_intermediate_size=96, n_routed_experts=4, n_group=1, head_dim=16
    )
    mamba = dict(mamba_num_heads=4, mamba_head_dim=32, ssm_state_size=16, n_groups=1, chunk_size=16)
    sizes.pop("num_hidden_layers")
    kinds = ["mamba", "moe", "full_attention", "moe"]
    return transformers.NemotronHConfig(**sizes, **mamba, topk_group=1, num_experts_per_tok=2, layers_block_type=kinds)


# Architecture: how its linear layers are stored, by the end of their names; others stay floats.
MLP = {f"{part}_proj": "nvfp4" for part in ("gate", "up", "down")}
FORMS: dict[Any, dict[str, str]] = {
    llama: MLP | {f"{part}_proj": "nvfp4" for part in "qkvo"},
    qwen3: MLP,
    qwen3_mixed: MLP
    | {f"{part}_proj": "fp8" for part in "qkvo"}
    | {f"layers.1.mlp.{part}_proj": "fp8" for part in ("gate", "up", "down")},
    qwen3_moe: MLP,
    mixtral: MLP,
    gpt_oss: MLP,
    deepseek_v3: MLP,
    llama4: MLP,
    nemotron_h: MLP,
}
GROUPS = {
    "format": "mixed-precision",
    "quant_method": "compressed-tensors",
    "ignore": ["lm_head"],
    "config_groups": {
        "group_0": {
            "format": "float-quantized",
            "targets": ["re:.*self_attn.*", r"re:.*layers\.1\.mlp.*"],
            "weights": {"num_bits": 8, "type": "float", "strategy": "channel"},
            "input_activations": {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True},
        },
        "group_1": {
            "format": "nvfp4-pack-quantized",
            "targets": ["re:.*mlp.*"],
            "weights": {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16},
            "input_activations": None,
        },
    },
}
E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
Tensors = dict[str, torch.Tensor]


def nvfp4(name: str, w: torch.Tensor, compressed: bool) -> tuple[Tensors, torch.Tensor]:
    """Tensors of a matrix, and its values."""
    made = dg.quantize(w.float().contiguous())
    if not compressed:
        tensors = {"weight": made.codes, "weight_scale": made.scales, "weight_scale_2": made.global_scale.reshape(())}
        return {f"{name}.{end}": tensor for end, tensor in tensors.items()}, dg.dequantize(made)
    divisor = 1 / made.global_scale  # what the file has; its reciprocal is the multiplier that readers have
    tensors = {"weight_packed": made.codes, "weight_scale": made.scales, "weight_global_scale": divisor}
    return {f"{name}.{end}": tensor for end, tensor in tensors.items()}, dg.dequantize(made._replace(global_scale=1 / divisor))


def fp8(name: str, w: torch.Tensor) -> tuple[Tensors, torch.Tensor]:
    scale = (w.abs().amax(1, keepdim=True) / 448).bfloat16()
    codes = (w / scale.float()).clamp(-448, 448).to(torch.float8_e4m3fn)
    return {f"{name}.weight": codes, f"{name}.weight_scale": scale}, codes.float() * scale.float()


def mxfp4(name: str, w: torch.Tensor) -> tuple[Tensors, torch.Tensor]:
    """gpt-oss's: of rows [E, R, K], where the model has columns."""
    blocks = w.reshape(*w.shape[:-1], -1, 32)
    exponents = torch.floor(torch.log2(blocks.abs().amax(-1).clamp(min=2.0**-40))) - 2
    codes = (blocks / torch.exp2(exponents)[..., None]).unsqueeze(-1).sub(E2M1).abs().argmin(-1)
    values = (E2M1[codes] * torch.exp2(exponents)[..., None]).reshape(w.shape)
    packed = (codes[..., ::2] | codes[..., 1::2] << 4).to(torch.uint8)
    return {f"{name}_blocks": packed, f"{name}_scales": (exponents + 127).to(torch.uint8)}, values


def experts_of(name: str, value: torch.Tensor, mixtral_names: bool) -> Iterator[tuple[str, torch.Tensor]]:
    """Names of files, a module for each expert, and views of the model's parameter."""
    base, _, last = name.rpartition(".")
    parts = {"gate_up_proj": ("gate_proj", "up_proj")}.get(last, (last,))
    for expert, matrix in enumerate(value):
        for part, view in zip(parts, matrix.chunk(len(parts))):
            spelled = {"gate_proj": "w1", "up_proj": "w3", "down_proj": "w2"}[part] if mixtral_names else part
            yield f"{base.replace('.mlp', '.block_sparse_moe') if mixtral_names else base}.{expert}.{spelled}", view


def k_outer(name: str, value: torch.Tensor) -> Tensors:
    """Llama-4's experts as ModelOpt writes them, [E, K/2, R] with scales [E, K/16, R]; changes the values."""
    made = [dg.quantize(one.T.contiguous()) for one in value]
    for one, matrix in zip(made, value):
        matrix.copy_(dg.dequantize(one).T)
    scales = torch.stack([one.scales.view(torch.uint8).T for one in made]).view(torch.float8_e4m3fn)
    codes = torch.stack([one.codes.T for one in made])
    factors = torch.stack([one.global_scale.reshape(()) for one in made])
    return {name: codes, f"{name}_weight_scale": scales, f"{name}_weight_scale_2": factors}


def stored(name: str, value: torch.Tensor, architecture: Any) -> Tensors:
    """What the file has of a parameter, which gets the values that the file stands for."""
    if name.endswith("experts.gate_up_proj") or (name.endswith(("experts.up_proj", "experts.down_proj")) and value.dim() == 3):
        if architecture is llama4:
            return k_outer(name, value)
        if architecture is gpt_oss:
            tensors, values = mxfp4(name, value.transpose(1, 2).contiguous())
            value.copy_(values.transpose(1, 2))
            return tensors
        found: Tensors = {}
        for module, matrix in experts_of(name, value, architecture is mixtral):
            tensors, values = nvfp4(module, matrix, False)
            matrix.copy_(values)
            found |= tensors
        return found
    module = name.removesuffix(".weight")
    form = next((form for end, form in reversed(FORMS[architecture].items()) if module.endswith(end)), None)
    if form is None or module == name or value.dim() != 2:
        return {name.replace(".mlp.gate.", ".block_sparse_moe.gate.") if architecture is mixtral else name: value}
    tensors, values = fp8(module, value) if form == "fp8" else nvfp4(module, value, architecture is qwen3_mixed)
    value.copy_(values)
    return tensors


def described(architecture: Any, model: Any) -> dict[str, Any]:
    """quantization_config."""
    if architecture is qwen3_mixed:
        return GROUPS
    routers = ("mlp.gate", "mixer.gate")  # matrices, but no nn.Linear
    kinds = [name for name, module in model.named_modules() if isinstance(module, torch.nn.Linear) or name.endswith(routers)]
    linear = [name.replace(".mlp", ".block_sparse_moe") if architecture is mixtral else name for name in kinds]
    floats = [name for name in linear if not name.endswith(tuple(FORMS[architecture]))]
    if architecture is gpt_oss:
        return {"quant_method": "mxfp4", "modules_to_not_convert": floats}
    return {"quant_method": "modelopt", "quant_algo": "W4A16_NVFP4", "ignore": floats}


def write(architecture: Any, folder: pathlib.Path) -> Any:
    """The checkpoint, and the float model with its values."""
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(architecture(), dtype=torch.float32).eval()
    tensors: Tensors = {}
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=0.08)
        for name, value in model.state_dict().items():
            tensors |= stored(name, value, architecture)
    folder.mkdir(parents=True, exist_ok=True)
    save_file({name: tensor.contiguous().clone() for name, tensor in tensors.items()}, str(folder / "model.safetensors"))
    config = json.loads(model.config.to_json_string()) | {"quantization_config": described(architecture, model)}
    (folder / "config.json").write_text(json.dumps(config | {"architectures": [type(model).__name__]}))
    return model


def run(architecture: Any, folder: pathlib.Path, device: str, dtype: torch.dtype) -> tuple[float, int]:
    """The largest error of a logit by the largest logit, and at how many of 16 greedy tokens both models agree. In 16 bits the
    errors are those of 9 tokens in 10: where two experts of a token score nearly the same, a rounding chooses between them, in
    the float model, too."""
    exact = write(architecture, folder)
    subprocess.run([sys.executable, "-P", "-m", "dualgemm", "validate", str(folder)], check=True)
    model = load(folder, device=device, dtype=dtype)
    tokens = torch.randint(0, 128, (2, 9), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        wanted, found = exact(tokens).logits, model(tokens.to(device)).logits.float().cpu()
        options = dict(max_new_tokens=8, do_sample=False)
        agree = (exact.generate(tokens, **options) == model.generate(tokens.to(device), **options).cpu())[:, 9:]
    errors = ((found - wanted).abs().amax(-1) / wanted.abs().max()).flatten().sort().values
    tenth = 0 if dtype == torch.float32 else errors.numel() // 10
    return float(errors[errors.numel() - 1 - tenth]), int(agree.sum())


def main() -> int:
    names = {one.__name__: one for one in FORMS}
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("architecture", nargs="?", choices=names, default="llama")
    parser.add_argument("--list", action="store_true", help="name the architectures")
    parser.add_argument("--device", default="cpu")
    parser.add_argument(
        "--dtype", choices=["float32", "bfloat16", "float16"], help="of activations; float32 on a CPU, else bfloat16"
    )
    parser.add_argument("--folder", type=pathlib.Path, help="where the checkpoint stays")
    chosen = parser.parse_args()
    if chosen.list:
        print("\n".join(names))
        return 0
    dtype = getattr(torch, chosen.dtype or ("float32" if chosen.device == "cpu" else "bfloat16"))
    with tempfile.TemporaryDirectory() as scrap:
        error, agree = run(names[chosen.architecture], chosen.folder or pathlib.Path(scrap) / "model", chosen.device, dtype)
    # Each of some ten roundings between the layers moves a logit by its half bit; sums in FP32 far less.
    bound = 1e-4 if dtype == torch.float32 else 0.1
    print(
        f"{chosen.architecture}, {chosen.device}, {dtype}: largest error of a logit {error:.1e} (at most {bound:.0e}), ", end=""
    )
    print(f"{agree} of 16 greedy tokens equal")
    return 0 if error <= bound else 1


if __name__ == "__main__":
    sys.exit(main())
