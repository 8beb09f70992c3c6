#!/usr/bin/env python3
"""octavo tune early-exit from outside: what it finds is kept, and used where it is asked for."""

import json
import os
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))
from bounded_run import bounded_run  # noqa: E402

MODEL = ROOT / "tests/data/tiny/llama-tied/llama-tied-F32.gguf"
BINARY = os.environ["OCTAVO_BINARY"]
LIMIT_S = 240
FEW = ["--places", 48, "--gen-tokens", 8, "--runs", 1]
EARLY_EXIT = '{"method": "early_exit", "adaptive": false, "draft_confidence_threshold": 0}'


class TuneEarlyExit(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tmp = Path(folder.name)

    def octavo(self, *args):
        kept = {k: v for k, v in os.environ.items() if not k.startswith("OCTAVO_") or k == "OCTAVO_ISA"}
        return bounded_run([BINARY, *map(str, args)], LIMIT_S, text=True,
                           env={**kept, "XDG_CACHE_HOME": str(self.tmp / "cache")})

    def ok(self, *args):
        run = self.octavo(*args)
        self.assertEqual(0, run.returncode, run.stderr)
        return run

    def generate(self, *args):
        run = self.octavo("generate", MODEL, "--prompt-token-ids", "1,2,3,4,5", "--max-tokens", 20, "--temperature",
                          0, "--ignore-eos", "--json", *args)
        return run, json.loads(run.stdout)["outputs"][0]["token_ids"] if run.returncode == 0 else None

    def check(self, found):
        layers = found["num_layers"]
        self.assertTrue(0 < len(found["skip_layers"]) < layers)
        self.assertTrue(all(0 <= layer < layers for layer in found["skip_layers"]))
        self.assertTrue(1 <= found["num_speculative_tokens"] <= 8)
        self.assertTrue(found["same_tokens"])
        self.assertGreater(found["measured_speedup"], 0)
        self.assertEqual(list(range(1, len(found["steps"]) + 1)), [len(s["skip_layers"]) for s in found["steps"]])

    def test_what_is_found_is_kept_and_used(self):
        run, _ = self.generate("--speculative-config", EARLY_EXIT)
        self.assertNotEqual(0, run.returncode)
        self.assertIn("octavo tune early-exit", run.stderr)
        found = self.ok("tune", "early-exit", MODEL, *FEW, "--json")
        self.check(json.loads(found.stdout))
        self.assertRegex(found.stderr, r"kept in .*/packs/exit-[0-9a-f]{32}\.json")
        _, plain = self.generate()
        run, drafted = self.generate("--speculative-config", EARLY_EXIT)
        self.assertEqual(0, run.returncode, run.stderr)
        self.assertEqual(plain, drafted)

    def test_the_report_is_plain(self):
        text = self.tmp / "text.txt"
        text.write_text("A text of one's own, said again and again. " * 40)
        out = self.tmp / "found.json"
        run = self.ok("tune", "early-exit", MODEL, *FEW, "--text", text, "--output", out, "--no-pack-cache")
        for words in ("skipped  drafted", "without drafts", "It "):
            self.assertIn(words, run.stdout)
        self.check(json.loads(out.read_text()))

    def test_what_cannot_be_is_refused(self):
        short = self.tmp / "short.txt"
        short.write_text("Too short.")
        for args, words in ((["--text", short, *FEW], "longer text"), (["--places", 4000], "fewer places"),
                            (["--text", self.tmp / "none"], "none")):
            run = self.octavo("tune", "early-exit", MODEL, *args)
            self.assertNotEqual(0, run.returncode)
            self.assertIn(words, run.stderr)
            self.assertEqual("", run.stdout)
        self.assertIn("needs early-exit", self.octavo("tune").stderr)


if __name__ == "__main__":
    unittest.main()
