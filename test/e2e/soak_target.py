#!/usr/bin/env python3
"""test/bench/soak.py on the model test/models/target, compiled for it.

    soak_target.py --bin DIR [--compiler FILE] --requests N [soak.py's other options]
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
parser.add_argument("--compiler", type=pathlib.Path, help="default: ingot-compiler of --bin")
options, soak_options = parser.parse_known_args()
COMPILER = options.compiler or options.bin / "ingot-compiler"

with tempfile.TemporaryDirectory() as folder:
    artifact = compile_model(COMPILER, SOURCE / "test/models/target",
                             pathlib.Path(folder) / "target.ingot", "--quantize", "int8")
    sys.exit(subprocess.run([sys.executable, SOURCE / "test/bench/soak.py", artifact, "--ingot",
                             options.bin / "ingot", *soak_options]).returncode)
