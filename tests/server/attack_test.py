#!/usr/bin/env python3
"""Nothing that a client sends may stall, end or lock the server: while some do their worst, another's stream goes on, whoever
watches is answered, and afterwards there is as much memory as before.

  attack_test.py [--clients N] [--seconds S] [--model MODEL] [--address-space BYTES]

Without options it is short, on a model without weights, and no figure depends on how busy the machine is. With --strict the
goals of docs/serving.md have to be met, on a machine with nothing else to do."""

import argparse
import contextlib
import json
import signal
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

from serving import CHAT, COMPLETIONS, LIMIT_S, OCTAVO, SANITIZED, STUB, Server, at_once, memory, wait_for

OPTIONS = argparse.Namespace(clients=8, seconds=12, model=None, seed=1, strict=False, flags=[], address_space=None)
STEP_MS = 10
FLAGS = ("--trust-request-chat-template", "--log-level", "error")
MIB = 1 << 20

# What --strict asks for, and what is asked for in any case: something that hangs takes longer.
MOST_EXTRA_GAP_S, MOST_WATCH_S, MOST_MEMORY = 0.05, 0.1, 1.1
HANGS_S = 60 if SANITIZED else 5


class Loop(threading.Thread):
    """Does the same again until the block ends; what goes wrong is raised there."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.ending, self.error = server, threading.Event(), None

    def run(self):
        try:
            while not self.ending.is_set():
                self.once()
        except BaseException as error:
            self.error = error

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.join(LIMIT_S)
        if self.error:
            raise self.error


class Stream(Loop):
    """A client that reads an answer, and the next: when each event came."""

    def __init__(self, server):
        super().__init__(server)
        self.gaps = []  # (seconds, when it ended), within answers

    def once(self):
        body = {"prompt": "a well-behaved client", "max_tokens": 2000, "ignore_eos": True, "stream": True}
        with contextlib.closing(self.server.open(COMPLETIONS, body)) as connection:
            last = None
            received = b""
            while not self.ending.is_set():
                part = connection.recv(1 << 16)
                now = time.monotonic()
                received = received[-100:] + part
                if last and b"data: " in part:
                    self.gaps.append((now - last, now))
                if b"data: " in part:
                    last = now
                if b"data: [DONE]" in received:
                    if b'"error"' in received:
                        raise AssertionError(received)
                    return
                if not part:
                    raise AssertionError("the stream of a well-behaved client was cut")

    def largest(self, begin, end=float("inf")):
        return max(((gap, at) for gap, at in self.gaps if begin <= at <= end), default=(0, begin))


class Watch(Loop):
    """What a probe and Prometheus do, more often."""

    PATHS = ("/health", "/metrics", "/ready", "/load", "/v1/models", "/version")

    def __init__(self, server):
        super().__init__(server)
        self.seconds = {path: [] for path in self.PATHS}

    def once(self):
        for path in self.PATHS:
            start = time.monotonic()
            answer = self.server.call("GET", path)
            self.seconds[path].append(time.monotonic() - start)
            if answer.status != 200:
                raise AssertionError(f"{path}: {answer.status} {answer.body}")
        time.sleep(0.05)


def attacked(server, clients, seconds, seed):
    """What attacks.py says at its end."""
    command = [sys.executable, str(Path(__file__).with_name("attacks.py")), str(server.port), "--clients", str(clients),
               "--seconds", str(seconds), "--seed", str(seed)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds + 10 * LIMIT_S)
    if done.returncode:
        raise AssertionError(done.stderr)
    return json.loads(done.stdout)


class Everything(unittest.TestCase):
    """Every field with every odd value, by many at once."""

    def serve(self):
        command = (OCTAVO, "serve", OPTIONS.model) if OPTIONS.model else (STUB, "--step-delay-ms", STEP_MS)
        if OPTIONS.address_space:
            command = ("prlimit", f"--as={OPTIONS.address_space}", *command)
        return Server(*command, *FLAGS, *OPTIONS.flags)

    def test_the_server_goes_on(self):
        with self.serve() as server:
            # What is made once is made: pages of the KV cache, above all, are the process's once they are written.
            attacked(server, OPTIONS.clients, max(2, OPTIONS.seconds / 10), OPTIONS.seed + 1)
            before = self.settled(server, 0)
            with Stream(server) as stream, Watch(server) as watch:
                wait_for("the stream to run", lambda: len(stream.gaps) > 20)
                calm = time.monotonic()
                time.sleep(min(OPTIONS.seconds / 4, 20))
                begin = time.monotonic()
                report = attacked(server, OPTIONS.clients, OPTIONS.seconds, OPTIONS.seed)
                end = time.monotonic()
            wait_for("the server to be idle", lambda: server.call("GET", "/load").json["server_load"] == 0)
            quiet_gap, attack_gap = stream.largest(calm, begin), stream.largest(begin, end)
            after = self.settled(server, before)
            self.tell(report, quiet_gap[0], attack_gap, stream, watch, before, after)
            failures = [failure for failure in report["failures"] if not (SANITIZED and failure.startswith("no answer"))]
            self.assertEqual([], failures)
            slowest = max(max(seconds) for seconds in watch.seconds.values())
            self.assertLess(attack_gap[0], HANGS_S)
            self.assertLess(slowest, HANGS_S)
            if not OPTIONS.strict:
                return
            self.assertLessEqual(attack_gap[0] - quiet_gap[0], MOST_EXTRA_GAP_S)
            self.assertLessEqual(slowest, MOST_WATCH_S)
            self.assertLessEqual(after, MOST_MEMORY * before)

    def settled(self, server, before):
        with contextlib.suppress(AssertionError):
            wait_for("the memory to be back", lambda: memory(server) <= MOST_MEMORY * before, 10)
        return memory(server)

    def tell(self, report, quiet_gap, attack_gap, stream, watch, before, after):
        gap, at = attack_gap
        gaps = sorted(seconds for seconds, _ in stream.gaps)
        under = sorted({name for start, end, name in report["spans"] if start <= at and end >= at - gap})
        print(f"{report['sent']} requests of {report['cases']} kinds: {dict(sorted(report['statuses'].items()))}")
        print(f"largest gap of a stream: {1000 * quiet_gap:.0f} ms before, {1000 * gap:.0f} ms meanwhile (P99 "
              f"{1000 * gaps[int(0.99 * (len(gaps) - 1))]:.0f} ms); at that moment: {'; '.join(under[:12])}")
        print("slowest answers: " + ", ".join(f"{path} {1000 * max(seconds):.0f} ms" for path, seconds in watch.seconds.items()))
        print(f"memory: {before / MIB:.0f} MiB before, {after / MIB:.0f} MiB after")
        slow = sorted(((end - start, name) for start, end, name in report["spans"]), reverse=True)
        print("slowest requests: " + "; ".join(f"{seconds:.1f} s {name}" for seconds, name in slow[:5]))


class Single(unittest.TestCase):
    """One kind of attack at a time, and what is right then."""

    def ok(self, answer):
        self.assertEqual(200, answer.status, answer.body)
        return answer

    def refused(self, answer, word):
        self.assertEqual(400, answer.status, answer.body[:300])
        self.assertIn(word, answer.error["message"])

    def test_lists_have_limits(self):
        with Server(STUB, *FLAGS) as server:
            def ask(**fields):
                return server.post(COMPLETIONS, {"prompt": "x", "max_tokens": 2, **fields})
            self.refused(ask(bad_words=["a" * 4096] * 1024), "length of all bad_words")
            self.ok(ask(bad_words=["a" * 63] * 1024, n=20))
            vocabulary = server.call("GET", "/tokenizer_info").json["vocab_size"]
            for name in ("stop_token_ids", "allowed_token_ids"):
                self.refused(ask(**{name: [9] * 500_000}, n=63), f"length of {name}")
                self.ok(ask(**{name: [9] * vocabulary}, n=20))
            answer = server.post(CHAT, {"messages": [{"role": "user", "content": "x"}],
                                        "chat_template_kwargs": {f"name{i}": i for i in range(300_000)}})
            self.refused(answer, "chat_template_kwargs has 300000 entries")

    def test_long_lists_do_what_short_ones_do(self):
        with Server(STUB, *FLAGS) as server:
            def text(**fields):
                answer = server.post(COMPLETIONS, {"prompt": "x", "max_tokens": 30, "temperature": 0, "ignore_eos": True, **fields})
                return self.ok(answer).json["choices"][0]["text"]
            self.assertEqual("zzz", text(allowed_token_ids=[122] * 200, max_tokens=3))
            self.assertEqual("zzzzz", text(allowed_token_ids=[122] * 200, bad_words=["zzzzzz"] * 900, max_tokens=5))
            self.assertEqual("", text(allowed_token_ids=[122] * 200, stop_token_ids=[122] * 200))

    def leave_work_behind(self, server):
        """Minutes of it, by clients that do not wait for what they asked."""
        loops = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
        body = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 1, "chat_template": loops}
        self.refused(server.post(CHAT, body), "steps")
        for _ in range(10):
            sockets = [server.open(CHAT, body) for _ in range(100)]
            for connection in sockets:
                connection.close()

    def test_clients_that_left_hold_no_worker(self):
        with Server(STUB, *FLAGS) as server:
            self.leave_work_behind(server)
            self.ok(server.post(CHAT, {"messages": [{"role": "user", "content": "x"}], "max_tokens": 1}))
            self.ok(server.call("GET", "/metrics"))

    def test_who_watches_is_answered_while_every_worker_works(self):
        loops = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"
        body = {"messages": [{"role": "user", "content": "x"}], "max_tokens": 1, "chat_template": loops}
        with Server(STUB, *FLAGS) as server, contextlib.ExitStack() as stack:
            for _ in range(200):
                stack.enter_context(contextlib.closing(server.open(CHAT, body)))
            with Watch(server) as watch:
                wait_for("some probes", lambda: len(watch.seconds["/metrics"]) > 5)
            busy = server.total("octavo:http_connections")
            self.assertGreater(busy, 100, "the clients were answered before anybody watched")
            self.assertLess(max(max(seconds) for seconds in watch.seconds.values()), HANGS_S)

    def test_the_end_does_not_wait_for_clients_that_left(self):
        with Server(STUB, *FLAGS) as server:
            self.leave_work_behind(server)
            server.terminate()
            self.assertEqual(0, server.wait())

    def test_a_stopped_process_has_not_hung(self):
        """Longer than the limit after which a stuck engine ends the server."""
        with Server(STUB, "--step-delay-ms", STEP_MS, "--stall-timeout", 2, *FLAGS) as server:
            with Stream(server) as stream:
                wait_for("the stream to run", lambda: len(stream.gaps) > 5)
                server.process.send_signal(signal.SIGSTOP)
                time.sleep(8)
                server.process.send_signal(signal.SIGCONT)
                for _ in range(20):
                    self.ok(server.call("GET", "/health"))
                    time.sleep(0.05)
                count = len(stream.gaps)
                wait_for("the stream to go on", lambda: len(stream.gaps) > count + 5)

    def test_an_idle_server_is_never_busy(self):
        """Its first prompt took long; nobody waits now, so nobody is refused, however long prompts are said to take."""
        with Server(STUB, "--prefill-delay-ms", 1500, "--max-queue-wait", "0.05", *FLAGS) as server:
            for _ in range(3):
                self.ok(server.post(COMPLETIONS, {"prompt": "x " * 200, "max_tokens": 1}))
            self.assertEqual(0, server.total("vllm:admission_rejections_total"))

    def test_many_commands_are_no_stall(self):
        """Beside a stream many come at once with all that may be barred: it goes on, and the server is well."""
        words = ["ab " * 21] * 1000
        with Server(STUB, "--step-delay-ms", STEP_MS, "--stall-timeout", 2, *FLAGS) as server, Stream(server) as stream:
            wait_for("the stream to run", lambda: len(stream.gaps) > 5)
            body = {"prompt": ["x"] * 8, "max_tokens": 2, "bad_words": words}
            for answer in at_once([lambda: server.post(COMPLETIONS, body) for _ in range(30)]):
                self.ok(answer)
            self.ok(server.call("GET", "/health"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument("--model", help="served by octavo instead of the stub")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--address-space", type=int, help="bytes, all that the server may have")
    parser.add_argument("--strict", action="store_true", help="the goals have to be met")
    parser.add_argument("--flags", nargs="*", help="further ones of octavo serve, with = instead of a space")
    options, rest = parser.parse_known_args()
    for name, value in vars(options).items():
        if value is not None:
            setattr(OPTIONS, name, value)
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == "__main__":
    main()
