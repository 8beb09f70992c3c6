#!/usr/bin/env python3
"""Who reaches the server under which name, and what is said of settings that could leave it open."""

import socket
import subprocess
import tempfile
import unittest
from pathlib import Path

from serving import (COMPLETIONS, LIMIT_S, OCTAVO, STUB, ServedCase, Server, choices, encode, wait_for)


class Names(ServedCase):
    FLAGS = ("--api-key", "secret", "--allowed-hosts", "llm.example", "--served-model-name", "org/name", "a%2Fb", "--log-level", "debug")
    KEY = {"Authorization": "Bearer secret"}

    def status(self, path="/v1/models", **headers):
        return self.server.call("GET", path, headers=headers).status

    def test_a_host_is_a_name_with_or_without_a_port(self):
        for host in ("localhost:80@evil.example", "[::1].evil.example", "[::1", "localhost:port", "a b", "localhost:1:2"):
            self.assertEqual(400, self.status("/health", Host=host), host)
            self.assertEqual(400, self.status(Host=host, **self.KEY), host)

    def test_who_has_a_key_may_use_any_name(self):
        self.assertEqual(403, self.status(Host="public.example"))
        self.assertEqual(200, self.status(Host="public.example", **self.KEY))
        for header in ("X-Api-Key", "x-api-key", "Api-Key", "api-key"):
            self.assertEqual(200, self.status(Host="public.example", **{header: "secret"}))
            self.assertEqual(401, self.status(**{header: "wrong"}))

    def test_probes_may_use_any_name(self):
        for path in ("/health", "/ready"):
            self.assertEqual(200, self.status(path, Host="octavo.default.svc.cluster.local"))

    def test_an_escaped_slash_is_none(self):
        self.assertEqual(404, self.status("/v1%2fmodels", **self.KEY))
        self.assertEqual(404, self.status("/v1%2Fmodels", **self.KEY))
        self.assertEqual(404, self.status("/%2Fv1/models", **self.KEY))
        for name in ("org%2Fname", "org/name", "%6Frg%2fname"):
            self.assertEqual(200, self.status(f"/v1/models/{name}", **self.KEY), name)
        self.assertEqual(200, self.status("/v1/models/a%252Fb", **self.KEY))
        self.assertEqual(404, self.status("/v1/models/a%2Fb", **self.KEY))

    def test_no_control_character_of_a_path_reaches_the_log(self):
        with socket.create_connection(("127.0.0.1", self.server.port), LIMIT_S) as connection:
            connection.sendall(b"GET /\x9b31m/%9B31m/\xc2\x9b31m/%C2%9B31m HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            while connection.recv(65536):
                pass
        self.server.call("GET", "/marker")
        wait_for("its line of the log", lambda: "\\u009b31m" in self.server.output())
        self.assertNotIn("\x9b", self.server.output())


class Bodies(ServedCase):
    FLAGS = ("--echo",)

    def test_nothing_follows_the_json(self):
        data = encode({"prompt": "x", "max_tokens": 1}, None)[0]
        for rest in (b"\0", b"\0\0\0", b"\0{}", b" \0"):
            answer = self.server.call("POST", COMPLETIONS, data + rest, {"Content-Type": "application/json"})
            self.assert_refused(answer, 400)


class WholeVocabulary(unittest.TestCase):
    """Events that are larger than the bound on what waits for a reader, and take longer to write down than to generate."""

    def test_a_stream_of_it_is_not_a_slow_client(self):
        with Server(OCTAVO, "serve", "smollm2-135m", "--max-logprobs", "-1", "--kv-cache-memory-bytes", "64MiB") as server:
            body = {"prompt": "One", "max_tokens": 24, "logprobs": 49152, "temperature": 0, "ignore_eos": True}
            events = server.stream(COMPLETIONS, body)
            self.assertEqual("[DONE]", events[-1])
            tops = [top for choice in choices(events) for top in (choice["logprobs"] or {"top_logprobs": []})["top_logprobs"]]
            self.assertEqual(24, len(tops))
            self.assertTrue(all(len(top) > 40_000 for top in tops))
            with server.open(COMPLETIONS, {**body, "max_tokens": 1000, "stream": True}):  # who reads nothing is cut
                wait_for("the end of a slow client", lambda: "read too slowly" in server.output())


class Adapters(ServedCase):
    FLAGS = ("--enable-lora", "--allow-runtime-lora-updating", "--admin-api-key", "boss")

    def test_a_path_is_not_cut(self):
        answer = self.server.post("/v1/load_lora_adapter", {"lora_name": "a", "lora_path": "/etc\0/adapter"},
                                  Authorization="Bearer boss")
        self.assert_refused(answer, 400, "lora_path")
        self.assertIn("U+0000", answer.error["message"])


class Settings(unittest.TestCase):
    def run_with(self, *flags, **env):
        return subprocess.run([STUB, "--port", "0", *map(str, flags)], capture_output=True, text=True, timeout=LIMIT_S, env=env)

    def test_what_protects_the_server_may_not_be_empty(self):
        for name in ("API_KEY", "API_KEY_FILE", "ADMIN_API_KEY", "UDS", "SSL_CERTFILE", "SSL_KEYFILE", "HOST"):
            for value in ("", "  ") if name in ("API_KEY", "ADMIN_API_KEY") else ("",):
                run = self.run_with(**{f"OCTAVO_{name}": value})
                self.assertEqual(2, run.returncode, (name, run.stderr))
                self.assertIn(f"OCTAVO_{name} is ", run.stderr)
        with Server(STUB, env={"OCTAVO_MAX_QUEUE_LEN": "", "OCTAVO_CHAT_TEMPLATE": ""}) as server:
            self.assertEqual(200, server.call("GET", "/v1/models").status, "others are as if they were not set")

    def test_nor_in_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            config = Path(folder) / "octavo.toml"
            for text in ('api_key = ""', "api_key = []", 'ssl_certfile = ""\nssl_keyfile = ""', 'chat_template = "a\\u0000b"'):
                config.write_text(text)
                run = self.run_with("--config", config)
                self.assertEqual(2, run.returncode, (text, run.stderr))
                self.assertIn("octavo.toml:1: ", run.stderr)

    def test_an_address_may_have_brackets(self):
        with Server(STUB, "--host", "[127.0.0.1]") as server:
            self.assertEqual(200, server.call("GET", "/ready").status)
        if socket.has_ipv6:
            run = self.run_with("--host", "[::1]", "--load-delay-ms", "1", "--uds", "/no/such/folder/socket")
            self.assertIn("--host is given and has no use beside --uds", run.stderr)

    def test_what_has_no_use_is_said(self):
        run = self.run_with("--uds", "/no/such/folder/socket")
        self.assertIn("--port is given and has no use beside --uds", run.stderr)

    def test_counts_may_have_units(self):
        with tempfile.TemporaryDirectory() as folder:
            config = Path(folder) / "octavo.toml"
            config.write_text('max_model_len = "1k"\n')
            for flags, env, expected in ((("--max-model-len", "1K"), {}, 1024), ((), {"OCTAVO_MAX_MODEL_LEN": "2k"}, 2000),
                                         (("--config", config), {}, 1000), (("--max-model-len", "auto"), {}, 4096)):
                with Server(STUB, *flags, env=env) as server:
                    self.assertEqual(expected, server.call("GET", "/v1/models").json["data"][0]["max_model_len"])
        for flag in ("--max-model-len", "--kv-cache-memory-bytes"):
            run = self.run_with(flag, 0)
            self.assertEqual(2, run.returncode)
            self.assertRegex(run.stderr, f"{flag} is '0'; allowed: an integer, 1 to .*, or auto")


if __name__ == "__main__":
    unittest.main()
