#!/usr/bin/env python3
"""Makes tests/data/tokenizer-json.tar.xz: small tokenizer.json files of every kind, and what Hugging
Face's `tokenizers` makes of hard texts with them.

    python3 -m venv venv && venv/bin/pip install tokenizers==0.23.3 sentencepiece==0.2.3
    venv/bin/python tools/make_tokenizer_data.py tests/data/tokenizer-json.tar.xz
"""
import io
import json
import random
import sys
import tarfile
import tempfile
from pathlib import Path

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders as D, models, normalizers as N
from tokenizers import pre_tokenizers as P, processors, trainers

WORDS = ("the of and to in is that for it as was with be by on not he his but at are this have from or had an they "
         "which one you were all her she there would their we him been has when who will no more if out so up said "
         "what its about than into them can only other time new some could these two may first then do any like now "
         "over such our man me even most made after also did many off before must well back through years much where "
         "your way down should because long each just state those people too how little good world make very year "
         "still see own work men day get here old life both between being under three never know same last another "
         "while us might great go come since against right came take used himself few house use place").split()
SCRIPTS = "日本語 中文 한국어 русский Привет мир ελληνικά café naïve ÀÉÎ straße don't I'll we've 12345 3.14 ... -- #!? x=1;".split()

TEXTS = [
    "", " ", "  ", "\n", "\t", "\r\n\r\n", " a", "a ", "  a  b   c    ", "Hello, World!", "hello world", "THE END OF IT",
    "don't I'LL we've he'S", "a.b,c;d:e!f?g", "3.14159 12345 x=1;", "１２３ ①② ½ Ⅻ", "snake_case foo_bar _x_",
    "naïve café ÀÉÎ", "e\u0301 a\u0300\u0301 o\u0308", "\u0301leading mark", "\u00c5 \u212b \u03a9 \u2126 \u212a", "\ufb01ne o\ufb03ce \ufdfa", "か゛ が カ゛ ｶﾞ",
    "\uac01 \u1100\u1161\u11a8 \u1100", "İstanbul ẞ ſ", "straße STRASSE", "ΟΔΥΣΣΕΥΣ ς", "日本語", "中文 和 English混合text", "한국어 문장",
    "русский Привет мир", "עברית العربية", "हिन्दी ไทย", "🙂", "👩‍👩‍👧 🇩🇪 👍🏽", "a🙂b", "zero\u200bwidth \u200d\u200c", "\u00a0nbsp\u3000ideographic\u2003em",
    "line\u2028sep\u2029para\u0085next", "\ufeffbom \ufffd", "\x00nul\x01\x1f\x7f", "tab\tand\x0bvt\x0cff", "▁meta ▁▁ a▁b", "ĠByte Ċ", "##ing un##able",
    "<s>", "</s>text", "a<s>b</s>c", "<unk> [UNK] <0x41>", "[CLS] [SEP] [cls]", "x <sp> y", "<sp><sp>", "\u3000<sp>\u00a0z", " <b> c", "the theory the",
    "foo_bar foo_bars", "Café cafe CAFÉ", "aab ab  aab", "<B><b>", "$5 a+b ~`^|<>", "``quoted'' text", "a" * 101, "ab" * 40,
    "of and to in is that for it as was with", "aaaa    bbbb\n\n\ncccc  ", "mixed 日本 and мир 12 🙂 e\u0301!", "http://x.y/z?q=1&r=%20", "def f(x):\n    return x**2\n", "…“quotes”—dash",
]


def corpus():
    rng = random.Random(7)
    lines = []
    for _ in range(1200):
        words = [rng.choice(WORDS if rng.random() < 0.8 else SCRIPTS) for _ in range(rng.randint(3, 12))]
        lines.append(" ".join(w.capitalize() if rng.random() < 0.1 else w for w in words) + rng.choice([".", "!", "\n", ""]))
    return lines


CORPUS = corpus()
SPECIAL = ["<unk>", "<s>", "</s>"]
LLAMA_DECODER = [D.Replace("▁", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)]
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")


def assemble(tokenizer, normalizer=None, pre=None, decoder=None):
    for part, value in (("normalizer", normalizer), ("pre_tokenizer", pre), ("decoder", decoder)):
        if value is not None:
            setattr(tokenizer, part, value)
    return tokenizer


def with_bytes(tokenizer):
    """Adds <0x00> to <0xFF>."""
    data = json.loads(tokenizer.to_str())
    vocab = data["model"]["vocab"]
    size = len(vocab)
    for byte in range(256):
        name = f"<0x{byte:02X}>"
        if isinstance(vocab, list):
            vocab.append([name, -20 - byte / 1000])
        else:
            vocab[name] = size + byte
    data["model"]["byte_fallback"] = True
    return Tokenizer.from_str(json.dumps(data))


def bpe(size=420, byte_level=False, train=None, **kwargs):
    def build(*parts):
        model = models.BPE(**kwargs) if byte_level else models.BPE(unk_token="<unk>", **kwargs)
        tokenizer = assemble(Tokenizer(model), *parts)
        alphabet = P.ByteLevel.alphabet() if byte_level else []
        tokenizer.train_from_iterator(CORPUS, trainers.BpeTrainer(
            vocab_size=size, special_tokens=SPECIAL, initial_alphabet=alphabet, limit_alphabet=90,
            show_progress=False, **(train or {})))
        return tokenizer
    return build


def unigram(*parts, size=260):
    tokenizer = assemble(Tokenizer(models.Unigram()), *parts)
    tokenizer.train_from_iterator(CORPUS, trainers.UnigramTrainer(
        vocab_size=size, special_tokens=SPECIAL, unk_token="<unk>", show_progress=False))
    return tokenizer


def protobuf_fields(data):
    """(number, bytes) of the fields that have a length."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = varint()
        if key & 7 == 2:
            size = varint()
            yield key >> 3, data[at:at + size]
            at += size
        elif key & 7 == 0:
            varint()
        else:
            at += 4 if key & 7 == 5 else 8


def charsmap():
    """A small character map, compiled by SentencePiece."""
    rules = {"Ａ": "A", "①": "1", "②": "2", "½": "1/2", "ﬁ": "fi", "ﬃ": "ffi", "\t": " ", "\n": " ", "\u3000": " ", "\u00a0": " ",
             "\u200b": " ", "e\u0301": "é", "か\u3099": "が", "ｶ\uff9e": "ガ", "\x01": "", "\x7f": "", "\u2126": "\u03a9", "…": "...", "１": "1",
             "２": "2", "３": "3", "\u212b": "\u00c5", "🙂": ":)"}
    with tempfile.TemporaryDirectory() as folder:
        table, text = Path(folder, "rules.tsv"), Path(folder, "text")
        table.write_text("".join(" ".join(f"{ord(c):X}" for c in k) + "\t" + " ".join(f"{ord(c):X}" for c in v) + "\n"
                                 for k, v in rules.items()))
        text.write_text("\n".join(line.strip() for line in CORPUS))
        sentencepiece.SentencePieceTrainer.train(input=str(text), model_prefix=folder + "/m", vocab_size=300, minloglevel=2,
                                                 hard_vocab_limit=False, normalization_rule_tsv=str(table))
        model = Path(folder, "m.model").read_bytes()
        pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
        vocab = [(pieces.id_to_piece(i), pieces.get_score(i)) for i in range(pieces.get_piece_size())]
    spec = next(v for k, v in protobuf_fields(model) if k == 3)
    return vocab, next(v for k, v in protobuf_fields(spec) if k == 2)


def t5():
    vocab, table = charsmap()
    tokenizer = assemble(Tokenizer(models.Unigram(vocab, unk_id=0)),
                         N.Sequence([N.Precompiled(table), N.Replace(Regex(" {2,}"), " ")]),
                         P.Sequence([P.WhitespaceSplit(), P.Metaspace()]), D.Metaspace())
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)])
    return tokenizer


def wordpiece(normalizer):
    tokenizer = assemble(Tokenizer(models.WordPiece(unk_token="[UNK]")), normalizer, P.BertPreTokenizer(), D.WordPiece())
    tokenizer.train_from_iterator(CORPUS, trainers.WordPieceTrainer(
        vocab_size=420, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]"], show_progress=False))
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


def with_added(tokenizer):
    tokenizer.add_tokens([
        AddedToken("foo_bar", single_word=True, normalized=False), AddedToken("the", single_word=True, normalized=True),
        AddedToken("ab", normalized=False), AddedToken("aab", normalized=True, lstrip=True),
        AddedToken("<b>", rstrip=True, normalized=False), AddedToken("Café", normalized=True),
        AddedToken("   ", normalized=False)])
    tokenizer.add_special_tokens([AddedToken("<sp>", lstrip=True, rstrip=True, normalized=False),
                                  AddedToken("<s>b", normalized=False)])
    return tokenizer


def word_level():
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(["<unk>"] + WORDS)}, unk_token="<unk>"))
    return assemble(tokenizer, N.Lowercase(), P.Sequence([P.CharDelimiterSplit(" "), P.Punctuation("removed")]))


def roberta():
    tokenizer = bpe(byte_level=True)(None, P.ByteLevel(add_prefix_space=True), D.ByteLevel())
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 1))
    return tokenizer


def kinds():
    marked = N.Sequence([N.Prepend("▁"), N.Replace(" ", "▁")])
    split = P.Sequence([P.Split(Regex(LLAMA3), "isolated"), P.ByteLevel(add_prefix_space=False, use_regex=False)])
    affixes = dict(end_of_word_suffix="</w>", continuing_subword_prefix="##")
    yield "wordpiece_uncased", wordpiece(N.BertNormalizer())
    yield "wordpiece_cased_added", with_added(wordpiece(N.BertNormalizer(lowercase=False, strip_accents=False)))
    yield "unigram_t5", t5()
    yield "unigram_nfkc_first", unigram(N.Sequence([N.NFKC(), N.Lowercase(), N.Replace(Regex(" {2,}"), " ")]),
                                        P.Metaspace(prepend_scheme="first"), D.Metaspace(prepend_scheme="first"))
    yield "unigram_albert", unigram(
        N.Sequence([N.Replace("``", '"'), N.Replace("''", '"'), N.NFKD(), N.StripAccents(), N.Lowercase(), N.Strip()]),
        P.Metaspace(), D.Metaspace())
    yield "unigram_bytes_added", with_added(with_bytes(unigram(marked, None, D.Sequence(LLAMA_DECODER))))
    yield "bpe_roberta", roberta()
    yield "bpe_llama3", bpe(byte_level=True, ignore_merges=True)(None, split, D.ByteLevel())
    yield "bpe_nfc_added", with_added(bpe(byte_level=True)(N.NFC(), split, D.ByteLevel()))
    yield "bpe_behaviors", bpe(byte_level=True)(
        N.NFD(), P.Sequence([P.Split(" ", "merged_with_previous"), P.Digits(individual_digits=False),
                             P.Punctuation("merged_with_next"), P.Split(Regex("[aeiou]+"), "contiguous"),
                             P.ByteLevel(add_prefix_space=True)]), D.ByteLevel())
    yield "bpe_llama2_added", with_added(with_bytes(bpe(fuse_unk=True, size=300)(marked, None, D.Sequence(LLAMA_DECODER))))
    yield "bpe_gemma", with_bytes(bpe(fuse_unk=True, size=300)(
        N.Replace(" ", "▁"), P.Split(" ", "merged_with_previous"), D.Sequence(LLAMA_DECODER[:3])))
    yield "bpe_affixes", bpe(size=300, train=affixes, **affixes)(N.Lowercase(), P.Whitespace())
    yield "bpe_unknown", bpe(size=300, fuse_unk=True)(N.NFKD(), P.WhitespaceSplit())
    yield "bpe_byte_normalizer", bpe(byte_level=True)(
        N.ByteLevel(), P.Split(Regex("Ġ"), "merged_with_next"), D.ByteLevel())
    yield "word_level", word_level()


def results(tokenizer, special):
    """Ids, and the text of them; control tokens are shown where they are added."""
    ids = [tokenizer.encode(text, add_special_tokens=special).ids for text in TEXTS]
    return [[i, tokenizer.decode(i, skip_special_tokens=not special)] for i in ids]


def main(path):
    with tarfile.open(path, "w:xz") as archive:
        def add(name, value):
            data = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
            entry = tarfile.TarInfo("tokenizer_json/" + name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
        add("texts.json", TEXTS)
        for name, tokenizer in kinds():
            add(name + ".json", {"tokenizer": json.loads(tokenizer.to_str()), "plain": results(tokenizer, False),
                                 "special": results(tokenizer, True)})


if __name__ == "__main__":
    main(sys.argv[1])
