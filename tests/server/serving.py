"""Starts a server for a test and talks to it byte by byte. Everything here ends after a bounded time."""

import contextlib
import functools
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

STUB = os.environ.get("OCTAVO_STUB_SERVER", "build/release/bin/stub_server")
OCTAVO = os.environ.get("OCTAVO_BINARY", "build/release/bin/octavo")
CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
SANITIZED = bool(os.environ.get("OCTAVO_SANITIZED"))  # then memory says nothing
LIMIT_S = 60  # for anything that takes a second on an idle machine


def wait_for(what, condition, limit_s=LIMIT_S):
    """The first true value of condition()."""
    end = time.monotonic() + limit_s
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError(f"waited {limit_s} s for {what}")
        time.sleep(0.02)
    return value


class Server:
    """A server program, from its start until it is ready, and stopped by its process id when the block ends: with 0, or
    one of good_codes."""

    good_codes = (0,)

    def __init__(self, *command, env=None, port=0):
        self.command = [str(part) for part in command] + ["--port", str(port)]
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("OCTAVO_")} | (env or {})

    def __enter__(self):
        self.log, self.process = tempfile.TemporaryFile(), None
        try:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self.log,
                                            stderr=subprocess.STDOUT, env=self.env)
            self.port = wait_for("the line that says the port", self._announced)
            wait_for("/ready", self._is_ready)
        except BaseException:
            self.stop()
            self.log.close()
            raise
        return self

    def __exit__(self, kind, error, trace):
        stopped = self.stop()
        output = self.output()
        self.log.close()
        if kind:
            print(output[-4000:])
        elif stopped:  # else the test has seen how it ended
            code = self.process.returncode
            assert code in self.good_codes, f"the server ended with {code}: {output[-4000:]}"

    def _announced(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the server stopped with {self.process.returncode}: {self.output()}")
        found = re.search(r"http://[\w.]+:(\d+)", self.output())
        return found and int(found.group(1))

    def _is_ready(self):
        """One that loads its weights anew is away for a moment."""
        try:
            return self.call("GET", "/ready").status == 200
        except ConnectionError:
            return not self._announced()

    def output(self):
        return os.pread(self.log.fileno(), 1 << 24, 0).decode(errors="replace")

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def wait(self, limit_s=LIMIT_S):
        return self.process.wait(limit_s)

    def stop(self):
        """Whether it still ran."""
        if not self.process or self.process.poll() is not None:
            return False
        self.terminate()
        try:
            self.wait()
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.wait()
        return True

    # -- requests --

    @functools.cached_property
    def model(self):
        return self.call("GET", "/v1/models").json["data"][0]["id"]

    def connect(self, limit_s=LIMIT_S):
        return contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=limit_s))

    def call(self, method, path, body=None, headers=None, limit_s=LIMIT_S):
        """body: a value sent as JSON, or bytes sent as they are."""
        with self.connect(limit_s) as connection:
            connection.request(method, path, *encode(body, headers))
            return Answer(connection.getresponse())

    def post(self, path, body, **headers):
        return self.call("POST", path, body, headers)

    def stream(self, path, body, limit_s=LIMIT_S):
        return self.call("POST", path, {**body, "stream": True}, limit_s=limit_s).events()

    def open(self, path, body):
        """A socket on which the request was sent; the caller reads what it likes and closes it."""
        data, headers = encode(body, None)
        connection = socket.create_connection(("127.0.0.1", self.port), LIMIT_S)
        head = "".join(f"{k}: {v}\r\n" for k, v in {"Host": "localhost", "Content-Length": len(data), **headers}.items())
        connection.sendall(f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + data)
        return connection

    def metrics(self):
        """Every series of /metrics by its name and labels, as {"name": {"label=value,...": number}}."""
        series = {}
        for line in self.call("GET", "/metrics").text.splitlines():
            if found := re.fullmatch(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: \d+)?", line):
                series.setdefault(found.group(1), {})[found.group(2) or ""] = float(found.group(3))
        return series

    def total(self, name):
        return sum(self.metrics().get(name, {}).values())


def memory(server):
    """Private memory of the process, and what of it was swapped out."""
    text = Path(f"/proc/{server.process.pid}/smaps_rollup").read_text()
    return sum(int(re.search(rf"^{name}:\s+(\d+) kB", text, re.M).group(1)) for name in ("Anonymous", "Swap")) * 1024


def encode(body, headers):
    headers = dict(headers or {})
    if body is None:
        return None, headers
    if isinstance(body, (bytes, bytearray)):
        return body, headers
    return json.dumps(body).encode(), {"Content-Type": "application/json", **headers}


class Answer:
    def __init__(self, response):
        self.status, self.headers = response.status, response.headers
        self.body = response.read()

    @property
    def text(self):
        return self.body.decode()

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]

    def events(self):
        return parse_events(self.body)


def parse_events(body):
    """The JSON of each event and "[DONE]"; comments are left out. Checks the framing."""
    events = []
    frames = body.decode().split("\n\n")
    if frames.pop() != "":
        raise AssertionError(f"the stream does not end with an empty line: {body[-200:]!r}")
    for frame in frames:
        if frame.startswith(":"):
            continue
        if not frame.startswith("data: ") or "\n" in frame or "\r" in frame:
            raise AssertionError(f"no event: {frame!r}")
        data = frame.removeprefix("data: ")
        events.append(data if data == "[DONE]" else json.loads(data))
    return events


def dechunked(rest):
    """What the chunks of a body hold."""
    parts = []
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        count = int(size, 16)
        parts.append(rest[:count])
        rest = rest[count + 2:]
    return b"".join(parts)


def is_whole(raw):
    """Whether these bytes of a connection are all of an answer."""
    end = raw.find(b"\r\n\r\n")
    if end < 0:
        return False
    if found := re.search(rb"content-length: *(\d+)", raw[:end], re.IGNORECASE):
        return len(raw) >= end + 4 + int(found.group(1))
    return raw.endswith(b"\r\n0\r\n\r\n")  # no JSON has a bare line break


def choices(events):
    return [choice for event in events if event != "[DONE]" for choice in event.get("choices", [])]


def text_of(events, index=0):
    """What a stream of either endpoint adds up to."""
    parts = [c for c in choices(events) if c["index"] == index]
    return "".join(c["text"] if "text" in c else c["delta"].get("content") or "" for c in parts)


def finish_of(events, index=0):
    reasons = [c["finish_reason"] for c in choices(events) if c["index"] == index and c.get("finish_reason")]
    if len(reasons) != 1:
        raise AssertionError(f"choice {index} ends with {reasons}")
    return reasons[0]


def at_once(calls, limit_s=LIMIT_S):
    """Runs all at the same time, each on its own thread; their results in order."""
    results = [None] * len(calls)

    def run(i):
        try:
            results[i] = calls[i]()
        except BaseException as error:
            results[i] = error
    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    end = time.monotonic() + limit_s
    for thread in threads:
        thread.join(max(0, end - time.monotonic()))
        if thread.is_alive():
            raise AssertionError(f"a call did not return within {limit_s} s")
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


class ServedCase(unittest.TestCase):
    """A server for all tests of a class; flags beside those of COMMON."""

    FLAGS = ()
    ENV = None

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(Server(STUB, *cls.FLAGS, env=cls.ENV))

    def ok(self, answer):
        self.assertEqual(200, answer.status, answer.body)
        return answer.json

    def assert_refused(self, answer, status, param=None, code=None):
        """An error in OpenAI's shape, and nothing else in it."""
        self.assertEqual(status, answer.status, answer.body)
        self.assertEqual({"error"}, set(answer.json))
        self.assertEqual({"message", "type", "param", "code"}, set(answer.error))
        self.assertTrue(answer.error["message"])
        if param is not None:
            self.assertEqual(param, answer.error["param"], answer.error)
        if code is not None:
            self.assertEqual(code, answer.error["code"], answer.error)
