"""`debug compare` of GPTQ's and AWQ's artifacts: debug_calibrated.py MODELS SCRATCH.

Against the folder an artifact of GPTQ may be as far off as its encoding explains;
against the stage that holds its codes it agrees to the last bit. In a broken copy each
group of one matrix has the scale of the one before it.
"""
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys

models, scratch = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
shutil.rmtree(scratch, ignore_errors=True)
scratch.mkdir(parents=True)
MODEL = models / "target"
text = (models / "held-out.txt").read_text()
(scratch / "calibration.txt").write_text(text[:60000])
(scratch / "prompt.txt").write_text(text[-3000:])
RUN = ["--text", scratch / "prompt.txt", "--max-tokens", "96"]


def run(code, *arguments):
    done = subprocess.run(["ingot-compiler", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, (arguments, done.returncode, done.stdout[-3000:], done.stderr)
    return done


def compare(code, a, b):
    return json.loads(run(code, "debug", "compare", a, b, *RUN, "--json").stdout)


def compiled(quantize):
    artifact, stages = scratch / f"{quantize}.ingot", scratch / quantize
    run(0, "compile", MODEL, "-o", artifact, "--quantize", quantize, "--levels", "x86-64-v3",
        "--calibrate", scratch / "calibration.txt", "--calibration-tokens", "4096",
        "--calibration-cache", scratch / "cache", "--save-stages", stages)
    return artifact, stages


def rotated(artifact, stages, weight):
    """A copy in which the scales of a matrix's groups have moved by one."""
    plan = (stages / "4-lower.mlir").read_text()
    group, rows, columns, offset, scales = map(int, re.search(
        rf"plan\.weight @{re.escape(weight)} encoding <i\d, group = (\d+)> .*?rows (\d+) columns (\d+) "
        r".*? placement <offset = (\d+), size = \d+, scales = (\d+)", plan).groups())
    data = bytearray(artifact.read_bytes())
    table = [struct.unpack_from("<IIQQQ", data, 64 + 64 * i)
             for i in range(struct.unpack_from("<I", data, 12)[0])]
    base = max(entry[2] for entry in table if entry[0] == 3)
    groups = (columns + group - 1) // group
    for tile in range((rows + 15) // 16):
        at = base + offset + scales + tile * groups * 32
        data[at:at + groups * 32] = data[at + groups * 32 - 32:at + groups * 32] + data[at:at + groups * 32 - 32]
    broken = artifact.with_suffix(f".{weight}.ingot")
    broken.write_bytes(data)
    return broken


gptq, gptq_stages = compiled("int4-g32-gptq")
awq, awq_stages = compiled("int4-g32-awq")
assert compare(0, gptq, MODEL)["equal"]
for artifact, stages in ((gptq, gptq_stages), (awq, awq_stages)):
    report = compare(0, artifact, stages / "2-compress.mlir")
    assert report["equal"], report
    for weight, layer, part in (("layer.3.down", 3, "layer.3.down"), ("layer.1.gate_up", 1, "layer.1.gate"),
                                ("layer.5.qkv", 5, "layer.5.q")):
        broken = rotated(artifact, stages, weight)
        references = [stages / "2-compress.mlir", artifact] + ([MODEL] if artifact == gptq else [])
        for reference in references:
            first = compare(6, broken, reference)["first"]
            assert first["layer"] == layer and part in first["operators"], (weight, str(reference), first)

# Codes of different methods are not one encoding; what AWQ has scaled is no fault.
int4 = scratch / "int4.ingot"
run(0, "compile", MODEL, "-o", int4, "--quantize", "int4-g32", "--levels", "x86-64-v3")
report = compare(0, gptq, int4)
assert report["equal"] and report["errors"] == "global", report
for a, b in ((awq, MODEL), (MODEL, awq), (awq, awq_stages / "0-import.mlir"), (awq, int4), (gptq, awq)):
    assert "AWQ has scaled the columns" in run(3, "debug", "compare", a, b, *RUN).stderr
