"""sglang#20881: Nemotron's MLP has no gate and ReLU squared; kernels applied a gate, or SiLU."""

import json
import pathlib

import pytest
import torch
from situations import DEVICE, ROW, save, values
from test_checkpoints import close, modelopt

import dualgemm as dg

transformers = pytest.importorskip("transformers", reason="transformers is not installed")


def test_relu2_without_a_gate(tmp_path: pathlib.Path) -> None:
    from dualgemm.integrations.transformers import load

    torch.manual_seed(4)
    config = transformers.NemotronConfig(
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        vocab_size=96,
        hidden_act="relu2",
    )
    exact = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    tensors = dict(exact.state_dict())
    for name, module in exact.named_modules():
        if isinstance(module, torch.nn.Linear) and name != "lm_head":
            torch.nn.init.normal_(module.weight, std=0.2)
            w = dg.quantize(module.weight.detach())
            module.weight.data = values(w).float()
            del tensors[f"{name}.weight"]
            tensors |= modelopt(name, w)
    (tmp_path / "m").mkdir()
    save(tmp_path / "m" / "model.safetensors", tensors)
    (tmp_path / "m" / "config.json").write_text(json.dumps(json.loads(config.to_json_string())))
    model = load(tmp_path / "m", device=DEVICE, dtype=ROW)
    assert isinstance(model.model.layers[0].mlp, dg.nn.MLP)
    ids = torch.randint(0, 96, (2, 7))
    with torch.no_grad():
        found, wanted = model(ids).logits.float(), exact(ids).logits
    if ROW == torch.float32:
        assert close(found, wanted)
    assert (found - wanted).norm() < 0.08 * wanted.norm()  # squares double what bfloat16 between the layers costs; SiLU is far
