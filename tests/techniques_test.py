#!/usr/bin/env python3
"""docs/techniques.md tells the truth: each file has the technique's name near its top, each guide and heading is there, and
each command and flag is in the flags' page."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
FLAGS = (DOCS / "flags.md").read_text()
LINK = re.compile(r"\]\(([^)#]+)(?:#([^)]+))?\)")


def rows():
    for line in (DOCS / "techniques.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) == 4 and cells[0] != "technique":
            yield [cell.strip("| ") for cell in cells]


def plain(text):
    """Of a comment that goes over several lines: its words."""
    return re.sub(r"[\s/*]+", " ", text).lower()


def anchors(page):
    for heading in re.findall(r"^#+ (.*)$", page, re.MULTILINE):
        yield re.sub(r"[^a-z0-9 _-]", "", heading.lower()).replace(" ", "-")


class Techniques(unittest.TestCase):
    def test_there_are_the_usual_ones(self):
        names = {name for names, *_ in rows() for name in names.split(", ")}
        self.assertGreater(len(names), 30)
        self.assertLessEqual({"PagedAttention", "Continuous batching", "Chunked prefill", "Prefix caching",
                              "Speculative decoding", "KV cache quantization", "LoRA"}, names)

    def test_each_name_is_at_its_code(self):
        for names, files, _, _ in rows():
            paths = [(DOCS / path).resolve() for path, _ in LINK.findall(files)]
            self.assertTrue(paths, names)
            heads = plain("".join(path.read_text()[:4000] for path in paths))
            for name in names.split(", "):
                self.assertTrue(plain(name) in heads, f"{name} is not in {files}")

    def test_each_guide_is_there(self):
        for names, _, guide, _ in rows():
            for path, anchor in LINK.findall(guide):
                page = (DOCS / path).read_text()
                if anchor:
                    self.assertIn(anchor, set(anchors(page)), f"{names}: {guide}")

    def test_each_command_and_flag_is_known(self):
        known = re.findall(r"^### `octavo ([a-z -]+[a-z])", FLAGS, re.MULTILINE)
        for names, _, _, shown in rows():
            for flag in re.findall(r"(?<=[` ])--[a-z][a-z-]*", shown):
                self.assertTrue(re.search(rf"`{flag}[ `]", FLAGS), f"{names}: {flag}")
            for command in re.findall(r"`octavo ([a-z -]+[a-z])", shown):
                self.assertTrue(any(command.startswith(name) for name in known), f"{names}: octavo {command}")


if __name__ == "__main__":
    unittest.main()
