#!/usr/bin/env python3
"""octavo bench serve and octavo bench diff as they are run, against a server without a model.

Nothing is asked of times but that they are there: counts are exact whatever the machine does.
"""
import asyncio
import json
import logging
import os
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from stub_api import StubApi

logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # clients that go away are what is tested
BINARY = os.environ["OCTAVO_BINARY"]
LIMIT_S = 120  # of one run: a hang fails, slowness of the machine does not
KEY = "sk-very-secret"


class Run:
    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err


async def octavo(*args, interrupt_when=None, env=None):
    process = await asyncio.create_subprocess_exec(
        BINARY, *args, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE, env={**os.environ, "OPENAI_API_KEY": "", **(env or {})})
    try:
        ended = asyncio.create_task(process.communicate())
        while interrupt_when and not ended.done():
            if interrupt_when():
                process.send_signal(signal.SIGINT)
                break
            await asyncio.sleep(0.01)
        out, err = await asyncio.wait_for(ended, LIMIT_S)
    finally:
        if process.returncode is None:
            process.kill()
    return Run(process.returncode, out.decode(), err.decode())


class BenchServe(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    async def start(self, stub):
        url = await stub.start()
        self.addCleanup(stub.server.close)
        return url

    def path(self, name):
        return os.path.join(self.folder.name, name)

    async def bench(self, stub, *args, code=0, **kwargs):
        """The run of a result, and the result; the program's error output is self.err."""
        url = await self.start(stub)
        run = await octavo("bench", "serve", url, "--json", *args, **kwargs)
        self.assertEqual(run.code, code, run.err)
        self.err = run.err
        result = json.loads(run.out)
        self.assertEqual(result["schema"], "octavo-bench-1")
        return result["runs"][0], result

    async def test_figures_are_those_of_the_requests(self):
        stub = StubApi()
        run, result = await self.bench(stub, "--num-prompts", "50", "--max-concurrency", "7", "--input-len", "10-20",
                                       "--output-len", "3-9", "--seed", "5", "--goodput", "ttft:100000", "tpot:100000")
        figures = run["figures"]
        self.assertEqual(figures["completed"], 50)
        self.assertEqual(figures["failed"], 0)
        sent = stub.requests[1:]  # after the warm-up
        self.assertEqual(figures["total_output_tokens"], sum(r["max_tokens"] for r in sent))
        self.assertEqual(figures["total_input_tokens"], sum(len(r["prompt"].split()) for r in sent))
        self.assertLessEqual(stub.most_running, 7)
        self.assertEqual(figures["max_concurrent_requests"], 7)
        self.assertAlmostEqual(figures["request_goodput"], figures["request_throughput"])
        for kind in ("ttft", "tpot", "itl", "e2el"):
            for part in ("mean", "median", "std", "p50", "p90", "p95", "p99", "max"):
                self.assertGreaterEqual(figures[f"{part}_{kind}_ms"], 0, (part, kind))
        self.assertGreaterEqual(stub.scrapes, 2)
        self.assertEqual(figures["server_max_memory_mib"], 100)
        self.assertEqual(figures["server_max_kv_usage"], 0.25)
        self.assertTrue(all(r["ignore_eos"] and r["temperature"] == 0 for r in sent))
        self.assertEqual(result["model"], "stub")

    async def test_thousands_of_streams_at_once(self):
        stub = StubApi(gap_s=0.02, metrics=False)
        run, result = await self.bench(stub, "--num-prompts", "1500", "--input-len", "4", "--output-len", "12")
        self.assertEqual(run["figures"]["completed"], 1500, result["notes"])
        self.assertEqual(run["figures"]["total_output_tokens"], 1500 * 12)
        self.assertIn("no /metrics", "".join(result["notes"]))

    async def test_conversations_grow_by_the_answers(self):
        for endpoint in ("/v1/completions", "/v1/chat/completions"):
            stub = StubApi()
            run, _ = await self.bench(stub, "--dataset", "multi-turn", "--turns", "3", "--num-prompts", "3",
                                      "--output-len", "2", "--input-len", "5", "--endpoint", endpoint)
            self.assertEqual(run["figures"]["completed"], 3)
            last = stub.requests[-1]
            if "chat" in endpoint:
                self.assertEqual([m["role"] for m in last["messages"]], ["user", "assistant"] * 2 + ["user"])
                self.assertEqual(last["messages"][1]["content"], " tok tok")
            else:
                self.assertEqual(last["prompt"].count(" tok tok\n"), 2)

    async def test_files(self):
        Path(self.path("a.jsonl")).write_text(
            '{"prompt":"one","output_tokens":2}\n{"prompt_token_ids":[7,8],"output_tokens":3}\n', encoding="utf-8")
        stub = StubApi()
        run, _ = await self.bench(stub, "--dataset", "jsonl", "--dataset-path", self.path("a.jsonl"),
                                  "--extra-body", '{"top_k":3,"temperature":null}')
        self.assertCountEqual([r["prompt"] for r in stub.requests[1:]], ["one", [7, 8]])
        self.assertEqual(run["figures"]["total_output_tokens"], 5)
        self.assertEqual(stub.requests[1]["top_k"], 3)
        self.assertNotIn("temperature", stub.requests[1])
        self.assertNotIn("ignore_eos", stub.requests[1])
        Path(self.path("t.jsonl")).write_text(
            '{"timestamp":1000,"input_length":600,"output_length":2,"hash_ids":[1,2]}\n'
            '{"timestamp":1050,"input_length":520,"output_length":2,"hash_ids":[1,3]}\n', encoding="utf-8")
        stub = StubApi()
        run, _ = await self.bench(stub, "--dataset", "trace", "--dataset-path", self.path("t.jsonl"))
        prompts = sorted((r["prompt"].split() for r in stub.requests[1:]), key=len, reverse=True)
        self.assertEqual([len(p) for p in prompts], [600, 520])
        self.assertEqual(prompts[0][:512], prompts[1][:512])
        self.assertGreaterEqual(run["requests"][1]["arrival_s"], 0.05)

    async def test_failures_are_counted_by_kind(self):
        kinds = {"fault-429": "status 429", "fault-500": "status 500", "fault-cut": "cut stream",
                 "fault-event": "error event", "fault-garbage": "error event", "fault-plain": "no stream",
                 "fault-hang": "timeout", "fault-done": "no answer", "fault-empty": "no answer"}
        Path(self.path("f.jsonl")).write_text(
            "".join(json.dumps({"prompt": f, "output_tokens": 2}) + "\n" for f in [*kinds, "fine"]), encoding="utf-8")
        stub = StubApi(usage=False)
        run, result = await self.bench(stub, "--dataset", "jsonl", "--dataset-path", self.path("f.jsonl"),
                                       "--request-timeout-s", "3", "--html", self.path("f.html"))
        wanted = {}
        for kind in kinds.values():
            wanted[kind] = wanted.get(kind, 0) + 1
        self.assertEqual(run["failures"], wanted)
        self.assertEqual(run["figures"]["completed"], 1)
        self.assertEqual(run["figures"]["rejected"], 1)
        notes = "\n".join(result["notes"])
        self.assertIn("1 request failed: status 500, 'asked for it'", notes)
        self.assertIn("sent no usage", notes)
        self.assertIn("9 of 10 requests failed; the first: ", self.err)
        self.assertIn("status 500", Path(self.path("f.html")).read_text(encoding="utf-8"))

    async def test_tokens_are_those_of_usage_spread_over_the_events(self):
        run, result = await self.bench(StubApi(tokens_per_event=10), "--num-prompts", "1", "--output-len", "50")
        figures = run["figures"]
        self.assertEqual(figures["total_output_tokens"], 50)
        self.assertEqual(len(run["requests"][0]["token_s"]), 5)
        # All of them come within moments; a second of a slow machine may end between two events.
        self.assertEqual(figures["max_output_tokens_per_s"] % 10, 0)
        self.assertGreaterEqual(figures["max_output_tokens_per_s"], 10)
        self.assertIn("The server sends 10.0 tokens in an event", "\n".join(result["notes"]))

    async def test_a_sweep_is_one_result_and_one_page(self):
        stub = StubApi(gap_s=0.002)
        _, result = await self.bench(stub, "--max-concurrency", "1,2,4", "--num-prompts", "12", "--output-len", "4",
                                     "--input-len", "9", "--repeat", "2", "--html", self.path("s.html"))
        self.assertEqual([run["x"] for run in result["runs"]], [1, 2, 4])
        self.assertEqual(result["x_label"], "requests at once")
        for run in result["runs"]:
            self.assertEqual(len(run["rounds"]), 2)
            self.assertEqual(run["settings"]["max_concurrency"], "%g" % run["x"])
            for figures in run["rounds"]:
                self.assertEqual(figures["completed"], 12)
                self.assertEqual(figures["max_concurrent_requests"], run["x"])
        # Nothing that a prefix cache could have kept of the load before.
        prompts = [request["prompt"] for request in stub.requests if request["max_tokens"] == 4 and
                   len(request["prompt"].split()) == 9]
        self.assertEqual(len(prompts), 72)
        self.assertEqual(len(set(prompts)), 72)
        page = Path(self.path("s.html")).read_text(encoding="utf-8")
        self.assertEqual(page.count('class="panel"'), 3)
        self.assertLess(page.index("Output tokens per second: best with"), page.index("<table"))

    async def test_a_run_without_any_answer_fails_and_is_kept(self):
        Path(self.path("f.jsonl")).write_text('{"prompt":"fault-500"}\n' * 3, encoding="utf-8")
        run, result = await self.bench(StubApi(), "--dataset", "jsonl", "--dataset-path", self.path("f.jsonl"),
                                       "--output", self.path("r.json"), "--goodput", "ttft:500", "tpot:50", code=4)
        self.assertIn("no request was answered; the first: status 500, 'asked for it' [io_error]", self.err)
        self.assertEqual(run["failures"], {"status 500": 3})
        self.assertEqual(run["figures"]["request_goodput"], 0)
        self.assertIn("--goodput ttft:500 --goodput tpot:50", result["command"])
        self.assertEqual(json.loads(Path(self.path("r.json")).read_text(encoding="utf-8")), result)
        url = await self.start(StubApi())
        table = await octavo("bench", "serve", url, "--dataset", "jsonl", "--dataset-path", self.path("f.jsonl"),
                             "--goodput", "ttft:500")
        self.assertEqual(table.code, 4, table.err)
        rows = {line.rsplit(None, 1)[0]: line.rsplit(None, 1)[1] for line in table.out.splitlines()
                if len(line.split()) > 1}
        self.assertEqual(rows.get("good requests per second"), "0", table.out)
        self.assertEqual(rows.get("requests completed"), "0", table.out)

    async def test_the_address_may_end_as_clients_are_given_it(self):
        for end in ("/v1", "/v1/", "/"):
            stub = StubApi()
            run = await octavo("bench", "serve", await self.start(stub) + end, "--num-prompts", "2", "--json")
            self.assertEqual(run.code, 0, run.err)
            self.assertEqual(len(stub.requests), 3)

    async def test_short_runs_are_sampled_often(self):
        stub = StubApi(gap_s=0.1)
        run, _ = await self.bench(stub, "--num-prompts", "1", "--output-len", "8")
        self.assertGreaterEqual(len(run["server"]), 5)
        self.assertGreaterEqual(stub.scrapes, 5)

    async def test_ctrl_c_ends_the_run_and_shows_what_there_is(self):
        Path(self.path("h.jsonl")).write_text(
            '{"prompt":"fine"}\n{"prompt":"fault-hang"}\n', encoding="utf-8")
        stub = StubApi()
        # One after the other, so that the first is complete when the second hangs.
        run, result = await self.bench(stub, "--dataset", "jsonl", "--dataset-path", self.path("h.jsonl"),
                                       "--max-concurrency", "1", "--output", self.path("r.json"), code=130,
                                       interrupt_when=lambda: stub.hanging == 1)
        self.assertIn("[cancelled]", self.err)
        self.assertEqual(json.loads(Path(self.path("r.json")).read_text(encoding="utf-8")), result)
        self.assertEqual(run["failures"], {"cancelled": 1})
        self.assertEqual(run["figures"]["completed"], 1)
        self.assertIn("stopped", result["notes"][-1])

    async def test_the_key_is_sent_and_not_shown(self):
        for given in (["--api-key", KEY], []):
            run, result = await self.bench(StubApi(key=KEY), "--num-prompts", "2", "--output-len", "2", *given,
                                           env={} if given else {"OPENAI_API_KEY": KEY})
            self.assertEqual(run["figures"]["completed"], 2)
            self.assertNotIn(KEY, json.dumps(result))
        url = await self.start(StubApi(key=KEY))
        refused = await octavo("bench", "serve", url)
        self.assertEqual(refused.code, 4)
        self.assertIn("status 401 'no such key'", refused.err)

    async def test_two_results_are_compared(self):
        url = await self.start(StubApi())
        for name, tokens in (("before", "4"), ("after", "8")):
            run = await octavo("bench", "serve", url, "--num-prompts", "5", "--output-len", tokens, "--input-len", "5",
                               "--output", self.path(name + ".json"), "--html", "none")
            self.assertEqual(run.code, 0, run.err)
            self.assertIn("TTFT P95 (ms)", run.out)
        diff = await octavo("bench", "diff", self.path("before.json"), self.path("after.json"),
                            "--html", self.path("diff.html"))
        self.assertEqual(diff.code, 0, diff.err)
        row = next(line for line in diff.out.splitlines() if line.startswith("output tokens  "))
        self.assertEqual(row.split(), ["output", "tokens", "20", "40", "2", "x"])
        page = Path(self.path("diff.html")).read_text(encoding="utf-8")
        self.assertIn("before", page)
        missing = await octavo("bench", "diff", self.path("before.json"), self.path("none.json"))
        self.assertEqual(missing.code, 3)

    async def test_unix_sockets(self):
        stub = StubApi()
        url = await stub.start_unix(self.path("s"))
        self.addCleanup(stub.server.close)
        run = await octavo("bench", "serve", url, "--num-prompts", "20", "--output-len", "2", "--json")
        self.assertEqual(json.loads(run.out)["runs"][0]["figures"]["completed"], 20)

    @unittest.skipUnless(shutil.which("openssl"), "makes a certificate")
    async def test_tls(self):
        key, cert = self.path("key.pem"), self.path("cert.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2", "-keyout", key,
                        "-out", cert], check=True, capture_output=True, timeout=LIMIT_S)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        stub = StubApi()
        url = await stub.start_tls(context)
        self.addCleanup(stub.server.close)
        args = ("bench", "serve", url, "--num-prompts", "20", "--output-len", "2", "--json")
        refused = await octavo(*args)
        self.assertEqual(refused.code, 4)
        self.assertIn("certificate", refused.err)
        for allowed in (await octavo(*args, "--no-verify-tls"), await octavo(*args, env={"SSL_CERT_FILE": cert})):
            self.assertEqual(allowed.code, 0, allowed.err)
            self.assertEqual(json.loads(allowed.out)["runs"][0]["figures"]["completed"], 20)

    async def test_what_cannot_hold_is_refused_before_anything_is_sent(self):
        stub = StubApi()
        url = await self.start(stub)
        for args, words in [
                (["--ramp-up", "linear:1"], "--ramp-up"), (["--burstiness", "2"], "needs --request-rate"),
                (["--request-rate", "fast"], "--request-rate"), (["--goodput", "ttft"], "MEASURE:MS"),
                (["--goodput", "ttft:1", url], "MEASURE:MS"), (["--dataset", "jsonl"], "--dataset-path"),
                (["--dataset-path", "a"], "--dataset jsonl"), (["--turns", "2"], "multi-turn"),
                (["--prompt-format", "token-ids", "--endpoint", "/v1/chat/completions"], "/v1/completions"),
                (["--extra-body", "[]"], "JSON object"), (["--extra-body", '{"stream":false}'], "'stream'"),
                (["--api-key", "a\nb"], "--api-key"), (["--input-len", "9-3"], "--input-len"),
                (["--token-id-range", "5"], "--token-id-range"), (["--html", "/nowhere/a.html"], "/nowhere")]:
            run = await octavo("bench", "serve", url, *args)
            self.assertNotEqual(run.code, 0, args)
            self.assertIn(words, run.err, args)
            self.assertEqual(run.out, "")
        for address in ("localhost:1", "http://", "ftp://a"):
            self.assertEqual((await octavo("bench", "serve", address)).code, 2, address)
        self.assertEqual(stub.requests, [])


if __name__ == "__main__":
    unittest.main()
