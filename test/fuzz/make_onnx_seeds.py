"""Writes seeds/onnx, small models for OnnxFuzz.  python make_onnx_seeds.py"""
import pathlib

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FOLDER = pathlib.Path(__file__).parent / "seeds" / "onnx"
FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def value(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def constant(name, values, dtype=np.float32):
    return numpy_helper.from_array(np.array(values, dtype), name)


def write(name, opset, nodes, inputs, outputs, initializers=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(initializers))
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    (FOLDER / name).write_bytes(model.SerializeToString())


node = helper.make_node
FOLDER.mkdir(parents=True, exist_ok=True)
write("mlp", 13, [node("MatMul", ["x", "w"], ["a"]), node("Add", ["a", "b"], ["c"]),
                  node("Relu", ["c"], ["d"]), node("Softmax", ["d"], ["y"], axis=-1)],
      [value("x", FLOAT, ["n", 3])], [value("y", FLOAT, ["n", 2])],
      [constant("w", [[1, 2], [3, 4], [5, 6]]), constant("b", [1, 2])])
write("shapes", 13, [node("Shape", ["x"], ["s"]), node("Gather", ["s", "i"], ["g"]),
                     node("Unsqueeze", ["g", "zero"], ["u"]), node("Concat", ["u", "rest"], ["t"], axis=0),
                     node("Reshape", ["x", "t"], ["r"]), node("Transpose", ["r"], ["p"], perm=[1, 0]),
                     node("Slice", ["p", "zero", "two", "zero"], ["y"])],
      [value("x", FLOAT, ["n", 4, 2])], [value("y", FLOAT, None)],
      [constant("i", 0, np.int64), constant("zero", [0], np.int64), constant("rest", [-1], np.int64),
       constant("two", [2], np.int64)])
then = helper.make_graph([node("Squeeze", ["x", "axes"], ["a"])], "t", [], [value("a", FLOAT, None)],
                         [constant("axes", [0], np.int64)])
other = helper.make_graph([node("Neg", ["x"], ["b"])], "e", [], [value("b", FLOAT, None)])
write("if", 13, [node("If", ["c"], ["y"], then_branch=then, else_branch=other)],
      [value("x", FLOAT, [1, 2]), value("c", TensorProto.BOOL, [])], [value("y", FLOAT, None)])
write("attention", 23, [node("RotaryEmbedding", ["q", "cos", "sin"], ["r"], num_heads=2),
                        node("Attention", ["r", "q", "q", "", "pk", "pv"], ["y", "k", "v"], is_causal=1,
                             q_num_heads=2, kv_num_heads=2)],
      [value("q", FLOAT, [1, "s", 8]), value("pk", FLOAT, [1, 2, "p", 4]), value("pv", FLOAT, [1, 2, "p", 4])],
      [value(n, FLOAT, None) for n in "ykv"],
      [constant("cos", np.ones((1, 3, 2))), constant("sin", np.zeros((1, 3, 2)))])
write("quantized", 17, [node("MatMulNBits", ["x", "b", "s"], ["y"], domain="com.microsoft", K=32, N=2,
                             bits=4, block_size=32), node("Conv", ["z", "w"], ["c"], pads=[1, 1, 1, 1]),
                        node("MaxPool", ["c"], ["m"], kernel_shape=[2, 2])],
      [value("x", FLOAT, [1, 32]), value("z", FLOAT, [1, 1, 4, 4])],
      [value("y", FLOAT, None), value("m", FLOAT, None)],
      [constant("b", np.full((2, 1, 16), 0x22), np.uint8), constant("s", [[1], [2]]),
       constant("w", np.ones((1, 1, 3, 3)))])
