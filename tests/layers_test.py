#!/usr/bin/env python3
"""Checks of the source tree: no #include points up a layer, and a few rules of form.

The layers are the list of folders in src/CMakeLists.txt, bottom first. Each rule is also run on a small tree that
breaks it, so that a rule which never fires is noticed.
"""

import re
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_LINES = 800
MAX_DATA_BYTES = 3 << 20
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def layers(root):
    text = (root / "src/CMakeLists.txt").read_text()
    return re.search(r"foreach\(folder ([^)]*)\)", text).group(1).split()


def sources(root, *folders):
    """The C++ files below these folders, as (path from the root, lines)."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cc") and "data" not in path.relative_to(root).parts:
                yield path.relative_to(root), path.read_bytes().decode().split("\n")


def includes(lines):
    """(line number, name) of each #include, quoted or not."""
    for number, line in enumerate(lines, 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1), match.group(2)


def layer_faults(root):
    order = {folder: i for i, folder in enumerate(layers(root))}
    for path, lines in sources(root, "src"):
        own = path.parts[1]
        if own not in order:
            yield f"{path}: folder '{own}' is not in the list of src/CMakeLists.txt"
            continue
        for number, quote, name in includes(lines):
            top = name.split("/")[0]
            is_test_help = path.stem.endswith("_test") and (root / "tests" / name).is_file()
            if top in order and "/" in name:
                if order[top] > order[own]:
                    yield f"{path}:{number}: '{own}' includes '{name}' of the higher layer '{top}'"
            elif quote == '"' and not is_test_help:
                yield f'{path}:{number}: "{name}" is not written from src/ (own headers: "folder/name.h", others: <...>)'


def first_include_faults(root):
    """x.cc includes x.h before all else, which proves that x.h compiles on its own (see cmake/headers.cmake)."""
    for path, lines in sources(root, "src", "tests"):
        if path.suffix != ".cc" or not (root / path).with_suffix(".h").is_file():
            continue
        header = path.with_suffix(".h").relative_to(path.parts[0]).as_posix()
        first = next((name for _, _, name in includes(lines)), None)
        if first != header:
            yield f'{path}: the first #include must be "{header}"'


def form_faults(root):
    for path, lines in sources(root, "src", "tests", "fuzz", "benchmarks"):
        # The pieces in kernels/cpu/ are included once, inside the unnamed namespace of an instruction set's file.
        is_piece = path.as_posix().startswith("src/kernels/cpu/")
        if path.suffix == ".h" and "#pragma once" not in lines and not is_piece:
            yield f"{path}: no '#pragma once'"
        if len(lines) > MAX_LINES:
            yield f"{path}: {len(lines)} lines, more than {MAX_LINES}"
        if lines[-1] != "":
            yield f"{path}: no newline at the end"
        for number, line in enumerate(lines, 1):
            if "\t" in line:
                yield f"{path}:{number}: tab"
            if "\r" in line:
                yield f"{path}:{number}: carriage return"
            if line != line.rstrip():
                yield f"{path}:{number}: trailing space"


def data_faults(root):
    for path in sorted((root / "tests/data").rglob("*")):
        if path.is_file() and path.stat().st_size > MAX_DATA_BYTES:
            yield f"{path.relative_to(root)}: larger than {MAX_DATA_BYTES} bytes"


class TheTree(unittest.TestCase):
    def check(self, rule):
        self.assertEqual("", "\n".join(rule(ROOT)))

    def test_includes_point_down(self):
        self.check(layer_faults)

    def test_own_header_comes_first(self):
        self.check(first_include_faults)

    def test_form(self):
        self.check(form_faults)

    def test_data_files_are_small(self):
        self.check(data_faults)

    def test_something_was_read(self):
        self.assertGreater(len(list(sources(ROOT, "src"))), 10)


class TheRules(unittest.TestCase):
    def faults(self, rule, files):
        with tempfile.TemporaryDirectory() as name:
            root = Path(name)
            files = {"src/CMakeLists.txt": "foreach(folder base text cli)\n", **files}
            for path, text in files.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
            return list(rule(root))

    def test_upward_include_is_found(self):
        for include in ('#include "cli/main.h"', '  #  include "text/bpe.h"', "#include <text/bpe.h>"):
            faults = self.faults(layer_faults, {"src/base/a.cc": f"// first\n{include}\n"})
            self.assertEqual(1, len(faults), include)
            self.assertRegex(faults[0], r"^src/base/a.cc:2: .*higher layer")

    def test_downward_and_own_includes_are_fine(self):
        text = '#include "text/bpe.h"\n#include <vector>\n#include "base/result.h"\n'
        self.assertEqual([], self.faults(layer_faults, {"src/text/sub/a.cc": text}))

    def test_test_helpers_are_for_tests(self):
        files = {"tests/support/paths.h": "", "src/base/a_test.cc": '#include "support/paths.h"\n'}
        self.assertEqual([], self.faults(layer_faults, files))
        files["src/base/a.cc"] = files["src/base/a_test.cc"]
        self.assertEqual(1, len(self.faults(layer_faults, files)))

    def test_relative_include_and_unknown_folder_are_found(self):
        self.assertEqual(1, len(self.faults(layer_faults, {"src/base/a.cc": '#include "result.h"\n'})))
        self.assertEqual(1, len(self.faults(layer_faults, {"src/extra/a.cc": "\n"})))

    def test_late_own_header_is_found(self):
        files = {"src/base/a.h": "", "src/base/a.cc": '#include <vector>\n#include "base/a.h"\n'}
        self.assertEqual(1, len(self.faults(first_include_faults, files)))
        files["src/base/a.cc"] = '// Words.\n#include "base/a.h"\n#include <vector>\n'
        self.assertEqual([], self.faults(first_include_faults, files))

    def test_form_faults_are_found(self):
        good = "#pragma once\n"
        for bad in ("int a;\n", good + "\tint a;\n", good + "int a; \n", good + "int a;\r\n", good + "int a;", good * 900):
            self.assertTrue(self.faults(form_faults, {"src/base/a.h": bad}), repr(bad[:40]))
        self.assertEqual([], self.faults(form_faults, {"src/base/a.h": good}))


if __name__ == "__main__":
    unittest.main()
