#!/usr/bin/env python3
"""How much memory of its own `compile --quantize int4` takes, and whether what it
writes is the model: folders of random weights (test/models/make_large_random.py)
are compiled under test/bench/anonymous_memory.py, rows of the artifact are decoded
here and compared with those of the source, and two tokens are generated.

    compile_memory.py --bin DIR [--compiler FILE] [--large FOLDER]

Without --large: models of 8 and 24 layers (138 and 373 million parameters); the
peak of either is at most 64 MB, and they differ by less than 8 MB, while the weights
differ by 470 MB, and by 125 MB as codes.
With --large: Llama 3 8B's shapes, at most 1.5 GB. FOLDER must have 22 GB; what is
written there is deleted. FOLDER "env" is what INGOT_LARGE_MODELS says; exit code
77 where it says nothing or has not the room.

Standard library only.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "test/bench"))
sys.path.insert(0, str(SOURCE / "test/models"))
from anonymous_memory import measure  # noqa: E402
from make_large_random import make  # noqa: E402

LARGE_DISK = 22_000_000_000  # 16.1 GB of weights, 4.6 GB of the artifact
WEIGHT = re.compile(
    r"plan\.weight @(\S+) encoding <i4, group = (\d+)> .*?rows (\d+) columns (\d+) .*?parts "
    r"\[(#plan\.part<[^\]]*)\] placement <offset = (\d+), size = \d+, scales = (\d+)")
PART = re.compile(r"#plan\.part<source = (@\S+), name = \"[^\"]*\", offset = (\d+), size = \d+, "
                  r"stored = bf16, rows = (\d+), columns = (\d+)")
FILE = re.compile(r"plan\.source (@\S+) name \"([^\"]+)\"")


def stored_row(model, files, parts, row):
    """A row of the source, floats."""
    for source, offset, rows, columns in parts:
        if row < rows:
            with open(model / files[source], "rb") as file:
                file.seek(offset + row * columns * 2)
                bits = struct.unpack(f"<{columns}H", file.read(columns * 2))
            return struct.unpack(f"<{columns}f", struct.pack(f"<{columns}I", *(b << 16 for b in bits)))
        row -= rows
    raise ValueError("no such row")


def decoded_row(file, base, offset, scales, group, columns, row):
    """What 4-bit codes of layout r16 stand for (docs/numerics.md): words of eight
    columns, those of 16 rows side by side; then float16 scales by group."""
    tile, lane = divmod(row, 16)
    file.seek(base + offset + tile * columns * 8)
    words = struct.unpack(f"<{columns * 2}I", file.read(columns * 8))[lane::16]
    groups = columns // group
    file.seek(base + offset + scales + tile * groups * 32)
    scale = struct.unpack(f"<{groups * 16}e", file.read(groups * 32))[lane::16]
    values = []
    for i, word in enumerate(words):
        codes = [word >> 8 * j & 15 for j in range(4)] + [word >> 8 * j + 4 & 15 for j in range(4)]
        values += [(code - 8) * scale[8 * i // group] for code in codes]
    return values


def check_rows(model, artifact, plan, ingot):
    """First, middle and last row of every third matrix; how many there were."""
    inspected = json.loads(subprocess.run([ingot, "inspect", artifact, "--json"], check=True,
                                          capture_output=True, text=True).stdout)
    base = next(s["offset"] for s in inspected["segments"] if s["kind"] == "weights")
    files = dict(FILE.findall(plan))
    weights = WEIGHT.findall(plan)
    checked = 0
    with open(artifact, "rb") as file:
        for name, group, rows, columns, parts, offset, scales in weights[::3] + weights[-1:]:
            group, rows, columns = int(group), int(rows), int(columns)
            parts = [(part[0], *map(int, part[1:])) for part in PART.findall(parts)]
            for row in (0, rows // 2 + 5, rows - 1):
                stored = stored_row(model, files, parts, row)
                decoded = decoded_row(file, base, int(offset), int(scales), group, columns, row)
                error = sum(abs(a - b) for a, b in zip(stored, decoded))
                size = sum(map(abs, stored))
                # Rounding costs a tenth; a wrong row, group or column more than one.
                if len(set(stored)) < 64 or not error < 0.13 * size:
                    sys.exit(f"{artifact}: row {row} of {name} is off by {error / size:.3f}")
                checked += 1
    if checked < 3 * 8:
        sys.exit(f"{artifact}: only {checked} rows were compared; the plan's text has changed")
    return checked


def compiled(options, folder, size, layers):
    """The peak of anonymous memory in MB of compiling a model that is made for it."""
    model, artifact = folder / "model", folder / "model.ingot"
    parameters = make(model, size, layers, seed=3)
    code, peaks, samples, seconds = measure(
        [options.compiler, "compile", model, "-o", artifact, "--quantize", "int4", "--threads", "2",
         "--levels", "x86-64-v3", "--save-stages", folder / "stages"], stdout=subprocess.DEVNULL)
    if code or samples < 20:
        sys.exit(f"compile: exit code {code}, {samples} samples of its memory")
    plan = (folder / "stages/4-lower.mlir").read_text()
    rows = check_rows(model, artifact, plan, options.bin / "ingot")
    ran = subprocess.run([options.bin / "ingot", "run", artifact, "-p", "The king", "--max-tokens", "2"],
                         capture_output=True)
    if ran.returncode or not ran.stdout:
        sys.exit(f"ingot run: exit code {ran.returncode}: {ran.stderr.decode(errors='replace')}")
    peak = peaks["anonymous"] / 1e6
    print(f"{parameters} parameters: {peak:.1f} MB of anonymous memory at the most, {seconds:.1f} s, "
          f"{artifact.stat().st_size / 1e6:.0f} MB; {rows} rows compared", flush=True)
    for made in (model, folder / "stages"):
        shutil.rmtree(made)
    artifact.unlink()
    return peak


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", type=pathlib.Path, help="default: ingot-compiler of --bin")
    parser.add_argument("--large")
    options = parser.parse_args()
    options.compiler = options.compiler or options.bin / "ingot-compiler"
    where = options.large
    if where == "env":
        where = os.environ.get("INGOT_LARGE_MODELS")
        if not where:
            print("INGOT_LARGE_MODELS names no folder with 22 GB")
            sys.exit(77)
        if shutil.disk_usage(where).free < LARGE_DISK:
            print(f"{where} has less than 22 GB")
            sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="ingot-memory-", dir=where) as folder:
        folder = pathlib.Path(folder)
        if where:
            peak = compiled(options, folder, "8b", None)
            sys.exit(0 if peak < 1500 else "more than 1.5 GB")
        few, many = compiled(options, folder, "small", 8), compiled(options, folder, "small", 24)
        if max(few, many) > 64 or abs(many - few) > 8:
            sys.exit(f"{few:.1f} MB and {many:.1f} MB: expected at most 64, and 8 apart")


if __name__ == "__main__":
    main()
