"""bfloat16 weights beyond float16, compiled for CUDA: half_range.py MODELS SCRATCH."""
import json
import pathlib
import shutil
import struct
import subprocess
import sys

models, scratch = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
shutil.rmtree(scratch, ignore_errors=True)
scratch.mkdir(parents=True)
DOWN = "model.layers.1.mlp.down_proj.weight"


def copied(name, change):
    """A copy of tiny-qwen3 (bfloat16) with numbers of DOWN changed."""
    folder = scratch / name
    shutil.copytree(models / "tiny-qwen3", folder)
    file = folder / "model.safetensors"
    data = bytearray(file.read_bytes())
    size = struct.unpack("<Q", data[:8])[0]
    entry = json.loads(data[8:8 + size])[DOWN]
    columns = entry["shape"][1]
    for row, column, bits in change(columns):
        at = 8 + size + entry["data_offsets"][0] + 2 * (row * columns + column)
        data[at:at + 2] = struct.pack("<H", bits)
    file.write_bytes(data)
    return folder


def compiled(folder, *flags):
    done = subprocess.run(["ingot-compiler", "compile", folder, "-o", scratch / "out.ingot", "--levels",
                           "x86-64-v3", *flags], capture_output=True, text=True)
    if done.returncode != 0 and "NVRTC" in done.stderr:
        print("skipped, there is no NVRTC:", done.stderr)
        sys.exit(0)
    return done


CUDA = ("--target", "cuda:sm_90,cpu")
large = copied("large", lambda columns: [(3, 41, 0x4789)])  # 70144
done = compiled(large, *CUDA)
wanted = f'row 3 column 41, of tensor "{DOWN}": 70144.000000 is beyond float16'
assert done.returncode == 3 and wanted in done.stderr, (done.returncode, done.stderr)
assert "layer.1.down" in done.stderr and not (scratch / "out.ingot").exists(), done.stderr
for flags in ((), ("--quantize", "int8", "--table", "int8", *CUDA)):
    done = compiled(large, *flags)
    assert done.returncode == 0, (flags, done.returncode, done.stderr)

# 2^-20 + 2^-27 in a whole row: float16 has no such number.
small = copied("small", lambda columns: [(3, column, 0x3581) for column in range(columns)])
for flags, told in ((CUDA, True), ((), False)):
    done = compiled(small, *flags)
    assert done.returncode == 0, (done.returncode, done.stderr)
    said = done.stdout + done.stderr
    assert ("1 rows have no element of 2^-16 or more" in said) == told, said
