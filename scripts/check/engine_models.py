"""Models of random weights for scripts/engine_gpu, in the files that compressed-tensors and OpenAI (gpt-oss) have; made on a GPU."""

import json
import math

VOCABULARY = 32000
LARGEST_SCALE, LARGEST_CODE, LARGEST_INPUT = 448.0, 6.0, 16.0
LLAMA = dict(architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=4096, intermediate_size=14336)
LLAMA |= dict(num_attention_heads=32, num_key_value_heads=8, head_dim=128)
QWEN = dict(architectures=["Qwen3MoeForCausalLM"], model_type="qwen3_moe", hidden_size=2048, intermediate_size=6144)
QWEN |= dict(num_attention_heads=32, num_key_value_heads=4, head_dim=128, moe_intermediate_size=768, num_experts=128)
QWEN |= dict(num_experts_per_tok=8, norm_topk_prob=True, decoder_sparse_step=1, mlp_only_layers=[])
GPT_OSS = dict(architectures=["GptOssForCausalLM"], model_type="gpt_oss", hidden_size=2880, intermediate_size=2880)
GPT_OSS |= dict(num_attention_heads=64, num_key_value_heads=8, head_dim=64, num_local_experts=32, num_experts_per_tok=4)
GPT_OSS |= dict(sliding_window=128, swiglu_limit=7.0, attention_bias=True)
MODELS = {"llama_8b": LLAMA, "qwen3_30b_a3b": QWEN, "gpt_oss_20b": GPT_OSS}
COMMON = dict(vocab_size=VOCABULARY, max_position_embeddings=16384, rms_norm_eps=1e-6, rope_theta=10000.0)
COMMON |= dict(hidden_act="silu", tie_word_embeddings=False, torch_dtype="bfloat16", attention_bias=False)
FORMAT = {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16, "symmetric": True, "dynamic": False}
# 4-bit activations get a scale for each 16 as they come; one divisor for all stands in the files.
OF_ACTIVATIONS = FORMAT | {"dynamic": "local"}


def write_model(folder, name, layers, w4a4=False, decoded=False):
    """decoded: the same weights in bf16, exactly: products of a code and a scale have 6 bits, global scales are powers of two."""
    import safetensors.torch
    import torch

    config = COMMON | MODELS[name] | {"num_hidden_layers": layers}
    is_gpt_oss = config["model_type"] == "gpt_oss"
    groups = {"group_0": {"targets": ["Linear"], "weights": FORMAT, "input_activations": OF_ACTIVATIONS if w4a4 else None}}
    quantization = {"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized", "config_groups": groups}
    if is_gpt_oss:
        config["layer_types"] = ["sliding_attention" if layer % 2 == 0 else "full_attention" for layer in range(layers)]
        kept = ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"]
        quantization = {"quant_method": "mxfp4", "modules_to_not_convert": kept}
    if not decoded:
        config["quantization_config"] = quantization | ({} if is_gpt_oss else {"ignore": ["lm_head", "re:.*mlp.gate$"]})
    hidden, heads = config["hidden_size"], config["head_dim"]
    values = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], device="cuda")
    values = torch.cat([values, -values])
    generator = torch.Generator("cuda").manual_seed(0)
    tensors = {}

    def wide(key, *shape):
        value = torch.randn(shape, generator=generator, device="cuda") / shape[-1] ** 0.5
        tensors[key] = value.to(torch.bfloat16).cpu()

    def packed(key, n, k):
        codes = torch.randint(0, 256, (n, k // 2), generator=generator, device="cuda", dtype=torch.uint8)
        scales = torch.randint(0x30, 0x3A, (n, k // 16), generator=generator, device="cuda", dtype=torch.uint8)
        scales, divisor = scales.view(torch.float8_e4m3fn), 2.0 ** round(math.log2(3 * k**0.5))
        if decoded:
            w = values[torch.stack([codes & 15, codes >> 4], -1).long()].view(n, k // 16, 16)
            w = w * scales.float()[..., None] / divisor
            tensors[f"{key}.weight"] = w.view(n, k).to(torch.bfloat16).cpu()
            return
        tensors[f"{key}.weight_packed"] = codes.cpu()
        tensors[f"{key}.weight_scale"] = scales.cpu()
        tensors[f"{key}.weight_global_scale"] = torch.tensor([divisor])
        if w4a4:
            tensors[f"{key}.input_global_scale"] = torch.tensor([LARGEST_SCALE * LARGEST_CODE / LARGEST_INPUT])

    def blocks(key, n, k):
        """gpt-oss's experts: MXFP4 and biases."""
        experts = config["num_local_experts"]
        codes = torch.randint(0, 256, (experts, n, k // 32, 16), generator=generator, device="cuda", dtype=torch.uint8)
        exponents = torch.randint(-1, 2, (experts, n, k // 32), generator=generator, device="cuda") - round(
            math.log2(3 * k**0.5)
        )
        wide(f"{key}_bias", experts, n)
        if decoded:
            for expert in range(experts):
                w = values[torch.stack([codes[expert] & 15, codes[expert] >> 4], -1).long()].view(n, k // 32, 32)
                w = (w * torch.exp2(exponents[expert].float())[..., None]).view(n, k).to(torch.bfloat16)
                whole = tensors.setdefault(key, torch.empty(experts, k, n, dtype=torch.bfloat16))
                whole[expert] = w.T.cpu()
            return
        tensors[f"{key}_blocks"] = codes.cpu()
        tensors[f"{key}_scales"] = (exponents + 127).to(torch.uint8).cpu()

    def attention_of_gpt_oss(key):
        count, shared = config["num_attention_heads"] * heads, config["num_key_value_heads"] * heads
        for one, n, k in (("q", count, hidden), ("k", shared, hidden), ("v", shared, hidden), ("o", hidden, count)):
            wide(f"{key}.{one}_proj.weight", n, k)
            wide(f"{key}.{one}_proj.bias", n)
        wide(f"{key}.sinks", config["num_attention_heads"])

    def mlp(key, n):
        packed(f"{key}.gate_proj", n, hidden)
        packed(f"{key}.up_proj", n, hidden)
        packed(f"{key}.down_proj", hidden, n)

    folder.mkdir(parents=True)
    names = {}
    for layer in range(layers):
        tensors.clear()
        key = f"model.layers.{layer}"
        for norm in ("input_layernorm", "post_attention_layernorm"):
            tensors[f"{key}.{norm}.weight"] = torch.ones(hidden, dtype=torch.bfloat16)
        if is_gpt_oss:
            attention_of_gpt_oss(f"{key}.self_attn")
            wide(f"{key}.mlp.router.weight", config["num_local_experts"], hidden)
            wide(f"{key}.mlp.router.bias", config["num_local_experts"])
            blocks(f"{key}.mlp.experts.gate_up_proj", 2 * config["intermediate_size"], hidden)
            blocks(f"{key}.mlp.experts.down_proj", hidden, config["intermediate_size"])
        else:
            packed(f"{key}.self_attn.q_proj", config["num_attention_heads"] * heads, hidden)
            for one in "kv":
                packed(f"{key}.self_attn.{one}_proj", config["num_key_value_heads"] * heads, hidden)
            packed(f"{key}.self_attn.o_proj", hidden, config["num_attention_heads"] * heads)
        if "num_experts" in config:
            for norm in ("q_norm", "k_norm"):
                tensors[f"{key}.self_attn.{norm}.weight"] = torch.ones(heads, dtype=torch.bfloat16)
            wide(f"{key}.mlp.gate.weight", config["num_experts"], hidden)
            for expert in range(config["num_experts"]):
                mlp(f"{key}.mlp.experts.{expert}", config["moe_intermediate_size"])
        elif not is_gpt_oss:
            mlp(f"{key}.mlp", config["intermediate_size"])
        if layer == 0:
            wide("model.embed_tokens.weight", VOCABULARY, hidden)
            wide("lm_head.weight", VOCABULARY, hidden)
            tensors["model.norm.weight"] = torch.ones(hidden, dtype=torch.bfloat16)
        file = f"model-{layer + 1:05}-of-{layers:05}.safetensors"
        safetensors.torch.save_file(tensors, folder / file)
        names |= dict.fromkeys(tensors, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": names}))
    (folder / "config.json").write_text(json.dumps(config, indent=1))


def write_adapter(folder, name, layers, rank=8):
    """A LoRA of every linear layer of Llama's, in PEFT's files, large enough that it changes most tokens."""
    import safetensors.torch
    import torch

    config = MODELS[name]
    hidden, n, heads = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    queries, shared = config["num_attention_heads"] * heads, config["num_key_value_heads"] * heads
    shapes = {"self_attn.q_proj": (queries, hidden), "self_attn.o_proj": (hidden, queries), "mlp.down_proj": (hidden, n)}
    shapes |= dict.fromkeys(("self_attn.k_proj", "self_attn.v_proj"), (shared, hidden))
    shapes |= dict.fromkeys(("mlp.gate_proj", "mlp.up_proj"), (n, hidden))
    generator = torch.Generator().manual_seed(5)
    tensors = {}
    for layer in range(layers):
        for one, (rows, columns) in shapes.items():
            key = f"base_model.model.model.layers.{layer}.{one}"
            a = torch.randn(rank, columns, generator=generator) * columns**-0.5
            b = torch.randn(rows, rank, generator=generator) * 0.5 * rank**-0.5
            tensors |= {f"{key}.lora_A.weight": a.to(torch.bfloat16), f"{key}.lora_B.weight": b.to(torch.bfloat16)}
    folder.mkdir(parents=True)
    safetensors.torch.save_file(tensors, folder / "adapter_model.safetensors")
    targets = sorted(one.split(".")[1] for one in shapes)
    config = dict(peft_type="LORA", task_type="CAUSAL_LM", r=rank, lora_alpha=2 * rank, target_modules=targets)
    (folder / "adapter_config.json").write_text(json.dumps(config | {"bias": "none", "lora_dropout": 0.0}))
