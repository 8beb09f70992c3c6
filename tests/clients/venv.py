"""The environments in which scripts/fetch-clients puts the packages of these tests, each found by the hash of its list."""

import hashlib
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = 77


def folder(packages="test-clients.txt"):
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    content = (ROOT / "scripts" / packages).read_bytes()
    return cache / "octavo" / f"test-venv-{hashlib.sha256(content).hexdigest()[:12]}"


def enter(packages="test-clients.txt"):
    """Goes on in that environment's Python. Without it the test is skipped, unless OCTAVO_REQUIRE_CLIENTS is set."""
    here = folder(packages)
    if Path(sys.prefix) == here:
        return
    if (here / "complete").is_file():
        python = str(here / "bin/python")
        os.execv(python, [python, "-B", *sys.argv])
    print(f"The clients are not installed: run scripts/fetch-clients {packages}.", file=sys.stderr)
    sys.exit(1 if os.environ.get("OCTAVO_REQUIRE_CLIENTS") else SKIPPED)
