"""ingot inspect --cost, and ingot debug kernels, of a model with cubins."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

models, scratch = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
shutil.rmtree(scratch, ignore_errors=True)
scratch.mkdir(parents=True)
artifact = scratch / "model.ingot"


def run(code, said, *arguments, **environment):
    done = subprocess.run(list(map(str, arguments)), capture_output=True, text=True, timeout=600,
                          env={**os.environ, **environment})
    assert done.returncode == code, (arguments, done)
    assert said in done.stdout + done.stderr, (arguments, said, done)
    return done


made = subprocess.run(["ingot-compiler", "compile", models / "tiny-llama", "-o", artifact,
                       "--quantize", "int8-g32", "--table", "int8", "--target",
                       "cuda:sm_80,sm_90a,cpu", "--levels", "x86-64-v3"], capture_output=True,
                      text=True, timeout=600)
if made.returncode != 0 and "NVRTC" in made.stderr:
    print("skipped, there is no NVRTC:", made.stderr)
    sys.exit(0)
assert made.returncode == 0, made

cost = json.loads(run(0, "", "ingot", "inspect", artifact, "--cost", "sm_90a", "--json", "--rows",
                      "1,5", "--context", "300", "--prompt", "200").stdout)
assert cost["device"] == "NVIDIA H200 SXM" and cost["multiprocessors"] == 132
steps = {step["name"]: step for step in cost["steps"]}
assert list(steps) == ["decode 1", "decode 5", "prompt 200"], steps.keys()
plan = json.loads(run(0, "", "ingot", "inspect", artifact, "--json").stdout)
kernels = {kernel["name"]: kernel for target in plan["targets"] if target["name"] == "cuda"
           for kernel in target["kernels"]}
for kernel in cost["kernels"]:
    chip = kernels[kernel["name"]]["chips"]["sm_90a"]
    assert kernel["registers"] == chip["registers"] > 0, kernel
    assert kernel["spill_bytes"] == chip["spill_bytes"] == 0, kernel
    assert kernel["occupancy"] == chip["occupancy"] > 0, kernel
    assert kernel["blocks_of_multiprocessor"] >= 1, kernel

# The cache of five sequences of 300 tokens, read once, and five tokens written.
state = plan["states"][0]
token = state["bytes_per_token"]
assert steps["decode 5"]["cache"]["bytes_read"] == 5 * 300 * token, steps["decode 5"]
assert steps["decode 5"]["cache"]["bytes_written"] == 5 * token
assert steps["decode 1"]["cache"]["bytes_read"] == 300 * token
assert steps["prompt 200"]["cache"]["bytes_written"] == 200 * token
# All weights once; of the table of embeddings one row (the head has its own).
weights = sum(entry["bytes"] for entry in plan["weights"].values())
read = steps["decode 1"]["weights"]["bytes_read"]
assert 0.2 * weights < read < weights, (read, weights)
for step in steps.values():
    assert step["launches"] == sum(kernel["launches"] for kernel in step["kernels"])
    assert 0 < step["roofline_share"] <= 1, step
    whole = sum(kernel["seconds"] for kernel in step["kernels"])
    assert abs(whole - step["seconds"]) < 1e-9 * whole, step
    bound = step["bytes"] / cost["bytes_per_second"]
    assert step["seconds"] >= bound * (1 - 1e-9), step
    # Nor is any kernel faster than the tensor cores of the multiprocessors that it fills.
    for kernel in step["kernels"]:
        least = kernel["flops"] / cost["tensor_flops_per_second"]
        assert kernel["seconds"] * kernel["multiprocessors_filled"] >= least * (1 - 1e-9), kernel
        assert kernel["seconds"] >= kernel["bytes"] / cost["bytes_per_second"] * (1 - 1e-9), kernel
    # Choosing tokens reads each logit of the sequences once, and is in no sum.
    choosing, rows = step["choosing"], 5 if step["name"] == "decode 5" else 1
    assert choosing["kernel"] == "sample" and choosing["launches"] == 1, step
    logits = 4 * rows * plan["model"]["vocab"]
    assert logits < choosing["bytes"] < logits + 64 * (rows + 1), choosing
    assert choosing["seconds"] == choosing["bytes"] / cost["bytes_per_second"] > 0, choosing
    assert not any(kernel["kernel"] == "sample" for kernel in step["kernels"])
# Some are bound by that: the tensor cores count.
assert any(kernel["seconds"] > 1.01 * kernel["bytes"] / cost["bytes_per_second"]
           for kernel in steps["prompt 200"]["kernels"])
# A block a row: 200 of them go twice over 132 multiprocessors.
(norm,) = [kernel for kernel in steps["prompt 200"]["kernels"] if kernel["kernel"] == "rope_table"]
assert abs(norm["multiprocessors_filled"] - 200 / (2 * 132)) < 1e-9, norm
# A tile serves up to eight sequences; what they move is their own.
assert steps["decode 5"]["bytes"] > steps["decode 1"]["bytes"]
assert steps["decode 5"]["weights"]["bytes_read"] < 1.1 * steps["decode 1"]["weights"]["bytes_read"]

text = run(0, "decoding 5 sequences of 300 tokens", "ingot", "inspect", artifact, "--cost",
           "sm_80", "--rows", "5", "--context", "300").stdout
for said in ["in a step whose tokens the device chooses", "NVIDIA A100", "linear_i8g32_t8", "a prompt of 300 tokens", "apart from that",
             "x bank: passes"]:
    assert said in text, (said, text)

# The kernels as files.
folder = scratch / "kernels"
listed = run(0, "", "ingot", "debug", "kernels", artifact, "-o", folder).stdout.split()
assert sorted(path.name for path in folder.iterdir()) == sorted(
    pathlib.Path(path).name for path in listed)
assert len(listed) == 4 * len(kernels), (listed, kernels.keys())
for name, kernel in kernels.items():
    source = (folder / f"{name}.cu").read_text()
    assert f"ingot_{name}" in source and "#include" not in source, name
    ptx = (folder / f"{name}.compute_80.ptx").read_text()
    assert ".target sm_80" in ptx and f".entry ingot_{name}(" in ptx, name
    assert f"ingot_source_{kernel['source_hash']}" in ptx, name
    for chip in ("sm_80", "sm_90a"):
        image = (folder / f"{name}.{chip}.cubin").read_bytes()
        assert image[:4] == b"\x7fELF" and len(image) == kernel["chips"][chip]["code_bytes"], name
run(0, "rms_norm.cu", "ingot", "debug", "kernels", artifact, "-o", scratch / "one", "--kernel",
    "rms_norm")
assert len(list((scratch / "one").iterdir())) == 4
run(2, "has no kernel norm", "ingot", "debug", "kernels", artifact, "-o", scratch / "none",
    "--kernel", "norm")
assert not (scratch / "none").exists()

# What is asked wrongly.
run(2, "no cubins for sm_89, it has sm_90a, sm_80", "ingot", "inspect", artifact, "--cost", "sm_89")
run(2, "no cubins for compute_80", "ingot", "inspect", artifact, "--cost", "compute_80")
run(2, "the model's context is 1024", "ingot", "inspect", artifact, "--cost", "sm_80", "--context",
    "2000")
run(2, "--rows requires --cost", "ingot", "inspect", artifact, "--rows", "3")
run(2, "--rows", "ingot", "inspect", artifact, "--cost", "sm_80", "--rows", "0")
cpu = scratch / "cpu.ingot"
run(0, "", "ingot-compiler", "compile", models / "tiny-llama", "-o", cpu, "--levels", "x86-64-v3")
run(2, "has no code for CUDA", "ingot", "inspect", cpu, "--cost", "sm_90a")
run(2, "has no code for CUDA", "ingot", "debug", "kernels", cpu, "-o", scratch / "none")

# Products that are left to a library are counted, and in no other figure.
library = scratch / "library.ingot"
run(0, "", "ingot-compiler", "compile", models / "draft", "-o", library, "--quantize", "f16",
    "--target", "cuda:sm_80", "--allow-library-gemm")
left = {step["name"]: step
        for step in json.loads(run(0, "", "ingot", "inspect", library, "--cost", "sm_80", "--rows", "1",
                                   "--json").stdout)["steps"]}
assert left["decode 1"]["library_products"] == 0
assert left["prompt 512"]["library_products"] == 8
assert not any("library" in kernel["kernel"] for kernel in left["prompt 512"]["kernels"])

# A mixture of experts: the chosen experts' weights, between bounds.
experts = scratch / "experts.ingot"
run(0, "", "ingot-compiler", "compile", models / "families" / "qwen3-moe", "-o", experts, "--quantize",
    "int8-g32", "--table", "int8", "--target", "cuda:sm_90,cpu", "--levels", "x86-64-v3")
mixture = json.loads(run(0, "", "ingot", "inspect", experts, "--cost", "sm_90", "--rows", "1,2,40",
                         "--context", "100", "--json").stdout)
steps_of = {step["name"]: step for step in mixture["steps"]}
for name, used, most in [("decode 1", 3, 3), ("decode 2", 5, 6), ("decode 40", 8, 8)]:
    told = steps_of[name]["experts"]
    assert told["experts"] == 8 and told["fewest"] == 3, told
    assert (told["used"], told["most"]) == (used, most), (name, told)
    assert told["fewest_seconds"] <= steps_of[name]["seconds"] <= told["most_seconds"], told
# Two experts more, in each of two layers 48 rows of 32 and 32 of 24 (rows in tiles of 16,
# K in 64, a scale for 32), and a row of the table.
expert = 2 * (3 + 2) * (16 * 64 + 32)
more = (steps_of["decode 2"]["weights"]["bytes_read"] -
        steps_of["decode 1"]["weights"]["bytes_read"])
assert 2 * expert < more < 2 * expert + 200, (expert, more)
assert "experts" not in steps["decode 1"]
run(0, "with 5 of 8 experts of a layer", "ingot", "inspect", experts, "--cost", "sm_90", "--rows", "2")

# What really runs, where the stand-in driver is built: a step of so many rows.
driver = pathlib.Path(sys.argv[3])
if driver.exists():
    ran = run(0, "stand-in:", "ingot", "run", artifact, "-p", "a", "--max-tokens", "1",
              "--ignore-eos", "--stats", "--device", "cuda",
              INGOT_CUDA_DRIVER=str(driver), INGOT_STANDIN="counts=1")
    counted = {}
    for line in ran.stderr.splitlines():
        words = line.split()
        if words[:1] == ["stand-in:"]:
            counted[words[1].removeprefix("ingot_")] = int(words[2])
    assert counted.pop("sample") == 1  # chooses the token: no launch of the plan
    predicted = {kernel["kernel"]: kernel["launches"] for kernel in steps["decode 1"]["kernels"]}
    assert counted == predicted, (counted, predicted, ran.stderr)
