#!/usr/bin/env python3
"""Makes tests/data/dequant/TYPE.bin: seeded random blocks of one GGUF tensor type, then their values.

The values (f32) come from the PyPI package `gguf` (pip install gguf numpy), which is independent of
this repository.
Usage: make_dequant_data.py OUTPUT_FOLDER
"""
import sys
from pathlib import Path

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, quants

SEED = 20240229

# Per type: number of blocks, and where the f16 fields of a block are (bytes).
TYPES = {
    "F32": (256, []),
    "F16": (256, [0]),
    "BF16": (256, []),
    "Q4_0": (64, [0]),
    "Q4_1": (64, [0, 2]),
    "Q5_0": (64, [0]),
    "Q5_1": (64, [0, 2]),
    "Q8_0": (64, [0]),
    "Q2_K": (16, [80, 82]),
    "Q3_K": (16, [108]),
    "Q4_K": (16, [0, 2]),
    "Q5_K": (16, [0, 2]),
    "Q6_K": (16, [208]),
}


def random_blocks(rng, name, count, halves):
    _, size = GGML_QUANT_SIZES[GGMLQuantizationType[name]]
    blocks = rng.integers(0, 256, (count, size), dtype=np.uint8)
    if name in ("F32", "BF16"):
        blocks[:, -1] &= 0xBF  # clears the top bit of the exponent: no infinity, no NaN
    for at in halves:
        # Finite f16 of every size and sign; the first two are zero and the smallest subnormal.
        bits = rng.integers(0, 0x7C00, count, dtype=np.uint16) | (
            rng.integers(0, 2, count, dtype=np.uint16) << 15
        )
        bits[:2] = [0, 1]
        blocks[:, at : at + 2] = bits.astype("<u2").view(np.uint8).reshape(count, 2)
    return blocks


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(SEED)
    for name, (count, halves) in TYPES.items():
        blocks = random_blocks(rng, name, count, halves)
        values = quants.dequantize(blocks, GGMLQuantizationType[name]).astype("<f4")
        assert np.isfinite(values).all(), name
        (folder / f"{name.lower()}.bin").write_bytes(blocks.tobytes() + values.tobytes())


main()
