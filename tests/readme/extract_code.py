#!/usr/bin/env python3
"""Writes each C++ code block of a Markdown page to a file of its own: extract_code.py PAGE FOLDER.

Prints their names, with semicolons between them.
"""

import re
import sys
from pathlib import Path

page, folder = Path(sys.argv[1]), Path(sys.argv[2])
folder.mkdir(parents=True, exist_ok=True)
names = []
for number, block in enumerate(re.findall(r"^```cpp\n(.*?)^```$", page.read_text(), re.M | re.S), 1):
    path = folder / f"{page.stem.lower()}_{number}.cc"
    if not path.exists() or path.read_text() != block:
        path.write_text(block)
    names.append(str(path))
print(";".join(names), end="")
