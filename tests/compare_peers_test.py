#!/usr/bin/env python3
"""tools/compare_peers without peers: what it asks of them, how it reads their output, and its table."""

import importlib.util
import io
import json
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout
from importlib.machinery import SourceFileLoader
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOADER = SourceFileLoader("compare_peers", str(ROOT / "tools/compare_peers"))
SPEC = importlib.util.spec_from_loader("compare_peers", LOADER)
peers = importlib.util.module_from_spec(SPEC)
LOADER.exec_module(peers)

PREFILL, DECODE, DEEP, BATCHED = (peers.GROUPS[name] for name in ("prefill", "decode", "deep", "batched"))


def llama_row(**values):
    return {"build_number": 7, "build_commit": "abc", "n_prompt": 0, "n_gen": 0, "avg_ts": 1.0, **values}


class Output(unittest.TestCase):
    def test_octavo(self):
        limits = {"read_gb_s": 20.5, "int8_gmac_s": 100, "fp32_gflop_s": 50}
        rows = [{"depth": 512, "batch_size": n, "decode_tok_s": 10.0 * n, "prefill_tok_s": 99.0} for n in (8, 16)]
        text = json.dumps({"version": "0.1", "commit": "c0", "isa": "avx2", "limits": limits, "results": rows})
        facts = {}
        self.assertEqual({"decode 8 at 512": 80.0, "decode 16 at 512": 160.0}, peers.parse_octavo(text, BATCHED, facts))
        self.assertEqual(("0.1 c0", "avx2", 20.5), (facts["version"], facts["isa"], facts["read_gb_s"]))

    def test_octavo_reads_prompts(self):
        rows = [{"depth": 0, "batch_size": 1, "decode_tok_s": 1.0, "prefill_tok_s": 99.0}]
        text = json.dumps({"version": "", "commit": "", "isa": "", "limits": {}, "results": rows})
        self.assertEqual({"prefill 512": 99.0}, peers.parse_octavo(text, PREFILL[:1], {}))

    def test_llama_bench(self):
        rows = [llama_row(n_prompt=512, avg_ts=5.0), llama_row(n_prompt=2048, avg_ts=6.0), llama_row(n_gen=128)]
        facts = {}
        text = "loading [1/2]\n" + json.dumps(rows, indent=2)
        self.assertEqual({"prefill 512": 5.0, "prefill 2048": 6.0}, peers.parse_llama_bench(text, PREFILL, facts))
        self.assertEqual("7 abc", facts["version"])

    def test_depth_by_either_name(self):
        for row in (llama_row(n_gen=64, n_depth=4096, avg_ts=3.0), llama_row(n_gen=64, n_prompt=4096, avg_ts=3.0)):
            text = json.dumps([row], indent=1)
            self.assertEqual({"decode at 4096": 3.0}, peers.parse_llama_bench(text, DEEP, {}))
            self.assertEqual({}, peers.parse_llama_bench(text, DECODE, {}))

    def test_batched_bench(self):
        text = ("main: n_kv_max = 4096\n"
                "|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |\n"
                "|-------|--------|------|--------|----------|----------|----------|----------|----------|----------|\n"
                "|   512 |     32 |    8 |   4352 |    1.000 |  4096.00 |    2.000 |   128.00 |    3.000 |  1450.67 |\n"
                "|   512 |     32 |   32 |  17408 |    4.000 |  4096.00 |    2.000 |   512.50 |    6.000 |  2901.33 |\n")
        self.assertEqual({"decode 8 at 512": 128.0, "decode 32 at 512": 512.5},
                         peers.parse_batched_bench(text, BATCHED))
        self.assertEqual({}, peers.parse_batched_bench("no table\n", BATCHED))

    def test_openvino(self):
        facts = {}
        text = 'a warning\n{"version": "1", "tok_s": [3.0, 4.0]}\n'
        self.assertEqual({"prefill 512": 3.0, "prefill 2048": 4.0}, peers.parse_openvino(text, PREFILL, facts))
        self.assertEqual("1", facts["version"])


class Commands(unittest.TestCase):
    def commands(self, jobs, group):
        return [" ".join(map(str, job.command)) for job in jobs(group, "M", 2)]

    def test_every_engine_covers_every_case(self):
        for jobs in (peers.octavo_jobs("octavo", []), peers.llama_jobs("d", False), peers.llama_jobs("d", True),
                     peers.openvino_jobs("python")):
            for group in peers.GROUPS:
                self.assertTrue(self.commands(jobs, group))

    def test_octavo(self):
        prefill = self.commands(peers.octavo_jobs("octavo", ["--x"]), "prefill")
        self.assertEqual(2, len(prefill))
        self.assertIn("--prompt-tokens 2048", prefill[1])
        [batched] = self.commands(peers.octavo_jobs("octavo", ["--x"]), "batched")
        self.assertIn("--gen-tokens 128 --depth 512 --batch-size 8,16,32", batched)
        self.assertTrue(batched.endswith("--x"))

    def test_llama(self):
        plain, ik = peers.llama_jobs("d", False), peers.llama_jobs("d", True)
        self.assertTrue(all("-d 4096" in c and "-rtr" not in c for c in self.commands(plain, "deep")))
        self.assertTrue(all("-gp 4096,64" in c for c in self.commands(ik, "deep")))
        self.assertEqual({"0", "1"}, {c.split("-rtr ")[1] for c in self.commands(ik, "deep")})
        self.assertTrue(all("-npl 8,16,32" in c and "-c 20480" in c for c in self.commands(plain, "batched")))
        settings = [job.setting for job in plain("prefill", "M", 2)]
        self.assertEqual(len(settings), len(set(settings)))


def record(engine, setting, speed, case="decode", round_number=1, **facts):
    return {"round": round_number, "model": "m.gguf", "group": "decode", "engine": engine, "setting": setting,
            "results": {case: speed}, "facts": facts}


class Table(unittest.TestCase):
    def test_median_of_the_best_setting(self):
        runs = [record("peer", "slow", s) for s in (1, 2, 3)] + [record("peer", "fast", s) for s in (4, 9, 5)]
        self.assertEqual((5, "fast", 3), peers.medians(runs)["m.gguf", "decode"]["peer"])

    def test_a_setting_with_fewer_runs_does_not_win(self):
        runs = [record("peer", "steady", s) for s in (4, 5)] + [record("peer", "lucky", 9)]
        self.assertEqual((4.5, "steady", 2), peers.medians(runs)["m.gguf", "decode"]["peer"])

    def test_markdown(self):
        runs = [record("octavo", "default", 300.0, read_gb_s=20.0, version="0.1 abc"),
                record("octavo", "default", 100.0, read_gb_s=30.0), record("peer", "fast", 100.0, version="7"),
                {**record("peer", "odd", 0), "results": {}, "error": "exit code 1: no such flag"}]
        text = peers.markdown({"machine": {"cpu": "X"}, "missing": {"third": "not given"}, "runs": runs})
        self.assertIn("| | GB/s | octavo | peer |", text)
        self.assertIn("| decode | 25.0 | 200 | 100 (2.00 x) |", text)
        for line in ("- machine: {\"cpu\": \"X\"}", "- version of octavo: 0.1 abc", "- version of peer: 7",
                     "- best setting of peer, fast: decode of m.gguf (1)",
                     "- failed: peer / m.gguf / odd: exit code 1: no such flag", "- missing: third: not given"):
            self.assertIn(line, text.splitlines())

    def test_engine_without_a_result(self):
        runs = [record("octavo", "default", 3.0), record("peer", "a", 1.0, case="decode at 4096")]
        text = peers.markdown({"machine": {}, "runs": runs})
        self.assertIn("| decode | – | 3.0 | – |", text)
        self.assertIn("| decode at 4096 | – | – | 1.0 |", text)

    def test_only_settings_near_the_best_run_again(self):
        first = [record("peer", "best", 10.0), record("peer", "near", 9.5), record("peer", "far", 5.0)]
        self.assertEqual([True, True, False, False],
                         [peers.worth_running(s, first) for s in ("best", "near", "far", "failed")])


class Runs(unittest.TestCase):
    """With a stand-in for octavo."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tmp = Path(folder.name)
        (self.tmp / "m.gguf").write_text("")

    def program(self, text):
        path = self.tmp / "octavo"
        path.write_text(text)
        path.chmod(0o755)
        return path

    def run_main(self, *arguments):
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = peers.main([str(a) for a in arguments])
        return code, out.getvalue(), err.getvalue()

    def test_stores_every_result_and_prints_the_table_again(self):
        answer = {"version": "0.1", "commit": "c0", "isa": "avx2",
                  "limits": {"read_gb_s": 20, "int8_gmac_s": 1, "fp32_gflop_s": 1},
                  "results": [{"depth": 0, "batch_size": 1, "decode_tok_s": 123.0, "prefill_tok_s": 1.0}]}
        program = self.program(f"#!/bin/sh\ncat <<'END'\n{json.dumps(answer)}\nEND\n")
        file = self.tmp / "out.json"
        code, out, _ = self.run_main("--octavo", program, "--rounds", 3, "--groups", "decode", "--out", file,
                                     self.tmp / "m.gguf")
        self.assertEqual(0, code)
        self.assertIn("| decode | 20.0 | 123 |", out)
        data = json.loads(file.read_text())
        self.assertEqual([1, 2, 3], [run["round"] for run in data["runs"]])
        self.assertIn("kernel", data["machine"])
        self.assertEqual({"llama.cpp", "ik_llama.cpp", "OpenVINO GenAI"}, set(data["missing"]))
        self.assertIn("bench latency", data["runs"][0]["command"])
        self.assertEqual((0, out), self.run_main("--table", file)[:2])

    def test_failures_are_reported(self):
        for text, word in (("#!/bin/sh\necho it broke >&2\nexit 3\n", "it broke"), ("#!/bin/sh\necho hm\n", "not understood"),
                           ("#!/bin/sh\nexec sleep 60\n", "no end after")):
            code, out, err = self.run_main("--octavo", self.program(text), "--rounds", 1, "--groups", "decode", "--limit",
                                           1, "--out", self.tmp / "o", self.tmp / "m.gguf")
            self.assertEqual(0, code)
            self.assertIn(word, err)
            self.assertIn(word, out)

    def test_nothing_to_run(self):
        code, _, err = self.run_main("--octavo", self.tmp / "absent", self.tmp / "m.gguf")
        self.assertEqual(2, code)
        self.assertIn("cannot be run", err)


if __name__ == "__main__":
    unittest.main()
