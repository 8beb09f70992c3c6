#!/usr/bin/env python3
"""schemathesis over all of /openapi.json: what it allows is taken, what it forbids is refused, and every answer has a status,
headers and a body that it describes. OCTAVO_FUZZ_EXAMPLES: how many requests of each operation are made up (200 take some
minutes)."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import venv

venv.enter()
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "server"))

from serving import COMPLETIONS, ServedCase  # noqa: E402

EXAMPLES = int(os.environ.get("OCTAVO_FUZZ_EXAMPLES", "20"))
LIMIT_S = 300 + 20 * EXAMPLES


class Described(ServedCase):
    FLAGS = ("--admin-api-key", "boss", "--max-num-seqs", "64", "--max-queue-len", "1024")

    def run_schemathesis(self, *flags):
        command = [venv.folder() / "bin/schemathesis", "run", self.server.url + "/openapi.json", "--checks", "all",
                   "--exclude-checks", "positive_data_acceptance", "--mode", "all", "--max-examples", str(EXAMPLES), "--seed", "1",
                   "--header", "Authorization: Bearer boss", "--request-timeout", "60", "--max-response-time", "60", "--generation-database", "none",
                   "--continue-on-failure", "--no-color", *flags]
        environment = {**os.environ, "SCHEMATHESIS_HOOKS": "schemathesis_hooks", "PYTHONPATH": str(HERE),
                       "OCTAVO_SERVED_MODEL": self.server.model, "PYTHONDONTWRITEBYTECODE": "1"}
        with tempfile.TemporaryDirectory() as folder:  # it leaves files where it runs
            return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, cwd=folder, env=environment)

    def test_the_description_holds(self):
        run = self.run_schemathesis()
        self.assertEqual(0, run.returncode, run.stdout[-30000:] + run.stderr[-2000:])
        self.ok(self.server.post(COMPLETIONS, {"prompt": "still alive", "max_tokens": 2}))


if __name__ == "__main__":
    unittest.main()
