#!/usr/bin/env python3
"""Every C++ file is as clang-format 14 writes it. Skipped (exit code 77) where that version is not installed: another
one would format differently."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSION = 14


def clang_format():
    for name in (f"clang-format-{VERSION}", "clang-format"):
        path = shutil.which(name)
        if path and f"version {VERSION}." in subprocess.check_output([path, "--version"], text=True):
            return path
    return None


def main():
    program = clang_format()
    if not program:
        print(f"skipped: clang-format {VERSION} is not installed")
        return 77
    files = [str(p) for d in ("src", "tests", "fuzz", "benchmarks", "examples") for s in ("*.h", "*.cc") for p in sorted((ROOT / d).rglob(s))]
    run = subprocess.run([program, "--dry-run", "--Werror", "--style=file", *files], capture_output=True, text=True)
    faulty = sorted({line.split(":")[0] for line in run.stderr.splitlines() if "clang-format-violations" in line})
    if run.returncode:
        print("clang-format -i " + " ".join(faulty) if faulty else run.stderr)
    return run.returncode


sys.exit(main())
