#!/usr/bin/env python3
"""test/bench/soak.py on the model test/models/target, compiled for it.

    soak_target.py --bin DIR --requests N
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "test/bench"))
from served import compile_model  # noqa: E402

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--bin", type=pathlib.Path, required=True)
parser.add_argument("--requests", type=int, required=True)
options = parser.parse_args()

with tempfile.TemporaryDirectory() as folder:
    artifact = compile_model(options.bin / "ingot-compiler", SOURCE / "test/models/target",
                             pathlib.Path(folder) / "target.ingot", "--quantize", "int8")
    sys.exit(subprocess.run([sys.executable, SOURCE / "test/bench/soak.py", artifact, "--ingot",
                             options.bin / "ingot", "--requests", str(options.requests)]).returncode)
