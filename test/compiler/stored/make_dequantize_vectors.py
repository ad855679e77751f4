"""Writes DequantizeVectors.inc: blocks of every ggml type that the importer
reads, and the floats that the gguf package makes of them.

    python make_dequantize_vectors.py > DequantizeVectors.inc
"""
import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as Type
from gguf.quants import dequantize

# Where the halves of a block stand: its scale first, then its minimum.
HALVES = {
    Type.Q8_0: (0,), Type.Q4_0: (0,), Type.Q4_1: (0, 2), Type.Q5_0: (0,),
    Type.Q5_1: (0, 2), Type.Q4_K: (0, 2), Type.Q5_K: (0, 2), Type.Q6_K: (208,),
}


def special_halves(rng, count):
    """Scales: ordinary, subnormal, negative, zero, the smallest, large."""
    halves = rng.normal(0, 0.1, count).astype(np.float16)
    halves[:5] = np.array([0.0, -0.0, 6e-8, -3e-5, 65504.0], np.float16)
    return halves


def blocks_of(kind, rng, count):
    _, size = GGML_QUANT_SIZES[kind]
    data = rng.integers(0, 256, (count, size), dtype=np.uint8)
    for place in HALVES.get(kind, ()):
        halves = special_halves(rng, count)
        if place == 2:
            halves = np.roll(halves, 3)  # not the same special case as the scale
        data[:, place:place + 2] = halves.view(np.uint8).reshape(count, 2)
    if kind in HALVES and size > 40:
        data[5, :] = 0  # all codes and scales least, then all largest
        data[6, 4:size - 2] = 255
    if kind == Type.F32:
        data = rng.normal(0, 1, (count, 1)).astype(np.float32).view(np.uint8)
    if kind == Type.F16:
        data = special_halves(rng, count).reshape(count, 1).view(np.uint8)
    if kind == Type.BF16:
        data[:, 1] &= 0xBF  # keeps the exponent below that of NaN
    return data


def main():
    rng = np.random.default_rng(7)
    print("// Made by make_dequantize_vectors.py with the gguf package.")
    kinds = (Type.F32, Type.F16, Type.BF16) + tuple(HALVES)
    for kind in kinds:
        count = 8 if kind in HALVES else 16
        data = blocks_of(kind, rng, count)
        values = dequantize(data.reshape(-1), kind).astype(np.float32)
        print(f"{{StoredForm::{kind.name},")
        print(" {" + ", ".join(str(b) for b in data.reshape(-1)) + "},")
        bits = values.reshape(-1).view(np.uint32)
        print(" {" + ", ".join(f"0x{b:08x}u" for b in bits) + "}},")


main()
