#!/usr/bin/env python3
"""What docs/service.md hands to operators is right: the unit, the settings, the image, the manifest and the alert rules.

Needs OCTAVO_BINARY and METRICS_EXAMPLE.
"""

import configparser
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/server"))
from serving import CHAT, LIMIT_S, OCTAVO, Server  # noqa: E402

SERVICE = ROOT / "docs/service"
PROMETHEUS = ROOT / "docs/prometheus"
TINY = ROOT / "tests/data/tiny/llama-tied/llama-tied-F32.gguf"
DEFAULT_SHUTDOWN_S = 30
NOT_OF_THE_SERVER = {"up"}


def octavo(*args):
    return subprocess.run([OCTAVO, *map(str, args)], capture_output=True, text=True, timeout=LIMIT_S)


class TestCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tmp = Path(folder.name)
        self.env = {"XDG_CACHE_HOME": str(self.tmp / "cache")}


class Unit(TestCase):
    def setUp(self):
        super().setUp()
        self.parser = configparser.ConfigParser(strict=False, interpolation=None)
        self.parser.optionxform = str
        self.parser.read_string((SERVICE / "octavo.service").read_text())

    def test_systemd_understands_it(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("systemd is not installed")
        unit = self.tmp / "octavo.service"
        unit.write_text((SERVICE / "octavo.service").read_text().replace("/usr/local/bin/octavo", OCTAVO))
        run = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True,
                             timeout=LIMIT_S)
        self.assertEqual((0, ""), (run.returncode, "".join(line for line in run.stderr.splitlines(True)
                                                          if "octavo" in line)))

    def test_it_waits_for_answers_on_their_way(self):
        stop_s = int(self.parser["Service"]["TimeoutStopSec"])
        settings = tomllib.loads((SERVICE / "octavo.toml").read_text())
        self.assertGreater(stop_s, settings.get("shutdown_timeout", DEFAULT_SHUTDOWN_S) + 10)

    def test_a_wrong_setting_is_not_tried_again(self):
        codes = self.parser["Service"]["RestartPreventExitStatus"].split()
        bad = self.tmp / "bad.toml"
        bad.write_text('model = "none.gguf"\nport = "many"\n')
        self.assertIn(str(octavo("serve", "--config", bad).returncode), codes)
        self.assertIn(str(octavo("serve", self.tmp / "none.gguf").returncode), codes)

    def test_a_server_runs_with_its_settings(self):
        command = shlex.split(self.parser["Service"]["ExecStart"])
        self.assertEqual(["/usr/local/bin/octavo", "serve", "--config", "/etc/octavo/octavo.toml"], command)
        config = self.tmp / "octavo.toml"
        text = (SERVICE / "octavo.toml").read_text()
        self.assertEqual(1, text.count('"smollm2-135m"'))
        config.write_text(text.replace("smollm2-135m", str(TINY)))
        with Server(OCTAVO, "serve", "--config", config, env=self.env) as server:
            answer = server.post(CHAT, {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 2})
            self.assertEqual(200, answer.status)


class Image(TestCase):
    def test_it_has_the_libraries_of_the_program(self):
        if platform.machine() != "x86_64" or not shutil.which("dpkg") or not shutil.which("readelf"):
            self.skipTest("not a Debian system for x86-64")
        needed = re.findall(r"NEEDED.*\[(.*)\]", subprocess.check_output(["readelf", "-d", OCTAVO], text=True))
        self.assertGreater(len(needed), 5)
        wanted = set()
        for library in needed:
            owners = subprocess.check_output(["dpkg", "-S", f"*/x86_64-linux-gnu/{library}"], text=True)
            wanted.add(owners.split(":")[0])
        final = (SERVICE / "Dockerfile").read_text().split("FROM")[-1].replace("\\\n", " ")
        installed = set(re.search(r"apt-get install -y (.*?)&&", final).group(1).split())
        base = {"libc6", "libstdc++6", "libgcc-s1", "libtsan2"}  # libstdc++6 comes with those that need it
        others = {"--no-install-recommends", "ca-certificates"}
        self.assertEqual(wanted - base, installed - others)


class Manifest(TestCase):
    def setUp(self):
        super().setUp()
        try:
            import yaml
        except ImportError:
            self.skipTest("PyYAML is not installed")
        documents = list(yaml.safe_load_all((SERVICE / "kubernetes.yaml").read_text()))
        self.kinds = {document["kind"]: document for document in documents}
        self.pod = self.kinds["Deployment"]["spec"]["template"]["spec"]
        self.container, = self.pod["containers"]

    def test_a_server_runs_with_its_arguments(self):
        args = list(self.container["args"])
        self.assertEqual("serve", args[0])
        args[1] = TINY
        args[args.index("--host") + 1] = "127.0.0.1"
        port, = self.container["ports"]
        self.assertEqual(8000, port["containerPort"])
        env = {**self.env, "OCTAVO_API_KEY": "secret"}
        with Server(OCTAVO, *args, env=env) as server:
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                self.assertEqual(200, server.call("GET", self.container[probe]["httpGet"]["path"]).status, probe)
            self.assertEqual(200, server.call("GET", "/metrics").status)
            self.assertEqual(401, server.call("GET", "/v1/models").status)

    def test_it_waits_for_answers_on_their_way(self):
        before_s = int(self.container["lifecycle"]["preStop"]["exec"]["command"][1])
        self.assertGreater(self.pod["terminationGracePeriodSeconds"], before_s + DEFAULT_SHUTDOWN_S + 10)

    def test_names_agree(self):
        labels = self.kinds["Deployment"]["spec"]["template"]["metadata"]["labels"]
        self.assertEqual(labels, self.kinds["Service"]["spec"]["selector"])
        self.assertEqual(self.kinds["PersistentVolumeClaim"]["metadata"]["name"],
                         self.pod["volumes"][0]["persistentVolumeClaim"]["claimName"])
        mounts = {mount["mountPath"] for mount in self.container["volumeMounts"]}
        self.assertIn("XDG_CACHE_HOME=/cache", (SERVICE / "Dockerfile").read_text())
        self.assertIn("/cache", mounts)


class Alerts(TestCase):
    def promtool(self, *args):
        if not shutil.which("promtool"):
            self.skipTest("promtool is not installed")
        run = subprocess.run(["promtool", *map(str, args)], capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual(0, run.returncode, run.stdout + run.stderr)

    def test_prometheus_reads_them(self):
        self.promtool("check", "config", PROMETHEUS / "prometheus.yml")

    def test_they_fire_when_they_should(self):
        for path in (PROMETHEUS / "alerts.yml", ROOT / "tests/service/alerts_test.yml"):
            shutil.copy(path, self.tmp)
        self.promtool("test", "rules", self.tmp / "alerts_test.yml")

    def test_each_has_a_case_in_which_it_fires(self):
        names = set(re.findall(r"- alert: (\w+)", (PROMETHEUS / "alerts.yml").read_text()))
        cases = (ROOT / "tests/service/alerts_test.yml").read_text()
        fired = set(re.findall(r"alertname: (\w+)\n +exp_alerts", cases))
        self.assertEqual(names, fired)

    def test_the_server_has_what_they_ask_for(self):
        rules = re.sub(r'"[^"\n]*"', "", (PROMETHEUS / "alerts.yml").read_text())
        asked = set(re.findall(r"\b(?:vllm:|octavo:|process_|http_)\w+", rules))
        self.assertGreater(len(asked), 10)
        with subprocess.Popen([os.environ["METRICS_EXAMPLE"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as program:
            text = "".join(iter(program.stdout.readline, "# END\n"))
            program.stdin.close()
        there = set(re.findall(r"^([a-z_:]+)[{ ]", text, re.MULTILINE))
        self.assertEqual(set(), asked - there)


if __name__ == "__main__":
    unittest.main()
