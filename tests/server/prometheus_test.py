#!/usr/bin/env python3
"""Lets the real Prometheus read the metrics with the configuration in docs/, and asks it for all that dashboards ask.

Needs METRICS_EXAMPLE, the program that writes metrics. Exits with 77 (skipped) where Prometheus is not installed.
"""

import http.server
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
CONFIG = ROOT / "docs/prometheus/prometheus.yml"
DASHBOARD = ROOT / "docs/grafana/octavo.json"
LIMIT_S = 120  # for anything to appear

# What the panels of vLLM's own dashboards ask for, of all ages.
VLLM = """
vllm:e2e_request_latency_seconds_bucket vllm:e2e_request_latency_seconds_sum vllm:e2e_request_latency_seconds_count
vllm:prompt_tokens_total vllm:generation_tokens_total
vllm:time_per_output_token_seconds_bucket vllm:time_per_output_token_seconds_sum
vllm:time_per_output_token_seconds_count vllm:inter_token_latency_seconds_bucket
vllm:request_time_per_output_token_seconds_bucket
vllm:num_requests_running vllm:num_requests_waiting
vllm:time_to_first_token_seconds_bucket vllm:time_to_first_token_seconds_sum vllm:time_to_first_token_seconds_count
vllm:gpu_cache_usage_perc vllm:kv_cache_usage_perc
vllm:request_prompt_tokens_bucket vllm:request_generation_tokens_bucket
vllm:request_max_num_generation_tokens_bucket vllm:request_max_num_generation_tokens_sum
vllm:request_success_total vllm:num_preemptions_total
vllm:request_queue_time_seconds_sum vllm:request_prefill_time_seconds_sum vllm:request_decode_time_seconds_sum
vllm:request_inference_time_seconds_bucket vllm:iteration_tokens_total_bucket
vllm:prefix_cache_queries_total vllm:prefix_cache_hits_total
vllm:gpu_prefix_cache_queries_total vllm:gpu_prefix_cache_hits_total
vllm:request_params_n_bucket vllm:request_params_max_tokens_bucket vllm:cache_config_info
""".split()


class Source:
    """The metrics of the example, over HTTP; each reading lets it work on."""

    def __init__(self):
        self.program = subprocess.Popen([os.environ["METRICS_EXAMPLE"]], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.text = self.next_text()
        self.lock = threading.Lock()
        source = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = source.read().encode()
                self.send_response(200 if self.path == "/metrics" else 404)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def read(self):
        with self.lock:
            print(file=self.program.stdin, flush=True)
            return self.next_text()

    def next_text(self):
        return "".join(iter(self.program.stdout.readline, "# END\n"))

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.program.stdin.close()
        self.program.wait(LIMIT_S)
        self.program.stdout.close()


class Prometheus:
    def __init__(self, target_port):
        self.folder = tempfile.TemporaryDirectory()
        self.port = free_port()
        config = Path(self.folder.name, "prometheus.yml")
        config.write_text(substitute(substitute(CONFIG.read_text(), "127.0.0.1:8000", f"127.0.0.1:{target_port}"),
                                     "scrape_interval: 5s", "scrape_interval: 1s"))
        self.log = open(Path(self.folder.name, "log"), "w+")
        self.process = subprocess.Popen(
            [shutil.which("prometheus"), f"--config.file={config}", f"--web.listen-address=127.0.0.1:{self.port}",
             f"--storage.tsdb.path={self.folder.name}/data"], stdout=self.log, stderr=self.log)

    def ask(self, path, **parameters):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{url}: {error.read().decode()}") from error

    def wait_until_asked(self):
        until = time.monotonic() + LIMIT_S
        while time.monotonic() < until and self.process.poll() is None:
            try:
                # Two readings, so that there are rates.
                if any(s["value"][1] not in ("0", "1") for s in self.query('count_over_time(up[1m])')):
                    return
            except OSError:
                pass
            time.sleep(0.2)
        self.log.seek(0)
        raise AssertionError(f"Prometheus reads nothing; it says:\n{self.log.read()}")

    def query(self, expression):
        return self.ask("query", query=expression)["result"]

    def close(self):
        self.process.terminate()
        try:
            self.process.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        self.folder.cleanup()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def substitute(text, old, new):
    if text.count(old) != 1:
        raise AssertionError(f"{old!r} is not in the configuration once")
    return text.replace(old, new)


def panel_queries():
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]


class PrometheusTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.source = Source()
        cls.addClassCleanup(cls.source.close)
        cls.prometheus = Prometheus(cls.source.port)
        cls.addClassCleanup(cls.prometheus.close)
        cls.prometheus.wait_until_asked()

    def test_the_target_is_up_and_all_of_it_is_read(self):
        target, = self.prometheus.ask("targets")["activeTargets"]
        self.assertEqual((target["health"], target["lastError"]), ("up", ""))
        names = {re.match(r"[^{ ]+", line)[0] for line in self.source.text.splitlines() if line[0] != "#"}
        self.assertGreater(len(names), 80)
        self.assertEqual(names - set(self.prometheus.ask("label/__name__/values")), set())

    def test_types_and_help_are_known(self):
        metadata = self.prometheus.ask("metadata")
        self.assertEqual(metadata["vllm:time_to_first_token_seconds"][0]["type"], "histogram")
        self.assertEqual(metadata["vllm:prompt_tokens_total"][0]["type"], "counter")
        for name, entries in metadata.items():
            if name.startswith(("vllm:", "octavo:")):
                self.assertTrue(entries[0]["help"], name)

    def test_what_vllms_dashboards_ask_for_is_there(self):
        for name in VLLM:
            found = self.prometheus.query(name + '{model_name="stub",engine="0"}')
            self.assertTrue(found, name)

    def test_every_panel_of_our_dashboard_has_data(self):
        queries = list(panel_queries())
        self.assertGreater(len(queries), 50)
        for title, expression in queries:
            with self.subTest(title):
                expression = expression.replace("$model_name", "stub").replace("$__rate_interval", "1m")
                self.assertNotIn("$", expression)
                for name in re.findall(r"\b(?:vllm:|octavo:|http_|process_)\w+", expression):
                    self.assertTrue(self.prometheus.query(name), name)
                self.assertTrue(self.prometheus.query(expression), expression)

    def test_values_are_those_that_were_written(self):
        tokens = float(self.prometheus.query("vllm:generation_tokens_total")[0]["value"][1])
        steps = sum(float(s["value"][1]) for s in self.prometheus.query("octavo:steps_total"))
        self.assertGreater(tokens, 0)
        self.assertGreater(steps, 0)
        count = 'vllm:inter_token_latency_seconds_count == on() vllm:inter_token_latency_seconds_bucket{le="+Inf"}'
        self.assertTrue(self.prometheus.query(count))


if __name__ == "__main__":
    if not shutil.which("prometheus"):
        print("prometheus is not installed; skipped")
        sys.exit(77)
    unittest.main()
