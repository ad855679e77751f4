"""NaN and infinity in a checkpoint, for each pass that reads weights: not_finite.py
MODELS SCRATCH."""
import json
import pathlib
import shutil
import struct
import subprocess
import sys

models, scratch = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
shutil.rmtree(scratch, ignore_errors=True)
scratch.mkdir(parents=True)
TEXT = ["--calibrate", models / "held-out.txt", "--calibration-tokens", "2048",
        "--calibration-cache", scratch / "cache"]


def copied(name, tensor, row, column, bits):
    """A copy of tiny-qwen3 (bfloat16) with one number of a tensor replaced."""
    folder = scratch / name
    shutil.copytree(models / "tiny-qwen3", folder)
    file = folder / "model.safetensors"
    data = bytearray(file.read_bytes())
    size = struct.unpack("<Q", data[:8])[0]
    entry = json.loads(data[8:8 + size])[tensor]
    at = 8 + size + entry["data_offsets"][0] + 2 * (row * entry["shape"][1] + column)
    data[at:at + 2] = struct.pack("<H", bits)
    file.write_bytes(data)
    return folder


DOWN, Q = "model.layers.1.mlp.down_proj.weight", "model.layers.0.self_attn.q_proj.weight"
for name, tensor, row, column, bits, word in (("nan", DOWN, 3, 41, 0x7fc0, "NaN"),
                                              ("infinity", Q, 17, 0, 0xff80, "infinity")):
    folder = copied(name, tensor, row, column, bits)
    wanted = f'tensor "{tensor}" row {row} column {column}: expected a finite weight, found {word}'
    for flags in (["--quantize", "int8"], ["--quantize", "int4-g32"],
                  ["--quantize", "int4-g32-gptq", *TEXT], ["--quantize", "int8-awq", *TEXT],
                  ["--prune-ffn", "0.25", *TEXT], ["--prune-heads", "1", *TEXT]):
        output = scratch / "no.ingot"
        done = subprocess.run(["ingot-compiler", "compile", folder, "-o", output, "--levels", "x86-64-v3",
                               *flags], capture_output=True, text=True)
        assert done.returncode == 2 and wanted in done.stderr, (flags, done.returncode, done.stderr)
        assert not output.exists()
