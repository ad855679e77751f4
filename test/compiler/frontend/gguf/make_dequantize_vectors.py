"""Writes DequantizeVectors.inc: blocks of every type that the importer reads,
and the floats that the gguf package makes of them.

    python make_dequantize_vectors.py > DequantizeVectors.inc
"""
import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as Type
from gguf.quants import dequantize


def special_halves(rng, count):
    """Scales: ordinary, subnormal, negative, zero, large."""
    halves = rng.normal(0, 0.1, count).astype(np.float16)
    halves[:5] = np.array([0.0, -0.0, 6e-8, -3e-5, 65504.0], np.float16)
    return halves


def blocks_of(kind, rng, count):
    _, size = GGML_QUANT_SIZES[kind]
    data = rng.integers(0, 256, (count, size), dtype=np.uint8)
    if kind in (Type.Q8_0, Type.Q4_0, Type.Q4_1):
        data[:, 0:2] = special_halves(rng, count).view(np.uint8).reshape(count, 2)
    if kind == Type.Q4_1:
        halves = rng.normal(0, 3, count).astype(np.float16)
        data[:, 2:4] = halves.view(np.uint8).reshape(count, 2)
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
    for kind in (Type.F32, Type.F16, Type.BF16, Type.Q8_0, Type.Q4_0, Type.Q4_1):
        count = 8 if kind in (Type.Q8_0, Type.Q4_0, Type.Q4_1) else 16
        data = blocks_of(kind, rng, count)
        values = dequantize(data.reshape(-1), kind).astype(np.float32)
        print(f"{{WeightDtype::{kind.name},")
        print(" {" + ", ".join(str(b) for b in data.reshape(-1)) + "},")
        bits = values.reshape(-1).view(np.uint32)
        print(" {" + ", ".join(f"0x{b:08x}u" for b in bits) + "}},")


main()
