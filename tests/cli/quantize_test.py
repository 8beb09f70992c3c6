#!/usr/bin/env python3
"""octavo quantize from outside: what it writes, refuses and leaves behind."""

import json
import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))
from bounded_run import bounded_run  # noqa: E402

TINY = ROOT / "tests/data/tiny/llama-tied"
F32 = TINY / "llama-tied-F32.gguf"
BINARY = os.environ["OCTAVO_BINARY"]
LIMIT_S = 240
PROMPT = "1,2,3,4,5"
TYPES = ["q8_0", "q6_k", "q5_k", "q4_k", "q5_1", "q5_0", "q4_1", "q4_0", "f16", "bf16", "f32"]


class Quantize(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tmp = Path(folder.name)
        self.out = self.tmp / "out.gguf"

    def octavo(self, *args, **kwargs):
        kept = {k: v for k, v in os.environ.items() if not k.startswith("OCTAVO_") or k == "OCTAVO_ISA"}
        return bounded_run([BINARY, *map(str, args)], LIMIT_S, text=True,
                           env={**kept, "XDG_CACHE_HOME": str(self.tmp / "cache")}, **kwargs)

    def ok(self, *args):
        run = self.octavo(*args)
        self.assertEqual(0, run.returncode, run.stderr)
        return run

    def refused(self, code, words, *args, **kwargs):
        run = self.octavo(*args, **kwargs)
        self.assertEqual(code, run.returncode, run.stderr)
        for word in words:
            self.assertIn(word, run.stderr)

    def left(self):
        return sorted(p.name for p in self.tmp.iterdir() if p.name != "cache")

    def tokens(self, model):
        answer = self.ok("generate", model, "--prompt-token-ids", PROMPT, "--max-tokens", 12, "--temperature", 0,
                         "--ignore-eos", "--json", "--no-pack-cache")
        return json.loads(answer.stdout)["outputs"][0]["token_ids"]

    def test_every_type_is_written_and_generates(self):
        for kind in TYPES:
            with self.subTest(kind):
                run = self.ok("quantize", F32, self.out, "--type", kind, "--overwrite")
                self.assertRegex(run.stdout, r"^type +tensors +before +after +rms error\n")
                self.assertEqual(12, len(self.tokens(self.out)))

    def test_a_copy_generates_the_same(self):
        self.ok("quantize", F32, self.out, "--type", "f32")
        self.assertEqual(self.tokens(F32), self.tokens(self.out))

    def test_q8_0_generates_what_another_programs_file_does(self):
        self.ok("quantize", F32, self.out, "--type", "q8_0")
        self.assertEqual(self.tokens(TINY / "llama-tied-Q8_0.gguf"), self.tokens(self.out))

    def test_several_files_are_one_model(self):
        run = self.ok("quantize", F32, self.out, "--type", "q8_0", "--max-shard-size", "40000", "--json")
        result = json.loads(run.stdout)
        names = self.left()
        self.assertGreater(len(names), 2)
        self.assertEqual([f"out-{i:05}-of-{len(names):05}.gguf" for i in range(1, len(names) + 1)], names)
        self.assertEqual([str(self.tmp / name) for name in names], result["files"])
        self.assertEqual(sum((self.tmp / name).stat().st_size for name in names), result["file_bytes"])
        expected = self.tokens(TINY / "llama-tied-Q8_0.gguf")
        for name in (names[0], names[1], names[-1]):
            self.assertEqual(expected, self.tokens(self.tmp / name))
        shown = json.loads(self.ok("inspect", self.tmp / names[1], "--json").stdout)
        self.assertEqual(result["files"], [part["path"] for part in shown["files"]])
        self.assertEqual(len(json.loads(self.ok("inspect", F32, "--json").stdout)["tensors"]), len(shown["tensors"]))
        self.assertIn(f"Files ({len(names)}):", self.ok("inspect", self.tmp / names[0]).stdout)
        # One file of them again, and refusals: what is read is not written, what is there stays.
        whole = self.tmp / "whole.gguf"
        self.ok("quantize", self.tmp / names[0], whole, "--type", "q8_0")
        self.assertEqual(expected, self.tokens(whole))
        self.refused(2, [names[0], "is there already"], "quantize", F32, self.out, "--type", "q8_0",
                     "--max-shard-size", "40000")
        self.refused(2, ["is a file that is read"], "quantize", self.tmp / names[0], self.tmp / names[1], "--type",
                     "q8_0", "--overwrite")
        (self.tmp / names[1]).unlink()
        self.refused(3, ["1 of the", names[1]], "inspect", self.tmp / names[0])

    def test_what_fits_into_one_file_is_one(self):
        self.ok("quantize", F32, self.out, "--type", "q8_0", "--max-shard-size", "1000000000")
        self.assertEqual(["out.gguf"], self.left())

    def test_json_has_sizes_errors_and_perplexity(self):
        windows = self.tmp / "windows.json"
        windows.write_text(json.dumps({"windows": [list(range(5, 60)), list(range(100, 160))]}))
        run = self.ok("quantize", F32, self.out, "--type", "q8_0", "--json", "--perplexity", windows)
        result = json.loads(run.stdout)
        self.assertEqual(F32.stat().st_size, result["file_bytes_before"])
        self.assertEqual(self.out.stat().st_size, result["file_bytes"])
        self.assertEqual(0, result["types"]["f32"]["relative_rms_error"])
        self.assertTrue(0.001 < result["types"]["q8_0"]["relative_rms_error"] < 0.01, result)
        self.assertAlmostEqual(1, result["perplexity"]["after"] / result["perplexity"]["before"], delta=0.02)

    def test_a_folder_generates_what_its_file_does(self):
        self.ok("quantize", TINY, self.out, "--type", "q8_0", "--pure")
        self.assertEqual(self.tokens(TINY / "llama-tied-Q8_0.gguf"), self.tokens(self.out))
        self.ok("quantize", TINY, self.out, "--type", "f32", "--overwrite")
        self.assertEqual(self.tokens(TINY), self.tokens(self.out))

    def test_a_folder_has_figures_too(self):
        windows = self.tmp / "windows.json"
        windows.write_text(json.dumps({"windows": [list(range(5, 60)), list(range(100, 160))]}))
        run = self.ok("quantize", TINY, self.out, "--type", "q8_0", "--json", "--perplexity", windows)
        result = json.loads(run.stdout)
        self.assertEqual((TINY / "model.safetensors").stat().st_size, result["file_bytes_before"])
        self.assertTrue(0.001 < result["types"]["q8_0"]["relative_rms_error"] < 0.01, result)
        self.assertAlmostEqual(1, result["perplexity"]["after"] / result["perplexity"]["before"], delta=0.02)

    def test_a_folder_that_cannot_be_used_is_refused(self):
        folder = self.tmp / "folder"
        shutil.copytree(TINY, folder)
        for name, key, value, word in [("config.json", "num_attention_heads", 7, "heads"),
                                       ("config.json", "num_hidden_layers", 7, "is missing"),
                                       ("config.json", "new_kind_of_norm", True, "new_kind_of_norm"),
                                       ("tokenizer.json", "normalizer", {"type": "Lowercase"}, "cannot say"),
                                       ("tokenizer.json", "added_tokens", [{"id": 9999, "content": "x"}], "9999")]:
            with self.subTest((name, key)):
                path = folder / name
                before = path.read_text()
                path.write_text(json.dumps(json.loads(before) | {key: value}))
                run = self.octavo("quantize", folder, self.out, "--type", "q8_0")
                self.assertNotEqual(0, run.returncode)
                self.assertIn(word, run.stderr)
                path.write_text(before)
        self.assertEqual(["folder"], self.left())

    def test_a_file_of_the_folder_is_not_written(self):
        folder = self.tmp / "folder"
        shutil.copytree(TINY, folder)
        weights = folder / "model.safetensors"
        before = weights.read_bytes()
        self.refused(2, ["is a file that is read"], "quantize", folder, weights, "--type", "q8_0", "--overwrite")
        self.assertEqual(before, weights.read_bytes())

    def test_a_large_folder_needs_the_memory_of_one_tensor(self):
        if b"san_init" in Path(BINARY).read_bytes():
            self.skipTest("sanitizers keep shadow memory of their own")
        folder = large_folder(self.tmp / "large")
        self.assertGreater((folder / "model.safetensors").stat().st_size, 3 * LARGE_LIMIT)

        def little_memory():
            resource.setrlimit(resource.RLIMIT_DATA, (LARGE_LIMIT, LARGE_LIMIT))

        run = self.octavo("quantize", folder, self.out, "--type", "q4_0", "--threads", 1, preexec_fn=little_memory)
        self.assertEqual(0, run.returncode, run.stderr)

    def test_what_a_kill_leaves_goes_with_the_next_run(self):
        big = self.tmp / "big.gguf"
        content = big_model()
        with open(big, "wb") as file:
            file.write(content)
            file.truncate(len(content) + BIG_COLS * BIG_ROWS * 4)
        run = subprocess.Popen([BINARY, "quantize", big, self.out, "--type", "q4_k", "--threads", "1"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            end = time.monotonic() + LIMIT_S
            while not (left := [name for name in self.left() if name.endswith(".part")]):
                self.assertIsNone(run.poll())
                self.assertLess(time.monotonic(), end)
                time.sleep(0.005)
            # One that is at work keeps its own.
            self.ok("quantize", F32, self.out, "--type", "q8_0")
            self.assertIn(left[0], self.left())
        finally:
            run.kill()
            run.wait(LIMIT_S)
        self.assertIn(left[0], self.left())
        self.ok("quantize", F32, self.out, "--type", "q8_0", "--overwrite")
        self.assertEqual(["big.gguf", "out.gguf"], self.left())

    def test_notes(self):
        run = self.ok("quantize", F32, self.out, "--type", "q4_k")
        self.assertRegex(run.stderr, r"note: '[a-z0-9_.]+' is q[58]_0: its rows of [0-9]+ are no whole number of q[46]_k's")
        run = self.ok("quantize", TINY / "llama-tied-Q8_0.gguf", self.tmp / "again.gguf", "--type", "q4_0", "--pure")
        self.assertIn("are quantised already", run.stderr)

    def test_places(self):
        self.refused(2, ["--type"], "quantize", F32, self.out)
        self.out.write_bytes(F32.read_bytes())
        self.refused(2, ["--overwrite"], "quantize", F32, self.out, "--type", "q8_0")
        link = self.tmp / "link.gguf"
        link.symlink_to(self.out)
        for other in [self.out, link]:
            self.refused(2, ["is a file that is read"], "quantize", self.out, other, "--type", "q8_0", "--overwrite")
        self.assertEqual(F32.read_bytes(), self.out.read_bytes())
        self.refused(2, ["regular file"], "quantize", F32, self.tmp, "--type", "q8_0", "--overwrite")
        run = self.octavo("quantize", F32, self.tmp / "none/out.gguf", "--type", "q8_0")
        self.assertNotEqual(0, run.returncode)
        self.assertIn("its folder is not there", run.stderr)
        self.assertEqual(["link.gguf", "out.gguf"], self.left())

    def test_a_full_disk_leaves_nothing(self):
        def small_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (50000, 50000))

        run = self.octavo("quantize", F32, self.out, "--type", "q8_0", preexec_fn=small_files, restore_signals=False)
        self.assertIn("no room", run.stderr)
        self.assertIn("[resource_exhausted]", run.stderr)
        self.assertEqual([], self.left())

    def test_ctrl_c_leaves_nothing(self):
        # A model of zeros that takes long enough, without its bytes on disk.
        big = self.tmp / "big.gguf"
        content = big_model()
        with open(big, "wb") as file:
            file.write(content)
            file.truncate(len(content) + BIG_COLS * BIG_ROWS * 4)
        for number in [signal.SIGINT, signal.SIGTERM]:
            run = subprocess.Popen([BINARY, "quantize", big, self.out, "--type", "q4_k", "--threads", "1"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            try:
                end = time.monotonic() + LIMIT_S
                while not any(name.endswith(".part") for name in self.left()):
                    self.assertIsNone(run.poll())
                    self.assertLess(time.monotonic(), end)
                    time.sleep(0.005)
                run.send_signal(number)
                _, error = run.communicate(timeout=LIMIT_S)
            finally:
                run.kill()
            self.assertIn("[cancelled]", error)
            self.assertEqual(["big.gguf"], self.left())


BIG_COLS, BIG_ROWS = 4096, 1 << 17
LARGE_LIMIT = 128 << 20


def large_folder(folder):
    """A model of many queries' matrices, whose rows must be brought into another order. Its zeros are not on disk."""
    layers, hidden, query, rest = 14, 2048, 4096, 32
    shapes = {"model.embed_tokens.weight": [512, hidden], "model.norm.weight": [hidden]}
    for layer in range(layers):
        prefix = f"model.layers.{layer}."
        for name, rows, cols in [("q", query, hidden), ("k", 64, hidden), ("v", 64, hidden), ("o", hidden, query)]:
            shapes[f"{prefix}self_attn.{name}_proj.weight"] = [rows, cols]
        for name, rows, cols in [("gate", rest, hidden), ("up", rest, hidden), ("down", hidden, rest)]:
            shapes[f"{prefix}mlp.{name}_proj.weight"] = [rows, cols]
        for name in ["input", "post_attention"]:
            shapes[f"{prefix}{name}_layernorm.weight"] = [hidden]
    header, at = {}, 0
    for name, shape in shapes.items():
        end = at + 4 * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    folder.mkdir()
    with open(folder / "model.safetensors", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + at)
    config = {"model_type": "llama", "num_hidden_layers": layers, "hidden_size": hidden, "intermediate_size": rest,
              "num_attention_heads": 64, "num_key_value_heads": 1, "head_dim": 64, "rms_norm_eps": 1e-5,
              "max_position_embeddings": 512, "vocab_size": 512, "tie_word_embeddings": True}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_bytes((TINY / "tokenizer.json").read_bytes())
    return folder


def big_model():
    """The tables of a GGUF file with one matrix."""
    def text(value):
        return len(value).to_bytes(8, "little") + value

    row = text(b"blk.0.attn_q.weight") + (2).to_bytes(4, "little") + BIG_COLS.to_bytes(8, "little")
    row += BIG_ROWS.to_bytes(8, "little") + (0).to_bytes(4, "little") + (0).to_bytes(8, "little")
    head = b"GGUF" + (3).to_bytes(4, "little") + (1).to_bytes(8, "little") + (0).to_bytes(8, "little") + row
    return head + b"\0" * (-len(head) % 32)


if __name__ == "__main__":
    unittest.main()
