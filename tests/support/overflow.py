"""A test that looks away: it passes whatever becomes of the program that it starts."""
import subprocess
import sys

subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
