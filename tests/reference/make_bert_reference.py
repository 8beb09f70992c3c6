"""What bert_reference_test compares with, by Hugging Face Transformers in float32:

make_bert_reference.py tiny tests/data/tiny/bert/reference.json
    a tiny BERT with weights from a formula, the same that the test makes, and its hidden states
make_bert_reference.py model FOLDER tests/data/embeddings/NAME.jsonl
    embeddings (mean, normalised; base64 of little-endian floats) of texts by a real model
"""
import base64
import json
import pathlib
import sys

import numpy
import torch
from tokenizers import Tokenizer
from transformers import BertConfig, BertModel

CONFIG = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
              vocab_size=200, max_position_embeddings=300, type_vocab_size=2, layer_norm_eps=1e-12,
              hidden_act="gelu")
PARTS = [("attention.self.query", "h", "h"), ("attention.self.key", "h", "h"),
         ("attention.self.value", "h", "h"), ("attention.output.dense", "h", "h"),
         ("attention.output.LayerNorm", "h", None), ("intermediate.dense", "i", "h"),
         ("output.dense", "h", "i"), ("output.LayerNorm", "h", None)]


class Weights:
    def __init__(self):
        self.state = 1

    def tensor(self, name, shape):
        """Of every tensor in turn; norms are about 1."""
        values = numpy.empty(int(numpy.prod(shape)), numpy.float32)
        for i in range(values.size):
            self.state = (self.state * 1664525 + 1013904223) % 2**32
            values[i] = (self.state >> 8) / 2**24 - 0.5
        values *= numpy.float32(0.5)
        if name.endswith("LayerNorm.weight"):
            values += numpy.float32(1)
        return torch.from_numpy(values.reshape(shape))


def state_dict():
    weights, out = Weights(), {}
    size = {"h": CONFIG["hidden_size"], "i": CONFIG["intermediate_size"]}

    def add(name, shape):
        out[name] = weights.tensor(name, shape)

    add("embeddings.word_embeddings.weight", (CONFIG["vocab_size"], size["h"]))
    add("embeddings.position_embeddings.weight", (CONFIG["max_position_embeddings"], size["h"]))
    add("embeddings.token_type_embeddings.weight", (2, size["h"]))
    for end in "weight", "bias":
        add(f"embeddings.LayerNorm.{end}", (size["h"],))
    for layer in range(CONFIG["num_hidden_layers"]):
        for part, rows, cols in PARTS:
            shape = (size[rows], size[cols]) if cols else (size[rows],)
            add(f"encoder.layer.{layer}.{part}.weight", shape)
            add(f"encoder.layer.{layer}.{part}.bias", (size[rows],))
    return out


def tiny(out):
    model = BertModel(BertConfig(**CONFIG), add_pooling_layer=False).eval()
    missing = model.load_state_dict(state_dict(), strict=False)
    assert not missing.unexpected_keys and not [k for k in missing.missing_keys if "position_ids" not in k]
    cases = []
    for length in (1, 2, 7, 8, 9, 17, 31, 32, 33, 64, 100, 255, 256, 257, 300):
        ids = [(i * i * 7 + i * 13 + length) % CONFIG["vocab_size"] for i in range(length)]
        with torch.no_grad():
            hidden = model(torch.tensor([ids])).last_hidden_state[0]
        cases.append({"ids": ids, "first": [round(x, 7) for x in hidden[0].tolist()],
                      "mean": [round(x, 7) for x in hidden.mean(0).tolist()],
                      "last": [round(x, 7) for x in hidden[-1].tolist()]})
    out.write_text(json.dumps({"config": {"model_type": "bert", **CONFIG}, "cases": cases}, separators=(",", ":")) + "\n")


TEXTS = ["a", "Hello", "hello", "Hello, world!", "The cat sits on the mat.", "A dog is running in the park.",
         "How tall is the Eiffel tower?", "Its height is about 300 metres.", "Wie hoch ist der Eiffelturm?",
         "Café déjà vu naïve résumé", "東京は日本の首都です。", "Москва — столица России", "😀 emoji 👩‍👩‍👧 family",
         "supercalifragilisticexpialidocious antidisestablishmentarianism", "   spaces \t and\nnewlines  ",
         "1,234.56 + 7e-8 = ?", "http://example.com/path?query=1&x=MASK", "don't can't won't it's",
         "İstanbul ǅ ﬁ ½ ①", "'quotes' \"double\" (brackets) {braces} <tags/>",
         " ".join(["The quick brown fox jumps over the lazy dog."] * 6),
         " ".join(f"Sentence number {i} says something about topic {i * 7 % 13}." for i in range(20)),
         " ".join(f"word{i}" for i in range(90)), " ".join(["long"] * 400), "zqxjkvbp " * 60]


def model(folder, out):
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    bert = BertModel.from_pretrained(folder, add_pooling_layer=False).float().eval()
    with out.open("w") as lines:
        for text in TEXTS:
            ids = tokenizer.encode(text).ids
            assert len(ids) <= 512, len(ids)
            with torch.no_grad():
                mean = bert(torch.tensor([ids])).last_hidden_state[0].mean(0)
            values = (mean / mean.norm()).numpy().astype("<f4")
            line = {"text": text, "ids": ids, "embedding": base64.b64encode(values.tobytes()).decode()}
            lines.write(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n")


if sys.argv[1] == "tiny":
    tiny(pathlib.Path(sys.argv[2]))
else:
    model(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
