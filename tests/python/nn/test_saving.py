"""Weights and modules on their way: to spawned processes, through torch.export, through transformers' save_pretrained()."""

from __future__ import annotations

import pathlib
import pickle

import pytest
import torch
import torch.multiprocessing as mp
from operands import DEVICE, dg, only_on_cpu, same_bits
from torch import nn


def weights(n: int = 48, **kw: object) -> dg.Weights:
    gate, up = (dg.quantize(torch.randn(n, 64, generator=torch.Generator(DEVICE).manual_seed(seed))) for seed in (0, 1))
    return dg.Weights.from_tensors(gate.codes, gate.scales, up.codes, up.scales, alpha_gate=gate.global_scale, **kw)


FORMS = {
    "packed": lambda: weights(),
    "unpacked": lambda: weights(prepare=False),
    "both": lambda: weights(keep_original=True),
    "shard": lambda: weights(128, prepare=False).shard(1, 4),
    "linear": lambda: dg.LinearWeights.from_linear(nn.Linear(64, 48)),
    "module": lambda: dg.GatedMLP.from_weights(weights(prepare=False), nn.Identity()).finalize(),
}


def _answer(made: object, x: torch.Tensor, queue: object) -> None:
    with torch.no_grad():
        queue.put(made(x).tolist())


@only_on_cpu
@pytest.mark.parametrize("form", FORMS)
def test_a_spawned_process_gets_it(form: str) -> None:
    made, x = FORMS[form](), torch.randn(3, 64)
    context = mp.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=_answer, args=(made, x, queue))
    process.start()
    try:
        found = queue.get(timeout=120)
    finally:
        process.join(60)
    assert process.exitcode == 0
    with torch.no_grad():
        assert found == made(x).tolist()


class Rows(torch.utils.data.Dataset):
    def __init__(self, made: dg.Weights) -> None:
        self.made = made

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> torch.Tensor:
        torch.set_num_threads(1)
        return self.made(torch.full((1, 64), float(index)))[0]


@only_on_cpu
def test_a_data_loader_of_spawned_workers() -> None:
    made = weights()
    loader = torch.utils.data.DataLoader(Rows(made), batch_size=2, num_workers=1, multiprocessing_context="spawn")
    wanted = made(torch.arange(4.0)[:, None].expand(4, 64).contiguous())
    assert same_bits(torch.cat(list(loader)), wanted)


def test_pickles_of_before_are_read() -> None:
    made = weights()
    state = made.__getstate__() | {"shape": torch.tensor(made.__getstate__()["shape"], dtype=torch.int64)}
    old = dg.Weights.__new__(dg.Weights)
    old.__setstate__(state)
    x = torch.randn(2, 64, dtype=torch.bfloat16)
    assert same_bits(old(x), made(x)) and same_bits(pickle.loads(pickle.dumps(made))(x), made(x))


# ---- torch.export -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [{}, {"input_dtype": "nvfp4"}, {"input_dtype": "nvfp4", "input_scale": 0.01}], ids=str)
@pytest.mark.parametrize("quantize_down", [False, True])
def test_exports_before_and_after_finalize(form: dict[str, object], quantize_down: bool) -> None:
    torch.manual_seed(0)
    down = nn.Linear(48, 64, dtype=torch.bfloat16)
    inner = dg.nn.NVFP4Linear.from_float(down, **form) if quantize_down else down
    module = dg.GatedMLP.from_weights(weights(prepare=False), inner, **form).eval()
    x = torch.randn(2, 64, dtype=torch.bfloat16)
    for finalized in (False, True):
        if finalized:
            module.finalize()
        with torch.no_grad():
            program = torch.export.export(module, (x,))
            assert same_bits(program.module()(x), module(x))
    experts = dg.GatedExperts(3, 64, 48, **form).finalize().eval()
    routed = (torch.randn(5, 64, dtype=torch.bfloat16), torch.zeros(5, 2, dtype=torch.int64), torch.ones(5, 2))
    with torch.no_grad():
        assert torch.export.export(experts, routed).module()(*routed).shape == (5, 64)


# ---- save_pretrained --------------------------------------------------------------------------------------------------------

transformers = pytest.importorskip("transformers", reason="transformers is not installed")
pytest.importorskip("safetensors", reason="safetensors is not installed")
IDS = torch.tensor([[1, 2, 3, 7]])


def llama() -> nn.Module:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, vocab_size=128
    )
    return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()


def qwen_moe() -> nn.Module:
    torch.manual_seed(0)
    config = transformers.Qwen2MoeConfig(
        hidden_size=64,
        intermediate_size=96,
        moe_intermediate_size=48,
        num_hidden_layers=2,
        shared_expert_intermediate_size=96,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=128,
        num_experts=4,
        num_experts_per_tok=2,
    )
    return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()


@pytest.mark.parametrize("build", [llama, qwen_moe])
@pytest.mark.parametrize("finalized", [False, True])
@pytest.mark.parametrize("kw", [{}, {"quantize_down": True}, {"input_dtype": "nvfp4", "quantize_down": True}], ids=str)
def test_transformers_reads_what_it_saved(
    build: object, kw: dict[str, object], finalized: bool, tmp_path: pathlib.Path
) -> None:
    from dualgemm.integrations.transformers import load

    model = build()
    replaced = dg.replace_mlps(model, **kw)
    if finalized:
        dg.nn.finalize(model)
    model.save_pretrained(tmp_path)
    with torch.no_grad():
        wanted = model(IDS).logits
        again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path).to(DEVICE)
        assert same_bits(again(IDS).logits, wanted)
        assert all(type(again.get_submodule(name)) is type(model.get_submodule(name)) for name in replaced)
        assert all(again.get_submodule(name).is_packed == model.get_submodule(name).is_packed for name in replaced)
        loaded = load(tmp_path, device=DEVICE)
        assert same_bits(loaded(IDS).logits, wanted) and all(
            loaded.get_submodule(name).input_dtype == kw.get("input_dtype", "bf16") for name in replaced
        )
        again.save_pretrained(tmp_path / "again")
        assert same_bits(transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "again").to(DEVICE)(IDS).logits, wanted)


def test_saved_models_that_do_not_fit(tmp_path: pathlib.Path) -> None:
    import json

    from dualgemm.integrations.transformers import load

    model = llama()
    dg.replace_mlps(model)
    dg.nn.finalize(model)
    model.save_pretrained(tmp_path)
    with pytest.raises(dg.InvalidArgument, match="input_dtype"):
        load(tmp_path, input_dtype="nvfp4")
    config = json.loads((tmp_path / "config.json").read_text())
    good = config["quantization_config"]
    assert good["quant_method"] == "dualgemm" and len(good["modules"]) == 2
    for wrong in (
        {"quant_method": "dualgemm"},
        {"quant_method": "dualgemm", "modules": {"nowhere.mlp": good["modules"]["model.layers.0.mlp"]}},
        {"quant_method": "dualgemm", "modules": {"model.layers.0.mlp": {"kind": "Other"}}},
    ):
        (tmp_path / "config.json").write_text(json.dumps(config | {"quantization_config": wrong}))
        with pytest.raises(dg.FileError, match="config"):
            load(tmp_path)
    model.model.layers[0].mlp.down = nn.Sequential(nn.Linear(96, 64))
    with pytest.raises(dg.Unsupported, match=r"layers\.0\.mlp\.down"):
        model.save_pretrained(tmp_path / "other")


def test_a_model_without_grad_says_what_to_do() -> None:
    model = llama()
    dg.replace_mlps(model)
    with pytest.raises(dg.InvalidArgument, match=r"torch\.no_grad\(\) or torch\.inference_mode\(\)"):
        model(IDS)
