#!/usr/bin/env python3
"""Installs into a folder of its own, moves that folder, and builds a program of somebody else's with what is there: by
find_package, by pkg-config, and from the sources by add_subdirectory.

Needs OCTAVO_BUILD, the build folder, with all that is installed built, and OCTAVO_CXX, its compiler.
"""

import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/support"))
from bounded_run import bounded_run  # noqa: E402

BUILD, CXX = Path(os.environ["OCTAVO_BUILD"]), os.environ["OCTAVO_CXX"]
OUTSIDE = ROOT / "tests/install/outside"
TINY = ROOT / "tests/data/tiny/llama-tied/llama-tied-F32.gguf"
LIMIT_S = 1200  # the sources are compiled once more where no compiler cache has them


class Install(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.tmp = Path(folder.name)
        cls.run_ok("cmake", "--install", BUILD, "--prefix", cls.tmp / "first")
        cls.prefix = (cls.tmp / "first").rename(cls.tmp / "moved")
        cls.expected = cls.answer(cls.prefix / "bin/octavo", "generate", TINY, "--prompt", "hello", "--temperature", "0",
                                  "--max-tokens", "8")

    @classmethod
    def run_ok(cls, *command, **environment):
        run = bounded_run([str(word) for word in command], LIMIT_S, env={**os.environ, **environment})
        if run.returncode != 0:
            raise AssertionError(f"{command}:\n{run.stdout.decode()[-4000:]}\n{run.stderr.decode()[-4000:]}")
        return run.stdout.decode()

    @classmethod
    def answer(cls, program, *arguments):
        return cls.run_ok(program, *arguments, XDG_CACHE_HOME=str(cls.tmp / "cache"))

    def build_by_cmake(self, folder, *settings):
        # Ninja, as the presets have it: its commands are then the same, and the compiler cache knows them.
        self.run_ok("cmake", "--fresh", "-G", "Ninja", "-S", OUTSIDE, "-B", folder, f"-DCMAKE_CXX_COMPILER={CXX}",
                    "-DCMAKE_BUILD_TYPE=Release", *settings)
        self.run_ok("cmake", "--build", folder, "--target", "outside", "--parallel", os.cpu_count())
        self.assertEqual(self.expected, self.answer(folder / "outside", TINY))

    def texts(self, *suffixes):
        return [path for path in self.prefix.rglob("*") if path.suffix in suffixes]

    def test_find_package(self):
        self.build_by_cmake(self.tmp / "by_package", f"-DCMAKE_PREFIX_PATH={self.prefix}")

    def test_pkg_config(self):
        package, = self.texts(".pc")
        flags = self.run_ok("pkg-config", "--cflags", "--libs", "octavo", PKG_CONFIG_PATH=str(package.parent)).split()
        self.run_ok(CXX, "-O1", OUTSIDE / "outside.cc", *flags, "-o", self.tmp / "by_flags")
        self.assertEqual(self.expected, self.answer(self.tmp / "by_flags", TINY))

    def test_add_subdirectory(self):
        # Beside the build folder, since the compiler cache sees paths from the folder that a build runs in.
        self.build_by_cmake(BUILD.with_name(BUILD.name + "-outside"), f"-DOCTAVO_SOURCE={ROOT}", "-DOCTAVO_WERROR=ON")

    def test_what_is_installed_is_whole_and_no_more(self):
        for name in ("include/octavo/llm/llm.h", "share/doc/octavo/README.md", "share/doc/octavo/LICENSE",
                     "share/doc/octavo/docs/serving.md", "share/doc/octavo/docs/grafana/octavo.json",
                     "share/doc/octavo/docs/prometheus/prometheus.yml", "share/doc/octavo/examples/offline_batch.cc"):
            self.assertTrue((self.prefix / name).is_file(), name)
        self.assertEqual([], [p for p in self.prefix.rglob("*") if p.is_dir() and not any(p.iterdir())], "empty folders")
        headers = {str(p.relative_to(self.prefix / "include/octavo")) for p in self.texts(".h")}
        for header in headers:
            text = (self.prefix / "include/octavo" / header).read_text()
            self.assertEqual(set(), set(re.findall(r'^#include "(.*)"', text, re.MULTILINE)) - headers, header)
        self.assertLess(len(headers), 80, "headers of the program")

    def test_links_between_the_pages_lead_somewhere(self):
        folder = self.prefix / "share/doc/octavo"
        for page in (folder / "README.md", *(folder / "docs").glob("*.md")):
            for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
                if not link.startswith("../") and "src/" not in link:
                    self.assertTrue((page.parent / link).exists(), f"{page.name}: {link}")

    def test_nothing_names_the_checkout(self):
        packages = self.texts(".cmake", ".pc")
        self.assertGreater(len(packages), 3)
        for path in packages:
            self.assertNotIn(str(ROOT), path.read_text(), path.name)


if __name__ == "__main__":
    unittest.main()
