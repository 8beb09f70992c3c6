#!/usr/bin/env python3
"""Runs the real program: what it prints, what it refuses, and how it ends.

Needs OCTAVO_BINARY, OCTAVO_TEST_UNPACKED and the model that scripts/fetch-model fetches.
"""

import atexit
import contextlib
import json
import math
import os
import pty
import re
import resource
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))
from bounded_run import bounded_run  # noqa: E402

DATA = ROOT / "tests/data"
TINY = DATA / "tiny/llama-tied/llama-tied-F32.gguf"
CONFIG = DATA / "tiny/llama-tied/config.json"
BINARY = os.environ["OCTAVO_BINARY"]
UNPACKED = Path(os.environ["OCTAVO_TEST_UNPACKED"])
SMOLLM2 = "smollm2-135m"
LIMIT_S = 240  # of one run: a hang fails, slowness of the machine does not

ERROR_LINE = re.compile(r"octavo: error: [^\n]+ \[([a-z_]+)\]\n")
# Said on machines where only the plain path runs, or with few cores; right, but not what these tests look at.
SLOW_NOTE = re.compile(r"octavo: note: (this CPU has no AVX2|--threads)[^\n]*\n")
# Where a machine, or a sanitizer, takes so long that whoever waits is told of progress.
SLOW_WORK = re.compile(r"octavo: [^\n]*\d+ (of \d+|lines)[^\n]*\n")


# The fetched model under a cache folder of the tests' own, so that no pack file of theirs reaches the user's.
MODELS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "octavo/models"
CACHE = tempfile.TemporaryDirectory()
atexit.register(CACHE.cleanup)


def cache_folder(path):
    (path / "octavo").mkdir(parents=True)
    (path / "octavo/models").symlink_to(MODELS)
    return path


cache_folder(Path(CACHE.name) / "cache")


def environment(extra=None):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("OCTAVO_") or k == "OCTAVO_ISA"}
    return {**kept, "XDG_CACHE_HOME": CACHE.name + "/cache", **(extra or {})}


def octavo(*args, stdin=b"", env=None):
    stdin = stdin.encode() if isinstance(stdin, str) else stdin
    run = bounded_run([BINARY, *map(str, args)], LIMIT_S, stdin, env=environment(env))
    run.error = SLOW_NOTE.sub("", run.stderr.decode())
    return run


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tmp = Path(folder.name)

    def ok(self, *args, **kwargs):
        """The standard output of a run that must succeed and say nothing else."""
        run = octavo(*args, **kwargs)
        self.assertEqual((0, ""), (run.returncode, SLOW_WORK.sub("", run.error)), args)
        return run.stdout.decode()

    def json(self, *args, **kwargs):
        text = self.ok(*args, "--json", **kwargs)
        self.assertTrue(text.endswith("}\n"), text[-100:])
        return json.loads(text)

    def refused(self, code, words, *args, **kwargs):
        run = octavo(*args, **kwargs)
        self.assertEqual(code, run.returncode, (args, run.error))
        self.assertEqual(b"", run.stdout, args)
        self.assertRegex(run.error, re.compile(f"^{ERROR_LINE.pattern}$"), args)
        for word in words:
            self.assertIn(word, run.error, args)


class Refused(Case):
    def test_command_lines(self):
        (self.tmp / "text.txt").write_text("Some words to predict.")
        places = {"{none}": self.tmp / "none.gguf", "{model}": TINY, "{config}": CONFIG,
                  "{text}": self.tmp / "text.txt"}

        def filled(arg):
            for name, path in places.items():
                arg = arg.replace(name, str(path))
            return arg

        cases = json.loads((ROOT / "tests/cli/refused.json").read_text())["cases"]
        self.assertGreater(len(cases), 50)
        for case in cases:
            with self.subTest(args=case["args"]):
                text, count = case.get("stdin_repeat", [case.get("stdin", ""), 1])
                stdin = (text * count).encode(case.get("stdin_encoding", "utf-8"))
                self.refused(case["code"], case["words"], *map(filled, case["args"]), stdin=stdin, env=case.get("env"))

    def test_a_prompt_that_is_not_utf8(self):
        self.refused(2, ["--prompt", "not UTF-8 at byte 1"], "generate", TINY, "--prompt", os.fsdecode(b"a\xff"))

    def test_what_kubernetes_says_of_a_service_is_a_warning(self):
        run = octavo("serve", self.tmp / "none.gguf", "--uds", self.tmp / "socket",
                     env={"OCTAVO_PORT": "tcp://10.96.0.12:8000", "OCTAVO_SERVICE_PORT": "8000"})
        warning, error = run.error.splitlines()
        self.assertTrue(warning.startswith("octavo: warning: OCTAVO_PORT is 'tcp://10.96.0.12:8000'"), warning)
        self.assertIn("none.gguf", error)


def tensor_row(content, name):
    """Offsets of a tensor's type and data offset in a GGUF file's table."""
    spelled = struct.pack("<Q", len(name)) + name
    at = content.index(spelled) + len(spelled)
    (rank,) = struct.unpack_from("<I", content, at)
    return at + 4 + 8 * rank, at + 8 + 8 * rank


def patched(content, at, packed):
    return content[:at] + packed + content[at + len(packed):]


class DamagedFiles(Case):
    """Copies of a good file with some bytes changed."""

    def setUp(self):
        super().setUp()
        self.good = TINY.read_bytes()

    def damaged(self, content):
        path = self.tmp / "damaged.gguf"
        path.write_bytes(content)
        return path

    def refuses(self, code, words, content):
        path = self.damaged(content)
        self.refused(code, words, "generate", path, "--prompt", "a", "--max-tokens", "1")

    def test_empty(self):
        self.refuses(5, ["empty"], b"")

    def test_truncated_anywhere(self):
        for size in (1, 4, 8, 20, 23, 24, 100, 5000, len(self.good) // 2, len(self.good) - 1):
            with self.subTest(size=size):
                self.refuses(5, ["damaged.gguf"], self.good[:size])

    def test_wrong_magic_and_version(self):
        self.refuses(5, ["damaged.gguf"], b"GGML" + self.good[4:])
        self.refuses(6, ["version"], patched(self.good, 4, struct.pack("<I", 99)))

    def test_absurd_counts(self):
        for count in (2**20, 2**32, 2**60, 2**63, 2**64 - 1):
            for at in (8, 16):
                with self.subTest(count=count, at=at):
                    self.refuses(5, ["damaged.gguf"], patched(self.good, at, struct.pack("<Q", count)))
            # The length of the first key.
            with self.subTest(key_length=count):
                self.refuses(5, ["damaged.gguf"], patched(self.good, 24, struct.pack("<Q", count)))

    def test_an_array_longer_than_the_file(self):
        at = self.good.index(b"tokenizer.ggml.tokens") + len(b"tokenizer.ggml.tokens") + 8
        self.assertEqual(512, struct.unpack_from("<Q", self.good, at)[0])
        for count in (513, 2**40, 2**64 - 1):
            with self.subTest(count=count):
                self.refuses(5, ["damaged.gguf"], patched(self.good, at, struct.pack("<Q", count)))

    def test_unknown_architecture(self):
        at = self.good.index(b"general.architecture") + len(b"general.architecture") + 12
        self.assertEqual(b"llama", self.good[at:at + 5])
        self.refuses(6, ["'mamba'", "llama"], patched(self.good, at, b"mamba"))

    def test_missing_tensor(self):
        for name in (b"output_norm.weight", b"blk.1.ffn_down.weight", b"token_embd.weight"):
            with self.subTest(name=name):
                other = name[:-1] + b"x"
                run = octavo("generate", self.damaged(self.good.replace(name, other)), "--prompt", "a")
                self.assertIn(run.returncode, (5, 6), run.error)
                self.assertRegex(run.error, re.compile(f"^{ERROR_LINE.pattern}$"))
                self.assertIn(name.decode()[:-1], run.error)

    def test_a_tensor_past_the_end(self):
        _, offset_at = tensor_row(self.good, b"output_norm.weight")
        for offset in (len(self.good) // 32 * 32, 2**40, 2**63, 2**64 - 32):
            with self.subTest(offset=offset):
                self.refuses(5, ["output_norm.weight"], patched(self.good, offset_at, struct.pack("<Q", offset)))

    def test_unknown_tensor_type(self):
        type_at, _ = tensor_row(self.good, b"output_norm.weight")
        run = octavo("inspect", self.damaged(patched(self.good, type_at, struct.pack("<I", 999))))
        self.assertIn(run.returncode, (5, 6))
        self.assertIn("output_norm.weight", run.error)

    def test_an_unknown_pretokenizer(self):
        at = self.good.index(b"tokenizer.ggml.pre") + len(b"tokenizer.ggml.pre") + 4
        (length,) = struct.unpack_from("<Q", self.good, at)
        self.refuses(6, ["x" * length], patched(self.good, at + 8, b"x" * length))

    def test_weights_that_are_not_numbers(self):
        _, offset_at = tensor_row(self.good, b"output_norm.weight")
        (offset,) = struct.unpack_from("<Q", self.good, offset_at)
        size = json.loads(self.ok("inspect", TINY, "--json"))["tensors"]
        data_at = len(self.good) - sum((t["bytes"] + 31) // 32 * 32 for t in size)
        self.refuses(10, [], patched(self.good, data_at + offset, struct.pack("<f", math.nan)))

    def test_a_vocabulary_is_no_model(self):
        vocabulary = UNPACKED / "qwen2-vocab.gguf"
        run = octavo("generate", vocabulary, "--prompt", "a")
        self.assertIn(run.returncode, (5, 6), run.error)
        self.assertRegex(run.error, re.compile(f"^{ERROR_LINE.pattern}$"))

    def test_no_byte_of_the_header_crashes(self):
        """Bytes of metadata and tensor table, set to 255: any ending but a signal or a fault of ours."""
        end = self.good.index(b"output_norm.weight")
        for at in range(0, end, 971):
            path = self.damaged(patched(self.good, at, b"\xff"))
            run = octavo("generate", path, "--prompt", "a", "--max-tokens", "1")
            self.assertIn(run.returncode, (0, 2, 5, 6, 7, 8), (at, run.error))
            self.assertEqual(1 if run.returncode else 0, run.error.count("\n"), (at, run.error))


class Generate(Case):
    PROMPT = ("--prompt", "The sky is")

    def test_json_has_the_named_fields(self):
        out = self.json("generate", TINY, *self.PROMPT, "--max-tokens", "5", "--n", "2", "--seed", "4")
        self.assertEqual("The sky is", out["prompt"])
        self.assertIsNone(out["prompt_logprobs"])
        self.assertEqual(4, out["seed"])
        self.assertEqual([0, 1], [c["index"] for c in out["outputs"]])
        for choice in out["outputs"]:
            self.assertEqual({"index", "text", "token_ids", "cumulative_logprob", "logprobs", "finish_reason", "stop_reason"},
                         set(choice))
            self.assertIsNone(choice["logprobs"])
            self.assertIn(choice["finish_reason"], ("stop", "length"))
            self.assertLessEqual(len(choice["token_ids"]), 5)
        self.assertEqual(sum(len(c["token_ids"]) for c in out["outputs"]), out["usage"]["completion_tokens"])
        self.assertEqual(json.loads(self.ok("tokenize", TINY, stdin="The sky is")), out["prompt_token_ids"])

    def test_token_ids_as_prompt_are_used_as_they_are(self):
        out = self.json("generate", TINY, "--prompt-token-ids", "7,8,9", "--max-tokens", "2")
        self.assertEqual([7, 8, 9], out["prompt_token_ids"])
        self.assertIsNone(out["prompt"])

    def test_logprobs(self):
        out = self.json("generate", TINY, *self.PROMPT, "--max-tokens", "4", "--ignore-eos",
                        "--logprobs", "3", "--prompt-logprobs", "2")
        prompt = out["prompt_logprobs"]
        self.assertEqual(len(out["prompt_token_ids"]), len(prompt))
        self.assertIsNone(prompt[0])
        choice = out["outputs"][0]
        self.assertEqual(4, len(choice["logprobs"]))
        places = list(zip(out["prompt_token_ids"][1:], prompt[1:], [2] * 9)) + list(
            zip(choice["token_ids"], choice["logprobs"], [3] * 9))
        for token, place, k in places:
            self.assertIn(str(token), place)
            self.assertIn(len(place), (k, k + 1))
            ranks = [e["rank"] for e in place.values()]
            self.assertEqual(sorted(ranks), ranks)
            self.assertEqual(list(range(1, k + 1)), ranks[:k])
            for entry in place.values():
                self.assertEqual({"logprob", "rank", "decoded_token"}, set(entry))
                self.assertLessEqual(entry["logprob"], 0)
                self.assertIsInstance(entry["decoded_token"], str)
        zero = self.json("generate", TINY, *self.PROMPT, "--max-tokens", "1", "--logprobs", "0")
        self.assertEqual([str(zero["outputs"][0]["token_ids"][0])], list(zero["outputs"][0]["logprobs"][0]))

    def test_text_is_the_text_of_json_and_nothing_else(self):
        args = ("generate", TINY, *self.PROMPT, "--max-tokens", "12", "--seed", "9")
        self.assertEqual(self.json(*args)["outputs"][0]["text"], self.ok(*args))

    def test_several_answers_come_one_after_the_other(self):
        args = ("generate", TINY, *self.PROMPT, "--max-tokens", "6", "--seed", "9", "--n", "3")
        texts = [c["text"] for c in self.json(*args)["outputs"]]
        self.assertGreater(len(set(texts)), 1)
        expected = "".join(f"--- answer {i} ---\n{t}" + ("" if t.endswith("\n") else "\n") for i, t in enumerate(texts))
        self.assertEqual(expected, self.ok(*args))

    def test_a_seed_reproduces_and_the_reported_seed_does(self):
        args = ("generate", TINY, *self.PROMPT, "--max-tokens", "16", "--temperature", "1")
        first = self.json(*args)
        again = self.json(*args, "--seed", first["seed"])
        self.assertEqual(first["outputs"], again["outputs"])
        other = self.json(*args, "--seed", first["seed"] + 1)
        self.assertNotEqual(first["outputs"], other["outputs"])

    def test_settings_of_the_engine_change_nothing(self):
        args = ("generate", TINY, "--prompt", "The sky is blue and the sun is out, said the fox", "--max-tokens", "40",
                "--temperature", "0", "--ignore-eos", "--logprobs", "2")
        expected = self.json(*args)["outputs"]
        for extra in (["--block-size", "16"], ["--block-size", "256"], ["--max-num-batched-tokens", "1"],
                      ["--max-num-batched-tokens", "7"], ["--threads", "1"], ["--threads", "3"], ["--kv-cache", "off"],
                      ["--enforce-eager"]):
            with self.subTest(extra=extra):
                self.assertEqual(expected, self.json(*args, *extra)["outputs"])
        for name, value in (("OCTAVO_BLOCK_SIZE", "64"), ("OCTAVO_KV_CACHE", "off")):
            with self.subTest(variable=name):
                self.assertEqual(expected, self.json(*args, env={name: value})["outputs"])

    def test_more_threads_than_cores_are_not_used_and_that_is_said(self):
        args = ("generate", TINY, *self.PROMPT, "--max-tokens", "1", "--threads")
        self.assertIn(b"note: --threads 1024 is more than the cores", octavo(*args, "1024").stderr)
        self.assertNotIn(b"note: --threads", octavo(*args, "1").stderr)

    def test_stop_strings(self):
        args = ("generate", SMOLLM2, *self.PROMPT, "--max-tokens", "24", "--temperature", "0", "--ignore-eos")
        whole = self.json(*args)["outputs"][0]
        self.assertEqual(("length", None), (whole["finish_reason"], whole["stop_reason"]))
        stop = whole["text"][9:13]
        at = whole["text"].index(stop)
        for extra, end in ((), at), (("--include-stop-str-in-output",), at + len(stop)):
            out = self.json(*args, "--stop", "never", "--stop", stop, *extra)["outputs"][0]
            self.assertEqual(whole["text"][:end], out["text"])
            self.assertEqual(("stop", stop), (out["finish_reason"], out["stop_reason"]))
            self.assertEqual(out["text"], self.ok(*args, "--stop", "never", "--stop", stop, *extra))
        token = whole["token_ids"][5]
        out = self.json(*args, "--stop-token-ids", token)["outputs"][0]
        self.assertEqual(("stop", token), (out["finish_reason"], out["stop_reason"]))

    def test_lengths(self):
        out = self.json("generate", TINY, *self.PROMPT, "--max-tokens", "0")["outputs"][0]
        self.assertEqual(("", [], "length"), (out["text"], out["token_ids"], out["finish_reason"]))
        out = self.json("generate", TINY, *self.PROMPT, "--ignore-eos", "--temperature", "0")
        self.assertEqual(256, out["usage"]["total_tokens"], "the default is the end of the context")
        whole = ",".join(["7"] * 256)
        out = self.json("generate", TINY, "--prompt-token-ids", whole, "--max-tokens", "0")
        self.assertEqual(256, out["usage"]["prompt_tokens"])

    def test_bias_decides(self):
        out = self.json("generate", SMOLLM2, *self.PROMPT, "--max-tokens", "2", "--temperature", "0",
                        "--logit-bias", "253=-100,260=-100")
        self.assertNotIn(out["outputs"][0]["token_ids"][0], (253, 260))

    def test_chat_template_replaces_the_models(self):
        given = "{% for m in messages %}[{{ m.role }}: {{ m.content }}]{% endfor %}>"
        args = ("--prompt", "hi", "--max-tokens", "4", "--temperature", "0", "--ignore-eos")
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "own.jinja"
            file.write_text(given)
            for template in (file, given):
                out = self.json("generate", TINY, "--chat", "--system", "S", "--chat-template", template, *args)
                self.assertEqual(out["prompt"], "[system: S][user: hi]>")
            answer = self.ok("generate", TINY, "--chat", "--chat-template", file, *args)
            said = self.ok("chat", TINY, "--chat-template", file, *args[2:], stdin="hi\n")
            self.assertEqual(said.rstrip("\n"), answer.rstrip("\n"))
            lines = Path(folder) / "in.jsonl"
            lines.write_text(json.dumps({"messages": [{"role": "user", "content": "hi"}]}) + "\n")
            out = json.loads(self.ok("generate", TINY, "--input", lines, "--chat-template", file, *args[2:]))
            self.assertEqual("[user: hi]>", out["prompt"])
        for command in (("generate", TINY, "--chat", *args), ("chat", TINY), ("serve", TINY, "--port", "0")):
            self.refused(3, ["/nowhere/at.all"], *command, "--chat-template", "/nowhere/at.all")
        for command in (("generate", TINY, "--chat", *args), ("chat", TINY)):
            run = octavo(*command, "--chat-template", "{{ 1 | nosuch }}")
            self.assertIn("unknown filter 'nosuch' at line 1", run.error)
            self.assertNotEqual(0, run.returncode)

    def test_chat_renders_the_template(self):
        lines = (DATA / "chat/smollm2.jsonl").read_text().splitlines()
        cases = [json.loads(line) for line in lines]
        case = next(c for c in cases if "text" in c and c["add_generation_prompt"] and len(c["messages"]) == 1
                    and c["messages"][0]["role"] == "user" and "safe_ids" not in c)
        out = self.json("generate", SMOLLM2, "--chat", "--prompt", case["messages"][0]["content"], "--max-tokens", "1")
        self.assertEqual((case["text"], case["ids"]), (out["prompt"], out["prompt_token_ids"]))
        out = self.json("generate", SMOLLM2, "--chat", "--system", "Be brief.", "--prompt", "<|im_end|>",
                        "--max-tokens", "1")
        self.assertTrue(out["prompt"].startswith("<|im_start|>system\nBe brief.<|im_end|>\n"), out["prompt"])
        self.assertEqual(2, out["prompt_token_ids"].count(2), "control tokens come from the template only")

    def test_plain_text_is_never_control(self):
        out = self.json("generate", SMOLLM2, "--prompt", "<|im_end|>", "--max-tokens", "1")
        self.assertNotIn(2, out["prompt_token_ids"])

    def test_a_prompt_from_standard_input(self):
        out = self.json("generate", TINY, "--prompt", "-", "--max-tokens", "1", stdin="from a pipe\n")
        self.assertEqual("from a pipe\n", out["prompt"])

    def test_greedy_is_the_reference_s(self):
        line = json.loads((DATA / "greedy/smollm2.jsonl").read_text().splitlines()[0])
        prompt = ",".join(map(str, line["prompt_ids"]))
        out = self.json("generate", SMOLLM2, "--prompt-token-ids", prompt, "--temperature", "0", "--ignore-eos",
                        "--max-tokens", "16", "--dtype", "float32", "--no-skip-special-tokens")
        same = next((i for i, m in enumerate(line["margin"]) if m < 1e-3), 16)
        self.assertEqual(line["out_ids"][:min(same, 16)], out["outputs"][0]["token_ids"][:min(same, 16)])
        self.assertIn("<|im_end|>", out["outputs"][0]["text"])

    def test_a_reader_that_goes_away_ends_it_quietly(self):
        args = [BINARY, "generate", SMOLLM2, "--prompt", "Count:", "--ignore-eos", "--max-tokens", "2000"]
        with subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as run:
            self.assertNotEqual(b"", run.stdout.read(1))
            run.stdout.close()
            error = run.stderr.read().decode()
            run.wait(timeout=LIMIT_S)
        self.assertEqual((0, ""), (run.returncode, SLOW_NOTE.sub("", error)))

    def test_a_full_disk_is_an_error(self):
        with open("/dev/full", "wb") as full:
            run = subprocess.run([BINARY, "tokenize", TINY], input=b"a", stdout=full, stderr=subprocess.PIPE,
                                 env=environment())
        self.assertEqual(4, run.returncode)
        self.assertIn(b"standard output", run.stderr)

    def test_ctrl_c_ends_the_answer(self):
        args = [BINARY, "generate", SMOLLM2, "--prompt", "Count:", "--ignore-eos", "--max-tokens", "4000"]
        with subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()) as run:
            self.assertNotEqual(b"", run.stdout.read(1))
            run.send_signal(signal.SIGINT)
            _, error = run.communicate(timeout=LIMIT_S)
        self.assertEqual(130, run.returncode)
        self.assertIn(b"[cancelled]", error)


GEMMA3 = MODELS / "gemma3-270m-q4_k_m.gguf"


@unittest.skipUnless(GEMMA3.exists(), "scripts/fetch-model gemma3-270m --accept-licence fetches it")
class Gemma3(Case):
    """Windows of 512 tokens, which these prompts exceed."""

    def test_long_prompts_are_gone_on_with_as_the_reference_does(self):
        for text in (DATA / "greedy/gemma3_long.jsonl").read_text().splitlines():
            line = json.loads(text)
            prompt = ",".join(map(str, line["prompt_ids"]))
            for flags in ((), ("--max-num-batched-tokens", "100", "--block-size", "16")):
                out = self.json("generate", GEMMA3, "--prompt-token-ids", prompt, "--temperature", "0", "--ignore-eos",
                                "--max-tokens", "16", "--dtype", "float32", "--max-model-len", "1024", *flags)
                self.assertEqual(line["out_ids"][:16], out["outputs"][0]["token_ids"])

    def test_chat_renders_the_template(self):
        template = DATA / "chat_templates/gemma3.chat_template.jinja"
        line = json.loads((DATA / "chat/gemma3.jsonl").read_text().splitlines()[0])
        out = self.json("generate", GEMMA3, "--chat", "--chat-template", template, "--prompt",
                        line["messages"][0]["content"], "--max-tokens", "1")
        self.assertEqual(line["ids"], out["prompt_token_ids"])


class TimeShare(Case):
    def test_shares_of_prompt_and_answer_each_add_up(self):
        out = self.json("generate", TINY, "--prompt-token-ids", "1,2,3", "--max-tokens", "4", "--ignore-eos")
        shares = out["metrics"]["time_share"]
        for part in ("prefill", "decode"):
            self.assertAlmostEqual(1, sum(shares[part].values()))
            for kind in ("qkv", "attention", "gate_up", "down", "head"):
                self.assertGreater(shares[part][kind], 0, (part, kind))


class Memory(Case):
    def test_no_more_than_the_estimate_says(self):
        if b"san_init" in Path(BINARY).read_bytes():
            self.skipTest("sanitizers keep shadow memory of their own")
        cache = cache_folder(self.tmp / "cache")
        prompt = ",".join(["1000"] * 300)
        expected = self.json("estimate", SMOLLM2, "--seq-len", "340")
        self.assertEqual(expected["weight_bytes"] + expected["activation_bytes"] + expected["total_bytes"],
                         expected["resident_bytes"])
        self.assertAlmostEqual(1, expected["weight_bytes"] / self.json("inspect", SMOLLM2)["file_bytes"], delta=0.1)
        for weights in ("repacked", "repacked and written", "mapped"):
            args = [BINARY, "generate", SMOLLM2, "--prompt-token-ids", prompt, "--max-tokens", "40", "--ignore-eos"]
            peak = self.peak_bytes(args + ["--no-pack-cache"] * (weights == "repacked"),
                                   environment({"OCTAVO_THREADS": "2", "XDG_CACHE_HOME": str(cache)}))
            self.assertLess(peak, 1.1 * expected["resident_bytes"] + 40e6, weights)
            self.assertGreater(peak, 0.9 * expected["weight_bytes"], weights)

    def peak_bytes(self, args, env):
        """Started by a small process: at first, the peak of a new program is that of the one it came from."""
        script = ("import os, sys\n"
                  "pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ,\n"
                  "                     file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)])\n"
                  "_, status, usage = os.wait4(pid, 0)\n"
                  "print(status, usage.ru_maxrss * 1024)")
        run = subprocess.run([sys.executable, "-c", script, *args], capture_output=True, timeout=LIMIT_S, env=env,
                             check=True)
        status, peak = map(int, run.stdout.split())
        self.assertEqual(0, status, run.stderr)
        return peak


class PackFiles(Case):
    ARGS = ("--prompt", "The sky is", "--max-tokens", "8", "--temperature", "0", "--ignore-eos")

    def setUp(self):
        super().setUp()
        self.cache = cache_folder(self.tmp / "cache")
        self.env = {"XDG_CACHE_HOME": str(self.cache)}
        self.packs = self.cache / "octavo/packs"
        self.model = self.tmp / "model.gguf"

    def pack(self):
        (pack,) = self.packs.iterdir()
        return pack

    def answer(self, *args, model=TINY, **env):
        return self.ok("generate", model, *self.ARGS, *args, env={**self.env, **env})

    def copy_model(self, of=TINY):
        self.model.write_bytes(Path(of).read_bytes())
        return self.model

    def test_written_once_and_used(self):
        expected = self.answer("--no-pack-cache")
        self.assertFalse(self.packs.exists())
        self.assertEqual(expected, self.answer(OCTAVO_PACK_CACHE="off"))
        self.assertFalse(self.packs.exists())
        self.assertEqual(expected, self.answer())
        pack = self.pack()
        self.assertEqual((0o700, 0o600), (self.packs.stat().st_mode & 0o777, pack.stat().st_mode & 0o777))
        before = pack.stat()
        self.assertEqual(expected, self.answer())
        self.assertEqual((before.st_ino, before.st_ctime_ns < pack.stat().st_ctime_ns),
                         (self.pack().stat().st_ino, True), "the same file, marked as used")
        # Other weights in it, which nobody has checked yet: what they give shows that they are used.
        content = bytearray(pack.read_bytes())
        content[8192:] = bytes(len(content) - 8192)
        pack.write_bytes(content)
        run = octavo("generate", TINY, *self.ARGS, env=self.env)
        self.assertNotEqual((0, expected), (run.returncode, run.stdout.decode()))

    def test_a_changed_model_is_repacked(self):
        self.copy_model()
        self.answer(model=self.model)
        first = self.pack().name
        os.utime(self.model, ns=(0, 12345))
        self.answer(model=self.model)
        self.assertNotEqual(first, self.pack().name)

    def test_damage_found_late_ends_the_run(self):
        self.answer(model=SMOLLM2)
        content = bytearray(self.pack().read_bytes())
        content[-1] ^= 1
        self.pack().write_bytes(content)
        run = octavo("generate", SMOLLM2, "--prompt", "Count:", "--ignore-eos", "--max-tokens", "2000", env=self.env)
        self.assertEqual(5, run.returncode, run.error)
        self.assertRegex(run.error, r"^octavo: error: [^\n]*\.pack: weights in it are damaged: [^\n]* run the same again "
                                    r"\[corrupt_file\]\n$")
        self.assertEqual([], list(self.packs.iterdir()))
        self.answer(model=SMOLLM2)
        self.pack()

    def test_what_others_can_write_is_not_used(self):
        expected = self.answer()
        self.packs.chmod(0o777)
        run = octavo("generate", TINY, *self.ARGS, env=self.env)
        self.assertEqual((0, expected), (run.returncode, run.stdout.decode()))
        self.assertRegex(run.error, r"^octavo: note: [^\n]*octavo/packs can be written by others[^\n]*\n$")
        self.answer("--no-pack-cache")  # says nothing

    def test_without_a_place_it_goes_on_without(self):
        expected = self.answer("--no-pack-cache")
        file = self.tmp / "file"
        file.write_text("")
        self.assertEqual(expected, self.answer(XDG_CACHE_HOME=str(file)))
        self.assertEqual(expected, self.answer(XDG_CACHE_HOME="/proc/none"))
        self.assertEqual(expected, self.answer(XDG_CACHE_HOME="", HOME=""))

    def test_a_full_disk_is_no_error(self):
        self.packs.mkdir(mode=0o700)

        def only_4_kb():
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

        # restore_signals=False: Python ignores SIGXFSZ, so that a write beyond the limit fails, as on a full disk.
        run = subprocess.run([BINARY, "generate", str(TINY), *self.ARGS], capture_output=True, timeout=LIMIT_S,
                             env=environment(self.env), preexec_fn=only_4_kb, restore_signals=False)
        self.assertEqual((0, self.answer("--no-pack-cache")), (run.returncode, run.stdout.decode()), run.stderr)
        self.assertEqual([], list(self.packs.iterdir()), "nothing half written stays")

    def test_starts_at_the_same_time(self):
        expected = self.answer("--no-pack-cache")
        runs = [subprocess.Popen([BINARY, "generate", str(TINY), *self.ARGS], stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, env=environment(self.env)) for _ in range(6)]
        for run in runs:
            out, error = run.communicate(timeout=LIMIT_S)
            self.assertEqual((0, expected, ""), (run.returncode, out.decode(), SLOW_NOTE.sub("", error.decode())))
        self.pack()
        self.assertEqual(expected, self.answer())

    def test_a_pack_shortened_in_use_is_an_error(self):
        self.answer(model=SMOLLM2)
        args = [BINARY, "generate", SMOLLM2, "--prompt", "Count:", "--ignore-eos", "--max-tokens", "4000"]
        # It ends inside a signal handler, which joins no threads.
        tsan = ":".join((os.environ.get("TSAN_OPTIONS", ""), "report_thread_leaks=0"))
        with subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=environment(self.env | {"TSAN_OPTIONS": tsan})) as run:
            self.assertNotEqual(b"", run.stdout.read(1))
            os.truncate(self.pack(), 4096)
            _, error = run.communicate(timeout=LIMIT_S)
        self.assertEqual(4, run.returncode, error)
        self.assertRegex(SLOW_NOTE.sub("", error.decode()),
                         r"^octavo: error: [^\n]*\.pack: was shortened[^\n]*\[io_error\]\n$")
        self.answer(model=SMOLLM2)  # repacks
        self.answer(model=SMOLLM2)


class TerminalCase(Case):
    def start(self, *args):
        """The program with a pseudo-terminal for all three streams."""
        try:
            self.master, slave = pty.openpty()
        except OSError as error:  # a bare chroot has no /dev/pts
            self.skipTest(f"no pseudo-terminals here: {error}")
        self.addCleanup(os.close, self.master)
        self.run = subprocess.Popen([BINARY, *map(str, args)], stdin=slave, stdout=slave, stderr=slave,
                                    env=environment({"TERM": "xterm"}), start_new_session=True)
        os.close(slave)
        self.addCleanup(self.run.kill)
        self.seen = ""

    def read_until(self, pattern):
        """What came up to and with the pattern; later calls look behind it."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            match = re.search(pattern, self.seen)
            if match:
                before, self.seen = self.seen[:match.end()], self.seen[match.end():]
                return before
            if time.monotonic() > deadline or not select.select([self.master], [], [], LIMIT_S)[0]:
                self.fail(f"no {pattern!r} in {self.seen!r}")
            try:
                self.seen += os.read(self.master, 4096).decode("utf-8", "replace")
            except OSError:  # the other side is closed
                self.fail(f"ended without {pattern!r}: {self.seen!r}")

    def type(self, text):
        os.write(self.master, text.encode())


class ChatEditing(TerminalCase):
    """What a person sees who edits a line. Answers are one token long; nothing depends on what they say."""

    LEFT, UP, HOME, ALT_ENTER, CTRL_C, CTRL_D = "\x1b[D", "\x1b[A", "\x01", "\x1b\r", "\x03", "\x04"

    def setUp(self):
        super().setUp()
        # Writes what was asked as it was understood, so that the test sees the message and not its echo.
        template = self.tmp / "template.jinja"
        template.write_text("{% if messages[-1].content != 'Hello' %}{{ raise_exception('<' ~ messages | "
                            "map(attribute='content') | join('|') | replace('\\n', '/') ~ '>') }}{% endif %}x")
        self.start("chat", TINY, "--max-tokens", "1", "--chat-template", template)
        self.read_until("> ")

    def sends(self, typed, message):
        self.type(typed)
        self.read_until("refused the conversation: <" + re.escape(message) + r">[^\n]*\n")
        self.read_until("> ")

    def test_letters_are_put_in_the_middle_and_history_comes_back(self):
        self.sends("wrld" + self.LEFT * 3 + "o\r", "world")
        self.sends("second\r", "second")
        self.sends(self.UP * 2 + self.HOME + "big \r", "big world")
        self.sends("\u4e2d\u6587\U0001f600x\x7f\x7f!\r", "\u4e2d\u6587!")

    def test_several_lines(self):
        self.sends("one" + self.ALT_ENTER + "two\r", "one/two")
        self.sends("\x1b[200~pasted\rlines\rhere\x1b[201~ and more\r", "pasted/lines/here and more")
        self.type('"""\r')
        self.read_until(r"\.\.\. ")
        self.sends('a\r  b\r"""\r', "a/  b")
        self.sends(self.UP + "\r", "a/  b")

    def test_ctrl_c_drops_what_is_typed_and_then_ends(self):
        self.type("something wrong" + self.CTRL_C)
        self.read_until("> ")
        self.sends("right\r", "right")
        self.type(self.CTRL_C)
        self.assertEqual(0, self.run.wait(timeout=LIMIT_S))

    def test_ctrl_d_ends(self):
        # A key that comes before the editor has taken the terminal over is the system's.
        for _ in range(LIMIT_S):
            with contextlib.suppress(OSError):
                self.type(self.CTRL_D)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.run.wait(timeout=1)
                break
        self.assertEqual(0, self.run.poll())

    def test_help_and_the_system_message(self):
        self.type("/help\r")
        for word in ("/clear", "/retry", r"/system \[TEXT\]", "/exit", "Alt-Enter"):
            self.read_until(word)
        self.read_until("> ")
        self.type("/system Be brief.\r")
        self.read_until("> ")
        self.sends("hi\r", "Be brief.|hi")
        self.type("/system\r")
        self.read_until(r"lBe brief\.\r\n")
        self.type("/retry\r")
        self.read_until("no message yet")

    def test_the_terminal_is_left_as_it_was(self):
        before = termios.tcgetattr(self.master)
        self.type("/exit\r")
        self.assertEqual(0, self.run.wait(timeout=LIMIT_S))
        after = termios.tcgetattr(self.master)
        self.assertTrue(after[3] & termios.ICANON and after[3] & termios.ECHO)
        self.assertEqual(b"\x03", after[6][termios.VINTR])
        self.assertFalse(before[3] & termios.ICANON, "it was edited")


class WithoutATemplate(Case):
    """A model whose file has none: it is named, and so is what may be given instead."""

    def setUp(self):
        super().setUp()
        # The tiny folder without its template.
        self.model = self.tmp / "model"
        shutil.copytree(TINY.parent, self.model, ignore=shutil.ignore_patterns("*.jinja", "*.gguf"))
        config = self.model / "tokenizer_config.json"
        config.write_text(json.dumps({k: v for k, v in json.loads(config.read_text()).items() if k != "chat_template"}))

    def test_it_is_refused_with_what_may_be_given(self):
        for command in (["chat", self.model], ["generate", self.model, "--chat", "--prompt", "hi"]):
            run = octavo(*command, stdin="hi\n")
            self.assertEqual(6, run.returncode, run.error)
            for word in ("no chat template", "--chat-template", "chatml, gemma", "llama3"):
                self.assertIn(word, run.error)

    def test_a_built_in_one_is_taken_by_name(self):
        out = self.json("generate", self.model, "--chat", "--chat-template", "zephyr", "--prompt", "hi",
                        "--max-tokens", "1")
        self.assertRegex(out["prompt"], r"^<\|user\|>\nhi.*\n<\|assistant\|>\n$")
        self.ok("chat", self.model, "--chat-template", "chatml", "--max-tokens", "1", stdin="hi\n")
        self.refused(3, ["no such file", "built-in", "mistral"], "chat", self.model, "--chat-template", "mistrl")


class OnATerminal(TerminalCase):
    def test_generate_says_how_fast_it_was_and_hints_at_chat(self):
        self.start("generate", SMOLLM2, "--prompt", "The sky is", "--max-tokens", "5", "--seed", "77")
        seen = self.read_until(r"\[loaded in [\d.]+ s; prompt: 3 tokens, [^\n]*; answer: 5 tokens, [^\n]*; end: length; seed: 77\]")
        self.assertIn("--chat", seen)
        self.assertEqual(0, self.run.wait(timeout=LIMIT_S))

    def test_chat_survives_ctrl_c_in_an_answer(self):
        self.start("chat", SMOLLM2, "--ignore-eos", "--temperature", "0")
        self.read_until("> ")
        self.type("Tell me a very long story.\r")
        self.read_until(r"story\.\r\n.{20}")
        self.run.send_signal(signal.SIGINT)
        self.read_until(r"\[stopped\]\r\n")
        self.read_until("> ")
        self.type("/nothing\r")
        self.read_until(r"there is no /nothing[^\n]*\n")
        self.read_until("> ")
        self.type("/clear\r")
        self.read_until("> ")
        self.type("/exit\r")
        self.assertEqual(0, self.run.wait(timeout=LIMIT_S))

    def test_chat_ends_at_the_end_of_input_and_at_ctrl_c(self):
        self.start("chat", TINY)
        self.read_until("> ")
        self.type("\x04")
        self.assertEqual(0, self.run.wait(timeout=LIMIT_S))
        self.start("chat", TINY)
        self.read_until("> ")
        self.run.send_signal(signal.SIGINT)
        self.assertIn(self.run.wait(timeout=LIMIT_S), (-signal.SIGINT, 130))


class Chat(Case):
    def test_in_a_pipe_there_are_answers_only(self):
        args = ("--temperature", "0", "--max-tokens", "12")
        out = self.ok("chat", SMOLLM2, *args, stdin="Say hello.\n\nAgain.\n")
        first = self.ok("generate", SMOLLM2, "--chat", "--prompt", "Say hello.", *args)
        self.assertTrue(out.startswith(first + "\n"), out)
        self.assertGreater(len(out), len(first) + 1)

    def test_several_lines_between_quotes_are_one_message(self):
        out = self.ok("chat", TINY, "--temperature", "0", "--max-tokens", "8", "--ignore-eos",
                      stdin='"""\none\ntwo\n"""\n')
        alone = self.ok("generate", TINY, "--chat", "--prompt", "one\ntwo", "--temperature", "0", "--max-tokens", "8",
                        "--ignore-eos")
        self.assertEqual(alone + "\n" * (not alone.endswith("\n")), out)

    def test_history_is_kept_and_cleared(self):
        def last_answer(stdin):
            return self.ok("chat", TINY, "--temperature", "0", "--max-tokens", "8", "--ignore-eos", stdin=stdin)

        alone = last_answer("two")
        self.assertFalse(last_answer("one\ntwo").endswith(alone), "the second answer knows the first turn")
        self.assertTrue(last_answer("one\n/clear\ntwo").endswith(alone))
        self.assertEqual("", last_answer("/exit\none"))

    def test_a_full_context_drops_the_oldest_turns(self):
        run = octavo("chat", TINY, "--temperature", "0", "--max-tokens", "40", "--ignore-eos", "--system", "Be brief.",
                     stdin="hello there\n" * 8)
        self.assertEqual(0, run.returncode, run.error)
        self.assertRegex(run.error, r"^(octavo: note: the context is full; the oldest [^\n]* dropped\n)+$")

    def test_an_answer_that_fills_the_context_says_so(self):
        run = octavo("chat", TINY, "--temperature", "0", "--ignore-eos", stdin="hello\n")
        self.assertEqual((0, "octavo: note: the context is full; the answer ends here\n"), (run.returncode, run.error))


class Tokenize(Case):
    TEXTS = ("", "Hello, world!", " two  spaces\n\ttab", "caf\u00e9 \u4e2d\u6587 \U0001f600 <|im_end|>",
             "\0\x1b[2J\r\n")

    def test_round_trip(self):
        for model in (TINY, SMOLLM2, UNPACKED / "qwen2-vocab.gguf"):
            for text in self.TEXTS:
                with self.subTest(model=model, text=text):
                    ids = self.ok("tokenize", model, stdin=text)
                    self.assertIsInstance(json.loads(ids), list)
                    self.assertEqual(text, self.ok("tokenize", model, "--decode", stdin=ids))

    def test_equals_the_reference(self):
        for line in (DATA / "tokenizer/smollm2.jsonl").read_text().splitlines()[:12]:
            case = json.loads(line)
            special = case["plain"] if case["special"] == "same" else case["special"]
            self.assertEqual(case["plain"]["ids"], json.loads(self.ok("tokenize", SMOLLM2, stdin=case["text"])))
            parsed = self.ok("tokenize", SMOLLM2, "--parse-special", stdin=case["text"])
            self.assertEqual(special["ids"], json.loads(parsed))

    def test_control_tokens_only_where_asked(self):
        self.assertNotIn(2, json.loads(self.ok("tokenize", SMOLLM2, stdin="<|im_end|>")))
        self.assertEqual([2], json.loads(self.ok("tokenize", SMOLLM2, "--parse-special", stdin="<|im_end|>")))


class Inspect(Case):
    def test_the_real_model(self):
        meta = json.loads((DATA / "meta/smollm2-135m-q4_1.json").read_text())
        out = self.json("inspect", SMOLLM2)
        self.assertEqual(meta["n_kv"], len(out["metadata"]))
        self.assertEqual(meta["n_tensors"], len(out["tensors"]))
        self.assertEqual("llama", out["metadata"]["general.architecture"])
        self.assertEqual({"type": "string", "length": 49152}, out["metadata"]["tokenizer.ggml.tokens"])
        self.assertIn("<|im_start|>", out["chat_template"])
        self.assertEqual(30 * 3 * 64 * 2 * 2, out["memory"]["kv_bytes_per_token"])
        text = self.ok("inspect", SMOLLM2)
        for word in ("general.architecture", "blk.29.ffn_down.weight", "<|im_start|>", "weights",
                     "KV cache of one token"):
            self.assertIn(word, text)

    def test_a_vocabulary_without_tensors(self):
        out = self.json("inspect", UNPACKED / "qwen2-vocab.gguf")
        self.assertEqual([], out["tensors"])
        self.assertEqual(0, out["memory"]["weight_bytes"])


    def test_lists_what_ends_an_answer_and_why(self):
        out = self.json("inspect", SMOLLM2)
        self.assertEqual({2: "the model's end of text", 0: "a usual name"},
                         {end["id"]: end["why"] for end in out["end_of_turn"]})
        self.assertEqual("<|im_end|>", next(end["token"] for end in out["end_of_turn"] if end["id"] == 2))
        self.assertRegex(self.ok("inspect", SMOLLM2),
                         r"End an answer:\n +0  '<\|endoftext\|>' +a usual name\n +2  '<\|im_end\|>' +the model's")

    def test_nothing_of_a_file_reaches_a_terminal_unescaped(self):
        evil = {b"tokenizer.ggml.pre": b"token\x1b]0;x\x07\n.g.pre", b"output_norm.weight": b"out\x1b[2J\xc2\x9b31m.weigh"}
        content = TINY.read_bytes()
        for name, other in evil.items():
            self.assertEqual(len(name), len(other))
            content = content.replace(name, other)
        template = b"messages"
        content = content.replace(template, b"\x1b[5mes\xc2\x9b", 1)
        path = self.tmp / "evil.gguf"
        path.write_bytes(content)
        for flags in ((), ("--json",)):
            run = octavo("inspect", path, *flags)
            self.assertEqual(0, run.returncode, run.error)
            self.assertNotRegex(run.stdout.decode(), "[\x00-\x08\x0b-\x1f\x7f-\x9f]")
        self.assertIn(r"  token\x1b]0;x\x07\x0a.g.pre ", octavo("inspect", path).stdout.decode())
        self.assertIn(r"  out\x1b[2J\xc2\x9b31m.weigh ", octavo("inspect", path).stdout.decode())
        run = octavo("generate", path, "--prompt", "a")
        self.assertNotEqual(0, run.returncode)
        self.assertNotRegex(run.error, "[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Estimate(Case):
    def config(self, **fields):
        path = self.tmp / "config.json"
        path.write_text(json.dumps(fields))
        return path

    def test_published_figures(self):
        qwen = self.config(model_type="qwen2", num_hidden_layers=28, hidden_size=3584, num_attention_heads=28,
                           num_key_value_heads=4, max_position_embeddings=32768)
        out = self.json("estimate", qwen, "--seq-len", "8192")
        self.assertEqual((0.4375, 0.4375, 0, 7),
                         (out["total_gib"], out["exact_gib"], out["lost_bytes"], out["gqa_ratio"]))
        self.assertIn("0.4375 GiB", self.ok("estimate", qwen, "--seq-len", "8192"))
        mha = self.config(num_hidden_layers=32, hidden_size=4096, num_attention_heads=32)
        out = self.json("estimate", mha, "--seq-len", "4096")
        self.assertEqual((2, 1), (out["total_gib"], out["gqa_ratio"]))
        self.assertEqual(4, self.json("estimate", mha, "--seq-len", "4096", "--kv-cache-dtype", "float32")["total_gib"])
        self.assertEqual(6, self.json("estimate", mha, "--seq-len", "4096", "--batch-size", "3")["total_gib"])

    def test_blocks_and_memory(self):
        out = self.json("estimate", TINY, "--seq-len", "33", "--block-size", "32", "--memory", "1")
        per_token = out["exact_bytes"] // 33
        self.assertEqual((64 * per_token, 31 * per_token), (out["total_bytes"], out["lost_bytes"]))
        self.assertEqual(2**30 // (64 * per_token), out["sequences_that_fit"])
        self.assertIn(f"{out['sequences_that_fit']} sequences of 33 tokens fit in 1 GiB",
                      self.ok("estimate", TINY, "--seq-len", "33", "--memory", "1"))

    def test_the_default_length_is_the_context(self):
        self.assertEqual(256, self.json("estimate", TINY)["seq_len"])
        self.assertEqual(256, self.json("estimate", CONFIG)["seq_len"])
        silent = self.config(num_hidden_layers=1, hidden_size=64, num_attention_heads=1)
        self.refused(2, ["--seq-len"], "estimate", silent)

    def trace(self, *lines):
        path = self.tmp / "trace.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return path

    def test_limits_that_suit_a_trace(self):
        short = {"prompt_tokens": 20, "output_tokens": 10}
        trace = self.trace(*[short] * 9, {"timestamp": 1500, "input_length": 100, "output_length": 50})
        out = self.json("estimate", TINY, "--trace", trace, "--memory", "1")
        self.assertEqual((10, 28, 20, 100),
                         (out["requests"], out["input_tokens"]["mean"], out["input_tokens"]["p50"], out["input_tokens"]["max"]))
        self.assertEqual((160, 10), (out["max_model_len"], out["covered_requests"]))
        self.assertEqual((10, 2**30), (out["max_num_seqs"], out["kv_cache_bytes"]))
        # Two blocks of 16 tokens each nine times and ten once: 2.8 on average.
        block_bytes = self.json("estimate", TINY, "--seq-len", "16", "--block-size", "16")["total_bytes"]
        few = self.json("estimate", TINY, "--trace", trace, "--block-size", "16", "--memory",
                        f"{15.5 * block_bytes / 2**30:.12f}")
        self.assertEqual((15, 5), (few["num_blocks"], few["max_num_seqs"]))
        text = self.ok("estimate", TINY, "--trace", trace, "--memory", "1")
        self.assertRegex(text, r"input +28 +20 ")
        self.assertRegex(text, r"--max-model-len +160  input and output of all requests")
        self.assertRegex(text, r"--max-num-seqs +10 ")

    def test_a_trace_takes_the_memory_there_is(self):
        out = self.json("estimate", TINY, "--trace", self.trace({"prompt_tokens": 500, "output_tokens": 1}))
        self.assertGreater(out["kv_cache_bytes"], 0)
        self.assertEqual((256, 0), (out["max_model_len"], out["covered_requests"]))  # the model's context
        trace = self.trace({"prompt_tokens": 5, "output_tokens": 1})
        self.refused(2, ["--memory"], "estimate", CONFIG, "--trace", trace)

    def test_a_trace_that_is_none(self):
        trace = self.trace({"prompt_tokens": 5, "output_tokens": 1}, {"prompt_tokens": 5})
        self.refused(5, ["line 2", "output_tokens"], "estimate", TINY, "--trace", trace)
        self.refused(3, ["none.jsonl"], "estimate", TINY, "--trace", self.tmp / "none.jsonl")


class Perplexity(Case):
    def test_windows_are_used_as_they_are(self):
        reference = json.loads((DATA / "perplexity/smollm2_gpl3_apache2_512.json").read_text())
        path = self.tmp / "one.json"
        path.write_text(json.dumps({"windows": reference["windows"][:1]}))
        out = self.json("perplexity", SMOLLM2, path, "--dtype", "float32")
        self.assertEqual((511, 1), (out["predicted_tokens"], out["num_windows"]))
        self.assertAlmostEqual(reference["window_nll"][0], out["window_nll"][0], delta=2e-4 * 511)
        self.assertAlmostEqual(math.exp(out["nll"] / 511), out["perplexity"], places=6)

    def test_text_is_cut_into_windows(self):
        path = self.tmp / "text.txt"
        path.write_text("Some words to predict, one after the other. " * 20)
        tokens = len(json.loads(self.ok("tokenize", TINY, stdin=path.read_text())))
        out = self.json("perplexity", TINY, path, "--context", "64")
        sizes = [64] * (tokens // 64) + ([tokens % 64] if tokens % 64 > 1 else [])
        self.assertEqual([s - 1 for s in sizes], out["window_predicted_tokens"])
        self.assertEqual(f"perplexity {out['perplexity']:.4f} over {sum(sizes) - len(sizes)} tokens in {len(sizes)} "
                         "windows\n", self.ok("perplexity", TINY, path, "--context", "64"))

    def test_too_little_text(self):
        path = self.tmp / "text.txt"
        path.write_text("a")
        self.refused(2, ["too little text"], "perplexity", TINY, path, "--context", "16")
        path.write_bytes(b"abc\xff")
        self.refused(2, ["not UTF-8"], "perplexity", TINY, path)


class Bench(Case):
    def test_compares(self):
        args = ("bench", "compare", TINY, "kv-cache", "--contexts", "16,64", "--repeat", "2")
        out = self.json(*args)
        self.assertEqual([(x, series) for x in (16, 64) for series in ("without", "with cache")],
                         [(run["x"], run["series"]) for run in out["runs"]])
        for run in out["runs"]:
            self.assertEqual(2, len(run["rounds"]))
            self.assertEqual("on" if run["series"] == "with cache" else "off", run["settings"]["kv_cache"])
        self.assertEqual(2, len(out["answer"]))
        page = self.tmp / "page.html"
        text = octavo(*args, "--html", page).stdout.decode()
        table = [line.split()[:2] for line in text.splitlines() if line.strip().startswith(("16 ", "64 "))]
        self.assertEqual([["16", "without"], ["16", "with"], ["64", "without"], ["64", "with"]], table)
        self.assertIn("64 tokens of context", text.splitlines()[0])
        for words in ("tokens of context", "<tr><td>64</td>", "class=\"panel\""):
            self.assertIn(words, page.read_text())
        self.refused(2, ["--synthetic"], "bench", "compare", TINY, "kv-cache", "--synthetic", "requests=2")
        self.refused(2, ["--contexts"], "bench", "compare", TINY, "prefix", "--contexts", "16")

    def test_throughput_over_requests_at_once(self):
        page = self.tmp / "sweep.html"
        run = octavo("bench", "throughput", TINY, "--synthetic", "requests=6,prompt=8,output=4", "--max-concurrency",
                     "1,2,4", "--repeat", "2", "--html", page, "--json")
        self.assertEqual(0, run.returncode, run.error)
        self.assertIn("sweep.html", run.error)
        out = json.loads(run.stdout)
        self.assertEqual([1, 2, 4], [run["x"] for run in out["runs"]])
        self.assertEqual("requests at once", out["x_label"])
        self.assertEqual(3, page.read_text().count('class="panel"'))

    def test_each_comparison_has_a_table_and_a_page(self):
        requests = "requests=6,prompt=8-24,output=4-8,shared=32"
        runs = {"batching": 3, "paging": 2, "prefix": 2, "shared-attention": 2, "scheduling-policy": 4,
                "block-size": 5, "max-num-seqs": 7, "max-num-batched-tokens": 6}
        for subject, count in runs.items():
            page, result = self.tmp / "page.html", self.tmp / "result.json"
            text = octavo("bench", "compare", TINY, subject, "--synthetic", requests, "--html", page, "--repeat", "1",
                          "--output", result, "--cost-per-hour", "1").stdout.decode()
            self.assertIn("output tokens per second", text.lower(), subject)
            self.assertIn("<svg", page.read_text(), subject)
            self.assertNotIn("src=\"http", page.read_text(), subject)
            kept = json.loads(result.read_text())
            self.assertEqual(count, len(kept["runs"]), subject)
            for one in kept["runs"]:
                self.assertEqual(6, one["figures"]["completed"], (subject, one["name"]))
            page.unlink()
        self.refused(2, ["every run", "longer answers"], "bench", "compare", TINY, "chunking", "--repeat", "1", "--synthetic",
                     "requests=4,prompt=8,output=2", "--html", "none")
        self.refused(7, ["--synthetic"], "bench", "compare", TINY, "prefix")

    def test_throughput_and_simulation(self):
        requests = ("--synthetic", "requests=8,prompt=8-24,output=4-8")
        real = self.json("bench", "throughput", TINY, *requests, "--max-num-seqs", "2", "--repeat", "1")
        figures = real["runs"][0]["figures"]
        self.assertEqual(8, figures["completed"])
        self.assertLessEqual(figures["max_running"], 2)
        self.assertIn("--max-num-seqs 2", real["command"])
        simulated = self.json("simulate", *requests, "--step-cost", "2,0.2,0.0005,0.1,0.00001", "--compare-policies")
        self.assertEqual(4, len(simulated["runs"]))
        for one in simulated["runs"]:
            self.assertEqual(figures["total_output_tokens"], one["figures"]["total_output_tokens"])
            self.assertEqual(5, len(one["rounds"]))
        # What nobody was asked of, but is what the policies are for: who is urgent waits less.
        crowd = ("simulate", "--synthetic", "requests=200,prompt=64-512,output=16-64,rate=20", "--step-cost",
                 "5,0.3,0.0005,0.4,0.00001", "--max-num-seqs", "4", "--compare-policies")
        urgent = {run["name"]: run["figures"]["median_urgent_ttft_ms"] for run in self.json(*crowd)["runs"]}
        self.assertLess(urgent["priority"], urgent["fcfs"])
        self.assertIn("TTFT of the most urgent P50: best with priority", self.ok(*crowd))
        trace = self.tmp / "trace.jsonl"
        trace.write_text("".join('{"arrival_s": %g, "prompt_tokens": 30, "output_tokens": 4}\n' % (i * 0.1)
                                 for i in range(5)))
        traced = self.json("simulate", "--trace", trace, "--step-cost", "2,0.2,0.0005,0.1,0.00001")
        self.assertEqual(5, traced["runs"][0]["figures"]["completed"])
        self.refused(2, ["none of the 8", "--num-blocks"], "simulate", "--synthetic",
                     "requests=8,prompt=100,output=4", "--step-cost", "1,1,1,1,1", "--num-blocks", "1", "--block-size", "16")

    def test_latency(self):
        args = ("bench", "latency", TINY, "--prompt-tokens", "20", "--gen-tokens", "4", "--depth", "0,30,9999",
                "--batch-size", "1,3", "--repeat", "1")
        out = self.json(*args)
        self.assertEqual({"read_gb_s", "int8_gmac_s", "fp32_gflop_s"}, set(out["limits"]))
        self.assertTrue(all(limit > 0 for limit in out["limits"].values()))
        self.assertEqual([(0, 1), (0, 3), (30, 1), (30, 3)], [(r["depth"], r["batch_size"]) for r in out["results"]])
        self.assertEqual([(9999, 1), (9999, 3)], [(r["depth"], r["batch_size"]) for r in out["skipped"]])
        for row in out["results"]:
            self.assertGreater(row["prefill_tok_s"], 0)
            self.assertGreater(row["decode_tok_s"], 0)
            self.assertGreater(row["weight_bytes_per_token"], 0)
            self.assertAlmostEqual(1, sum(row["time_share"].values()), 3)
        text = self.ok(*args)
        self.assertEqual(2, text.count("left out: depth 9999"))
        self.assertEqual(4, len(re.findall(r"^decode +", text, re.MULTILINE)))

    def test_speculative(self):
        args = ("bench", "speculative", TINY, "--tasks", "random", "--batch-size", "1,3", "--output-len", "8",
                "--num-prompts", "2", "--repeat", "1", "--synthetic-acceptance", "0,1", "--speculative-config",
                '{"method": "ngram"}', "--speculative-config", '{"method": "suffix"}')
        kept = self.tmp / "speculative.json"
        text = self.ok(*args, "--output", kept)
        rows = re.findall(r"^random +(\d+)  (off|ngram|suffix|synthetic [01]) .*?(yes|NO|)$", text, re.MULTILINE)
        methods = ("off", "ngram", "suffix", "synthetic 0", "synthetic 1")
        self.assertEqual([(n, m, "" if m == "off" else "yes") for n in "13" for m in methods], rows[:10])
        self.assertEqual(14, len(rows), "synthetic guesses have predictions, too")
        runs = {run["name"]: run["settings"] for run in json.loads(kept.read_text())["runs"]}
        self.assertEqual("0.000", runs["random, batch 1, synthetic 0"]["acceptance"])
        # Whether any are made in so short a run is decided by measured times.
        self.assertIn(runs["random, batch 3, synthetic 1"]["acceptance"], ("1.000", "0.000"))
        self.assertIn("random, batch 1, off", self.ok("bench", "diff", kept, kept))
        for words, wrong in ((["poetry", "copy, code"], ("--tasks", "poetry")),
                             (["--synthetic-acceptance", "1.5"], ("--synthetic-acceptance", "0.5,1.5")),
                             (["--draft-model"], ("--speculative-config", '{"method": "ngram"}', "--draft-model", TINY)),
                             (["one draft model"], ("--speculative-config", '{"method": "draft_model", "model": "a"}',
                                                    "--speculative-config", '{"method": "draft_model", "model": "b"}')),
                             (["--speculative-config"], ("--speculative-config", "{}"))):
            self.refused(2, words, "bench", "speculative", TINY, *wrong)


class Pages(Case):
    def test_the_docs_page_is_the_generated_one(self):
        self.assertEqual(self.ok("help-markdown"), (ROOT / "docs/flags.md").read_text(),
                         "octavo help-markdown >docs/flags.md")

    def test_help(self):
        for args in (["--help"], ["help"], ["generate", "--help"], ["chat", "-h"], ["bench", "--top-p", "x", "--help"]):
            self.assertTrue(self.ok(*args).startswith("Usage: octavo"))

    def test_without_a_command_the_usual_ones_are_shown(self):
        run = octavo()
        self.assertEqual((2, b""), (run.returncode, run.stdout))
        for word in ("octavo serve MODEL", "octavo chat MODEL", "octavo --help", "smollm2-135m"):
            self.assertIn(word, run.error)
        self.assertLess(len(run.error.splitlines()), 10)

    def test_both_spellings_of_a_switch_that_is_on(self):
        for text in (self.ok("serve", "--help"), self.ok("help-markdown")):
            self.assertIn("--no-enable-prefix-caching", text)
            self.assertRegex(text, r"[^o]--enable-prefix-caching")

    def test_version(self):
        out = self.ok("--version")
        for word in ("octavo ", "commit: ", "compiler: ", "build type: ", "instruction set: "):
            self.assertIn(word, out)
        self.assertIn("instruction set: ref (forced by OCTAVO_ISA)", self.ok("--version", env={"OCTAVO_ISA": "ref"}))


if __name__ == "__main__":
    unittest.main()
