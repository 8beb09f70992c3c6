"""The environment in which scripts/fetch-clients puts the packages of these tests: found by the hash of its list."""

import hashlib
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = 77


def folder():
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    content = (ROOT / "scripts/test-clients.txt").read_bytes()
    return cache / "octavo" / f"test-venv-{hashlib.sha256(content).hexdigest()[:12]}"


def enter():
    """Goes on in that environment's Python. Without it the test is skipped, unless OCTAVO_REQUIRE_CLIENTS is set."""
    if Path(sys.prefix) == folder():
        return
    if (folder() / "complete").is_file():
        python = str(folder() / "bin/python")
        os.execv(python, [python, "-B", *sys.argv])
    print("The clients are not installed: run scripts/fetch-clients.", file=sys.stderr)
    sys.exit(1 if os.environ.get("OCTAVO_REQUIRE_CLIENTS") else SKIPPED)
