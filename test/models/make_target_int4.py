#!/usr/bin/env python3
"""Writes target-int4: the weights of target as 4-bit codes (needs numpy).

The form is pack-quantized of compressed-tensors: a float16 scale for each 32 columns,
codes rounded to nearest, (code - 8) * scale. Embedding and norms stay float16. The same
bytes are what MatMulNBits reads, so export_onnx.py's int4 shares them.
"""
import json
import pathlib
import struct

import numpy as np

HERE = pathlib.Path(__file__).parent
GROUP = 32
SCHEME = {
    "config_groups": {"group_0": {
        "targets": ["Linear"], "input_activations": None, "output_activations": None,
        "weights": {"num_bits": 4, "type": "int", "symmetric": True, "strategy": "group",
                    "group_size": GROUP, "dynamic": False}}},
    "format": "pack-quantized", "ignore": ["lm_head"], "quant_method": "compressed-tensors",
    "quantization_status": "compressed"}


def read(path):
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + size])
    types = {"F16": np.float16, "I32": np.int32, "I64": np.int64}
    return {name: np.frombuffer(data[8 + size + begin:8 + size + end], types[entry["dtype"]])
            .reshape(entry["shape"])
            for name, entry in header.items() if name != "__metadata__"
            for begin, end in [entry["data_offsets"]]}


def packed(values):
    """Words of eight codes from the lowest bit, and scales."""
    rows, columns = values.shape
    blocks = values.astype(np.float32).reshape(rows, columns // GROUP, GROUP)
    scales = (np.abs(blocks).max(-1) / 7).astype(np.float16)
    wide = np.where(scales == 0, 1, scales).astype(np.float32)[..., None]
    codes = np.clip(np.rint(blocks / wide) + 8, 0, 15).astype(np.uint32)
    words = (codes.reshape(rows, columns // 8, 8) << np.arange(0, 32, 4, dtype=np.uint32)).sum(
        -1, dtype=np.uint32)
    return words.view(np.int32), scales


def dequantized(folder):
    """{name: float32 values} of all weights."""
    tensors = read(pathlib.Path(folder) / "model.safetensors")
    weights = {}
    for name, tensor in tensors.items():
        if name.endswith(".weight_packed"):
            stem = name[:-len("_packed")]
            scales = tensors[stem + "_scale"].astype(np.float32)
            words = tensor.view(np.uint32)[..., None] >> np.arange(0, 32, 4, dtype=np.uint32) & 15
            codes = words.reshape(*scales.shape, GROUP).astype(np.float32)
            weights[stem] = ((codes - 8) * scales[..., None]).reshape(len(scales), -1)
        elif not name.endswith(("_scale", "_shape")):
            weights[name] = tensor.astype(np.float32)
    return weights


def main():
    source, folder = HERE / "target", HERE / "target-int4"
    folder.mkdir(exist_ok=True)
    tensors = {}
    for name, tensor in read(source / "model.safetensors").items():
        if name.endswith("_proj.weight"):
            tensors[name + "_packed"], tensors[name + "_scale"] = packed(tensor)
            tensors[name + "_shape"] = np.array(tensor.shape, np.int64)
        else:
            tensors[name] = tensor
    header, data = {}, b""
    types = {"float16": "F16", "int32": "I32", "int64": "I64"}
    for name in sorted(tensors, key=lambda n: (-tensors[n].itemsize, n)):
        bytes_ = np.ascontiguousarray(tensors[name]).tobytes()
        header[name] = {"dtype": types[str(tensors[name].dtype)], "shape": tensors[name].shape,
                        "data_offsets": [len(data), len(data) + len(bytes_)]}
        data += bytes_
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    config = json.loads((source / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps({**config, "quantization_config": SCHEME}, indent=2) + "\n")
    for name in ("generation_config.json", "tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((source / name).read_bytes())


if __name__ == "__main__":
    main()
