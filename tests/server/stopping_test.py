#!/usr/bin/env python3
"""How a server ends, and goes on: signals, a log that nobody reads, weights that turn out to be damaged."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import unittest
from pathlib import Path

from serving import COMPLETIONS, LIMIT_S, OCTAVO, STUB, Server, wait_for

TINY = Path(__file__).resolve().parents[1] / "data/tiny/llama-tied/llama-tied-Q4_0.gguf"
LONG = {"prompt": "a long answer", "max_tokens": 200, "ignore_eos": True, "temperature": 0, "stream": True}


def rest_of(connection):
    with contextlib.closing(connection):
        return b"".join(iter(lambda: connection.recv(65536), b""))


class Hangup(unittest.TestCase):
    def test_ends_like_any_other_signal(self):
        with Server(STUB, "--step-delay-ms", "5") as server:
            connection = server.open(COMPLETIONS, LONG)
            self.assertTrue(connection.recv(1))
            server.process.send_signal(signal.SIGHUP)
            self.assertTrue(rest_of(connection).rstrip(b"\r\n0").endswith(b"data: [DONE]"))
            self.assertEqual(0, server.wait())

    def test_is_ignored_under_nohup(self):
        with Server("nohup", STUB) as server:
            server.process.send_signal(signal.SIGHUP)
            self.assertEqual(200, server.call("GET", "/ready").status)
            self.assertIsNone(server.process.poll())


class Draining(unittest.TestCase):
    def test_probes_meanwhile_are_no_errors(self):
        with Server(STUB, "--step-delay-ms", "5", "--log-format", "json") as server:
            connection = server.open(COMPLETIONS, LONG)
            self.assertTrue(connection.recv(1))
            server.terminate()
            wait_for("/ready to say so", lambda: server.call("GET", "/ready").status == 503)
            self.assertEqual(503, server.post(COMPLETIONS, {"prompt": "x"}).status)
            rest_of(connection)
            self.assertEqual(0, server.wait())
            lines = [json.loads(line) for line in server.output().splitlines() if line.startswith("{")]
        self.assertEqual([], [line for line in lines if line["level"] == "error"])
        self.assertEqual([], [line for line in lines if line.get("path") == "/ready" and line["status"] == 503])
        self.assertEqual(["warning"], [line["level"] for line in lines if line.get("status") == 503])


class Unread(unittest.TestCase):
    """Standard error is a pipe that nobody empties."""

    def ask(self, path, requests):
        """Whatever comes back when these bytes are sent on one connection."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(LIMIT_S)
        connection.connect(path)
        connection.sendall(requests)
        return rest_of(connection)

    def fill(self, path, count):
        """So many lines of more than 4,000 bytes."""
        one = b"GET /" + b"x" * 4000 + b" HTTP/1.1\r\nHost: localhost\r\n"
        answers = self.ask(path, (one + b"\r\n") * (count - 1) + one + b"Connection: close\r\n\r\n")
        self.assertEqual(count, answers.count(b"HTTP/1.1 404"))

    def test_the_server_answers_and_ends(self):
        for read_at_last in (False, True):
            with self.subTest(read_at_last=read_at_last), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "socket")
                with subprocess.Popen([STUB, "--uds", path, "--log-format", "json"], stdin=subprocess.DEVNULL,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
                    try:
                        wait_for("the socket", lambda: os.path.exists(path))
                        wait_for("an answer", lambda: b" 200 " in self.ask(
                            path, b"GET /ready HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))
                        for _ in range(50):  # more than the pipe and the bound on what waits hold
                            self.fill(path, 60)
                        metrics = self.ask(path, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                        dropped = re.search(rb"\noctavo:log_lines_dropped_total\S* (\d+)", metrics)
                        self.assertGreater(int(dropped.group(1)), 100)
                        if read_at_last:
                            self.assertIn(b"lines of the log were dropped: nobody read them", self.some_lines(process, 3000))
                        process.send_signal(signal.SIGTERM)
                        if not read_at_last:
                            self.assertEqual(0, process.wait(LIMIT_S))
                        else:
                            process.stderr.read()
                            self.assertEqual(0, process.wait(LIMIT_S))
                    finally:
                        process.kill()

    def some_lines(self, process, count):
        """Up to the one that says that others were dropped."""
        for _ in range(count):
            line = process.stderr.readline()
            if b"dropped" in line or not line:
                return line
        return b""


class DamagedWeights(unittest.TestCase):
    """The pack that an earlier start left behind has a wrong bit in its weights."""

    BODY = {"prompt": [1, 2, 3], "max_tokens": 8, "temperature": 0, "ignore_eos": True, "return_token_ids": True}

    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.env = {"XDG_CACHE_HOME": str(self.folder)}
        self.statuses = set()  # that clients saw

    def packs(self):
        return sorted(self.folder.rglob("*.pack"))

    def serve(self):
        return Server(OCTAVO, "serve", TINY, "--served-model-name", "tiny", env=self.env)

    def answer(self, server):
        answer = server.post(COMPLETIONS, self.BODY)
        return answer.json["choices"][0]["token_ids"] if answer.status == 200 else None

    def damage(self):
        pack, = self.packs()
        good = pack.read_bytes()
        bad = bytearray(good)
        for i in range(1, 2000):
            bad[-i] ^= 0x55
        pack.write_bytes(bad)
        return good

    def test_are_made_anew_while_the_server_lives(self):
        with self.serve() as server:
            right = self.answer(server)
            wait_for("the pack", self.packs)
        good = self.damage()
        with self.serve() as server:
            wait_for("the log to say so", lambda: "made anew from the model's file" in server.output())
            wait_for("a right answer", lambda: self.is_right(server, right))
            self.assertIsNone(server.process.poll())
            self.assertLessEqual(self.statuses, {200, 503})
            wait_for("a new pack", self.packs)
            wait_for("the pack to be whole", lambda: self.packs()[0].read_bytes() == good)

    def is_right(self, server, right):
        """Between its two lives nobody listens for a moment."""
        with contextlib.suppress(OSError):
            ready, answer = server.call("GET", "/ready"), server.post(COMPLETIONS, self.BODY)
            self.statuses |= {ready.status, answer.status}
            return ready.status == answer.status == 200 and answer.json["choices"][0]["token_ids"] == right
        return False


if __name__ == "__main__":
    unittest.main()
