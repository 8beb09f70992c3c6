#!/usr/bin/env python3
"""Runs a test and fails if a sanitizer said anything of any program that it started, whatever the test made of that
program's words and exit code.

Usage: watch_sanitizers.py TEST.py ARGUMENT...
"""
import os
import subprocess
import sys
import tempfile
from pathlib import Path


def options(log_path):
    """The environment in which every sanitizer writes its reports to files of this name and a process number."""
    for tool in ("ASAN", "LSAN", "TSAN", "UBSAN"):
        given = os.environ.get(f"{tool}_OPTIONS")
        yield f"{tool}_OPTIONS", ":".join(filter(None, (given, f"log_path={log_path}")))


def main():
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | dict(options(f"{folder}/report"))
        code = subprocess.run([sys.executable, "-B", *sys.argv[1:]], env=environment).returncode
        reports = sorted(Path(folder).iterdir())
        for report in reports:
            print(f"==> {report.name}\n{report.read_text(errors='replace')[:20000]}", file=sys.stderr)
        if reports:
            print(f"{sys.argv[1]}: sanitizers have {len(reports)} report(s), see above", file=sys.stderr)
        return code or bool(reports)


if __name__ == "__main__":
    sys.exit(main())
