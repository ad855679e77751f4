#!/usr/bin/env python3
"""What onnxruntime gives for the exports of encoders (test/models/encoders/*/encoder.onnx,
written by test/models/export_onnx.py), as encoders-onnx/CASE.inputs.safetensors and
CASE.outputs.safetensors: random tokens, types of tokens, and padding in the last row.

usage: make_onnx_encoder_goldens.py    (needs numpy, onnxruntime and safetensors)
"""
import pathlib

import numpy as np
import onnxruntime
from safetensors.numpy import save_file

HERE = pathlib.Path(__file__).parent
CASES = {"bert": [(3, 17), (1, 64)], "distilbert": [(3, 17)]}


def main():
    (HERE / "encoders-onnx").mkdir(exist_ok=True)
    random = np.random.default_rng(1)
    for name, sizes in CASES.items():
        session = onnxruntime.InferenceSession(
            str(HERE / f"../../models/encoders/{name}/encoder.onnx"),
            providers=["CPUExecutionProvider"])
        for batch, count in sizes:
            feeds = {"input_ids": random.integers(5, 160, (batch, count)),
                     "attention_mask": np.ones((batch, count), np.int64)}
            if batch > 1:
                for tensor in feeds.values():
                    tensor[-1, count // 2:] = 0
            if any(i.name == "token_type_ids" for i in session.get_inputs()):
                feeds["token_type_ids"] = random.integers(0, 2, (batch, count))
            outputs = {"last_hidden_state": session.run(["last_hidden_state"], feeds)[0]}
            for kind, tensors in (("inputs", feeds), ("outputs", outputs)):
                save_file(tensors, HERE / "encoders-onnx" /
                          f"{name}-{batch}x{count}.{kind}.safetensors")


if __name__ == "__main__":
    main()
