#!/usr/bin/env python3
"""Clients that vanish, overload, shutting down, health, metrics: what an operator relies on."""

import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from serving import CHAT, COMPLETIONS, LIMIT_S, OCTAVO, STUB, ServedCase, Server, at_once, text_of, wait_for

RUNNING, WAITING, KV = "vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc"
LONG = {"prompt": "a long answer", "max_tokens": 2000, "ignore_eos": True, "temperature": 0}
SHORT = {**LONG, "max_tokens": 5}


def cut(connection):
    """Closes at once: the other side gets a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class OperationsCase(ServedCase):
    def assert_idle(self, server=None):
        server = server or self.server
        wait_for("the server to be idle", lambda: not (server.total(RUNNING) or server.total(WAITING)))
        self.assertEqual(0, server.total(KV))


class Vanishing(OperationsCase):
    FLAGS = ["--max-num-seqs", "8", "--max-queue-len", "1000", "--step-delay-ms", "2"]

    def vanish(self, i):
        body = {**LONG, "stream": i % 2 == 0, "prompt": f"{i} of many"}
        connection = self.server.open(COMPLETIONS if i % 3 else CHAT, body if i % 3 else
                                      {**body, "messages": [{"role": "user", "content": "x"}], "prompt": None})
        connection.settimeout(20)
        if i % 4 == 1:
            time.sleep(random.Random(i).random() * 0.2)
        elif i % 4 == 2 and i % 2 == 0:
            connection.recv(200)
        elif i % 4 == 3:
            connection.shutdown(socket.SHUT_WR)
        (cut if i % 5 else socket.socket.close)(connection)

    def test_three_hundred_clients(self):
        before = self.ok(self.server.post(COMPLETIONS, SHORT))["choices"]
        for start in range(0, 300, 50):
            at_once([lambda i=i: self.vanish(i) for i in range(start, start + 50)])
        self.assert_idle()
        self.assertEqual(before, self.ok(self.server.post(COMPLETIONS, SHORT))["choices"])

    def test_choices_of_one_request_end_together(self):
        connection = self.server.open(COMPLETIONS, {**LONG, "n": 4, "stream": True, "temperature": 1})
        received = b""
        while received.count(b"data: ") < 3:
            received += connection.recv(4096)
        cut(connection)
        self.assert_idle()

    def test_in_the_middle_of_a_body(self):
        for length in (0, 1, 20):
            connection = self.server.open(COMPLETIONS, b"")
            connection.sendall((f"POST {COMPLETIONS} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                                f"Content-Length: 100\r\n\r\n" + "{" * length).encode())
            cut(connection)
        self.ok(self.server.post(COMPLETIONS, SHORT))

    def test_garbage(self):
        generator = random.Random(1)
        for size in (1, 10, 1000, 100_000):
            connection = socket.create_connection(("127.0.0.1", self.server.port), 20)
            try:
                connection.sendall(generator.randbytes(size))
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(4096):
                    pass
            except ConnectionError:
                pass
            connection.close()
        self.ok(self.server.post(COMPLETIONS, SHORT))


class Overload(OperationsCase):
    FLAGS = ["--max-num-seqs", "1", "--max-queue-len", "2", "--step-delay-ms", "5"]

    def test_a_full_queue_is_said_at_once(self):
        body = {**LONG, "max_tokens": 100}
        answers = at_once([lambda: self.server.post(COMPLETIONS, body) for _ in range(12)])
        by_status = {status: [a for a in answers if a.status == status] for status in (200, 429)}
        self.assertEqual(12, sum(map(len, by_status.values())), [a.status for a in answers])
        self.assertTrue(by_status[200] and by_status[429])
        self.assertEqual(1, len({a.json["choices"][0]["text"] for a in by_status[200]}))
        for answer in by_status[429]:
            self.assert_refused(answer, 429)
            self.assertGreaterEqual(int(answer.headers["Retry-After"]), 1)
        self.assertEqual(len(by_status[429]), self.server.total("vllm:admission_rejections_total"))
        self.assert_idle()

    def test_what_the_queue_never_holds_is_not_to_be_tried_again(self):
        answer = self.server.post(COMPLETIONS, {**SHORT, "prompt": ["a", "b", "c"]})
        self.assert_refused(answer, 400, "prompt", "too_many_prompts")
        self.assertNotIn("Retry-After", answer.headers)
        self.ok(self.server.post(COMPLETIONS, {**SHORT, "prompt": ["a", "b"]}))


class Loading(unittest.TestCase):
    def test_a_signal_ends_the_server_at_once(self):
        for stop in (signal.SIGTERM, signal.SIGINT):
            with self.subTest(stop=stop), tempfile.TemporaryDirectory() as folder:
                path = os.path.join(folder, "socket")
                with subprocess.Popen([STUB, "--load-delay-ms", "600000", "--uds", path], text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
                    try:
                        answer = wait_for("an answer", lambda: self.ask(path))
                        self.assertTrue(answer.startswith(b"HTTP/1.1 503"), answer)
                        self.assertIn(b"loading", answer)
                        process.send_signal(stop)
                        output, _ = process.communicate(timeout=LIMIT_S)
                    finally:
                        process.kill()
                self.assertEqual(0, process.returncode, output)
                self.assertIn("stopped while the model was being loaded", output)
                self.assertFalse(os.path.exists(path))

    def ask(self, path):
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(LIMIT_S)
        with connection:
            try:
                connection.connect(path)
            except OSError:
                return None
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return b"".join(iter(lambda: connection.recv(4096), b""))


class Draining(OperationsCase):
    def served(self, *flags):
        return Server(STUB, "--step-delay-ms", "5", *flags)

    def streams(self, server, count):
        connections = [server.open(COMPLETIONS, {**LONG, "max_tokens": 150, "stream": True}) for _ in range(count)]
        for connection in connections:
            self.assertTrue(connection.recv(1))
        return connections

    def rest(self, connection):
        received = b""
        while part := connection.recv(65536):
            received += part
        connection.close()
        return received

    def test_answers_on_their_way_are_finished(self):
        for stop in (signal.SIGTERM, signal.SIGINT):
            with self.served("--max-num-seqs", "5") as server:
                connections = self.streams(server, 5)
                late = [server.open(COMPLETIONS, {**LONG, "max_tokens": 20, "stream": True}) for _ in range(5)]
                wait_for("all to have come", lambda: server.total(RUNNING) + server.total(WAITING) == 10)
                server.process.send_signal(stop)
                for connection in connections + late:
                    self.assertTrue(self.rest(connection).rstrip(b"\r\n0").endswith(b"data: [DONE]"))
                self.assertEqual(0, server.wait())

    def test_cut_when_the_time_is_up(self):
        with self.served("--shutdown-timeout", "0") as server:
            connections = [server.open(COMPLETIONS, {**LONG, "stream": True}) for _ in range(3)]
            wait_for("all to run", lambda: server.total(RUNNING) == 3)
            server.terminate()
            for connection in connections:
                received = self.rest(connection)
                self.assertTrue(b"error" in received or b"abort" in received, received[-300:])
            self.assertEqual(0, server.wait(20))


class Counting(OperationsCase):
    FLAGS = ["--prefill-delay-ms", "500", "--step-delay-ms", "50"]

    def delta(self, before, name):
        return self.server.total(name) - sum(before.get(name, {}).values())

    def test_times_and_counts_of_a_stream(self):
        before = self.server.metrics()
        self.server.stream(COMPLETIONS, {**LONG, "max_tokens": 10})
        wait_for("the request to be counted", lambda: self.delta(before, "vllm:request_success_total") == 1)
        self.assertEqual(1, self.delta(before, "vllm:time_to_first_token_seconds_count"))
        self.assertEqual(9, self.delta(before, "vllm:inter_token_latency_seconds_count"))
        self.assertEqual(1, self.delta(before, "vllm:e2e_request_latency_seconds_count"))
        self.assertEqual(10, self.delta(before, "vllm:generation_tokens_total"))
        # Delays are lower bounds; nothing here is an upper one.
        self.assertGreater(self.delta(before, "vllm:time_to_first_token_seconds_sum"), 0.45)
        self.assertGreater(self.delta(before, "vllm:inter_token_latency_seconds_sum"), 9 * 0.04)
        self.assertGreater(self.delta(before, "vllm:e2e_request_latency_seconds_sum"), 0.85)

    def test_the_text_is_what_prometheus_reads(self):
        text = self.server.call("GET", "/metrics").text
        types = [line.split()[2:4] for line in text.splitlines() if line.startswith("# TYPE")]
        names = [name for name, _ in types]
        self.assertEqual(len(set(names)), len(names), "one TYPE for each name")
        series = self.server.metrics()
        for name, kind in types:
            if kind == "counter":
                self.assertTrue(name.endswith("_total"), name)
            if kind != "histogram":
                continue
            for labels, count in series[f"{name}_count"].items():
                buckets = {}
                for bucket, value in series[f"{name}_bucket"].items():
                    rest, _, bound = bucket.rpartition('le="')
                    if rest.rstrip(",") == labels:
                        buckets[float(bound.rstrip('"'))] = value
                ordered = [buckets[b] for b in sorted(buckets)]
                self.assertEqual(sorted(ordered), ordered, name)
                self.assertEqual(count, buckets[float("inf")], name)

    def test_no_label_holds_what_a_client_sent(self):
        word = "zanzibar"
        self.server.call("GET", f"/{word}")
        self.server.call(word.upper(), "/health")
        self.server.post(COMPLETIONS, {**SHORT, "model": word, "user": word, "cache_salt": word})
        self.server.call("GET", f"/v1/models/{word}", headers={"X-Request-Id": word})
        self.assertNotIn(word, self.server.call("GET", "/metrics").text.lower())


class Cache(OperationsCase):
    """Blocks, the prefix cache and its counts as clients see them."""

    FLAGS = ["--num-blocks", "40", "--max-model-len", "512", "--step-delay-ms", "1"]

    def cached(self, **fields):
        body = {**SHORT, "prompt": "x" * 100, **fields}
        return self.ok(self.server.post(COMPLETIONS, body))["usage"]["prompt_tokens_details"]["cached_tokens"]

    def test_hits_need_the_same_salt(self):
        self.assertEqual(0, self.cached(cache_salt="X"))
        self.assertGreater(self.cached(cache_salt="X"), 0)
        self.assertEqual(0, self.cached(cache_salt="Y"))
        self.assertEqual(0, self.cached())
        self.assertGreater(self.cached(), 0)

    def test_prompts_about_whole_blocks(self):
        for count in (15, 16, 17, 64):
            prompt = [70 + count % 7] * count
            answers = [self.ok(self.server.post(COMPLETIONS, {**SHORT, "prompt": prompt})) for _ in range(2)]
            self.assertEqual(answers[0]["choices"], answers[1]["choices"])
            self.assertLess(answers[1]["usage"]["prompt_tokens_details"]["cached_tokens"], count)

    def test_more_prompts_than_fit_the_pool(self):
        # 40 blocks of 16: ten times the pool, one after the other.
        for i in range(100):
            self.ok(self.server.post(COMPLETIONS, {**SHORT, "prompt": f"{i:04} " + "y" * 60}))
        self.assert_idle()

    def test_a_prompt_that_never_fits_holds_up_nobody(self):
        with Server(STUB, "--num-blocks", "8", "--max-model-len", "4096") as server:
            answers = at_once([lambda: server.post(COMPLETIONS, {**SHORT, "prompt": [70] * 200}),
                               lambda: server.post(COMPLETIONS, {**SHORT, "prompt": [70] * 10}),
                               lambda: server.post(COMPLETIONS, {**LONG, "prompt": [70] * 100, "max_tokens": 100})])
            self.assert_refused(answers[0], 400)
            self.assertIn("200", answers[0].error["message"])
            self.ok(answers[1])
            if answers[2].status == 200:  # it grew past the pool alone
                self.assertEqual("length", answers[2].json["choices"][0]["finish_reason"])
            else:
                self.assert_refused(answers[2], 400)

    def test_preempted_answers_are_the_same(self):
        bodies = [{**LONG, "prompt": [65 + i] * 30, "max_tokens": 60, "temperature": i % 2, "seed": 5, "logprobs": 1,
                   "presence_penalty": 0.5 * (i % 3), "n": 1 + i % 3} for i in range(16)]
        alone = [self.ok(self.server.post(COMPLETIONS, body))["choices"] for body in bodies]
        before = self.server.metrics()
        together = at_once([lambda body=body: self.server.post(COMPLETIONS, body).json["choices"] for body in bodies])
        self.assertEqual(alone, together)
        name = "vllm:num_preemptions_total"
        self.assertGreater(self.server.total(name), sum(before.get(name, {}).values()), "nothing was preempted")
        streams = at_once([lambda body=body: self.server.stream(COMPLETIONS, body) for body in bodies])
        for expected, events in zip(alone, streams, strict=True):
            self.assertEqual([c["text"] for c in expected], [text_of(events, i) for i in range(len(expected))])
        self.assert_idle()


class Seeds(ServedCase):
    BODY = {"prompt": "seeded", "max_tokens": 20, "temperature": 0.8, "ignore_eos": True}

    def text(self, **fields):
        return [c["text"] for c in self.ok(self.server.post(COMPLETIONS, {**self.BODY, **fields}))["choices"]]

    def test_a_seed_decides_whatever_runs_beside_it(self):
        alone = self.text(seed=42)
        self.assertEqual(alone, self.text(seed=42))
        self.assertNotEqual(alone, self.text(seed=43))
        for others in ([{}] * 7, [{"seed": i} for i in range(7)], [{"seed": 42}] * 7):
            for place in (0, 3, 7):
                fields = others[:place] + [{"seed": 42}] + others[place:]
                texts = at_once([lambda f=f: self.text(**f) for f in fields])
                self.assertEqual(alone, texts[place])
        several = self.text(seed=42, n=3)
        self.assertEqual(3, len(set(several)))
        self.assertEqual(alone[0], several[0])
        with Server(STUB) as restarted:
            self.assertEqual(alone[0], restarted.post(COMPLETIONS, {**self.BODY, "seed": 42}).json["choices"][0]["text"])

    def test_a_fresh_seed_is_reported_and_repeats_the_answer(self):
        first, second = (self.ok(self.server.post(COMPLETIONS, self.BODY)) for _ in range(2))
        self.assertNotEqual(first["seed"], second["seed"])
        self.assertEqual(first["choices"][0]["text"], self.text(seed=first["seed"])[0])


class Access(OperationsCase):
    FLAGS = ["--api-key", "first", "--api-key", "second", "--admin-api-key", "boss"]

    def status(self, method, path, key=None, body=None, **headers):
        if key:
            headers["Authorization"] = f"Bearer {key}"
        return self.server.call(method, path, body, headers).status

    def test_who_may_call_what(self):
        for path in ("/health", "/ready"):
            self.assertEqual(200, self.status("GET", path))
        for path in ("/", "/v1/models", "/version", "/metrics", "/load", "/openapi.json", "/tokenizer_info"):
            for key, expected in ((None, 401), ("wrong", 401), ("firs", 401), ("first", 200), ("second", 200)):
                with self.subTest(path=path, key=key):
                    self.assertEqual(expected, self.status("GET", path, key))
        for key, expected in ((None, 401), ("wrong", 401), ("boss", 200)):
            self.assertEqual(expected, self.status("GET", "/v1/requests", key))
        self.assertIn(self.status("GET", "/v1/requests", "first"), (401, 403))
        self.assertEqual(401, self.status("POST", COMPLETIONS, "wrong", SHORT))
        self.assertEqual(200, self.status("POST", COMPLETIONS, "second", {**SHORT}))

    def test_foreign_pages_are_refused(self):
        self.assertEqual(403, self.status("GET", "/v1/models", Host="evil.example"))
        self.assertEqual(403, self.status("GET", "/v1/models", "wrong", Host="evil.example"))
        self.assertEqual(200, self.status("GET", "/v1/models", "first", Host="a.proxy.s.name"), "no page knows a key")
        self.assertEqual(403, self.status("GET", "/v1/models", "first", Origin="http://evil.example"))
        answer = self.server.call("OPTIONS", CHAT, headers={"Origin": "http://evil.example",
                                                            "Access-Control-Request-Method": "POST"})
        self.assertNotIn("Access-Control-Allow-Origin", answer.headers)

    def test_no_key_is_logged(self):
        self.status("GET", "/v1/models", "first")
        self.status("GET", "/v1/models", "a-wrong-one")
        for secret in ("first", "second", "boss", "a-wrong-one"):
            self.assertNotIn(secret, self.server.output())


class Settings(unittest.TestCase):
    """What is set by whom: a flag beats the environment, which beats the file."""

    TINY = Path(__file__).resolve().parents[1] / "data/tiny/llama-tied/llama-tied-Q4_0.gguf"

    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def models(self, *flags, **variables):
        with Server(STUB, *flags, env=variables) as server:
            return [(card["id"], card["max_model_len"]) for card in server.call("GET", "/v1/models").json["data"]]

    def test_flag_before_environment_before_file(self):
        config = self.write("octavo.toml", 'max-model-len = 128\nserved_model_name = ["first", "second"]\n')
        from_file = [("first", 128), ("second", 128)]
        self.assertEqual(from_file, self.models("--config", config))
        self.assertEqual(from_file, self.models(OCTAVO_CONFIG=str(config)))
        self.assertEqual([("first", 256), ("second", 256)], self.models("--config", config, OCTAVO_MAX_MODEL_LEN="256"))
        self.assertEqual([("a", 512), ("b", 512)],
                         self.models("--config", config, "--max-model-len", "512", OCTAVO_MAX_MODEL_LEN="256",
                                     OCTAVO_SERVED_MODEL_NAME="a b"))
        self.assertEqual([("one", 256), ("two", 256)],
                         self.models("--served-model-name", "one", "two", "--max-model-len=256", "--config", config))

    def test_a_wrong_setting_is_named_with_its_place(self):
        config = self.write("octavo.toml", "\nmax_model_length = 128\n")
        run = subprocess.run([STUB, "--config", config], capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual(2, run.returncode)
        for word in (f"{config}:2", "max_model_length", "max_model_len?"):
            self.assertIn(word, run.stderr)

    def test_what_could_not_work_is_refused_at_once(self):
        for flags, code, word in ((("--uds", ""), 2, "--uds"), (("--served-model-name", ""), 2, "empty"),
                                  (("--served-model-name", "a\nb"), 2, "space"), (("--api-key", "a\nb"), 2, "API key"),
                                  (("--allowed-origins", "*", "--allow-credentials"), 2, "name the origins"),
                                  (("--ssl-certfile", "/no/such", "--ssl-keyfile", "/no/such"), 3, "no such file")):
            run = subprocess.run([STUB, "--port", "0", *flags], capture_output=True, text=True, timeout=LIMIT_S)
            self.assertEqual(code, run.returncode, run.stderr)
            self.assertIn(word, run.stderr)

    def test_keys_of_a_file(self):
        keys = self.write("keys", "# of the team\n\n  first  \nsecond\r\n")
        with Server(STUB, "--api-key-file", keys) as server:
            status = lambda key: server.call("GET", "/v1/models", headers={"Authorization": f"Bearer {key}"}).status
            self.assertEqual([200, 200, 401], [status(key) for key in ("first", "second", "# of the team")])

    def is_greedy(self, *flags):
        """Whether requests that ask for nothing get the same answer again."""
        model = self.folder / "model.gguf"
        if not model.exists():
            shutil.copy(self.TINY, model)
        body = {"prompt": [1, 2, 3], "max_tokens": 24, "ignore_eos": True, "return_token_ids": True}
        with Server(OCTAVO, "serve", model, "--no-pack-cache", *flags) as server:
            answers = [server.post(COMPLETIONS, body).json["choices"][0]["token_ids"] for _ in range(2)]
        return answers[0] == answers[1]

    def test_generation_config(self):
        self.assertFalse(self.is_greedy(), "there is no generation_config.json yet")
        self.write("generation_config.json", '{"do_sample": false, "bos_token_id": 1}')
        self.assertTrue(self.is_greedy(), "the one beside the model counts")
        self.assertFalse(self.is_greedy("--generation-config", "vllm"))
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "generation_config.json").write_text('{"temperature": 1.5}')
        self.assertFalse(self.is_greedy("--generation-config", elsewhere))
        self.assertFalse(self.is_greedy("--generation-config", elsewhere / "generation_config.json"))
        run = subprocess.run([OCTAVO, "serve", self.folder / "model.gguf", "--generation-config", self.folder / "none"],
                             capture_output=True, text=True, timeout=LIMIT_S)
        self.assertNotEqual(0, run.returncode)
        self.assertIn(str(self.folder / "none"), run.stderr)


class Names(ServedCase):
    def test_the_request_id_goes_in_and_out(self):
        given = self.server.call("GET", "/v1/models", headers={"X-Request-Id": "abc-123"})
        self.assertEqual("abc-123", given.headers["X-Request-Id"])
        fresh = [self.server.call("GET", "/health").headers["X-Request-Id"] for _ in range(2)]
        self.assertEqual(2, len(set(fresh)))
        forged = self.server.call("GET", "/health", headers={"X-Request-Id": "x" * 5000})
        self.assertLess(len(forged.headers["X-Request-Id"]), 500)

    def test_a_refusal_is_logged_with_its_reason(self):
        self.server.call("POST", COMPLETIONS, {"prompt": "x", "n": 0}, {"X-Request-Id": "refused-1"})
        line = wait_for("its line", lambda: [text for text in self.server.output().splitlines() if "refused-1" in text])[0]
        self.assertIn("status=400", line)
        self.assertIn("n is 0", line)

    def test_small_routes(self):
        for path in ("/health", "/ready", "/version", "/load", "/v1/models", "/openapi.json", "/tokenizer_info"):
            with self.subTest(path=path):
                self.assertIsInstance(self.ok(self.server.call("GET", path)), dict)
        page = self.server.call("GET", "/")
        self.assertIn("text/html", page.headers["Content-Type"])
        self.assertIn(self.server.model, page.text)
        card = self.server.call("GET", "/v1/models").json["data"][0]
        self.assertEqual(card, self.ok(self.server.call("GET", f"/v1/models/{card['id']}")))
        self.assertEqual("model", card["object"])
        self.assertGreater(card["max_model_len"], 0)


if __name__ == "__main__":
    unittest.main()
