#!/usr/bin/env python3
"""The clients of a deployment guide, as they stand there: they speak to port 8000 and ask for a name of another model."""

import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import venv

venv.enter()
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "server"))

from serving import OCTAVO, Server  # noqa: E402

MODEL = "Qwen/Qwen2.5-7B-Instruct"
ALONE = "OCTAVO_TEST_ALONE"  # set once this process has a network of its own


def own_network():
    """Goes on with a loopback interface that nobody else uses, where port 8000 is free, if the system permits it."""
    if ALONE in os.environ:
        if os.environ[ALONE] == "yes":
            bring_up_loopback()
        return
    options = ["--net"] if os.geteuid() == 0 else ["--net", "--map-root-user"]
    unshare = shutil.which("unshare")
    permitted = unshare and subprocess.run([unshare, *options, "true"], capture_output=True).returncode == 0
    os.environ[ALONE] = "yes" if permitted else "no"
    if permitted:
        os.execv(unshare, [unshare, *options, sys.executable, "-B", *sys.argv])


def bring_up_loopback():
    import fcntl
    SIOCSIFFLAGS, IFF_UP = 0x8914, 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


class Guide(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.alone = os.environ[ALONE] == "yes"
        cls.server = cls.enterClassContext(Server(OCTAVO, "serve", "smollm2-135m", "--served-model-name", MODEL,
                                                  port=8000 if cls.alone else 0))
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory()))

    def client(self, name):
        """The file itself; where port 8000 may belong to somebody else, a copy with another port."""
        if self.alone:
            return HERE / name
        copy = self.folder / name
        copy.write_text((HERE / name).read_text().replace(":8000/", f":{self.server.port}/"))
        return copy

    def run_client(self, *command):
        run = subprocess.run([*command], capture_output=True, timeout=300, env={**os.environ, "PYTHONUTF8": "1"})
        self.assertEqual(0, run.returncode, run.stderr.decode())
        return run.stdout.decode()

    def test_curl(self):
        answer = json.loads(self.run_client("bash", self.client("curl_chat.sh")))
        self.assertEqual(("chat.completion", MODEL), (answer["object"], answer["model"]))
        self.assertTrue(answer["choices"][0]["message"]["content"])
        self.assertIn(answer["choices"][0]["finish_reason"], ("stop", "length"))

    def test_openai(self):
        output = self.run_client(sys.executable, "-B", self.client("openai_chat.py"))
        self.assertRegex(output, r"回答： \S")
        self.assertRegex(output, r"结束原因： (stop|length)")
        prompt, completion, total = map(int, re.search(r"输入 (\d+) tokens，输出 (\d+) tokens，合计 (\d+)", output).groups())
        self.assertEqual(prompt + completion, total)
        self.assertLessEqual(completion, 256)

    def test_benchmark(self):
        output = self.run_client(sys.executable, "-B", self.client("stream_benchmark.py"))
        self.assertIn("请求数：32，并发：8", output)
        for name in ("TTFT", "E2E"):
            low, middle, high = map(float, re.search(rf"{name}：P50 (\S+) ms，P90 (\S+) ms，P99 (\S+) ms", output).groups())
            self.assertTrue(0 < low <= middle <= high, output)


if __name__ == "__main__":
    own_network()
    unittest.main()
