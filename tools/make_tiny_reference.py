#!/usr/bin/env python3
"""Makes tiny random models with their reference values: OUTPUT/tiny/FAMILY/ as tests/data/tiny-FAMILY.tar.xz holds it.

A folder has the model as Hugging Face's programs store it, GGUF files of it in F32, Q8_0 and Q4_0, and reference.json: for
each of them, computed by Transformers in float32 with the weights that the file holds, the last position's logits after
prompts of 1, 17 and 70 tokens and 32 greedy tokens with their margins.

Weights are small whole numbers times a power of two, norms too: they mean the same in every float type, and compress well.
Needs the PyPI packages torch, transformers, tokenizers and gguf.
Usage: make_tiny_reference.py OUTPUT [FAMILY...]
Then, in OUTPUT: tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cJf tiny-FAMILY.tar.xz tiny/FAMILY
"""
import json
import sys
from pathlib import Path

import gguf
import numpy as np
import torch
import transformers
from gguf import GGMLQuantizationType as Type
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

VOCAB = 288
SHAPE = dict(vocab_size=VOCAB, hidden_size=64, intermediate_size=96, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=256, bos_token_id=0, eos_token_id=2, pad_token_id=3, dtype="float32")

# Per family: the class, what its configuration has beyond SHAPE, and its own GGUF keys. Everything a family does differently
# must matter: windows shorter than the prompts, caps and factors far from what has no effect.
FAMILIES = {
    "olmo2": dict(seed=31, cls="Olmo2", config=dict(num_hidden_layers=2, rope_theta=10000.0, tie_word_embeddings=False),
                  keys={}),
    "granite": dict(seed=32, cls="Granite", permute=True,
                    config=dict(num_hidden_layers=2, rope_theta=10000.0, tie_word_embeddings=True,
                                embedding_multiplier=1.5, attention_multiplier=0.4, residual_multiplier=0.35,
                                logits_scaling=3.0),
                    keys={"embedding_scale": 1.5, "attention.scale": 0.4, "residual_scale": 0.35, "logit_scale": 3.0}),
    "gemma2": dict(seed=33, cls="Gemma2", norm_offset=1.0,
                   config=dict(num_hidden_layers=3, head_dim=32, rope_theta=10000.0, sliding_window=8,
                               query_pre_attn_scalar=20, attn_logit_softcapping=1.5, final_logit_softcapping=4.0,
                               tie_word_embeddings=True),
                   keys={"attention.scale": 20 ** -0.5, "attn_logit_softcapping": 1.5, "final_logit_softcapping": 4.0,
                         "attention.sliding_window": 8}),
}

TEMPLATE = ("{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}{% endfor %}"
            "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")

NAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output", "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def gguf_name(name, has_post_norms):
    name = name.removesuffix(".weight")
    if not name.startswith("model.layers."):
        return NAMES[name] + ".weight"
    layer, part = name.removeprefix("model.layers.").split(".", 1)
    if part == "post_attention_layernorm":
        return f"blk.{layer}.{'post_attention_norm' if has_post_norms else 'ffn_norm'}.weight"
    return f"blk.{layer}.{NAMES[part]}.weight"


def fill_weights(model, seed):
    """Matrices with a standard deviation of about 1 / sqrt(inputs), norms about 1 (or 0, where 1 is added).

    An embedding that is the head, too, is small and the last norm large, or a token would always be followed by itself.
    """
    tied = model.config.tie_word_embeddings
    rng = np.random.default_rng(seed)
    for name, parameter in model.named_parameters():
        shape = tuple(parameter.shape)
        if len(shape) == 1:
            values = rng.integers(-3, 4, shape) / 8 + float(parameter.detach().mean().round()) + 3 * (tied and name == "model.norm.weight")
        else:
            scale = 2.0 ** np.round(np.log2(1 / (2 * np.sqrt(shape[1]))))
            values = np.clip(np.round(rng.normal(0, 2, shape)), -7, 7) * scale
            if tied and name == "model.embed_tokens.weight":
                values /= 4
        parameter.data = torch.tensor(values, dtype=torch.float32)


def permuted(values, heads):
    """Rotary pairs side by side, as in GGUF files of some families, instead of half a head apart."""
    return values.reshape(heads, 2, values.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(values.shape)


def unpermuted(values, heads):
    return values.reshape(heads, values.shape[0] // heads // 2, 2, -1).swapaxes(1, 2).reshape(values.shape)


def heads_of(name, config, family):
    if not family.get("permute"):
        return 0
    return {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}.get(name.split(".")[-2], 0)


def make_tokenizer(folder):
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|pad|>"]
    pairs = "Ġ t,Ġ a,h e,i n,r e,o n,Ġt he,e r,Ġ s,a t,e n,o r,Ġ w,Ġ o,i t,a n,e s,Ġ b,Ġ c,i s,Ġ f,Ġ p,in g,o u,n d,Ġa nd,Ġ in,a l"
    merges = [tuple(pair.split()) for pair in pairs.split(",")]
    tokens = special + alphabet + ["".join(pair) for pair in merges]
    assert len(tokens) == VOCAB
    tokenizer = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": special[0], "eos_token": special[2],
         "pad_token": special[3], "add_bos_token": False, "model_max_length": 256}, indent=1) + "\n")
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return tokens, [" ".join(pair) for pair in merges]


def write_keys(writer, name, config, family, tokens, merges):
    writer.add_name(f"tiny-{name}")
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    integers = {"block_count": config.num_hidden_layers, "context_length": config.max_position_embeddings,
                "embedding_length": config.hidden_size, "feed_forward_length": config.intermediate_size,
                "attention.head_count": config.num_attention_heads, "attention.head_count_kv": config.num_key_value_heads,
                "attention.key_length": head_dim, "attention.value_length": head_dim, "rope.dimension_count": head_dim,
                "vocab_size": config.vocab_size}
    reals = {"attention.layer_norm_rms_epsilon": config.rms_norm_eps, "rope.freq_base": 10000.0}
    for key, value in {**integers, **reals, **family["keys"]}.items():
        (writer.add_uint32 if isinstance(value, int) else writer.add_float32)(f"{name}.{key}", value)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([3] * 4 + [1] * (VOCAB - 4))
    writer.add_token_merges(merges)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(3)
    writer.add_add_bos_token(False)
    writer.add_chat_template(TEMPLATE)


def write_gguf(path, name, model, family, kind, vocabulary):
    """Returns the weights as the file holds them, by Hugging Face's names."""
    writer = gguf.GGUFWriter(str(path), name)
    write_keys(writer, name, model.config, family, *vocabulary)
    state = model.state_dict()
    has_post_norms = any("post_feedforward_layernorm" in key for key in state)
    held = {}
    for key, tensor in state.items():
        if key == "lm_head.weight" and model.config.tie_word_embeddings:
            continue
        values = tensor.numpy().astype(np.float32)
        if values.ndim == 1:
            held[key] = tensor
            writer.add_tensor(gguf_name(key, has_post_norms), values + np.float32(family.get("norm_offset", 0)))
            continue
        heads = heads_of(key, model.config, family)
        values = permuted(values, heads) if heads else values
        stored = gguf.quants.quantize(np.ascontiguousarray(values), kind)
        writer.add_tensor(gguf_name(key, has_post_norms), stored, raw_dtype=kind)
        back = gguf.quants.dequantize(stored, kind)
        held[key] = torch.tensor(unpermuted(back, heads) if heads else back)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return held


def make_prompts(seed):
    rng = np.random.default_rng(seed)
    return [[int(t) for t in rng.integers(4, VOCAB, length)] for length in (1, 17, 70)]


@torch.no_grad()
def reference(model, prompts, with_prompts):
    out = []
    for prompt in prompts:
        tokens, margins = list(prompt), []
        for step in range(32):
            logits = model(torch.tensor([tokens])).logits[0, -1]
            if step == 0:
                first = [round(float(x), 5) for x in logits]
            best = torch.topk(logits, 2).values
            margins.append(round(float(best[0] - best[1]), 5))
            tokens.append(int(logits.argmax()))
        line = {"logits": first, "greedy": tokens[len(prompt):], "margin": margins}
        out.append({"prompt": prompt, **line} if with_prompts else line)
    return out


def make(output, name):
    family = FAMILIES[name]
    folder = output / "tiny" / name
    folder.mkdir(parents=True, exist_ok=True)
    config = getattr(transformers, family["cls"] + "Config")(**SHAPE, **family["config"])
    cls = getattr(transformers, family["cls"] + "ForCausalLM")
    model = cls._from_config(config, attn_implementation="eager").eval()
    fill_weights(model, family["seed"])
    model.tie_weights()
    model.save_pretrained(folder)
    vocabulary = make_tokenizer(folder)
    prompts = make_prompts(family["seed"])
    results = {"model": name, "arch": name, "hf_class": cls.__name__, "seed": family["seed"],
               "safetensors": reference(model, prompts, True)}
    original = {key: value.clone() for key, value in model.state_dict().items()}
    for kind in (Type.F32, Type.Q8_0, Type.Q4_0):
        model.load_state_dict(original)
        held = write_gguf(folder / f"{name}-{kind.name}.gguf", name, model, family, kind, vocabulary)
        model.load_state_dict(held, strict=False)
        model.tie_weights()
        results[kind.name] = reference(model, prompts, False)
    (folder / "reference.json").write_text(json.dumps(results, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    for chosen in sys.argv[2:] or FAMILIES:
        make(Path(sys.argv[1]), chosen)
