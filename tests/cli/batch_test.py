#!/usr/bin/env python3
"""octavo generate --input: many prompts from a file. What is written survives whatever ends the program."""

import json
import os
import random
import signal
import subprocess
import threading
import time
import unittest

import cli_test
from cli_test import BINARY, LIMIT_S, SLOW_NOTE, SMOLLM2, TINY, environment, octavo

GREEDY = ["--temperature", "0", "--ignore-eos"]


def answer(line):
    """What must not depend on how a run went."""
    if "error" in line:
        return line["line"], line["error"]
    return line["line"], line["prompt_token_ids"], [(o["token_ids"], o["text"]) for o in line["outputs"]]


class BatchCase(cli_test.Case):
    def setUp(self):
        super().setUp()
        self.input, self.output = self.tmp / "in.jsonl", self.tmp / "out.jsonl"

    def write(self, *lines):
        text = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
        self.input.write_bytes(b"".join(line + b"\n" for line in text))

    def args(self, *flags, model=TINY):
        return ["generate", model, "--input", self.input, "--output", self.output, *GREEDY, "--quiet", *flags]

    def results(self):
        content = self.output.read_bytes()
        self.assertTrue(content.endswith(b"\n") or not content, "half a line")
        return [json.loads(line) for line in content.splitlines()]


class Lines(BatchCase):
    def test_results_are_those_of_single_runs_in_the_order_of_the_input(self):
        self.write({"prompt_token_ids": [1, 2, 3], "sampling_params": {"max_tokens": 40}, "custom_id": "long"},
                   {"prompt": "hello", "sampling_params": {"max_tokens": 2}, "id": 7}, b"",
                   {"prompt_token_ids": [9], "sampling_params": {"n": 2, "temperature": 1, "seed": 5, "logprobs": 1}})
        self.ok(*self.args("--max-tokens", "5"))
        results = self.results()
        self.assertEqual([1, 2, 4], [r["line"] for r in results])
        self.assertEqual(["long", None, None], [r.get("custom_id") for r in results])
        self.assertEqual(7, results[1]["id"])
        self.assertEqual("hello", results[1]["prompt"])
        self.assertEqual([40, 2, 10], [r["usage"]["completion_tokens"] for r in results])
        alone = self.json("generate", TINY, "--prompt-token-ids", "1,2,3", "--max-tokens", "40", *GREEDY)
        for key in ("prompt_token_ids", "outputs", "usage"):
            self.assertEqual(alone[key], results[0][key])
        self.assertEqual(set(alone) - {"prompt"}, set(results[0]) - {"line", "input_hash", "custom_id", "prompt"})
        sampled = self.json("generate", TINY, "--prompt-token-ids", "9", "--max-tokens", "5", "--n", "2", "--seed", "5",
                            "--temperature", "1", "--logprobs", "1", "--ignore-eos")
        self.assertEqual(sampled["outputs"], results[2]["outputs"])

    def test_bad_lines_fail_alone(self):
        self.write({"prompt": "a"}, b"not json", {"promt": "a"}, {"prompt_token_ids": [99999], "custom_id": "x"},
                   b'{"prompt": "\xff"}', {"prompt_token_ids": [1] * 300}, {"messages": []},
                   b'{"prompt": "' + b"a" * (17 << 20) + b'"}', {"prompt": "a", "priority": 1}, {"prompt": "a"})
        run = octavo(*self.args("--max-tokens", "3"))
        self.assertEqual(2, run.returncode, run.error)
        self.assertIn("8 of 10 lines failed, the first is line 2", run.error)
        results = self.results()
        self.assertEqual(list(range(1, 11)), [r["line"] for r in results])
        for line, code, words in ((2, "invalid_argument", "not a JSON object"), (3, "invalid_argument", "exactly one of"),
                                  (4, "invalid_argument", "99999"), (5, "invalid_argument", "not UTF-8 at byte 12"),
                                  (6, "context_overflow", "300 tokens"), (7, "invalid_argument", "at least one message"),
                                  (8, "resource_exhausted", "longer than"), (9, "invalid_argument", "scheduling_policy")):
            error = results[line - 1]["error"]
            self.assertEqual(code, error["code"], error)
            self.assertIn(words, error["message"])
            self.assertTrue(error["message"].startswith(f"line {line}: "), error)
        self.assertEqual("x", results[3]["custom_id"])
        self.assertEqual(results[0]["outputs"], results[9]["outputs"])
        # Once more: nothing is left to do, and the verdict is the same.
        before = self.output.read_bytes()
        again = octavo(*self.args("--max-tokens", "3"))
        self.assertEqual((2, run.error), (again.returncode, again.error))
        self.assertEqual(before, self.output.read_bytes())

    def test_pipes(self):
        lines = b"".join(json.dumps({"prompt_token_ids": [i]}).encode() + b"\n" for i in range(1, 40))
        out = self.ok("generate", TINY, "--input", "-", "--max-tokens", "4", *GREEDY, stdin=lines[:-1])
        self.assertEqual(list(range(1, 40)), [json.loads(line)["line"] for line in out.splitlines()])
        self.assertEqual("", self.ok("generate", TINY, "--input", "-", stdin=b"\n \n"))

    def test_a_file_as_standard_input_is_read_once(self):
        self.write(*({"prompt_token_ids": [i]} for i in range(1, 8)))
        with self.input.open("rb") as file:
            run = subprocess.run([BINARY, "generate", TINY, "--input", "-", "--max-tokens", "2", *GREEDY], stdin=file,
                                 env=environment(), capture_output=True, timeout=LIMIT_S)
        self.assertEqual(list(range(1, 8)), [json.loads(line)["line"] for line in run.stdout.splitlines()], run.stderr)

    def test_conversations(self):
        hi = {"role": "user", "content": "What is 2+2?"}
        self.write({"messages": [hi]},
                   {"messages": [hi, {"role": "assistant", "content": "The answer is "}],
                    "add_generation_prompt": False, "continue_final_message": True})
        self.ok(*self.args("--max-tokens", "8", model=SMOLLM2))
        plain, continued = self.results()
        alone = self.json("generate", SMOLLM2, "--chat", "--prompt", hi["content"], "--max-tokens", "8", *GREEDY)
        self.assertEqual((alone["prompt"], alone["outputs"]), (plain["prompt"], plain["outputs"]))
        self.assertTrue(continued["prompt"].endswith("<|im_start|>assistant\nThe answer is "), continued["prompt"])

    def test_what_has_no_effect_is_named_in_the_result(self):
        hi = {"role": "user", "content": "Hi", "name": "ada"}
        self.write({"messages": [hi], "chat_template_kwargs": {"enable_thinkng": False}})
        self.ok(*self.args("--max-tokens", "1", model=SMOLLM2))
        self.assertEqual(
            ["chat_template_kwargs.enable_thinkng has no effect: the model's chat template does not read it",
             "messages[0].name has no effect: the model's chat template does not show it"], self.results()[0]["warnings"])

    def test_what_does_not_fit_together_is_refused(self):
        self.write({"prompt": "a"})
        for words, flags in ((["--prompt does not go with --input"], ["--prompt", "x"]),
                             (["--chat does not go with --input"], ["--chat"])):
            self.refused(2, words, *self.args(*flags))
        self.refused(2, ["--overwrite needs --output"], "generate", TINY, "--input", self.input, "--overwrite")
        self.refused(2, ["--output needs --input"], "generate", TINY, "--prompt", "a", "--output", self.output)
        self.refused(2, ["is the input"], "generate", TINY, "--input", self.input, "--output", self.input, "--overwrite")
        self.refused(3, ["no such file"], "generate", TINY, "--input", self.tmp / "none")
        self.refused(3, ["no such file"], "generate", TINY, "--input", self.input, "--output", self.tmp / "none/out")


class Interrupted(BatchCase):
    LINES = 60

    def setUp(self):
        super().setUp()
        self.write(*({"prompt_token_ids": [i, i + 1], "sampling_params": {"max_tokens": 1 + (i * 37) % 120}}
                     if i % 9 else b"bad" for i in range(1, self.LINES + 1)))
        self.flags = ["--max-num-seqs", "3"]
        octavo(*self.args(*self.flags))
        self.expected = [answer(line) for line in self.results()]
        self.assertEqual(self.LINES, len(self.expected))
        self.output.unlink()

    def start(self):
        return subprocess.Popen([BINARY, *map(str, self.args(*self.flags))], env=environment(),
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def size(self):
        return self.output.stat().st_size if self.output.exists() else 0

    def stop_when_larger(self, size, stop):
        with self.start() as run:
            deadline = time.monotonic() + LIMIT_S
            while self.size() <= size and run.poll() is None and time.monotonic() < deadline:
                time.sleep(0.0005)
            run.send_signal(stop)
            error = run.communicate(timeout=LIMIT_S)[1].decode()
        return run.returncode, error

    def test_killed_again_and_again(self):
        choose = random.Random(3)
        kills = 0
        while True:
            code, _ = self.stop_when_larger(self.size() + choose.randrange(1, 6000), signal.SIGKILL)
            if code != -signal.SIGKILL:
                break
            kills += 1
        self.assertGreater(kills, 0)  # how many depends on how busy the machine is
        self.assertEqual(2, code)
        self.assertEqual(self.expected, [answer(line) for line in self.results()])

    def test_half_a_line_is_computed_again(self):
        octavo(*self.args(*self.flags))
        whole = self.output.read_bytes()
        choose = random.Random(4)
        for _ in range(6):
            self.output.write_bytes(whole[:choose.randrange(len(whole))])
            self.assertEqual(2, octavo(*self.args(*self.flags)).returncode)
            self.assertEqual(self.expected, [answer(line) for line in self.results()])

    def test_ctrl_c_ends_it_between_lines(self):
        code, error = self.stop_when_larger(0, signal.SIGINT)
        self.assertEqual(130, code, error)
        self.assertIn("goes on from there [cancelled]", error)
        done = self.results()
        self.assertTrue(0 < len(done) < self.LINES, len(done))
        self.assertEqual(self.expected[:len(done)], [answer(line) for line in done])
        self.assertEqual(2, octavo(*self.args(*self.flags)).returncode)
        self.assertEqual(self.expected, [answer(line) for line in self.results()])

    def test_results_of_something_else_are_not_touched(self):
        octavo(*self.args(*self.flags))
        before = self.output.read_bytes()
        for change in ("input", "flags", "model", "file"):
            with self.subTest(change=change):
                args, content = self.args(*self.flags), before
                if change == "flags":
                    args += ["--top-k", "5"]
                if change == "model":
                    args[1] = str(TINY).replace("F32", "F16")
                if change == "file":
                    content = b"my notes"
                if change == "input":
                    self.write({"prompt": "other"})
                self.output.write_bytes(content)
                self.refused(2, ["--overwrite"], *args)
                self.assertEqual(content, self.output.read_bytes())
        self.ok(*self.args("--overwrite", "--max-tokens", "2"))
        self.assertEqual(1, len(self.results()))

    def test_a_full_disk_leaves_whole_lines(self):
        def only_8_kb():
            import resource
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))
        run = subprocess.run([BINARY, *map(str, self.args(*self.flags, "--no-pack-cache"))], env=environment(),
                             capture_output=True, timeout=LIMIT_S, preexec_fn=only_8_kb)
        self.assertEqual(4, run.returncode, run.stderr)
        done = self.results()
        self.assertTrue(0 < len(done) < self.LINES, len(done))
        octavo(*self.args(*self.flags))
        self.assertEqual(self.expected, [answer(line) for line in self.results()])


class Progress(cli_test.TerminalCase, BatchCase):
    def test_a_bar_shows_how_far_it_is(self):
        self.write(*({"prompt_token_ids": [i]} for i in range(1, 30)))
        self.start(*(arg for arg in self.args("--max-tokens", "20") if arg != "--quiet"))
        self.read_until(r"\[#+-*\] \d+ of 29 lines, [\d.]+ tokens/s, 0:00:\d\d left")
        self.read_until(r"\[29 lines, 0 failed; 580 tokens in [\d.]+ s, [\d.]+ tokens/s\]")
        self.assertEqual(0, self.run.wait(timeout=LIMIT_S))


class InAPipe(BatchCase):
    """Standard error is no terminal."""

    def run_slowly(self, *flags):
        """Lines are handed over one after the other until a line of progress came, or for a while."""
        run = subprocess.Popen([BINARY, "generate", str(TINY), "--input", "-", "--max-tokens", "2", *GREEDY, *flags],
                               env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(run.kill)
        errors, results = [], []

        def collect(file, lines):
            for line in file:
                lines.append(line)

        readers = [threading.Thread(target=collect, args=(run.stderr, errors)),
                   threading.Thread(target=collect, args=(run.stdout, results))]
        for reader in readers:
            reader.start()
        deadline = time.monotonic() + (12 if flags else LIMIT_S)
        sent = 0
        while not errors and time.monotonic() < deadline:
            run.stdin.write(b'{"prompt_token_ids": [1]}\n')
            run.stdin.flush()
            sent += 1
            time.sleep(0.1)
        run.stdin.close()
        for reader in readers:
            reader.join(LIMIT_S)
        self.assertEqual(0, run.wait(LIMIT_S))
        run.stdout.close()
        run.stderr.close()
        self.assertEqual(sent, len(results))
        return SLOW_NOTE.sub("", b"".join(errors).decode())

    def test_a_named_pipe_is_read_once(self):
        pipe = self.tmp / "pipe"
        os.mkfifo(pipe)
        lines = b'{"prompt_token_ids": [1]}\n' * 3
        writer = threading.Thread(target=pipe.write_bytes, args=(lines,))  # gone while the model is loaded
        writer.start()
        run = octavo("generate", TINY, "--input", pipe, "--max-tokens", "2", *GREEDY)
        writer.join(LIMIT_S)
        self.assertEqual((0, 3), (run.returncode, len(run.stdout.splitlines())), run.error)

    def test_a_line_now_and_then_says_how_far_it_is(self):
        self.assertRegex(self.run_slowly(), r"^octavo: \d+ lines, [\d.]+ tokens/s\n(octavo: \d+ lines[^\n]*\n)*"
                                            r"\[\d+ lines, 0 failed; \d+ tokens in [\d.]+ s, [\d.]+ tokens/s\]\n$")

    def test_quiet_is_quiet(self):
        self.assertEqual("", self.run_slowly("--quiet"))


def chat_line(custom_id, content, **body):
    return {"custom_id": custom_id, "method": "POST", "url": "/v1/chat/completions",
            "body": {"model": str(TINY), "messages": [{"role": "user", "content": content}], "temperature": 0, **body}}


class OpenAiLines(BatchCase):
    """Files of OpenAI's batches, and results in its shape."""

    def setUp(self):
        super().setUp()
        self.lines = [
            chat_line("a", "hello", max_tokens=4),
            {"custom_id": "b", "method": "POST", "url": "/v1/completions",
             "body": {"model": str(TINY), "prompt": ["x", "y"], "max_tokens": 3, "temperature": 0, "n": 2}},
            {"custom_id": "c", "method": "POST", "url": "/v1/embeddings", "body": {"model": str(TINY), "input": "hello"}},
            chat_line("d", "hello", max_tokens=-1),
            chat_line("e", "hello", model="another", max_tokens=1),
            {"custom_id": "f", "method": "POST", "url": "/v1/moderations", "body": {}},
            b"not json",
            {"custom_id": "h", "url": "/v1/chat/completions", "body": {"stream": True}},
            {"prompt": "of the other form"},
            chat_line("j", "again")]
        self.write(*self.lines)

    def run_all(self, *flags):
        run = octavo("generate", TINY, "--input", self.input, "--output", self.output, *flags)
        self.assertEqual(2, run.returncode, run.error)
        return self.results()

    def test_each_is_answered_in_its_shape(self):
        results = self.run_all("--max-tokens", "5")
        self.assertEqual(["a", "b", "c", "d", "e", "f", None, "h", None, "j"], [r["custom_id"] for r in results])
        self.assertEqual(len(results), len({r["id"] for r in results}))
        for result in results:
            self.assertEqual({"id", "custom_id", "response", "error"}, set(result))
            self.assertNotEqual(result["response"] is None, result["error"] is None)
        status = [r["response"] and r["response"]["status_code"] for r in results]
        self.assertEqual([200, 200, 200, 400, 404, None, None, None, None, 200], status)
        chat = results[0]["response"]["body"]
        self.assertEqual("chat.completion", chat["object"])
        self.assertEqual(4, chat["usage"]["completion_tokens"])
        self.assertEqual(4, len(results[1]["response"]["body"]["choices"]))
        self.assertEqual("embedding", results[2]["response"]["body"]["data"][0]["object"])
        self.assertEqual("max_tokens", results[3]["response"]["body"]["error"]["param"])
        self.assertIn("another", results[4]["response"]["body"]["error"]["message"])
        for at, words in ((5, "/v1/moderations"), (6, "not a JSON object"), (7, "stream"), (8, "unknown name 'prompt'")):
            self.assertIn(words, results[at]["error"]["message"])
            self.assertTrue(results[at]["error"]["message"].startswith(f"line {at + 1}: "))
        self.assertEqual(5, results[9]["response"]["body"]["usage"]["completion_tokens"], "--max-tokens is the default")

    def test_an_answer_is_that_of_a_single_run(self):
        text = self.run_all()[0]["response"]["body"]["choices"][0]["message"]["content"]
        alone = self.json("generate", TINY, "--chat", "--prompt", "hello", "--max-tokens", "4", "--temperature", "0")
        self.assertEqual(alone["outputs"][0]["text"], text)

    def test_a_first_line_that_cannot_be_read_fails_alone(self):
        self.write(b"not json", {"custom_id": "x"}, chat_line("a", "hello", max_tokens=1))
        results = self.run_all()
        self.assertEqual([None, "x", "a"], [result["custom_id"] for result in results])
        self.assertEqual([None, None, 200], [r["response"] and r["response"]["status_code"] for r in results])

    def test_it_goes_on_where_it_was_cut(self):
        self.run_all()
        whole = self.output.read_bytes()
        results = [self.comparable(line) for line in self.results()]
        for cut in (len(whole) // 3, len(whole) - 5, 0):
            self.output.write_bytes(whole[:cut])
            self.assertEqual(results, [self.comparable(line) for line in self.run_all()])
        self.output.write_bytes(b"my notes\n")
        self.refused(2, ["--overwrite"], "generate", TINY, "--input", self.input, "--output", self.output)

    def test_a_run_that_is_there_has_its_exit_code_again(self):
        self.run_all()
        before = self.output.read_bytes()
        self.run_all()
        self.assertEqual(before, self.output.read_bytes())

    def test_a_full_queue_is_waited_for(self):
        self.write(*({"custom_id": str(i), "method": "POST", "url": "/v1/completions",
                      "body": {"prompt": ["x", "y"], "max_tokens": 5}} for i in range(20)))
        self.ok("generate", TINY, "--input", self.input, "--output", self.output, "--max-queue-len", "3", "--quiet")
        self.assertEqual([200] * 20, [r["response"]["status_code"] for r in self.results()])

    def test_names_that_lines_may_use(self):
        self.write(chat_line("a", "hello", model="gpt-4o-mini", max_tokens=1))
        self.ok("generate", TINY, "--input", self.input, "--output", self.output, "--served-model-name", "gpt-4o-mini")
        self.assertEqual("gpt-4o-mini", self.results()[0]["response"]["body"]["model"])

    def test_ctrl_c_keeps_what_is_whole(self):
        self.write(*(chat_line(str(i), "hello", max_tokens=200, ignore_eos=True) for i in range(60)))
        command = ["generate", TINY, "--input", self.input, "--output", self.output, "--max-num-seqs", "2"]
        with subprocess.Popen([BINARY, *map(str, command)], env=environment(), stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE) as run:
            deadline = time.monotonic() + LIMIT_S
            while not (self.output.exists() and self.output.stat().st_size) and time.monotonic() < deadline:
                time.sleep(0.001)
            run.send_signal(signal.SIGINT)
            error = run.communicate(timeout=LIMIT_S)[1].decode()
        self.assertEqual(130, run.returncode, error)
        done = self.results()
        self.assertTrue(0 < len(done) < 60, len(done))
        self.assertEqual([str(i) for i in range(len(done))], [r["custom_id"] for r in done])
        self.assertEqual({200}, {r["response"]["status_code"] for r in done})

    @staticmethod
    def comparable(result):
        """Without what is of one run: its time, its seed and how long it took."""
        body = (result["response"] or {}).get("body", {})
        for key in ("created", "seed", "timings"):
            body.pop(key, None)
        for choice in body.get("choices", []):
            choice.pop("seed", None)
        for key in ("prompt_tokens_details",):
            body.get("usage", {}).pop(key, None)
        return result


if __name__ == "__main__":
    unittest.main()
