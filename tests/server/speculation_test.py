#!/usr/bin/env python3
"""A server that guesses ahead: whatever is guessed, under load and with clients that go away, every answer is that of a
server which guesses nothing; and what is said of the guesses adds up."""

import json
import os
import random
import re
import subprocess
import tarfile
import tempfile
import unittest
from pathlib import Path

from serving import (CHAT, COMPLETIONS, LIMIT_S, OCTAVO, STUB, Server, ServedCase, at_once, choices, text_of, wait_for)

NUM_REQUESTS = int(os.environ.get("OCTAVO_LOAD_REQUESTS", "120"))
NUM_CLIENTS = 24
DATA = Path(__file__).resolve().parent.parent / "data"
METHODS = {"ngram": {"prompt_lookup_min": 1}, "suffix": {}, "draft_model": {"model": "stub"},
           "suffix,draft_model": {"model": "stub"}}
COMMON = "A beginning that many of these prompts have in common, longer than two blocks. "


def config(method, num=4, adaptive=False, **more):
    return ["--speculative-config", json.dumps({"method": method, "num_speculative_tokens": num, "adaptive": adaptive,
                                                **METHODS.get(method, {}), **more})]


def request(number):
    """Anything that a client may ask for; some ask for the same as others did."""
    dice = random.Random(number % (NUM_REQUESTS // 2))
    text = COMMON * (dice.random() < 0.4) + "".join(dice.choices("abcde ", k=dice.randrange(1, 60)))
    body = {"max_tokens": dice.randrange(1, 60), "temperature": dice.choice([0, 0, 0.7, 1.3]), "seed": dice.randrange(99),
            "return_token_ids": True}
    if dice.random() < 0.3:
        body["n"] = 2
    if dice.random() < 0.3:
        body["stop"] = ["".join(dice.choices("ABCDEFGHIJ", k=2)), "K"]
    if dice.random() < 0.3:
        body["top_p"] = 0.8
    if dice.random() < 0.2:
        body |= {"repetition_penalty": 1.2, "presence_penalty": 0.5}
    if dice.random() < 0.2:
        body["min_tokens"] = body["max_tokens"] // 2
    path = dice.choice([CHAT, COMPLETIONS])
    if dice.random() < 0.3:
        body |= {"logprobs": True, "top_logprobs": 2} if path == CHAT else {"logprobs": 2}
    body |= {"messages": [{"role": "user", "content": text}]} if path == CHAT else {"prompt": text}
    if dice.random() < 0.5:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    return path, body


def lists_of(logprobs):
    """Of a choice or of an event: what can be joined."""
    if not logprobs:
        return []
    if "content" in logprobs:
        return logprobs["content"]
    return list(zip(logprobs["tokens"], logprobs["token_logprobs"], logprobs["top_logprobs"]))


def said(answer, body):
    """What must not change: of each choice its text, its ids, its logprobs and its end."""
    parts = choices(answer.events()) if body.get("stream") else answer.json["choices"]
    found = {}
    for part in parts:
        text, ids, logprobs, end = found.get(part["index"], ("", [], [], None))
        said_here = part["text"] if "text" in part else (part.get("delta") or part["message"]).get("content") or ""
        found[part["index"]] = (text + said_here, ids + (part.get("token_ids") or []), logprobs + lists_of(part["logprobs"]),
                                (part["finish_reason"], part.get("stop_reason")) if part["finish_reason"] else end)
    return found


def usage_of(answer, body):
    whole = answer.events()[-2] if body.get("stream") else answer.json
    return whole["usage"], whole["timings"]


class UnderLoad(unittest.TestCase):
    """Each setting against the answers of a server without speculation."""

    @classmethod
    def setUpClass(cls):
        with Server(STUB) as server:
            cls.expected = [said(cls.ask(server, i), request(i)[1]) for i in range(NUM_REQUESTS)]

    @staticmethod
    def ask(server, number, **more):
        path, body = request(number)
        answer = server.post(path, {**body, **more})
        if answer.status != 200:
            raise AssertionError(f"{answer.status}: {answer.body}")
        return answer

    def client(self, server, numbers, counted):
        """One after the other; every fifth client that asks goes away, in the answer or before."""
        for number in numbers:
            path, body = request(number)
            if number % 5 == 4:
                with server.open(path, body) as connection:
                    if number % 2:
                        connection.recv(200)
            answer = self.ask(server, number)
            self.assertEqual(self.expected[number], said(answer, body), (path, body))
            counted.append((usage_of(answer, body), said(answer, body)))

    def check(self, *flags, least=50, preempts=False):
        with Server(STUB, *flags, "--log-level", "warning") as server:
            counted = []
            numbers = [list(range(i, NUM_REQUESTS, NUM_CLIENTS)) for i in range(NUM_CLIENTS)]
            at_once([lambda mine=mine: self.client(server, mine, counted) for mine in numbers], limit_s=4 * LIMIT_S)
            self.check_counts(counted)
            wait_for("all to be over", lambda: all(server.total(name) == 0 for name in (
                "octavo:open_requests", "vllm:num_requests_running", "vllm:kv_cache_usage_perc")))
            metrics = server.metrics()
            total = {name: sum(series.values()) for name, series in metrics.items()}
            self.assertGreater(total["vllm:spec_decode_num_accepted_tokens_total"], least)
            self.assertEqual(total["vllm:spec_decode_num_accepted_tokens_total"],
                             total["vllm:spec_decode_num_accepted_tokens_per_pos_total"])
            self.assertGreaterEqual(total["vllm:spec_decode_num_draft_tokens_total"],
                                    sum(timings["draft_n"] for (_, timings), _ in counted))
            if preempts:
                self.assertGreater(total["vllm:num_preemptions_total"], 0)
            if "octavo:draft_kv_bytes" in metrics:
                self.check_draft_cache(metrics["octavo:draft_kv_bytes"], keeps="--no-enable-prefix-caching" not in flags)
            self.assertNotRegex(server.output(), r"\[(warning|error)\]|terminate|Sanitizer")

    def check_draft_cache(self, series, keeps):
        by_state = {re.search(r'state="(\w+)"', labels).group(1): value for labels, value in series.items()}
        self.assertEqual(by_state["held"], 0)
        self.assertEqual(by_state["cached"] > 0, keeps)
        self.assertEqual(sum(by_state.values()), 1024 * 512)

    def check_counts(self, counted):
        for (usage, timings), answers in counted:
            details = usage["completion_tokens_details"]
            accepted, rejected = details["accepted_prediction_tokens"], details["rejected_prediction_tokens"]
            self.assertEqual(sum(len(ids) for _, ids, _, _ in answers.values()), usage["completion_tokens"])
            self.assertEqual((accepted + rejected, accepted), (timings["draft_n"], timings["draft_n_accepted"]))
            self.assertGreaterEqual(min(accepted, rejected), 0)
            self.assertLess(accepted, max(usage["completion_tokens"], 1))

    def test_each_method(self):
        for method in METHODS:
            with self.subTest(method):
                self.check(*config(method), least=5 if method == "ngram" else 50)

    def test_few_places_and_little_memory(self):
        for method in ("suffix", "draft_model"):
            with self.subTest(method):
                self.check(*config(method), "--max-num-seqs", 5, "--max-num-batched-tokens", 16, "--num-blocks", 18,
                           "--max-model-len", 256, preempts=True)

    def test_one_at_a_time(self):
        self.check(*config("draft_model", num=8), "--max-num-seqs", 1)

    def test_lengths_that_adapt(self):
        self.check(*config("draft_model", num=8, adaptive=True), "--step-delay-ms", 2)

    def test_without_prefix_cache_and_with_long_drafts(self):
        self.check(*config("draft_model", num=32), "--no-enable-prefix-caching")


class Request(ServedCase):
    FLAGS = config("draft_model")
    BODY = {"prompt": "hello", "max_tokens": 40, "temperature": 0}

    def drafts(self, **more):
        answer = self.ok(self.server.post(COMPLETIONS, {**self.BODY, **more}))
        details = answer["usage"].get("completion_tokens_details")
        return answer["timings"].get("draft_n"), details, answer["choices"][0]["text"]

    def test_switched_off(self):
        before = self.server.total("vllm:spec_decode_num_drafts_total")
        self.assertEqual((None, None), self.drafts(num_speculative_tokens=0)[:2])
        self.assertEqual(before, self.server.total("vllm:spec_decode_num_drafts_total"))

    def test_fewer_at_a_time(self):
        texts = set()
        for count in (0, 1, 2, 4, 32, None):
            positions = self.server.metrics()["vllm:spec_decode_num_accepted_tokens_per_pos_total"]
            drafts, _, text = self.drafts(num_speculative_tokens=count)
            texts.add(text)
            after = self.server.metrics()["vllm:spec_decode_num_accepted_tokens_per_pos_total"]
            gained = [int(label.split('position="')[1].split('"')[0]) for label in after if after[label] > positions[label]]
            at_most = 4 if count is None else min(count, 4)
            self.assertEqual(list(range(at_most)), sorted(gained), count)
            self.assertEqual(count != 0, bool(drafts))
        self.assertEqual(1, len(texts))

    def test_refused(self):
        for wrong in (-1, 33, "4", 1.5, True, {}):
            for path in (CHAT, COMPLETIONS):
                body = {"messages": [{"role": "user", "content": "x"}], "prompt": "x", "num_speculative_tokens": wrong}
                self.assert_refused(self.server.post(path, body), 400, "num_speculative_tokens")

    def test_series(self):
        metrics = self.server.metrics()
        for name in ("drafts", "draft_tokens", "accepted_tokens", "accepted_tokens_per_pos"):
            series = metrics[f"vllm:spec_decode_num_{name}_total"]
            self.assertEqual(4 if name.endswith("pos") else 1, len(series))
            self.assertTrue(all('model_name="stub"' in labels and 'engine="0"' in labels for labels in series), series)
        self.assertIn("octavo:spec_decode_draft_seconds_total", metrics)
        self.assertIn("octavo:spec_decode_verify_seconds_total", metrics)


class Nothing(ServedCase):
    """Where nothing is guessed, nothing is said of it, and the fields are taken."""

    def test_nothing_is_said(self):
        body = {"prompt": "hello", "max_tokens": 20, "temperature": 0}
        plain = self.ok(self.server.post(COMPLETIONS, body))
        asked = self.ok(self.server.post(COMPLETIONS, {**body, "num_speculative_tokens": 4, "prediction": {
            "type": "content", "content": plain["choices"][0]["text"]}}))
        self.assertEqual(plain["choices"], asked["choices"])
        for answer in (plain, asked):
            self.assertNotIn("draft_n", answer["timings"])
            self.assertNotIn("completion_tokens_details", answer["usage"])
        self.assertFalse([name for name in self.server.metrics() if "spec_decode" in name])


class Prediction(ServedCase):
    FLAGS = config("ngram", num=8, prompt_lookup_min=5)

    def ask(self, path, prediction, **more):
        body = {"temperature": 0, "max_tokens": 120, "ignore_eos": True, **more}
        body |= {"messages": [{"role": "user", "content": "edit it"}]} if path == CHAT else {"prompt": "edit it"}
        if prediction is not None:
            body["prediction"] = {"type": "content", "content": prediction}
        answer = self.ok(self.server.post(path, body))
        choice = answer["choices"][0]
        text = choice["text"] if "text" in choice else choice["message"]["content"]
        return text, answer["usage"]["completion_tokens_details"]["accepted_prediction_tokens"]

    def test_the_answer_itself(self):
        for path in (CHAT, COMPLETIONS):
            text, few = self.ask(path, None)
            for prediction in (text, [{"type": "text", "text": text[:50]}, {"type": "text", "text": text[50:]}]):
                again, many = self.ask(path, prediction)
                self.assertEqual(text, again)
                self.assertGreater(many, 100, "nearly all but one token of each step")
                self.assertLess(few, 20)

    def test_with_a_change(self):
        text, _ = self.ask(COMPLETIONS, None)
        again, many = self.ask(COMPLETIONS, text[:40] + "a few words that nobody says" + text[45:])
        self.assertEqual(text, again)
        self.assertGreater(many, 80)

    def test_of_no_use(self):
        text, _ = self.ask(CHAT, None)
        for prediction in ("", "something else", "x" * 100_000):
            self.assertEqual(text, self.ask(CHAT, prediction)[0])

    def test_refused(self):
        for wrong, param in (("text", "prediction"), ({"content": "x"}, "prediction.type"), ({"type": "content"}, "prediction.content"),
                             ({"type": "content", "content": 1}, "prediction.content")):
            body = {"prompt": "x", "prediction": wrong}
            self.assert_refused(self.server.post(COMPLETIONS, body), 400, param)


class Program(unittest.TestCase):
    """The program itself, with a tiny model that guesses for itself, and with configurations that cannot be."""

    MODEL = DATA / "tiny/llama-tied"

    def served(self, *flags):
        return Server(OCTAVO, "serve", self.MODEL, *flags, "--kv-cache-memory-bytes", 64 << 20)

    def test_served_texts_are_the_same(self):
        bodies = [{"prompt": [1 + (i * j) % 60 for j in range(1, 30)], "max_tokens": 24, "temperature": i % 2 * 0.8, "seed": i,
                   "ignore_eos": True} for i in range(8)]

        def ask(server, stream):
            def text(body):
                if stream:
                    return text_of(server.stream(COMPLETIONS, body))
                return server.post(COMPLETIONS, body).json["choices"][0]["text"]
            return at_once([lambda body=body: text(body) for body in bodies])
        with self.served() as server:
            expected = ask(server, False)
        for method, more in (("ngram", {"prompt_lookup_min": 1}), ("suffix", {}), ("draft_model", {"model": str(self.MODEL)})):
            with self.subTest(method), self.served(*config(method, **more)) as server:
                for stream in (False, True):
                    self.assertEqual(expected, ask(server, stream))
                if method == "draft_model":
                    self.assertGreater(server.total("vllm:spec_decode_num_accepted_tokens_total"), 100)

    def refused(self, *arguments):
        done = subprocess.run([OCTAVO, "serve", self.MODEL, "--port", "0", *arguments], capture_output=True, text=True,
                              timeout=LIMIT_S)
        self.assertNotEqual(0, done.returncode, done.stderr)
        return done.stderr

    def test_configurations_that_cannot_be(self):
        for given, expected in (
                ("ngram", "must be a JSON object"), ('{"method": "eagle"}', "method"), ("{}", "method"),
                ('{"method": "ngram", "nonsense": 1}', "nonsense"), ('{"method": "ngram", "num_speculative_tokens": 0}', "1 to"),
                ('{"method": "draft_model"}', "model"), ('{"method": "ngram", "model": "x"}', "model"),
                ('{"method": "draft_model", "model": "/nowhere/at/all.gguf"}', "/nowhere/at/all.gguf"),
                ('{"method": "ngram", "method": "ngram"}', "twice")):
            with self.subTest(given):
                self.assertIn(expected, self.refused("--speculative-config", given))

    def test_a_draft_model_of_another_vocabulary(self):
        with tempfile.TemporaryDirectory() as folder:
            with tarfile.open(DATA / "tiny-granite.tar.xz") as archive:
                archive.extractall(folder, filter="data")
            error = self.refused(*config("draft_model", model=str(Path(folder, "tiny/granite/granite-Q8_0.gguf"))))
        self.assertIn("vocabulary", error)

    def test_generate(self):
        body = {"max_tokens": 24, "temperature": 0, "ignore_eos": True}
        lines = [{"prompt_token_ids": [5, 6, 7, 8] * 5, "sampling_params": body, **more}
                 for more in ({}, {"num_speculative_tokens": 0}, {"num_speculative_tokens": 99})]
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder, "in.jsonl")
            source.write_text("".join(json.dumps(line) + "\n" for line in lines))
            done = subprocess.run([OCTAVO, "generate", self.MODEL, "--input", source,
                                   *config("draft_model", model=str(self.MODEL))], capture_output=True, text=True, timeout=LIMIT_S)
        guessed, plain, wrong = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual(guessed["outputs"][0]["token_ids"], plain["outputs"][0]["token_ids"])
        self.assertGreater(guessed["metrics"]["num_accepted_tokens"], 15)
        self.assertNotIn("num_accepted_tokens", plain["metrics"])
        self.assertIn("num_speculative_tokens", json.dumps(wrong["error"]))


if __name__ == "__main__":
    unittest.main()
