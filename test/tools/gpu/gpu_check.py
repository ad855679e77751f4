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
parser.add_argument("--scratch", type=pathlib.Path)
options = parser.parse_args()
shutil.rmtree(options.scratch, ignore_errors=True)
options.scratch.mkdir(parents=True)
prefix = options.scratch / "report"


def run(*arguments, **environment):
    return subprocess.run(
        [sys.executable, options.check, "--bin", options.bin, "--report", prefix, *arguments],
        capture_output=True, text=True, timeout=560, env={**os.environ, **environment})


def read():
    return (json.loads(prefix.with_name("report.json").read_text()),
            prefix.with_name("report.md").read_text())


# No driver: one sentence, before anything is built.
start = time.monotonic()
done = run(INGOT_CUDA_DRIVER="/nowhere/libcuda.so.1")
assert done.returncode == 6, done
assert len(done.stderr.splitlines()) == 1 and "GPU" in done.stderr, done
assert done.stdout == "" and not list(options.scratch.iterdir()), done
assert time.monotonic() - start < 20
assert run("--budget", "x").returncode == 2

probe = subprocess.run([options.bin / "ingot-gpu-rates", "--size", "64"], capture_output=True,
                       text=True, env={**os.environ, "INGOT_CUDA_DRIVER": options.driver})
if probe.returncode != 0 and "NVRTC" in probe.stderr:
    print("there is no NVRTC:", probe.stderr)
    sys.exit(77)
assert probe.returncode == 0, probe

# The results of its cases are its report's, whatever a test run around it wants.
results = options.scratch / "results"
stand_in = dict(INGOT_CUDA_DRIVER=options.driver, INGOT_STANDIN="",
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
                "share_of_copy", "share_of_multiplication", "share_of_prediction"):
        assert one[key] > 0, (key, one)
assert any("cuBLASLt" in one for one in report["left_out"])
assert not results.exists(), list(results.iterdir())
for section in ("What was left out", "Cases of kernels", "Cases of models", "Rates of the device",
                "Speed of tiny-llama"):
    assert f"## {section}" in text, (section, text)

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
