#!/usr/bin/env python3
"""Copy a GGUF file without its tensors: metadata and vocabulary only, for tests of the tokenizer.

usage: make_vocab_gguf.py MODEL.gguf VOCAB.gguf

Then pack it for tests/data, where the build unpacks it when it is configured:
    XZ_OPT=-9e tar cJf tests/data/NAME.tar.xz --owner=0 --group=0 --mtime=@0 VOCAB.gguf
"""

import struct
import sys

STRING, ARRAY = 8, 9
SCALAR_SIZES = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}


def skip_string(data, at):
    (length,) = struct.unpack_from("<Q", data, at)
    return at + 8 + length


def skip_value(data, at, kind):
    if kind == STRING:
        return skip_string(data, at)
    if kind != ARRAY:
        return at + SCALAR_SIZES[kind]
    element, count = struct.unpack_from("<IQ", data, at)
    at += 12
    if element in SCALAR_SIZES:
        return at + SCALAR_SIZES[element] * count
    for _ in range(count):
        at = skip_value(data, at, element)
    return at


def metadata_end(data, pairs):
    at = 24
    for _ in range(pairs):
        at = skip_string(data, at)
        (kind,) = struct.unpack_from("<I", data, at)
        at = skip_value(data, at + 4, kind)
    return at


def main(source, target):
    with open(source, "rb") as file:
        data = file.read()
    magic, version, _, pairs = struct.unpack_from("<4sIQQ", data)
    if magic != b"GGUF" or version not in (2, 3):
        sys.exit(f"{source}: not a GGUF file of version 2 or 3")
    header = struct.pack("<4sIQQ", magic, version, 0, pairs)
    with open(target, "wb") as file:
        file.write(header + data[24 : metadata_end(data, pairs)])


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
