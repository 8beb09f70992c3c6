"""Runs a program that must end; says where its threads stood if it does not."""

import signal
import subprocess
from pathlib import Path


def stuck_threads(pid):
    """Of every thread: its name, state and the system call it is in."""
    lines = []
    for task in sorted(Path(f"/proc/{pid}/task").glob("*")):
        facts = {}
        for name in ("comm", "stat", "wchan", "syscall", "stack"):
            try:
                facts[name] = (task / name).read_text().strip()
            except OSError as error:
                facts[name] = error.strerror
        lines.append(f"{task.name}: {facts}")
    return "\n".join(lines)


def bounded_run(command, limit_s, input=None, **kwargs):
    """subprocess.run with both outputs captured. Raises AssertionError after limit_s."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs) as run:
        try:
            output, error = run.communicate(input, timeout=limit_s)
        except subprocess.TimeoutExpired:
            stuck = stuck_threads(run.pid)
            run.send_signal(signal.SIGKILL)
            _, error = run.communicate()
            raise AssertionError(f"{command} did not end in {limit_s} s; its threads:\n{stuck}\n{error}") from None
    return subprocess.CompletedProcess(command, run.returncode, output, error)
