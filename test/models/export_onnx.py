#!/usr/bin/env python3
"""Exports a Llama folder to ONNX, in the forms that exporters write.

usage: export_onnx.py FOLDER FORM    writes FOLDER/FORM.onnx

FOLDER is what from_pretrained reads, with its weights in one model.safetensors of
float16 or float32.

attention   opset 23: RMSNormalization, RotaryEmbedding, Attention with its past
gqa         com.microsoft: SkipSimplifiedLayerNormalization, GroupQueryAttention
int4        as gqa, with MatMulNBits: the codes and scales of a pack-quantized folder
            of compressed-tensors (make_target_int4.py)
multi-head  of a GPT-2 folder: com.microsoft's MultiHeadAttention, SkipLayerNormalization
            and FastGelu (export_gpt2.py)
decomposed  what torch.onnx.export makes of the transformers model (needs torch)
encoder     the same of an encoder's folder (export_encoder.py)

Phi-3 folders may be exported as gqa too: q, k and v stay one tensor.

The graphs hold no weights: their initializers are external data in the folder's
model.safetensors, at the offsets of its own header.
"""
import json
import pathlib
import struct
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

DTYPES = {"F16": TensorProto.FLOAT16, "F32": TensorProto.FLOAT, "BF16": TensorProto.BFLOAT16}


class Weights:
    """The tensors of model.safetensors as external initializers."""

    def __init__(self, folder):
        self.path = folder / "model.safetensors"
        with open(self.path, "rb") as file:
            (size,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(size))
        header.pop("__metadata__", None)
        self.header, self.start = header, 8 + size

    def initializer(self, name, dims=None, dtype=None):
        """A tensor of the file, or its bytes as one of other dims and type."""
        entry = self.header[name]
        begin, end = entry["data_offsets"]
        tensor = TensorProto(name=name, dims=dims or entry["shape"],
                             data_type=dtype or DTYPES[entry["dtype"]],
                             data_location=TensorProto.EXTERNAL)
        for key, value in (("location", "model.safetensors"),
                           ("offset", str(self.start + begin)),
                           ("length", str(end - begin))):
            tensor.external_data.add(key=key, value=value)
        return tensor


class Graph:
    def __init__(self, folder):
        self.config = json.loads((folder / "config.json").read_text())
        self.weights = Weights(folder)
        self.nodes, self.initializers, self.known = [], [], set()
        self.inputs, self.outputs = [], []

    def weight(self, name, *as_other):
        if name not in self.known:
            self.known.add(name)
            self.initializers.append(self.weights.initializer(name, *as_other))
        return name

    def constant(self, name, values):
        if name not in self.known:
            self.known.add(name)
            self.initializers.append(numpy_helper.from_array(values, name))
        return name

    def node(self, op, inputs, name, outputs=None, **attributes):
        outputs = outputs or [name + "_out"]
        self.nodes.append(helper.make_node(op, inputs, outputs, name=name, **attributes))
        return outputs[0]

    def linear(self, x, name):
        """x times the transpose of a stored [out, in] matrix."""
        if self.form == "int4":
            return self.packed(x, name)
        turned = self.node("Transpose", [self.weight(name + ".weight")],
                           name + ".transpose", perm=[1, 0])
        return self.node("MatMul", [x, turned], name + ".product")

    def packed(self, x, name, block=32):
        """The same with codes: (code - 8) * scale. Words of eight codes are bytes of two."""
        packed, scales = name + ".weight_packed", name + ".weight_scale"
        rows, words = self.weights.header[packed]["shape"]
        columns = 8 * words
        assert self.weights.header[scales]["shape"] == [rows, columns // block], name
        codes = self.weight(packed, [rows, columns // block, block // 2], TensorProto.UINT8)
        return self.node("MatMulNBits", [x, codes, self.weight(scales)], name + ".product",
                         domain="com.microsoft", K=columns, N=rows, bits=4, block_size=block)


def head_dim(config):
    return config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]


def rotary_tables(config, dtype):
    size = head_dim(config)
    steps = np.arange(0, size, 2, dtype=np.float32) / np.float32(size)
    theta = config.get("rope_theta") or config["rope_parameters"]["rope_theta"]
    frequencies = (1.0 / np.float64(theta) ** steps.astype(np.float64)).astype(np.float32)
    angles = np.arange(config["max_position_embeddings"], dtype=np.float32)[:, None] * frequencies
    return np.cos(angles).astype(dtype), np.sin(angles).astype(dtype)


def cache(graph, layer, heads, size, element):
    """Declares past and present of a layer; their names, keys before values."""
    names = []
    for name, length, values in (("past_key_values", "past", graph.inputs),
                                 ("present", "total", graph.outputs)):
        pair = [f"{name}.{layer}.{w}" for w in ("key", "value")]
        values += [helper.make_tensor_value_info(n, element, ["batch", heads, length, size])
                   for n in pair]
        names.append(pair)
    return names


def build(folder, form):
    graph = Graph(folder)
    graph.form = form
    contrib = form in ("gqa", "int4")
    config = graph.config
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    size = head_dim(config)
    eps = config["rms_norm_eps"]
    window = {}
    if config.get("sliding_window"):
        window["local_window_size"] = config["sliding_window"]
    element = DTYPES[graph.weights.header["model.embed_tokens.weight"]["dtype"]]
    cos, sin = rotary_tables(config, helper.tensor_dtype_to_np_dtype(element))
    cos, sin = graph.constant("cos_cache", cos), graph.constant("sin_cache", sin)

    graph.inputs += [
        helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "sequence"]),
        helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch", "total"])]
    if form == "attention":
        graph.inputs.append(helper.make_tensor_value_info(
            "position_ids", TensorProto.INT64, ["batch", "sequence"]))
    else:
        one = graph.constant("one", np.array([1], np.int64))
        count = graph.node("ReduceSum", ["attention_mask", one], "mask/sum", keepdims=0)
        last = graph.node("Sub", [count, one], "mask/last")
        seqlens = graph.node("Cast", [last], "mask/seqlens", to=TensorProto.INT32)
        shape = graph.node("Shape", ["attention_mask"], "mask/shape")
        length = graph.node("Gather", [shape, graph.constant("index", np.array(1, np.int64))],
                            "mask/length", axis=0)
        total = graph.node("Cast", [length], "mask/total", to=TensorProto.INT32)

    x = graph.node("Gather", [graph.weight("model.embed_tokens.weight"), "input_ids"], "embed")
    update = None

    def norm(name, stream, update):
        """The stream with the update added, and its norm."""
        weight = graph.weight(name + ".weight")
        if update is not None and contrib:
            y, total = name + "_out", name + "_sum"
            graph.nodes.append(helper.make_node(
                "SkipSimplifiedLayerNormalization", [stream, update, weight],
                [y, "", "", total], name=name, domain="com.microsoft", epsilon=eps))
            return total, y
        if update is not None:
            stream = graph.node("Add", [stream, update], name + ".residual")
        if contrib:
            y = graph.node("SimplifiedLayerNormalization", [stream, weight], name,
                           axis=-1, epsilon=eps, stash_type=1)
        else:
            y = graph.node("RMSNormalization", [stream, weight], name, axis=-1, epsilon=eps)
        return stream, y

    for layer in range(config["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        x, y = norm(at + "input_layernorm", x, update)
        if at + "self_attn.qkv_proj.weight" in graph.weights.header:
            q, k, v = graph.linear(y, at + "self_attn.qkv_proj"), "", ""
        else:
            q, k, v = (graph.linear(y, at + f"self_attn.{p}_proj") for p in "qkv")
        past, present = cache(graph, layer, kv_heads, size, element)
        attended = at + "attention_out"
        if form == "attention":
            q, k = (graph.node("RotaryEmbedding", [w, cos, sin, "position_ids"],
                               at + f"{n}_rotary", num_heads=h)
                    for w, n, h in ((q, "q", heads), (k, "k", kv_heads)))
            graph.node("Attention", [q, k, v, "", *past], at + "attention",
                       [attended, *present], is_causal=1, q_num_heads=heads,
                       kv_num_heads=kv_heads, scale=size ** -0.5)
        else:
            graph.node("GroupQueryAttention", [q, k, v, *past, seqlens, total, cos, sin],
                       at + "attention", [attended, *present], domain="com.microsoft",
                       num_heads=heads, kv_num_heads=kv_heads, scale=size ** -0.5, do_rotary=1,
                       **window)
        update = graph.linear(attended, at + "self_attn.o_proj")
        x, y = norm(at + "post_attention_layernorm", x, update)
        if at + "mlp.gate_up_proj.weight" in graph.weights.header:
            gate, up = at + "mlp.gate_out", at + "mlp.up_out"
            graph.node("Split", [graph.linear(y, at + "mlp.gate_up_proj"),
                                 graph.constant("halves", np.array(
                                     [config["intermediate_size"]] * 2, np.int64))],
                       at + "mlp.split", [gate, up], axis=-1)
        else:
            gate, up = (graph.linear(y, at + f"mlp.{p}_proj") for p in ("gate", "up"))
        sigmoid = graph.node("Sigmoid", [gate], at + "mlp.sigmoid")
        act = graph.node("Mul", [gate, sigmoid], at + "mlp.silu")
        product = graph.node("Mul", [act, up], at + "mlp.gated")
        update = graph.linear(product, at + "mlp.down_proj")
    x, y = norm("model.norm", x, update)
    head = "model.embed_tokens" if config["tie_word_embeddings"] else "lm_head"
    turned = graph.node("Transpose", [graph.weight(head + ".weight")], "lm_head.transpose",
                        perm=[1, 0])
    graph.nodes.append(helper.make_node("MatMul", [y, turned], ["logits"], name="lm_head"))
    graph.outputs.insert(0, helper.make_tensor_value_info(
        "logits", element, ["batch", "sequence", config["vocab_size"]]))
    opsets = [helper.make_opsetid("", 23 if form == "attention" else 17)]
    if contrib:
        opsets.append(helper.make_opsetid("com.microsoft", 1))
    return helper.make_model(
        helper.make_graph(graph.nodes, "decoder", graph.inputs, graph.outputs, graph.initializers),
        opset_imports=opsets, ir_version=11, producer_name="ingot-test-export")


def main():
    if len(sys.argv) != 3 or sys.argv[2] not in (
            "attention", "gqa", "int4", "multi-head", "decomposed", "encoder"):
        sys.exit(__doc__)
    folder, form = pathlib.Path(sys.argv[1]), sys.argv[2]
    if form == "decomposed":
        from export_decomposed import export
        model = export(folder, Weights(folder))
    elif form == "encoder":
        from export_encoder import export
        model = export(folder, Weights(folder))
    elif form == "multi-head":
        from export_gpt2 import build as build_gpt2
        model = build_gpt2(Graph(folder))
    else:
        model = build(folder, form)
    (folder / f"{form}.onnx").write_bytes(model.SerializeToString(deterministic=True))


if __name__ == "__main__":
    main()
