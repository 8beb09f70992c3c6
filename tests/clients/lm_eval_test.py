#!/usr/bin/env python3
"""lm-eval against the served model: its scores are those that the same prompts have offline, without a server."""

import json
import math
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import venv

venv.enter()
TESTS = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "server"))

from serving import OCTAVO, Server  # noqa: E402

MODEL, TASKS = "smollm2-135m", TESTS / "data/lm_eval"
TOLERANCE = 1e-4


class Evaluation(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        with Server(OCTAVO, "serve", MODEL) as server:
            cls.results = cls.evaluate(server, "octavo_choices,octavo_answers", "out")
            cls.rolling = {ids: cls.evaluate(server, "octavo_rolling", f"rolling-{ids}", tokenized_requests=ids)
                           ["octavo_rolling"]["bits_per_byte,none"] for ids in (True, False)}

    @classmethod
    def evaluate(cls, server, tasks, out, tokenized_requests=True):
        """The results by task."""
        arguments = (f"model={server.model},base_url={server.url}/v1/completions,tokenizer_backend=remote,"
                     f"tokenized_requests={tokenized_requests},num_concurrent=4,max_retries=1,timeout=120")
        environment = {**os.environ, "HF_HOME": str(cls.folder / "hf"), "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
        run = subprocess.run([venv.folder() / "bin/lm_eval", "run", "--model", "local-completions", "--model_args", arguments,
                              "--tasks", tasks, "--include_path", ".", "--batch_size", "8",
                              "--output_path", cls.folder / out, "--log_samples"],
                             cwd=TASKS, env=environment, capture_output=True, text=True, timeout=600)
        if run.returncode:
            raise AssertionError(run.stderr[-4000:])
        return json.loads(next((cls.folder / out).rglob("results_*.json")).read_text())["results"]

    def samples(self, task):
        lines = next(self.folder.rglob(f"samples_{task}_*.jsonl")).read_text().splitlines()
        self.assertEqual(100, len(lines))
        return [json.loads(line) for line in lines]

    def offline(self, requests):
        source, result = self.folder / "in.jsonl", self.folder / f"{self.id()}.jsonl"
        source.write_text("".join(json.dumps(r) + "\n" for r in requests))
        run = subprocess.run([OCTAVO, "generate", MODEL, "--input", source, "--output", result, "--temperature", "0"],
                             capture_output=True, text=True, timeout=600)
        self.assertEqual(0, run.returncode, run.stderr)
        return [json.loads(line) for line in result.read_text().splitlines()]

    def test_choices_have_the_same_log_likelihoods(self):
        samples = self.samples("octavo_choices")
        pairs = [(a["arg_0"], a["arg_1"]) for s in samples for a in s["arguments"].values()]
        served = [(float(r[0][0]), r[0][1] == "True") for s in samples for r in s["resps"]]
        contexts = self.offline([{"prompt": context, "sampling_params": {"max_tokens": 1}} for context, _ in pairs])
        (self.folder / f"{self.id()}.jsonl").unlink()
        wholes = self.offline([{"prompt": context + more, "sampling_params": {"max_tokens": 1, "prompt_logprobs": 1}}
                               for context, more in pairs])
        offline = [score(whole, len(context["prompt_token_ids"])) for context, whole in zip(contexts, wholes)]
        for pair, mine, theirs in zip(pairs, offline, served):
            with self.subTest(pair=pair):
                self.assertAlmostEqual(mine[0], theirs[0], delta=TOLERANCE)
                self.assertEqual(mine[1], theirs[1])
        best = [max(range(4), key=lambda c: offline[4 * i + c][0]) for i in range(100)]
        accuracy = sum(best[i] == s["doc"]["answer"] for i, s in enumerate(samples)) / 100
        self.assertAlmostEqual(accuracy, self.results["octavo_choices"]["acc,none"], delta=TOLERANCE)
        self.assertGreater(accuracy, 0.4, "chance is 0.25")

    def test_answers_are_the_same_text(self):
        samples = self.samples("octavo_answers")
        lines = self.offline([{"prompt": s["arguments"]["gen_args_0"]["arg_0"],
                               "sampling_params": {"max_tokens": 12, "stop": ["\n"]}} for s in samples])
        self.assertEqual([line["outputs"][0]["text"] for line in lines], [s["resps"][0][0] for s in samples])

    def test_rolling_log_likelihoods_are_the_same_by_text_and_by_ids(self):
        """And those of the text with its control tokens, which offline are one token each."""
        texts = [json.loads(line)["text"] for line in (TASKS / "texts.jsonl").read_text().splitlines()]
        bits = 0
        for line in self.offline([{"prompt": text, "sampling_params": {"max_tokens": 1, "prompt_logprobs": 1}} for text in texts]):
            bits -= score(line, 1)[0] / math.log(2)
        print("bits per byte by ids, by text, offline less the first token:", self.rolling, bits / sum(map(len, texts)))
        self.assertAlmostEqual(self.rolling[True], self.rolling[False], delta=TOLERANCE)


def score(line, context_length):
    """The sum over what follows the context, and whether each token of it is the most probable one."""
    tokens = list(zip(line["prompt_token_ids"], line["prompt_logprobs"]))[context_length:]
    own = [entry[str(token)] for token, entry in tokens]
    return sum(e["logprob"] for e in own), all(e["rank"] == 1 for e in own)


if __name__ == "__main__":
    unittest.main()
