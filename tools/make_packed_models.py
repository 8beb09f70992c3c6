#!/usr/bin/env python3
"""Tiny models with four-bit weights, as GPTQ, AWQ and compressed-tensors store them, and what transformers computes.

    tools/make_packed_models.py OUT [NAME ...]

needs numpy, torch, transformers and safetensors. A folder per model: config.json, model.safetensors, and reference.json with
the logits after some prompts in fp32, computed from weights that are dequantised here. Without names: the models of
tests/data/packed; "all": every format with every group size, for a comparison by hand.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config

AWQ_ORDER = [0, 2, 4, 6, 1, 3, 5, 7]  # output of each four bits of a word
PROMPTS = [[1], [5, 9, 2, 77, 30], [3, 14, 15, 92, 65, 35, 89, 79, 32, 38, 46, 26, 43, 38, 32, 79, 50]]
SHAPE = dict(vocab_size=128, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=128, tie_word_embeddings=True)


def pack(codes, axis, order=range(8)):
    """Eight codes along the axis to one int32; order: which of them each four bits hold."""
    codes = np.moveaxis(codes, axis, -1).astype(np.uint32)
    words = codes.reshape(*codes.shape[:-1], -1, 8)
    packed = sum(words[..., of] << np.uint32(4 * i) for i, of in enumerate(order))
    return np.ascontiguousarray(np.moveaxis(packed.astype(np.uint32), -1, axis).view(np.int32))


def groups_of(inputs, size, rng, act_order):
    groups = np.arange(inputs) // (inputs if size == -1 else size)
    if not act_order:
        return groups
    shuffled = np.empty(inputs, dtype=np.int64)
    shuffled[rng.permutation(inputs)] = groups
    return shuffled


def round_weights(weight, groups, symmetric):
    """Codes [out, in], scales and zero points [out, groups]; w = scale * (code - zero)."""
    count = groups.max() + 1
    scales = np.empty((weight.shape[0], count), dtype=np.float16)
    zeros = np.full((weight.shape[0], count), 8, dtype=np.int64)
    for g in range(count):
        part = weight[:, groups == g]
        if symmetric:
            scales[:, g] = np.abs(part).max(axis=1) / 7.5
        else:
            low, high = np.minimum(part.min(axis=1), 0), np.maximum(part.max(axis=1), 0)
            scales[:, g] = (high - low) / 15
            zeros[:, g] = np.clip(np.rint(-low / scales[:, g].astype(np.float32)), 1, 15)
    wide = scales.astype(np.float32)[:, groups]
    codes = np.clip(np.rint(weight / wide) + zeros[:, groups], 0, 15).astype(np.int64)
    return codes, scales, zeros, ((codes - zeros[:, groups]).astype(np.float32) * wide)


def tensors_of(method, name, codes, scales, zeros, groups, version2=False, act_order=False):
    if method == "gptq":
        out = {"qweight": pack(codes.T, 0), "qzeros": pack(zeros.T - (0 if version2 else 1), 1),
               "scales": np.ascontiguousarray(scales.T), "g_idx": groups.astype(np.int32)}
    elif method == "awq":
        out = {"qweight": pack(codes.T, 1, AWQ_ORDER), "qzeros": pack(zeros.T, 1, AWQ_ORDER),
               "scales": np.ascontiguousarray(scales.T)}
    else:
        out = {"weight_packed": pack(codes, 1), "weight_scale": scales, "weight_zero_point": pack(zeros, 0),
               "weight_shape": np.array(codes.shape, dtype=np.int64)}
        if act_order:
            out["weight_g_idx"] = groups.astype(np.int32)
        if (zeros == 8).all():
            del out["weight_zero_point"]
    return {f"{name}.{part}": value for part, value in out.items()}


def quantization_config(method, size, symmetric, act_order, version2):
    if method == "gptq":
        return {"quant_method": "gptq", "bits": 4, "group_size": size, "desc_act": act_order, "sym": symmetric,
                "checkpoint_format": "gptq_v2" if version2 else "gptq"}
    if method == "awq":
        return {"quant_method": "awq", "bits": 4, "group_size": size, "version": "gemm", "zero_point": not symmetric}
    weights = {"num_bits": 4, "type": "int", "symmetric": symmetric, "strategy": "channel" if size == -1 else "group",
               "group_size": None if size == -1 else size, "dynamic": False, "actorder": "group" if act_order else None}
    return {"quant_method": "compressed-tensors", "format": "pack-quantized", "ignore": ["lm_head"],
            "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": None}}}


def make(folder, family, method, size, symmetric=False, act_order=False, version2=False):
    torch.manual_seed(7)
    rng = np.random.default_rng(7)
    config = (LlamaConfig if family == "llama" else Qwen2Config)(**SHAPE)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    stored, orders = {}, {}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name == "lm_head.weight":
                continue
            if not name.endswith("proj.weight"):
                value = torch.randn_like(parameter) * 0.1 + (1 if "norm" in name else 0)
                parameter.copy_(value.half().float())
                stored[name] = parameter.half().numpy()
                continue
            module = name.removesuffix(".weight")
            weight = rng.normal(0, 0.2, parameter.shape).astype(np.float32)
            # What reads the same input has the same order.
            shared = module.rsplit(".", 1)[0] + ("down" if "down" in module else "o" if "o_proj" in module else "")
            if shared not in orders:
                orders[shared] = groups_of(weight.shape[1], size, rng, act_order)
            codes, scales, zeros, exact = round_weights(weight, orders[shared], symmetric)
            stored |= tensors_of(method, module, codes, scales, zeros, orders[shared], version2, act_order)
            parameter.copy_(torch.from_numpy(exact))
        answers = []
        for prompt in PROMPTS:
            logits = model(torch.tensor([prompt])).logits[0, -1]
            answers.append({"prompt": prompt, "logits": [round(float(x), 6) for x in logits]})
    folder.mkdir(parents=True, exist_ok=True)
    fields = json.loads(config.to_json_string(use_diff=False))
    keep = {k: v for k, v in fields.items() if k in SHAPE or k in (
        "model_type", "rms_norm_eps", "rope_parameters", "hidden_act", "attention_bias", "mlp_bias", "head_dim")}
    keep["quantization_config"] = quantization_config(method, size, symmetric, act_order, version2)
    (folder / "config.json").write_text(json.dumps(keep, indent=1))
    (folder / "reference.json").write_text(json.dumps(answers))
    save_file(stored, folder / "model.safetensors", {"format": "pt"})


KEPT = {"llama-gptq": ("llama", "gptq", 32, False, True), "qwen2-awq": ("qwen2", "awq", 32)}


def all_models():
    for family in ("llama", "qwen2"):
        for size in (32, 64, 128, -1):
            for symmetric in (False, True):
                yield f"{family}-awq-{size}-{symmetric}", (family, "awq", size, symmetric)
                for act_order in (False, True):
                    for version2 in (False, True):
                        yield (f"{family}-gptq-{size}-{symmetric}-{act_order}-{version2}",
                               (family, "gptq", size, symmetric, act_order, version2))
                    yield (f"{family}-compressed-{size}-{symmetric}-{act_order}",
                           (family, "compressed", size, symmetric, act_order))


def main():
    out, names = Path(sys.argv[1]), sys.argv[2:]
    models = dict(all_models()) if names == ["all"] else KEPT
    for name, arguments in models.items():
        make(out / name, *arguments)


if __name__ == "__main__":
    main()
