#!/usr/bin/env python3
"""What goes wrong, at clients, in the model or in the process: each time the next request is answered right."""

import contextlib
import os
import re
import signal
import socket
import ssl
import struct
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

from serving import (CHAT, COMPLETIONS, LIMIT_S, OCTAVO, SANITIZED, STUB, ServedCase, Server, at_once, encode, parse_events, text_of,
                     wait_for)

RUNNING, WAITING, KV = "vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc"
THROWS, LOGITS_THROW, HANGS = "\x06", "\x07", "\x15"  # of `stub_server --faults`
MIB = 1 << 20


def head(body, *headers, path=COMPLETIONS):
    """The head of a POST whose body is said to be of that many bytes; None: in chunks."""
    length = "Transfer-Encoding: chunked" if body is None else f"Content-Length: {body}"
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", length, *headers, "", ""]
    return "\r\n".join(lines).encode()


def post(fields, *headers):
    body, _ = encode({"max_tokens": 100, "temperature": 0, **fields}, None)
    return head(len(body), *headers) + body


def chunked(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def read_all(connection):
    """What comes until the other side has closed, in whatever way."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while part := connection.recv(65536):
            received += part
    return received


def statuses(received):
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d+)", received)]


class FaultCase(ServedCase):
    """After every test the server is idle, and its next answers are right."""

    FLAGS = ("--echo", "--header-timeout", "1", "--body-timeout", "1")

    def tearDown(self):
        self.assert_well(self.server)

    def assert_well(self, server):
        wait_for("the server to be idle", lambda: not (server.total(RUNNING) or server.total(WAITING)))
        self.assertEqual(0, server.total(KV))
        for stream in (False, True):
            fields = {"prompt": "all is well", "max_tokens": 100, "temperature": 0}
            text = (text_of(server.stream(COMPLETIONS, fields)) if stream else
                    self.ok(server.post(COMPLETIONS, fields))["choices"][0]["text"])
            self.assertEqual("all is well", text)

    @contextlib.contextmanager
    def connected(self, server=None):
        with socket.create_connection(("127.0.0.1", (server or self.server).port), LIMIT_S) as connection:
            yield connection

    def answer_to(self, *parts):
        """Everything that comes back until the server hangs up."""
        with self.connected() as connection:
            for part in parts:
                connection.sendall(part)
            return read_all(connection)


class Clients(FaultCase):
    def test_vanishing_within_a_request(self):
        whole = post({"prompt": "gone", "stream": True})
        for end in (1, 20, whole.index(b"\r\n\r\n") + 4, len(whole) - 1, len(whole)):
            for reset in (False, True):
                with self.connected() as connection:
                    connection.sendall(whole[:end])
                    if reset:
                        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        wait_for("their connections to be gone", lambda: self.server.total("octavo:http_connections") <= 1)

    def test_trickling(self):
        """Byte by byte, each in time, but not the whole: of heads and of bodies."""
        for start, rest in ((b"", post({"prompt": "slow"})), (head(1000), b" " * 1000), (head(None), b"1\r\n \r\n" * 1000)):
            with self.connected() as connection:
                connection.sendall(start)
                answered = []
                reader = threading.Thread(target=lambda c=connection, a=answered: a.append(read_all(c)), daemon=True)
                reader.start()
                with contextlib.suppress(ConnectionError):
                    for byte in rest:
                        if not reader.is_alive():
                            break
                        connection.sendall(bytes([byte]))
                        time.sleep(0.05)
                reader.join(LIMIT_S)
                self.assertEqual([408], statuses(answered[0]), (start, answered))
                self.assertIn(b"Connection: close", answered[0])

    def test_many_that_trickle_hold_up_nobody(self):
        with contextlib.ExitStack() as stack:
            for i in range(200):
                stack.enter_context(self.connected()).sendall(head(100)[:20 + i % 100])
            self.assert_well(self.server)

    def test_garbage(self):
        for garbage in (b"\0", b"\xff" * 1000, b"GET\r\n\r\n", b"\r\n" * 1000, b" " * 1000, b"get / HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\n",
                        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"GET / HTTP/9.9\r\nHost: a\r\n\r\n",
                        os.urandom(100_000)):
            with self.subTest(garbage=garbage[:30]):
                with contextlib.suppress(ConnectionError):
                    answer = self.answer_to(garbage)
                    if answer:
                        self.assertTrue(400 <= statuses(answer)[0] < 600, answer[:200])

    def test_a_tls_hello_is_answered_at_once(self):
        hello, nothing = ssl.MemoryBIO(), ssl.MemoryBIO()
        secure = ssl.create_default_context().wrap_bio(nothing, hello, server_hostname="localhost")
        with self.assertRaises(ssl.SSLWantReadError):
            secure.do_handshake()
        self.assertEqual([400], statuses(self.answer_to(hello.read())))

    def test_a_client_that_has_shut_down_its_sending_side(self):
        """It gets what there is to say at once. Who waits for tokens counts as gone: a client that closes looks the same."""
        with self.connected() as connection:
            connection.sendall(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n")
            connection.shutdown(socket.SHUT_WR)
            self.assertIn(b'"object":"list"', read_all(connection))
        for stream in (False, True):
            with self.connected() as connection:
                connection.sendall(post({"prompt": "half" * 100, "stream": stream}))
                connection.shutdown(socket.SHUT_WR)
                self.assertNotIn(b"error", read_all(connection))

    def test_a_large_body_is_not_read_into_memory(self):
        for start in (head(100 * MIB), head(None)):
            with self.connected() as connection:
                before = self.memory()
                data = chunked(b" " * MIB) if start == head(None) else b" " * MIB
                connection.sendall(start)
                with contextlib.suppress(ConnectionError):
                    for _ in range(100):
                        connection.sendall(data)
                if not SANITIZED:
                    self.assertLess(self.memory() - before, 48 * MIB)  # the limit is 32, for a body that grows in chunks
                with contextlib.suppress(ConnectionError):
                    self.assertIn(413, statuses(connection.recv(65536)))

    def memory(self):
        status = Path(f"/proc/{self.server.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) * 1024

    def test_nesting(self):
        deep = b"[" * 100_000 + b"]" * 100_000
        for body in (deep, b'{"prompt":' + deep + b"}", b'{"unknown":' + deep + b"}", b"[" * 100_000, b'{"a":' * 100_000):
            for path in (CHAT, COMPLETIONS, "/tokenize"):
                answer = self.server.call("POST", path, body, {"Content-Type": "application/json"})
                self.assert_refused(answer, 400)

    def test_chunks_that_are_none(self):
        for chunks in (b"x\r\n", b"-1\r\n", b"\r\n", b"ffffffffffffffff\r\n", b"fffffffffffffffffffffffff\r\n", b"0x5\r\nhello\r\n",
                       b"5\r\nhelloworld", b"5\nhello\r\n0\r\n\r\n", b"5;" + b"a" * 50_000 + b"\r\n", b"0\r\n" + b"a: b\r\n" * 20_000,
                       b"3\r\n{}\n0\r\n\r\n"):
            with self.subTest(chunks=chunks[:30]):
                with contextlib.suppress(ConnectionResetError):
                    self.assertIn(statuses(self.answer_to(head(None), chunks))[0], (400, 413))
        both = head(5).replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n")
        self.assertEqual([400], statuses(self.answer_to(both, b"0\r\n\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n")))

    def test_chunks_of_one_byte(self):
        body, _ = encode({"prompt": "in small pieces", "max_tokens": 100, "temperature": 0}, None)
        pieces = b"".join(chunked(bytes([byte])) for byte in body) + b"0\r\n\r\n"
        self.assertIn(b"in small pieces", self.answer_to(head(None, "Connection: close"), pieces))

    def test_pipelined_requests(self):
        words = [f"number {i}" for i in range(20)]
        requests = [post({"prompt": word, "stream": i % 3 == 1}) for i, word in enumerate(words)]
        requests.append(post({"prompt": "last"}, "Connection: close"))
        answer = self.answer_to(b"".join(requests))
        self.assertEqual([200] * 21, statuses(answer))
        bodies = re.split(rb"HTTP/1\.1 200 OK\r\n", answer)[1:]
        for i, (word, body) in enumerate(zip(words, bodies)):
            if i % 3 == 1:
                data = body.partition(b"\r\n\r\n")[2]
                events = b"".join(re.findall(rb"data: .*\n\n", data))
                self.assertEqual(word, text_of(parse_events(events)))
            else:
                self.assertIn(b'"' + word.encode() + b'"', body)

    def test_a_bad_one_ends_what_was_pipelined(self):
        """After a request whose end is in doubt nothing of that connection is believed."""
        answer = self.answer_to(post({"prompt": "first"}) + b"GET / HTTP/1.1\r\n\r\n" + post({"prompt": "smuggled"}))
        self.assertEqual([200, 400], statuses(answer))
        self.assertNotIn(b"smuggled", answer)


class Model(FaultCase):
    FLAGS = ("--echo", "--faults")

    def test_it_throws_within_a_stream(self):
        for trigger in (THROWS, LOGITS_THROW):
            for path in (CHAT, COMPLETIONS):
                with self.subTest(trigger=trigger, path=path):
                    text = "abcd" + trigger + "never"
                    prompt = {"messages": [{"role": "user", "content": text}]} if path == CHAT else {"prompt": text}
                    with self.connected() as connection:
                        body, headers = encode({**prompt, "max_tokens": 50, "temperature": 0, "stream": True}, None)
                        connection.sendall(head(len(body), "Connection: close", path=path) + body)
                        received = read_all(connection).decode()
                    frames = [f for f in re.findall(r"data: (.*)\n\n", received)]
                    events = parse_events("".join(f"data: {f}\n\n" for f in frames).encode())
                    self.assertEqual("[DONE]", events[-1], "documented: an error is followed by it")
                    self.assertEqual({"error"}, set(events[-2]))
                    self.assertEqual(1, sum("error" in e for e in events[:-1]))
                    self.assertIn("asked to throw", events[-2]["error"]["message"])
                    self.assertEqual("abcd", text_of(events[:-2])[:4])
                    self.assertNotIn("never", text_of(events[:-2]))

    def test_it_throws_within_an_answer(self):
        for trigger in (THROWS, LOGITS_THROW):
            for n in (1, 3):
                answer = self.server.post(COMPLETIONS, {"prompt": "abcd" + trigger, "max_tokens": 50, "n": n})
                self.assert_refused(answer, 500)
                self.assertEqual("server_error", answer.error["type"])

    def test_others_go_on_or_are_told(self):
        """Those who share the step with the one that fails are told; nobody hangs, nobody gets a wrong answer."""
        def one(i):
            text = f"{i} abcd" + (THROWS if i % 8 == 0 else "") + "efgh" * (i % 5)
            answer = self.server.post(COMPLETIONS, {"prompt": text, "max_tokens": 100, "temperature": 0})
            return answer.status, answer.status == 500 or answer.json["choices"][0]["text"] == text
        for _ in range(3):
            answers = at_once([lambda i=i: one(i) for i in range(32)])
            self.assertLessEqual({status for status, _ in answers}, {200, 500})
            self.assertTrue(all(right for _, right in answers), answers)
            self.assertEqual([500] * 4, [answers[i][0] for i in range(0, 32, 8)])


class Watchdog(FaultCase):
    """The engine hangs in a step: health says so, who waits is told, and if it does not come back the program ends."""

    FLAGS = ("--echo",)

    def hang(self, server):
        return server.open(COMPLETIONS, {"prompt": "ab" + HANGS + "c", "max_tokens": 50, "temperature": 0, "stream": True})

    def assert_says_where(self, text):
        self.assertRegex(text, r"phase forward of step \d+ \(\d+ tokens of \d+ sequences\) for \d+\.\d s, \d+ requests wait")

    def test_an_engine_that_does_not_come_back(self):
        with Server(STUB, "--echo", "--faults", "--stall-timeout", "2", "--max-num-seqs", "1") as server:
            self.assert_well(server)
            time.sleep(3)  # an idle engine is no stuck one
            self.assertEqual(200, server.call("GET", "/health").status)
            stream = self.hang(server)
            begin = stream.recv(65536)
            while b"data: " not in begin:
                begin += stream.recv(65536)
            queued = server.open(COMPLETIONS, {"prompt": "queued", "max_tokens": 5})
            health = wait_for("/health to say so", lambda: (a := server.call("GET", "/health")).status == 503 and a)
            self.assert_says_where(health.text)
            self.assertEqual(503, server.call("GET", "/ready").status)
            refused = server.post(COMPLETIONS, {"prompt": "late", "max_tokens": 5})
            self.assert_refused(refused, 503, code="engine_stalled")
            self.assert_says_where(refused.error["message"])
            told, waiting = read_some(stream, b"[DONE]"), read_some(queued, b"engine_stalled")
            self.assertIn(b"engine_stalled", told)
            self.assertTrue(told.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"), told[-100:])
            self.assertEqual([503], statuses(waiting))
            self.assertEqual(1, server.wait(30))
            self.assert_says_where(server.output())
            stream.close()
            queued.close()

    def test_an_engine_that_comes_back(self):
        with Server(STUB, "--echo", "--faults", "--stall-timeout", "2", "--hang-ms", "4000") as server:
            with contextlib.closing(self.hang(server)) as stream:
                wait_for("/health to say so", lambda: server.call("GET", "/health").status == 503)
                self.assertIn(b"engine_stalled", read_some(stream, b"[DONE]"))
                wait_for("/health to be good", lambda: server.call("GET", "/health").status == 200)
            self.assert_well(server)
            wait_for("the log to say so", lambda: "goes on" in server.output())

    def test_a_stuck_engine_does_not_keep_the_program(self):
        """SIGTERM while a step hangs, long before the watchdog would give up."""
        with Server(STUB, "--echo", "--faults", "--shutdown-timeout", "1") as server:
            with contextlib.closing(self.hang(server)) as stream:
                wait_for("the step to hang", lambda: stream.recv(65536).count(b"data: ") > 0)
                time.sleep(0.2)
                server.terminate()
                self.assertIn(b"shutting_down", read_some(stream, b"[DONE]"))
                self.assertEqual(1, server.wait(40))
            self.assert_says_where(server.output())


def read_some(connection, end):
    """What comes until `end` has, or the connection's end; and what is there with it."""
    received = b""
    with contextlib.suppress(ConnectionError):
        while end not in received and (part := connection.recv(65536)):
            received += part
        connection.settimeout(0.5)
        with contextlib.suppress(TimeoutError):
            while part := connection.recv(65536):
                received += part
    connection.settimeout(LIMIT_S)
    return received


class Stopping(FaultCase):
    """SIGTERM under load: what is open ends well or is cut in time, what is new gets 503, and the exit code is 0."""

    FLAGS = ("--echo",)
    COUNT = 40

    def loaded(self, server, tokens):
        """Streams of so many tokens, some of them queued."""
        body = {"prompt": "load", "max_tokens": tokens, "temperature": 0, "ignore_eos": True, "stream": True}
        streams = [server.open(COMPLETIONS, body) for _ in range(self.COUNT)]
        wait_for("all to have come", lambda: server.total(RUNNING) + server.total(WAITING) == self.COUNT)
        self.assertTrue(server.total(WAITING))
        return streams

    def read_at_once(self, streams):
        try:
            return at_once([lambda s=s: read_all(s) for s in streams])
        finally:
            for stream in streams:
                stream.close()

    def refused_meanwhile(self, server, refused):
        """New requests, until nobody listens any more."""
        with contextlib.suppress(ConnectionError):
            while True:
                answer = server.post(COMPLETIONS, {"prompt": "new", "max_tokens": 5})
                refused.append((answer.status, answer.headers["Connection"], answer.error["code"]))
                time.sleep(0.01)

    def stop_under_load(self, tokens, *flags, signals=1):
        with Server(STUB, "--step-delay-ms", "10", "--max-num-seqs", "30", *flags) as server:
            streams, refused = self.loaded(server, tokens), []
            server.terminate()
            wait_for("/ready to say so", lambda: server.call("GET", "/ready").status == 503)
            self.assertEqual(200, server.call("GET", "/health").status)
            asking = threading.Thread(target=self.refused_meanwhile, args=(server, refused), daemon=True)
            asking.start()
            wait_for("a refusal", lambda: refused)
            if signals == 2:
                server.terminate()
            answers = self.read_at_once(streams)
            self.assertEqual(0, server.wait(20))
            asking.join(LIMIT_S)
            self.assertEqual({(503, "close", "shutting_down")}, set(refused))
            return [answer.partition(b"\r\n\r\n")[2] for answer in answers]

    def assert_cut(self, answers):
        for answer in answers:
            self.assertIn(b"shutting_down", answer[-500:])
            self.assertTrue(answer.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n") or b"data:" not in answer, answer[-200:])

    def test_what_is_open_is_finished(self):
        for answer in self.stop_under_load(40):
            self.assertNotIn(b"error", answer)
            self.assertEqual(1, answer.count(b'"finish_reason":"length"'), answer[-300:])
            self.assertTrue(answer.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"))

    def test_what_takes_too_long_is_cut(self):
        self.assert_cut(self.stop_under_load(3000, "--step-delay-ms", "100", "--shutdown-timeout", "1"))

    def test_a_second_signal_cuts_at_once(self):
        # Answers would take five minutes, which is longer than anything here waits.
        self.assert_cut(self.stop_under_load(3000, "--step-delay-ms", "100", "--shutdown-timeout", "1000", signals=2))


class PackFile(unittest.TestCase):
    """SIGKILL while the pack of a model's weights is being written: the next start is right, and writes it."""

    BODY = {"prompt": "The capital of France is", "max_tokens": 12, "temperature": 0}

    def packs(self, cache):
        return sorted(path for path in Path(cache).rglob("*") if path.is_file() and "pack" in str(path))

    def served(self, cache):
        models = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache")) + "/octavo/models"
        return Server(OCTAVO, "serve", f"{models}/smollm2-135m-q4_1.gguf", env={"XDG_CACHE_HOME": cache})

    def text(self, server):
        return server.post(COMPLETIONS, self.BODY).json["choices"][0]["text"]

    def finished(self, cache):
        return [path for path in self.packs(cache) if path.suffix == ".pack"]

    def test_killed_while_it_is_written(self):
        with tempfile.TemporaryDirectory() as cache:
            with self.served(cache) as server:
                expected = self.text(server)
                whole = wait_for("the pack to be written", lambda: self.finished(cache))[0]
            content = whole.read_bytes()
            for _ in range(3):
                whole.unlink()
                with self.served(cache) as server:
                    # It is written beside the answers: whatever is there at this moment is all that ever will be.
                    server.process.send_signal(signal.SIGKILL)
                    server.wait()
                if whole.exists():
                    self.assertEqual(content, whole.read_bytes())
                with self.served(cache) as server:
                    self.assertEqual(expected, self.text(server))
                    wait_for("the pack to be whole", lambda: whole.exists() and whole.read_bytes() == content)
                with self.served(cache) as server:
                    self.assertEqual(expected, self.text(server))

    def test_killed_at_any_moment_of_a_start(self):
        with tempfile.TemporaryDirectory() as cache:
            with self.served(cache) as server:
                expected = self.text(server)
                whole = wait_for("the pack to be written", lambda: self.finished(cache))[0]
            content, left_behind = whole.read_bytes(), 0
            for delay_ms in (10, 50, 100, 200, 300, 500):
                whole.unlink(missing_ok=True)
                server = self.served(cache)
                process = subprocess.Popen(server.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                           stderr=subprocess.DEVNULL, env=server.env)
                time.sleep(delay_ms / 1000)
                process.kill()
                process.wait()
                left_behind += any(path != whole for path in self.packs(cache))
                if whole.exists():
                    self.assertEqual(content, whole.read_bytes())
            with self.served(cache) as server:
                self.assertEqual(expected, self.text(server))
                wait_for("the pack to be whole", lambda: whole.exists() and whole.read_bytes() == content)

    def test_a_torn_pack_is_replaced(self):
        with tempfile.TemporaryDirectory() as cache:
            with self.served(cache) as server:
                expected = self.text(server)
                whole = wait_for("the pack to be written", lambda: self.finished(cache))[0]
            content = whole.read_bytes()
            for keep in (0, 1, 4096, len(content) // 2, len(content) - 1):
                whole.write_bytes(content[:keep])
                with self.served(cache) as server:
                    self.assertEqual(expected, self.text(server))
                    wait_for("the pack to be whole", lambda: whole.read_bytes() == content)


class TooLittleMemory(unittest.TestCase):
    """What a KV cache that does not fit is answered with: figures, and advice that helps."""

    def refused(self, *flags):
        done = subprocess.run([OCTAVO, "serve", "smollm2-135m", "--port", "0", *map(str, flags)], capture_output=True, text=True,
                              timeout=LIMIT_S, stdin=subprocess.DEVNULL)
        self.assertEqual(8, done.returncode, done.stderr)
        self.assertNotIn("is served", done.stderr)
        self.assertRegex(done.stderr, r"a sequence of \d+ tokens needs a KV cache of [\d.]+ .iB \([\d.]+ KiB per token\)")
        self.assertNotIn("-", re.sub(r"-+\w|\w-", "", done.stderr), "no negative figure")
        return done.stderr

    def test_the_advice_helps(self):
        per_token, fits = {}, {}
        for kind in ("float16", "int8"):
            flags = ("--kv-cache-dtype", kind, "--max-model-len", 8192, "--kv-cache-memory-bytes", 10 * MIB)
            message = self.refused(*flags)
            per_token[kind] = float(re.search(r"\(([\d.]+) KiB per token\)", message).group(1))
            fits[kind] = int(re.search(r"lower --max-model-len to (\d+)", message).group(1))
            self.assertLess(abs(fits[kind] * per_token[kind] - 10 * 1024), 32 * per_token[kind])
            with Server(OCTAVO, "serve", "smollm2-135m", *flags[:2], "--max-model-len", fits[kind], *flags[4:]) as server:
                card = server.call("GET", "/v1/models").json["data"][0]
                self.assertEqual(fits[kind], card["max_model_len"])
            self.refused(*flags[:2], "--max-model-len", fits[kind] + 1, *flags[4:])
            needed = re.search(r"--kv-cache-memory-bytes to (\d+)", message).group(1)
            with Server(OCTAVO, "serve", "smollm2-135m", *flags[:5], needed):
                pass
        self.assertGreater(fits["int8"], 1.5 * fits["float16"])  # the type that was asked for is the one that counts

    def test_no_block_at_all(self):
        message = self.refused("--kv-cache-memory-bytes", 1000)
        self.assertNotIn("lower --max-model-len", message)

    def test_figures_of_the_whole(self):
        message = self.refused("--gpu-memory-utilization", "0.0001")
        for word in ("of memory is available", "weights take", "activations", "left for the KV cache"):
            self.assertIn(word, message)


if __name__ == "__main__":
    unittest.main()
