"""tools/gpu-check without a GPU: it ends at once where there is no driver, and on the
stand-in driver writes a whole report that says what its device is; a kernel whose results
are wrong makes it fail."""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--check", type=pathlib.Path)
parser.add_argument("--bin", type=pathlib.Path)
parser.add_argument("--driver")
parser.add_argument("--library")
parser.add_argument("--scratch", type=pathlib.Path)
options = parser.parse_args()
# What a test run around this wants of GoogleTest is not meant for the programs that are
# run here, some of them to fail.
for name in [name for name in os.environ if name.startswith("GTEST_")]:
    del os.environ[name]
shutil.rmtree(options.scratch, ignore_errors=True)
options.scratch.mkdir(parents=True)
prefix = options.scratch / "report"


def run(*arguments, programs=options.bin, most=560, **environment):
    return subprocess.run(
        [sys.executable, options.check, "--bin", programs, "--report", prefix, *arguments],
        capture_output=True, text=True, timeout=most, env={**os.environ, **environment})


def read():
    return (json.loads(prefix.with_name("report.json").read_text()),
            prefix.with_name("report.md").read_text())


def fake(name, script):
    """A folder of programs of which one answers with a script's output."""
    folder = options.scratch / name / "bin"
    folder.mkdir(parents=True)
    program = folder / "ingot-gpu-rates"
    program.write_text("#!/bin/sh\n" + script)
    program.chmod(0o755)
    return folder


# No driver: one sentence, before anything is built.
start = time.monotonic()
done = run(INGOT_CUDA_DRIVER="/nowhere/libcuda.so.1")
assert done.returncode == 6, done
assert len(done.stderr.splitlines()) == 1 and "GPU" in done.stderr, done
assert done.stdout == "" and not list(options.scratch.iterdir()), done
assert time.monotonic() - start < 20
assert run("--budget", "x").returncode == 2

# A program that hangs, and has started another: the budget ends both.
driver = dict(INGOT_CUDA_DRIVER=options.driver, INGOT_STANDIN="")
started = options.scratch / "started"
done = run("--no-build", "--budget", "1", most=60, **driver,
           programs=fake("hangs", f"sleep 300 &\necho $! > {started}\nsleep 300\n"))
assert done.returncode == 1 and "longer than the budget" in done.stderr, done
state = pathlib.Path(f"/proc/{started.read_text().strip()}/stat")
assert not state.exists() or state.read_text().split()[2] == "Z", state.read_text()

# A program that ends well and tells nonsense: a failure of that part, and still a report.
device = json.dumps({"device": "x", "stand_in": True, "sm": "sm_90", "multiprocessors": 1,
                     "memory_bytes": 1, "driver": "x", "driver_version": "13.0"})
done = run("--no-build", "--short", most=60, **driver, programs=fake(
    "nonsense", f"case \"$*\" in *--probe*) echo '{device}';; *) echo nonsense;; esac\n"))
assert done.returncode == 1, done
report, text = read()
assert any(one.startswith("rates: what it was told is wrong") for one in report["failures"]), report
assert any(one.startswith("kernels: ") for one in report["failures"]), report
assert "**FAILED**" in text, text

# Without cuBLASLt, or with one that does not start, the rates say that, and why.
probe = subprocess.run([options.bin / "ingot-gpu-rates", "--size", "64"], capture_output=True,
                       text=True, env={**os.environ, **driver, "INGOT_CUBLASLT": "/nowhere/lt.so"})
if "NVRTC" not in probe.stderr:
    assert probe.returncode == 0, probe
    missing = json.loads(probe.stdout)["library_multiplication"]["missing"]
    assert missing.startswith("needs cuBLASLt of CUDA 12.0 or newer, found none"), missing
    probe = subprocess.run([options.bin / "ingot-gpu-rates", "--size", "64"], capture_output=True,
                           text=True, env={**os.environ, **driver, "INGOT_CUBLASLT": options.library,
                                           "INGOT_STANDIN_CUBLASLT": "none=1"})
    assert probe.returncode == 0, probe
    missing = json.loads(probe.stdout)["library_multiplication"]["missing"]
    assert missing.startswith("cuBLASLt 13.1 (/") and "cublasLtMatmulAlgoGetHeuristic" in missing

probe = subprocess.run([options.bin / "ingot-gpu-rates", "--size", "64"], capture_output=True,
                       text=True, env={**os.environ, "INGOT_CUDA_DRIVER": options.driver})
if probe.returncode != 0 and "NVRTC" in probe.stderr:
    print("there is no NVRTC:", probe.stderr)
    sys.exit(77)
assert probe.returncode == 0, probe

# The results of its cases are its report's, whatever a test run around it wants.
results = options.scratch / "results"
stand_in = dict(INGOT_CUDA_DRIVER=options.driver, INGOT_STANDIN="",
                INGOT_CUBLASLT=options.library,
                GTEST_OUTPUT=f"xml:{results}/", GTEST_FILTER="-*")
done = run("--short", "--no-build", **stand_in)
assert done.returncode == 0, done
report, text = read()
assert report["passed"] and report["failures"] == [], report
assert report["device"]["stand_in"] and report["device"]["device"] == "CUDA on the CPU"
assert "The device is a stand-in on the CPU" in text
assert "no time or rate below means anything" in text, text
assert report["kernels"]["passed"] >= 6 and not report["kernels"]["failed"], report["kernels"]
assert report["models"]["passed"] >= 1 and not report["models"]["failed"], report["models"]
assert report["rates"]["copy_bytes_per_second"] > 0
assert report["rates"]["multiplication"]["flops_per_second"] > 0
(speed,) = report["speed"]
assert [one["sequences"] for one in speed["decode"]] == [1, 2], speed
for one in speed["decode"] + speed["prefill"]:
    for key in ("seconds", "predicted_seconds", "predicted_with_launches_seconds", "launches",
                "share_of_copy", "share_of_multiplication", "share_of_library_multiplication",
                "share_of_prediction"):
        assert one[key] > 0, (key, one)
peer = report["rates"]["library_multiplication"]
assert peer["library"] == "cuBLASLt 13.1" and peer["path"] == options.library, peer
assert peer["flops_per_second"] > 0 and "| cuBLASLt 13.1, 128 x 128 with 128 tokens |" in text
assert not any("cuBLASLt" in one for one in report["left_out"]), report["left_out"]
assert not results.exists(), list(results.iterdir())
for section in ("What was left out", "Cases of kernels", "Cases of models", "Rates of the device",
                "Speed of tiny-llama"):
    assert f"## {section}" in text, (section, text)

# The cases of models are of the device that was asked for.
models = subprocess.run(
    [options.bin.parent / "test-bin/CudaModelTest",
     "--gtest_filter=Models/CudaModelTest.greedyTextIsTheReferences/draft_f16"],
    capture_output=True, text=True,
    env={**os.environ, "INGOT_TEST_DRIVER": options.driver, "INGOT_GPU_DEVICE": "7"})
assert models.returncode == 1 and "CUDA device 7: the driver finds 1" in models.stdout, models

# A kernel that never runs: its results are what was there before.
done = run("--short", "--no-build", "--budget", "200",
           **{**stand_in, "INGOT_STANDIN": "skip=ingot_linear_f16_t8"})
assert done.returncode == 1, done
report, text = read()
assert not report["passed"] and "**FAILED**" in text, text
assert any("CudaLinear" in name for name in report["kernels"]["failed"]), report["kernels"]
assert any("linear_f16_t8" in failure for failure in report["failures"]), report["failures"]

# No time for anything: that is not passing.
done = run("--short", "--no-build", "--budget", "0.5", **stand_in)
assert done.returncode == 1, done
