#!/usr/bin/env python3
"""schemathesis against /openapi.json: no 5xx, no status or body that the description does not have. OCTAVO_FUZZ_S: for how long."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import venv

venv.enter()
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "server"))

from serving import COMPLETIONS, ServedCase  # noqa: E402

SECONDS = int(os.environ.get("OCTAVO_FUZZ_S", "60"))
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


class Described(ServedCase):
    def test_the_description_holds(self):
        command = [venv.folder() / "bin/schemathesis", "run", self.server.url + "/openapi.json", "--checks", CHECKS,
                   "--seed", "1", "--max-examples", str(SECONDS * 2), "--max-time", str(SECONDS), "--request-timeout", "20",
                   "--generation-database", "none", "--no-color"]
        with tempfile.TemporaryDirectory() as folder:  # it leaves files where it runs
            run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS + 240, cwd=folder)
        self.assertEqual(0, run.returncode, run.stdout[-8000:] + run.stderr[-2000:])
        self.ok(self.server.post(COMPLETIONS, {"prompt": "still alive", "max_tokens": 2}))


if __name__ == "__main__":
    unittest.main()
