#!/usr/bin/env python3
"""What one request may take: memory is counted before it is taken, given back afterwards, and running out of it ends a
request, never the server."""

import contextlib
import gzip
import json
import re
import resource
import unittest
from pathlib import Path

from serving import CHAT, COMPLETIONS, OCTAVO, SANITIZED, ServedCase, Server, at_once, wait_for

MIB = 1 << 20
FLAGS = ("serve", "smollm2-135m", "--kv-cache-memory-bytes", 64 * MIB)
JSON = {"Content-Type": "application/json"}
WORDS = "the river ran past a window where letters lay between music and bread "
# What a request may be answered with, whatever it asks for.
FINE = (200, 400, 413, 429, 503)


def text_of(num_bytes):
    return (WORDS * (num_bytes // len(WORDS) + 1))[:num_bytes]


def chat(messages, **fields):
    return CHAT, {"messages": messages, "max_tokens": 2, **fields}


def completion(prompt, **fields):
    return COMPLETIONS, {"prompt": prompt, "max_tokens": 2, **fields}


def shapes():
    """Bodies of each kind that takes many times its size, by name: small things by the hundred thousand, and large ones."""
    user = {"role": "user", "content": "hi"}
    part = {"type": "text", "text": "x"}
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    return {
        "100,000 short messages": chat([user] * 100_000),
        "9 MB of text in a chat": chat([{"role": "user", "content": text_of(9_000_000)}]),
        "9 MB of text": completion(text_of(9_000_000)),
        "9 MB of one letter": completion("a" * 9_000_000),
        "9 MB of rare characters": completion("\u9f98" * 3_000_000),
        "9 MB of escapes": completion("\u0001" * 1_500_000),
        "9 MB of text to tokenize": ("/tokenize", {"prompt": text_of(9_000_000), "return_token_strs": True}),
        "a million tokens": completion([5] * 1_000_000),
        "a million tokens to spell": ("/detokenize", {"tokens": [5] * 1_000_000}),
        "two million numbers that nobody reads": completion("x", unknown=[1] * 2_000_000),
        "700,000 short texts that nobody reads": completion("x", unknown=["abcdefghijklmnopq"] * 700_000),
        "300,000 objects that nobody reads": completion("x", unknown=[{"a": 1}] * 300_000),
        "300,000 keys that nobody reads": completion("x", unknown={f"key {i}": i for i in range(300_000)}),
        "100 prompts": completion([text_of(9_000)] * 100),
        "600,000 parts of a message": chat([{"role": "user", "content": [part] * 200_000}]),
        "9 MB of rare characters to show": ("/tokenize", {"content": "\u9f98" * 3_000_000, "with_pieces": True}),
        "50,000 results of a tool": chat([user] + [{"role": "tool", "tool_call_id": "c", "content": "x"}] * 50_000),
        "100,000 calls of a tool": chat([user, {"role": "assistant", "tool_calls": [call] * 50_000}]),
    }


def encode(body):
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def memory_of(server, *names):
    text = Path(f"/proc/{server.process.pid}/status").read_text()
    return sum(int(re.search(rf"^{name}:\s+(\d+) kB", text, re.M).group(1)) for name in names) * 1024


def resident(server):
    return memory_of(server, "VmRSS", "VmSwap")


def is_well(server):
    return server.post(COMPLETIONS, {"prompt": "x", "max_tokens": 1}).status == 200


def settled(server, most):
    """Memory in use, once it is below so much, or after a few seconds."""
    try:
        return wait_for("memory to be given back", lambda: (r := resident(server)) <= most and r, 3)
    except AssertionError:
        return resident(server)


def limit_address_space(server, num_bytes):
    resource.prlimit(server.process.pid, resource.RLIMIT_AS, (num_bytes, num_bytes))


def touch_cache(server):
    """Pages of the KV cache become resident when they are first written: they are no request's memory."""
    path, body = shapes()["100 prompts"]
    server.call("POST", path, encode(body), JSON)


@unittest.skipIf(SANITIZED, "memory is another then")
class Estimates(unittest.TestCase):
    """No request takes more than was counted before it was read, so that the budget holds."""

    def estimate(self, server, path, data):
        answer = server.call("POST", path, data, JSON)
        self.assertEqual(413, answer.status, answer.body)
        return int(re.search(r"may take (\d+) MiB", answer.text).group(1)) * MIB

    def peak(self, server, path, data):
        """Bytes that the request took at most, and its status."""
        before = resident(server)
        Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")  # the peak begins anew
        status = server.call("POST", path, data, JSON).status
        return memory_of(server, "VmHWM") - before, status

    def test_no_shape_takes_more_than_is_counted(self):
        with Server(OCTAVO, *FLAGS, "--request-memory-bytes", 16 * MIB) as small, \
                Server(OCTAVO, *FLAGS, "--request-memory-bytes", 4096 * MIB) as large:
            self.assertTrue(is_well(large))
            touch_cache(large)
            idle = resident(large)
            for name, (path, body) in shapes().items():
                with self.subTest(name):
                    data = encode(body)
                    counted = self.estimate(small, path, data)
                    settled(large, idle + 8 * MIB)
                    taken, status = self.peak(large, path, data)
                    print(f"{name}: {len(data) / MIB:.1f} MiB, counted {counted / MIB:.0f}, took {taken / MIB:.0f}, {status}")
                    self.assertIn(status, FINE)
                    self.assertLess(taken, counted + 8 * MIB)


@unittest.skipIf(SANITIZED, "memory is another then")
class Limited(unittest.TestCase):
    """With a gigabyte of address space, for everything."""

    @contextlib.contextmanager
    def serve(self):
        with Server("prlimit", f"--as={1024 * MIB}", OCTAVO, *FLAGS) as server:
            self.assertTrue(is_well(server))
            yield server

    def assert_goes_on(self, server, answers):
        for answer in answers:
            self.assertIn(answer.status, FINE, answer.body[:300])
            if answer.status != 200:
                self.assertTrue(answer.error["message"])
        self.assertTrue(is_well(server))

    def test_every_shape_is_answered(self):
        """A second round takes no more than the first has left: caches and tables are full then."""
        with self.serve() as server:
            left = []
            for _ in range(2):
                for name, (path, body) in shapes().items():
                    with self.subTest(name):
                        self.assert_goes_on(server, [server.call("POST", path, encode(body), JSON)])
                left.append(settled(server, 1.1 * left[0] if left else 0))
            print(f"{left[0] / MIB:.0f} MiB after a round, {left[1] / MIB:.0f} after two")
            self.assertLess(left[1], 1.1 * left[0])

    def test_running_out_of_memory_ends_requests_alone(self):
        """The budget is beyond what there is, so that nothing is refused for it."""
        with Server(OCTAVO, *FLAGS, "--request-memory-bytes", "64GiB") as server:
            self.assertTrue(is_well(server))
            limit_address_space(server, memory_of(server, "VmSize") + 100 * MIB)
            for name, (path, body) in shapes().items():
                with self.subTest(name):
                    data = encode(body)
                    answers = at_once([lambda: server.call("POST", path, data, JSON)] * 6)
                    self.assert_goes_on(server, answers)
                    refusals = {answer.error["code"] for answer in answers if answer.status == 503}
                    self.assertLessEqual(refusals, {"request_memory", "out_of_memory", "server_busy"})

    def test_many_large_ones_at_once(self):
        with self.serve() as server:
            before = resident(server)
            path, body = chat([{"role": "user", "content": text_of(40_000)}] * 20)
            data = encode(body)
            answers = at_once([lambda: server.call("POST", path, data, JSON)] * 25)
            self.assert_goes_on(server, answers)
            self.assertLess(settled(server, 1.1 * before), 1.1 * before)


class Refusals(ServedCase):
    FLAGS = ("--request-memory-bytes", "8MiB", "--max-body-bytes", "4MiB")

    def test_what_can_never_be_read_is_too_large(self):
        answer = self.server.call("POST", COMPLETIONS, encode({"prompt": "x", "unknown": [0] * 100_000}), JSON)
        self.assert_refused(answer, 413, code="request_too_large")
        self.assertIn("--request-memory-bytes", answer.error["message"])
        self.assertNotIn("Retry-After", answer.headers)

    def test_what_is_reserved_is_given_back(self):
        for _ in range(50):
            self.ok(self.server.post(COMPLETIONS, {"prompt": "x", "unknown": [0] * 15_000, "max_tokens": 1}))
        wait_for("nothing to be reserved", lambda: self.server.total("octavo:request_memory_bytes") < 10_000)
        self.assertEqual(8 * MIB, self.server.total("octavo:max_request_memory_bytes"))

    def test_the_body_is_kept_no_longer_than_it_is_read(self):
        with self.server.connect() as connection:
            body = encode({"prompt": "x", "unknown": "y" * 400_000, "max_tokens": 4000, "ignore_eos": True, "stream": True})
            connection.request("POST", COMPLETIONS, body, JSON)
            response = connection.getresponse()
            response.read(10)
            self.assertLess(self.server.total("octavo:request_memory_bytes"), 16 * len(body))


class Compressed(ServedCase):
    """Bodies with a Content-Encoding."""

    FLAGS = ("--echo", "--max-body-bytes", "4MiB")

    def send(self, data, coding, path=COMPLETIONS):
        return self.server.call("POST", path, data, {**JSON, "Content-Encoding": coding})

    def body(self, text="small and large", **fields):
        return encode({"prompt": text, "max_tokens": 100, "temperature": 0, **fields})

    def test_gzip_is_read(self):
        for coding in ("gzip", "GZIP", "x-gzip"):
            self.assertEqual("small and large", self.ok(self.send(gzip.compress(self.body()), coding))["choices"][0]["text"])
        half = len(self.body()) // 2
        members = gzip.compress(self.body()[:half]) + gzip.compress(self.body()[half:])
        self.ok(self.send(members, "gzip"))
        events = self.send(gzip.compress(self.body(stream=True)), "gzip").events()
        self.assertEqual("[DONE]", events[-1])

    def test_zstd_is_read(self):
        # A frame with its bytes as they are: magic, one segment with its size in a byte, one raw block that is the last.
        body = self.body()
        frame = b"\x28\xb5\x2f\xfd\x20" + bytes([len(body)]) + (len(body) << 3 | 1).to_bytes(3, "little") + body
        self.ok(self.send(frame, "zstd"))

    def test_others_are_refused_before_the_body_is_read(self):
        for coding in ("br", "deflate", "gzip, gzip"):
            answer = self.send(b"", coding)
            self.assert_refused(answer, 415, code="unsupported_media_type")
            self.assertEqual("gzip, zstd", answer.headers["Accept-Encoding"])

    def test_what_is_no_gzip_is_refused(self):
        good = gzip.compress(self.body())
        for data in (b"", b"{}", good[:-1], good[:20], good + b"x", self.body()):
            self.assert_refused(self.send(data, "gzip"), 400)

    def test_a_bomb_is_refused(self):
        for size in (16 * MIB, 1000 * MIB):
            bomb = gzip.compress(b" " * size, 9)
            self.assert_refused(self.send(bomb, "gzip"), 413, code="request_too_large")
        dense = gzip.compress(self.body(unknown="a" * 3 * MIB), 9)
        self.assert_refused(self.send(dense, "gzip"), 413, code="request_too_large")
        self.ok(self.server.call("POST", COMPLETIONS, self.body(unknown="a" * 3 * MIB), JSON))


if __name__ == "__main__":
    unittest.main()
