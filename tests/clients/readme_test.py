#!/usr/bin/env python3
"""The curl commands of README.md, each as it stands there, against the server that the page starts."""

import json
import re
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "server"))

from serving import OCTAVO, Server, parse_events  # noqa: E402

README = Path(__file__).resolve().parents[2] / "README.md"


def commands():
    """Every command of a shell block that begins with curl, with its continuation lines and quoted lines."""
    blocks = re.findall(r"^```sh\n(.*?)^```", README.read_text(), re.M | re.S)
    return [c for block in blocks for c in re.findall(r"^curl (?:[^'\n\\]|\\\n|'[^']*')*", block, re.M)]


class Readme(unittest.TestCase):
    def test_every_command(self):
        self.assertTrue(commands(), "README.md has no curl command")
        with Server(OCTAVO, "serve", "smollm2-135m") as server:
            for command in commands():
                with self.subTest(command=command):
                    self.run_command(re.sub(r"(localhost|127\.0\.0\.1):8000", f"127.0.0.1:{server.port}", command))

    def run_command(self, command):
        self.assertNotIn(":8000", command)
        run = subprocess.run(["bash", "-c", command + " --silent --show-error --fail-with-body"], capture_output=True, timeout=300)
        self.assertEqual(0, run.returncode, run.stdout + run.stderr)
        if run.stdout.startswith(b"data: "):
            self.assertEqual("[DONE]", parse_events(run.stdout)[-1])
        elif run.stdout.startswith(b"{"):
            self.assertNotIn("error", json.loads(run.stdout))
        else:
            self.assertTrue(run.stdout)


if __name__ == "__main__":
    unittest.main()
