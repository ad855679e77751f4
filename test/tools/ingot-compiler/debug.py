"""`ingot-compiler debug trace` and `compare` as programs: debug.py MODELS SCRATCH."""
import json
import pathlib
import shutil
import struct
import subprocess
import sys

models, scratch = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
shutil.rmtree(scratch, ignore_errors=True)
scratch.mkdir(parents=True)
TOKENS = "5,9,22,40,7,3"


def run(code, *arguments):
    done = subprocess.run(["ingot-compiler", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == code, (arguments, done.returncode, done.stdout, done.stderr)
    return done


def header(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    return data, 8 + size, json.loads(data[8:8 + size])


def copied(name, change):
    """A copy of tiny-qwen3 whose first number of a tensor is another."""
    folder = scratch / name
    shutil.copytree(models / "tiny-qwen3", folder)
    file = folder / "model.safetensors"
    data, begin, tensors = header(file)
    for tensor, value in change.items():
        entry = tensors[tensor]
        at = begin + entry["data_offsets"][0]
        number = struct.pack("<f", value)
        number = number if entry["dtype"] == "F32" else number[2:]
        assert entry["dtype"] in ("F32", "BF16"), entry
        data = data[:at] + number + data[at + len(number):]
    file.write_bytes(data)
    return folder


right = scratch / "right.ingot"
run(0, "compile", models / "tiny-qwen3", "-o", right, "--quantize", "int8", "--levels", "x86-64-v3")

# A trace has the tensors that were asked for, and the tokens.
dump = scratch / "all.safetensors"
report = json.loads(run(0, "debug", "trace", right, "--tokens", TOKENS, "-o", dump, "--nan-watch",
                        "--json").stdout)
assert report["finite"] and report["tokens"] == [5, 9, 22, 40, 7, 3]
_, _, tensors = header(dump)
names = {tensor["name"] for tensor in report["tensors"]}
assert names | {"tokens"} == set(tensors), names ^ set(tensors)
assert {"layer.0.q", "layer.0.k", "layer.1.query", "layer.1.keys", "layer.1.gate",
        "layer.1.ffn_residual", "final_norm", "lm_head"} <= names
assert tensors["layer.0.q"]["shape"] == [6, 128] and tensors["layer.0.q"]["dtype"] == "F32"
some = json.loads(run(0, "debug", "trace", right, "--tokens", TOKENS, "-o", scratch / "s.safetensors",
                      "--ops", "attention$|norm", "--layers", "1", "--json").stdout)
assert [tensor["name"] for tensor in some["tensors"]] == [
    "layer.1.attn_norm", "layer.1.attention", "layer.1.ffn_norm"], some["tensors"]

# In one step or in several, on its kernels or against its own trace: the same.
run(0, "debug", "trace", right, "--tokens", TOKENS, "-o", scratch / "c.safetensors", "--chunk-tokens", "4")
assert header(scratch / "c.safetensors")[0] == header(dump)[0]
assert "no operator diverges" in run(0, "debug", "compare", right, dump).stdout
stage = scratch / "lm.safetensors"
run(0, "debug", "trace", models / "tiny-qwen3", "--tokens", TOKENS, "-o", stage)
assert "layer.0.q_rotary" in header(stage)[2]
assert "no operator diverges" in run(0, "debug", "compare", models / "tiny-qwen3", stage).stdout

# A number that is not finite is found where it comes up first: a norm whose first
# weight is enormous overflows at the first position with a number of its size.
WEIGHT = "model.layers.1.post_attention_layernorm.weight"
HUGE = 3.38e38


def floats(path, name):
    data, begin, tensors = header(path)
    entry = tensors[name]
    first, last = entry["data_offsets"]
    raw = data[begin + first:begin + last]
    if entry["dtype"] == "BF16":
        raw = b"".join(b"\0\0" + raw[i:i + 2] for i in range(0, len(raw), 2))
    return struct.unpack(f"<{len(raw) // 4}f", raw), entry["shape"]


normed, (rows, columns) = floats(stage, "layer.1.ffn_norm")
weight = floats(models / "tiny-qwen3" / "model.safetensors", WEIGHT)[0][0]
position = next(row for row in range(rows) if abs(normed[row * columns] / weight) > 1.02)
broken = copied("huge", {WEIGHT: HUGE})
run(0, "compile", broken, "-o", scratch / "huge.ingot", "--levels", "x86-64-v3")
for model in (scratch / "huge.ingot", broken):
    found = json.loads(run(6, "debug", "trace", model, "--tokens", TOKENS, "--nan-watch",
                           "--json").stdout)
    assert not found["finite"]
    first = found["first_not_finite"]
    assert (first["tensor"], first["launch"], first["layer"], first["position"], first["column"]) == (
        "layer.1.ffn_norm", "layer.1.ffn_norm", 1, position, 0), (first, position)

# One number of one matrix, found by folder, by artifact and between artifacts.
changed = copied("changed", {"model.layers.1.mlp.down_proj.weight": 3.0})
run(0, "compile", changed, "-o", scratch / "changed.ingot", "--quantize", "int8", "--levels",
    "x86-64-v3")
for a, b in ((scratch / "changed.ingot", models / "tiny-qwen3"), (changed, models / "tiny-qwen3"),
             (models / "tiny-qwen3", scratch / "changed.ingot"), (changed, stage),
             (scratch / "changed.ingot", right)):
    tokens = [] if b == stage else ["--tokens", TOKENS]
    report = json.loads(run(6, "debug", "compare", a, b, *tokens, "--json").stdout)
    first = report["first"]
    assert first["layer"] == 1 and "layer.1.down" in first["operators"], (str(a), str(b), first)
    assert first["worst_column"] == 0 and not report["equal"], first

# What cannot be is refused by name.
assert "expected --tokens" in run(2, "debug", "trace", right, "-o", dump).stderr
assert "expected -o FILE" in run(2, "debug", "trace", right, "--tokens", "1").stderr
for flag, value in (("--max-tokens", "2"), ("--tokenizer", right)):  # of a text
    assert "excludes" in run(2, "debug", "trace", right, "--tokens", "1", flag, value, "-o", dump).stderr
assert "tensor \"tokens\"" in run(2, "debug", "compare", right,
                                  models / "tiny-qwen3" / "model.safetensors").stderr
wide = scratch / "wide.safetensors"
text = json.dumps({"tokens": {"dtype": "I64", "shape": [1], "data_offsets": [0, 8]}}).encode()
wide.write_bytes(struct.pack("<Q", len(text)) + text + struct.pack("<q", 2**32 + 5))
assert "holds 4294967301, which is no token id" in run(2, "debug", "compare", right, wide).stderr
assert "outside the vocabulary" in run(2, "debug", "trace", right, "--tokens", "99999999", "-o",
                                       dump).stderr
assert "other tokens" in run(2, "debug", "compare", right, stage, "--tokens", "1,2").stderr
assert "no tensor is named like" in run(2, "debug", "trace", right, "--tokens", "1", "-o", dump,
                                        "--ops", "nothing").stderr
assert "layers \"x\"" in run(2, "debug", "trace", right, "--tokens", "1", "-o", dump, "--layers",
                             "x").stderr
assert "no such file" in run(2, "debug", "compare", scratch / "absent", right, "--tokens", "1").stderr
