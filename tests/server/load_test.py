#!/usr/bin/env python3
"""A thousand open streams, and a third of the clients goes away at some point: the others get what they asked for,
and afterwards the server is as it was before. OCTAVO_LOAD_REQUESTS: how many requests (2,000)."""

import asyncio
import dataclasses
import json
import os
import random
import resource
import socket
import struct
import time
import unittest

from serving import (CHAT, COMPLETIONS, SANITIZED, STUB, Server, dechunked, finish_of, is_whole, parse_events, text_of,
                     wait_for)

NUM_REQUESTS = int(os.environ.get("OCTAVO_LOAD_REQUESTS", "2000"))
NUM_OPEN = 1000  # at once
REQUEST_LIMIT_S = 120
REUSE_LIMIT_S = 30  # the server closes idle connections after 75
FLAGS = ["--echo", "--step-delay-ms", 15, "--max-num-seqs", NUM_OPEN, "--max-num-batched-tokens", 4 * NUM_OPEN,
         "--num-blocks", 20000, "--log-level", "warning", "--admin-api-key", "boss"]
# No two of them are one token of the stub's, so that every byte is one.
LETTERS = "abcdefgijkmnopqrstuvxyzABCDEFGHIJKLMNOPQRSTUVWXYZ013456789 .,;:äß"
WIDE = LETTERS + "äß中文👍"
CUTS = ("before the head", "in the head", "in the body", "unread", "in the answer")


@dataclasses.dataclass
class Plan:
    """One request: what is sent, what must come back, and where the client goes away, if it does."""
    path: str
    body: dict
    expected: str
    reason: str
    cut: str = ""
    reset: bool = False

    @property
    def stream(self):
        return bool(self.body.get("stream"))

    def head_and_body(self):
        body = json.dumps(self.body).encode()
        return (f"POST {self.path} HTTP/1.1\r\nHost: localhost\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n").encode(), body


def plan_request(number, opening):
    """The opening is of streams that are as long as possible, and go away in the answer if they do."""
    dice = random.Random(number)
    text = str(number).replace("2", "x") + " " + "".join(dice.choices(LETTERS, k=150) if opening else dice.choices(WIDE, k=dice.randrange(2, 90)))
    if not opening and dice.random() < 0.3:
        text = "A beginning that many have in common: " + text
    path = dice.choice((CHAT, COMPLETIONS))
    body = {"messages": [{"role": "user", "content": text}]} if path == CHAT else {"prompt": text}
    body |= {"temperature": 0, "max_tokens": 2000, "stream": opening or dice.random() < 2 / 3}
    plan = Plan(path, body, text, "stop")
    if not opening and dice.random() < 0.3:
        body["max_tokens"] = dice.randrange(1, len(text.encode()))
        plan.expected = text.encode()[:body["max_tokens"]].decode(errors="replace")
        plan.reason = "length"
    if dice.random() < 1 / 3:
        plan.cut, plan.reset = "in the answer" if opening else dice.choice(CUTS), dice.random() < 0.5
    return plan


def answer_of(plan, raw):
    """The text and the reason of an answer's bytes."""
    head, _, rest = raw.partition(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1])
    body = dechunked(rest) if b"chunked" in head else rest
    if status != 200:
        raise AssertionError(f"status {status}: {body[:500]!r}")
    if plan.stream:
        events = parse_events(body)
        if events[-1] != "[DONE]":
            raise AssertionError(f"the stream ends with {events[-1]}")
        return text_of(events), finish_of(events)
    choice = json.loads(body)["choices"][0]
    return (choice["text"] if "text" in choice else choice["message"]["content"]), choice["finish_reason"]


class Load:
    def __init__(self, server):
        self.server = server
        self.num_done = self.num_cut = self.num_right = self.num_tokens = 0
        self.wrong = []
        self.open, self.most_open = 0, 0
        self.all_open = asyncio.Event()
        self.memory = []  # after each eighth
        self.connections = []  # whose last answer was read to its end, and when

    async def run(self, count):
        opening = [plan_request(i, True) for i in range(NUM_OPEN)]
        later = iter([plan_request(i, False) for i in range(NUM_OPEN, count)])
        self.count = count
        start = asyncio.Barrier(NUM_OPEN)

        async def work(first):
            await self.take(first, start)
            for plan in later:
                await self.take(plan)
        await asyncio.gather(*(work(plan) for plan in opening))
        for _, writer, _ in self.connections:
            writer.close()

    async def take(self, plan, start=None):
        try:
            async with asyncio.timeout(REQUEST_LIMIT_S):
                await self.talk(plan, start)
        except Exception as error:
            self.wrong.append((plan.cut, plan.body, repr(error)))
        self.num_done += 1
        if self.num_done * 8 // self.count > len(self.memory):
            self.memory.append(resident(self.server.process.pid))

    async def talk(self, plan, start):
        reader, writer = await self.connect(is_new=plan.cut or start)
        head, body = plan.head_and_body()
        if start:  # all are ready before the first is complete
            writer.write(head + body[:-1])
            await start.wait()
            writer.write(body[-1:])
        elif plan.cut not in CUTS[:3]:
            writer.write(head + body)
        if plan.cut:
            await self.go_away(plan, reader, writer, head, body, start)
            self.num_cut += 1
            return
        got = answer_of(plan, await self.read(plan, reader))
        if got != (plan.expected, plan.reason):
            raise AssertionError(f"expected {plan.expected, plan.reason}, got {got}")
        self.num_right += 1
        self.num_tokens += len(got[0].encode())
        self.connections.append((reader, writer, time.monotonic()))

    async def connect(self, is_new):
        while self.connections and not is_new:
            reader, writer, used = self.connections.pop()
            if time.monotonic() - used < REUSE_LIMIT_S:
                return reader, writer
            writer.close()
        return await asyncio.open_connection("127.0.0.1", self.server.port)

    async def read(self, plan, reader, most=None, waits=False):
        """The bytes of an answer, or of its beginning; `waits`: until all streams are open."""
        raw, counted = bytearray(), False
        try:
            while not is_whole(raw) and (most is None or len(raw) < most or waits and not counted):
                part = await reader.read(65536)
                if not part:
                    raise AssertionError(f"the server closed after {bytes(raw[-300:])!r}")
                raw += part
                if plan.stream and not counted and b"data: " in raw:
                    counted = True
                    self.count_open(1)
                    if waits:
                        await asyncio.wait_for(self.all_open.wait(), REQUEST_LIMIT_S / 4)
            return bytes(raw)
        finally:
            if counted:
                self.count_open(-1)

    def count_open(self, more):
        self.open += more
        self.most_open = max(self.most_open, self.open)
        if self.open == NUM_OPEN:
            self.all_open.set()

    async def go_away(self, plan, reader, writer, head, body, start):
        dice = random.Random(plan.expected)
        if plan.cut == "in the head":
            writer.write(head[:dice.randrange(1, len(head))])
        elif plan.cut == "in the body":
            writer.write(head + body[:dice.randrange(len(body))])
        elif plan.cut == "in the answer":
            await self.read(plan, reader, dice.randrange(1, 10000 if plan.stream else 200), bool(start))
        if plan.cut != "in the answer" and dice.random() < 0.7:
            await asyncio.sleep(dice.random() * 0.3)
        if plan.reset:
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.close()


def resident(pid):
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def may_open(count):
    """Raises the limit of open files as far as it goes."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard == resource.RLIM_INFINITY or hard >= count


class LoadTest(unittest.TestCase):
    GAUGES = ("vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc", "octavo:open_requests",
              "octavo:http_connections")

    def setUp(self):
        if not may_open(NUM_OPEN + 200):
            self.skipTest("too few files may be open at once")

    def state(self, server):
        metrics, admin = server.metrics(), {"Authorization": "Bearer boss"}
        return {name: sum(metrics[name].values()) for name in self.GAUGES} | {
            "load": server.call("GET", "/load").json["server_load"],
            "requests": len(server.call("GET", "/v1/requests", headers=admin).json["data"]),
            "files": len(os.listdir(f"/proc/{server.process.pid}/fd"))}

    def test_a_thousand_streams_and_clients_that_go_away(self):
        with Server(STUB, *FLAGS) as server:
            before = self.state(server)
            start = time.monotonic()

            async def run():
                load = Load(server)
                await load.run(NUM_REQUESTS)
                return load
            load = asyncio.run(run())
            took = time.monotonic() - start
            self.report(load, took)
            self.assertEqual([], load.wrong[:3], f"{len(load.wrong)} went wrong")
            self.assertEqual(NUM_REQUESTS, load.num_right + load.num_cut)
            self.assertGreater(load.num_cut, NUM_REQUESTS / 4)
            self.assertEqual(NUM_OPEN, load.most_open, "streams open at once")
            wait_for("the server to be as before", lambda: self.state(server) == before)
            growth = load.memory[7] - load.memory[3]
            if not SANITIZED:
                self.assertLess(growth, 0.02 * load.memory[3], load.memory)
            self.assertNotRegex(server.output(), r"\[(warning|error)\]|terminate|Sanitizer")

    def report(self, load, took):
        sizes = ", ".join(f"{size / 1e6:.1f}" for size in load.memory)
        print(f"{load.num_done} requests in {took:.1f} s ({load.num_done / took:.0f} per second): {load.num_right} right, "
              f"{load.num_cut} cut off, {len(load.wrong)} wrong; {load.most_open} streams open at once; "
              f"{load.num_tokens / took:.0f} tokens per second; MB resident after each eighth: {sizes}")


class OpenFiles(unittest.TestCase):
    WARNING = "files may be open at once"

    def served(self, limit):
        return Server("/bin/sh", "-c", f'ulimit {limit} && exec "$@"', "sh", STUB, "--echo")

    def connect(self, server, count):
        if not may_open(count + 100):
            self.skipTest("too few files may be open at once")
        connections = [socket.create_connection(("127.0.0.1", server.port), 60) for _ in range(count)]
        for connection in connections:
            self.addCleanup(connection.close)
        return connections

    def ask(self, connection):
        """The status that this connection gets."""
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        return int(connection.recv(65536).split(b" ")[1])

    def test_the_soft_limit_is_raised(self):
        with self.served("-Sn 256") as server:
            self.assertEqual({200}, {self.ask(c) for c in self.connect(server, 400)})
            self.assertGreaterEqual(server.total("octavo:http_connections"), 400)
            self.assertGreater(server.total("process_max_fds"), 400)
            self.assertNotIn(self.WARNING, server.output())

    def test_a_hard_limit_is_said_and_clients_beyond_it_are_told(self):
        with self.served("-n 256") as server:
            self.assertIn(f"only 256 {self.WARNING}", server.output())
            first, beyond = self.connect(server, 150), self.connect(server, 100)
            self.assertEqual({200}, {self.ask(c) for c in first})
            statuses = [self.ask(c) for c in beyond]
            self.assertEqual({200, 503}, set(statuses))
            self.assertEqual(sorted(statuses), statuses)
            self.assertEqual({200}, {self.ask(c) for c in first})
            for connection in first + beyond:
                connection.close()
            wait_for("a place", lambda: self.ask(self.connect(server, 1)[0]) == 200)


if __name__ == "__main__":
    unittest.main()
