"""A GPT-2 folder with com.microsoft's operators, as onnxruntime's optimizer leaves it.

Used by export_onnx.py.
"""
import numpy as np
from onnx import TensorProto, helper

from export_onnx import DTYPES, cache


def build(graph):
    config, weight = graph.config, graph.weight
    heads, eps = config["n_head"], config["layer_norm_epsilon"]
    size = config["n_embd"] // heads
    element = DTYPES[graph.weights.header["transformer.wte.weight"]["dtype"]]
    graph.inputs += [
        helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", length])
        for n, length in (("input_ids", "sequence"), ("attention_mask", "total"),
                          ("position_ids", "sequence"))]
    padding = graph.node("Cast", ["attention_mask"], "padding", to=TensorProto.INT32)

    def contrib(op, inputs, name, outputs=None, **attributes):
        return graph.node(op, inputs, name, outputs, domain="com.microsoft", **attributes)

    def norm(at, stream, update, bias):
        """The stream with update and bias added, and its norm."""
        inputs = [weight(at + ".weight"), weight(at + ".bias")]
        if update is None:
            return stream, graph.node("LayerNormalization", [stream] + inputs, at, epsilon=eps)
        y, total = at + "_out", at + "_sum"
        contrib("SkipLayerNormalization", [update, stream, *inputs, weight(bias)],
                at, [y, "", "", total], epsilon=eps)
        return total, y

    x = graph.node("Add", [
        graph.node("Gather", [weight("transformer.wte.weight"), "input_ids"], "tokens"),
        graph.node("Gather", [weight("transformer.wpe.weight"), "position_ids"], "positions")],
        "embed")
    update = bias = None
    for layer in range(config["n_layer"]):
        at = f"transformer.h.{layer}."
        x, y = norm(at + "ln_1", x, update, bias)
        qkv = graph.node("MatMul", [y, weight(at + "attn.c_attn.weight")], at + "attn.product")
        parts = [at + f"attn.{w}" for w in "qkv"]
        graph.node("Split", [qkv, graph.constant("thirds", np.array([heads * size] * 3, np.int64))],
                   at + "attn.split", parts, axis=-1)
        past, present = cache(graph, layer, heads, size, element)
        attended = contrib(
            "MultiHeadAttention",
            [*parts, weight(at + "attn.c_attn.bias"), padding, "", *past], at + "attn",
            [at + "attn_out", *present], num_heads=heads, unidirectional=1)
        update = graph.node("MatMul", [attended, weight(at + "attn.c_proj.weight")],
                            at + "attn.c_proj")
        x, y = norm(at + "ln_2", x, update, at + "attn.c_proj.bias")
        hidden = graph.node("MatMul", [y, weight(at + "mlp.c_fc.weight")], at + "mlp.c_fc")
        hidden = contrib("FastGelu", [hidden, weight(at + "mlp.c_fc.bias")], at + "mlp.act")
        update = graph.node("MatMul", [hidden, weight(at + "mlp.c_proj.weight")],
                            at + "mlp.c_proj")
        bias = at + "mlp.c_proj.bias"
    x, y = norm("transformer.ln_f", x, update, bias)
    turned = graph.node("Transpose", [weight("transformer.wte.weight")], "head.transpose",
                        perm=[1, 0])
    graph.node("MatMul", [y, turned], "head", ["logits"])
    graph.outputs.insert(0, helper.make_tensor_value_info(
        "logits", element, ["batch", "sequence", config["vocab_size"]]))
    return helper.make_model(
        helper.make_graph(graph.nodes, "decoder", graph.inputs, graph.outputs, graph.initializers),
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)],
        ir_version=10, producer_name="ingot-test-export")
