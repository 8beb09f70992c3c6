"""Hubs of the tests' own on this machine, and octavo in front of them. Needs OCTAVO_BINARY."""

import hashlib
import http.server
import json
import os
import re
import socket
import subprocess
import tempfile
import threading
import unittest
from pathlib import Path

BINARY = os.environ["OCTAVO_BINARY"]
LIMIT_S = 120
TOKEN = "hf_secret"


def tree_entry(path, content, sha256=None):
    return {"type": "file", "path": path, "size": len(content), "oid": "0" * 40,
            "lfs": {"oid": sha256 or hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}}


class Server:
    """One host. `answer(handler)` gives (status, headers, body) or sends by itself and gives None."""

    def __init__(self, answer, tls=None):
        self.requests = []  # (path, headers)
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                server.requests.append((self.path, dict(self.headers)))
                answered = answer(self)
                if answered is None:
                    return
                status, headers, body = answered
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.http.handle_error = lambda *_: None  # a client may go away
        if tls:
            self.http.socket = tls.wrap_socket(self.http.socket, server_side=True)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self.http.server_address[1]}"
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def close(self):
        self.http.shutdown()
        self.http.server_close()

    def tokens(self):
        return [headers.get("Authorization") for _, headers in self.requests]


def ranged(handler, content):
    """The content, or what a Range asks of it."""
    wanted = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range", ""))
    first = int(wanted[1]) if wanted else 0
    if wanted and first < len(content):
        return 206, {"Content-Range": f"bytes {first}-{len(content) - 1}/{len(content)}"}, content[first:]
    return (416, {}, b"") if wanted else (200, {}, content)


def cut_after(handler, content, count):
    """Sends so many bytes of the content, then cuts the connection."""
    status, headers, body = ranged(handler, content)
    handler.send_response(status)
    for name, value in headers.items():
        handler.send_header(name, value)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body[:count])
    handler.wfile.flush()
    handler.connection.shutdown(socket.SHUT_RDWR)


class PullCase(unittest.TestCase):
    def setUp(self):
        self.cache = tempfile.TemporaryDirectory()
        self.addCleanup(self.cache.cleanup)
        self.hub_folder = Path(self.cache.name, "octavo/models/hub")

    def serve(self, answer, tls=None):
        server = Server(answer, tls)
        self.addCleanup(server.close)
        return server

    def hub(self, files, listing=None, send=ranged, tls=None):
        """A hub with the repository org/name."""
        entries = listing if listing is not None else [tree_entry(path, body) for path, body in files.items()]

        def answer(handler):
            if handler.path == "/api/models/org/name/tree/main?recursive=true":
                return 200, {"Content-Type": "application/json"}, json.dumps(entries).encode()
            path = handler.path.removeprefix("/org/name/resolve/main/")
            return send(handler, files[path]) if path in files else (404, {}, b"")

        return self.serve(answer, tls)

    def environment(self, server, **more):
        kept = {name: value for name, value in os.environ.items()
                if not name.lower().endswith("_proxy") and not name.startswith(("HF_", "HUGGING_FACE", "OCTAVO_", "SSL_"))}
        endpoint = server if isinstance(server, str) else server.url
        return kept | {"XDG_CACHE_HOME": self.cache.name, "HF_ENDPOINT": endpoint} | more

    def octavo(self, server, *arguments, **variables):
        return subprocess.run([BINARY, *arguments], env=self.environment(server, **variables), capture_output=True,
                              text=True, timeout=LIMIT_S, stdin=subprocess.DEVNULL)

    def pull(self, server, name="org/name", **variables):
        return self.octavo(server, "pull", name, **variables)

    def assert_fails(self, run, code, *words):
        self.assertNotEqual(run.returncode, 0)
        self.assertRegex(run.stderr, rf"^(octavo: note: [^\n]+\n)?octavo: error: [^\n]+ \[{code}\]\n$")
        for word in words:
            self.assertIn(word, run.stderr)
        self.assertNotIn(TOKEN, run.stderr)

    def files(self):
        return sorted(str(p.relative_to(self.hub_folder)) for p in self.hub_folder.rglob("*") if not p.is_dir())
