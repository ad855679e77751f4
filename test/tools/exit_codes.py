"""Wrong use ends every program with 2, and every --help has the table of codes.

    exit_codes.py SOURCE_FOLDER SCRATCH
"""
import pathlib
import shutil
import subprocess
import sys

source, scratch = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
scratch.mkdir(parents=True, exist_ok=True)
# Programs of the build; of the scripts, what they end with before they build.
PROGRAMS = {
    "ingot": ["run", "inspect", "bench", "serve", "eval", "embed", "tokenize", "render"],
    "ingot-compiler": ["compile", "check", "debug", "debug trace", "debug compare",
                       "debug passes", "debug kernels", "fit-exits", "measure-exits",
                       "tokenize", "render"],
    "onnx-run": [],
    "onnx-node-tests": [],
    "ingot-gpu-rates": [],
    str(source / "tools/gpu-check"): [],
}
TABLE = [(2, "--no-such-flag"), (0, "--help")]
# Values that a flag refuses, wherever that is noticed, and what is missing.
MORE = [
    (2, "ingot", []),
    (2, "ingot", ["melt"]),
    (2, "ingot", ["--no-such-flag", "run"]),
    (2, "ingot", ["run", "a.ingot", "--threads", "0"]),
    (2, "ingot", ["run", "a.ingot", "-p", "a", "--speculate", "guess"]),
    (2, "ingot", ["serve", "a.ingot", "--host", ""]),
    (2, "ingot", ["run", str(scratch / "missing.ingot"), "-p", "a"]),
    (2, "ingot-compiler", []),
    (2, "ingot-compiler", ["melt"]),
    (2, "ingot-compiler", ["compile"]),
    (2, "ingot-compiler", ["compile", "model", "-o", "out", "--quantize", "int3"]),
    (2, "ingot-compiler", ["compile", "model", "-o", "out", "--threads", "0"]),
    (2, "ingot-compiler", ["compile", "model", "--dump-ir-after", "melt"]),
    (2, "ingot-compiler", ["debug"]),
    (2, "ingot-compiler", ["debug", "trace", "model"]),
    (2, "onnx-run", ["model.onnx"]),
    (2, "onnx-run", ["missing.onnx", "missing.safetensors", "-o", "out"]),
    (2, "onnx-node-tests", [str(scratch)]),
    (2, "ingot-gpu-rates", ["--size", "x"]),
]

wrong = []
counted = 0


def check(code, program, arguments):
    global counted
    if not shutil.which(program):
        return  # not in this build
    done = subprocess.run([program, *arguments], capture_output=True, text=True, cwd=scratch,
                          stdin=subprocess.DEVNULL, timeout=60)
    counted += 1
    if done.returncode != code:
        wrong.append(f"{program} {arguments}: expected {code}, found {done.returncode}: {done.stderr}")
    if code == 2 and not done.stderr + done.stdout:
        wrong.append(f"{program} {arguments}: says nothing")
    if arguments[-1:] == ["--help"]:
        text = " ".join(done.stdout.split())
        if "Exit codes: 0" not in text or "2 wrong use" not in text:
            wrong.append(f"{program} {arguments}: no table of exit codes")


for program, commands in PROGRAMS.items():
    for command in ["", *commands]:
        for code, flag in TABLE:
            check(code, program, [*command.split(), flag])
for row in MORE:
    check(*row)
assert counted > 60, counted
sys.exit("\n".join(wrong) or 0)
