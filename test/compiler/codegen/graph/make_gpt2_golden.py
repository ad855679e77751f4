#!/usr/bin/env python3
"""What onnxruntime gives for the shared tiny-random-gpt2-fp32, as gpt2/*.pb.

usage: make_gpt2_golden.py past.onnx    (needs onnxruntime)
"""
import pathlib
import sys

import numpy as np
import onnxruntime
from onnx import numpy_helper

session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
random = np.random.default_rng(1)
positions, past = 3, 2
feeds = {}
for value in session.get_inputs():
    if value.name == "input_ids":
        feeds[value.name] = random.integers(0, 1000, (1, positions)).astype(np.int32)
    elif value.name == "position_ids":
        feeds[value.name] = np.arange(past, past + positions, dtype=np.int32)[None]
    elif value.name == "attention_mask":
        feeds[value.name] = np.ones((1, past + positions), np.int32)
    else:
        feeds[value.name] = random.standard_normal((2, 1, 4, past, 8)).astype(np.float32)
folder = pathlib.Path(__file__).parent / "gpt2"
folder.mkdir(exist_ok=True)
for kind, tensors in (("input", feeds.values()), ("output", session.run(None, feeds))):
    for i, tensor in enumerate(tensors):
        (folder / f"{kind}_{i}.pb").write_bytes(numpy_helper.from_array(tensor).SerializeToString())
