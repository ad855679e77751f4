#!/usr/bin/env python3
"""What onnxruntime gives for com.microsoft's operators, as cases in contrib/ that are
laid out like the ONNX back-end suite.

usage: make_contrib_goldens.py    (needs onnx and onnxruntime)

A case is one node on seeded random inputs. Only outputs that are wanted are kept.
"""
import pathlib
import shutil

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

FOLDER = pathlib.Path(__file__).parent / "contrib"
TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64,
         np.dtype(np.int32): TensorProto.INT32, np.dtype(np.uint8): TensorProto.UINT8,
         np.dtype(bool): TensorProto.BOOL, np.dtype(np.float16): TensorProto.FLOAT16}
random = np.random.default_rng(20)


def floats(*dims):
    return random.standard_normal(dims).astype(np.float32)


def case(name, op, inputs, outputs, constants=(), **attributes):
    """inputs: (name, array) or None for one that is left out; constants: names of
    inputs that are initializers; outputs: "" for one that is not wanted, "-name" for
    one that the node has and the graph does not return."""
    names = [i[0] if i else "" for i in inputs]
    arrays = dict(i for i in inputs if i)
    node = helper.make_node(op, names, [o.lstrip("-") for o in outputs], name=name,
                            domain="com.microsoft", **attributes)
    fed = [n for n in names if n and n not in constants]
    wanted = [o for o in outputs if o and not o.startswith("-")]
    kept = TYPES[np.dtype(next(a.dtype for a in arrays.values() if a.dtype.kind == "f"))]
    graph = helper.make_graph(
        [node], name,
        [helper.make_tensor_value_info(n, TYPES[arrays[n].dtype], arrays[n].shape) for n in fed],
        [helper.make_tensor_value_info(o, kept, None) for o in wanted],
        [numpy_helper.from_array(arrays[n], n) for n in constants])
    model = helper.make_model(graph, ir_version=10, producer_name="ingot-test", opset_imports=[
        helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)])
    session = onnxruntime.InferenceSession(model.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    results = session.run(wanted, {n: arrays[n] for n in fed})
    folder = FOLDER / name / "test_data_set_0"
    folder.mkdir(parents=True)
    (folder.parent / "model.onnx").write_bytes(model.SerializeToString(deterministic=True))
    for kind, tensors in (("input", [arrays[n] for n in fed]), ("output", results)):
        for i, tensor in enumerate(tensors):
            (folder / f"{kind}_{i}.pb").write_bytes(
                numpy_helper.from_array(np.ascontiguousarray(tensor)).SerializeToString())


def rotary():
    tables = [("cos", np.cos(floats(9, 4))), ("sin", np.sin(floats(9, 4)))]
    ids = ("ids", np.array([[3, 1, 7], [0, 8, 2]], np.int64))
    flat, four = ("x", floats(2, 3, 16)), ("x", floats(2, 2, 3, 8))
    wide = ("x", floats(2, 3, 32))
    case("rotary-3d", "RotaryEmbedding", [flat, ids, *tables], ["y"], num_heads=2)
    case("rotary-no-heads", "RotaryEmbedding", [flat, ids, *tables], ["y"])
    case("rotary-4d", "RotaryEmbedding", [four, ids, *tables], ["y"])
    case("rotary-interleaved", "RotaryEmbedding", [flat, ids, *tables], ["y"], num_heads=2,
         interleaved=1)
    case("rotary-partial", "RotaryEmbedding", [wide, ids, *tables], ["y"], num_heads=2,
         rotary_embedding_dim=8)
    case("rotary-partial-interleaved", "RotaryEmbedding", [wide, ids, *tables], ["y"],
         num_heads=2, rotary_embedding_dim=8, interleaved=1)


def norms():
    x, skip = ("x", floats(2, 3, 8)), ("skip", floats(2, 3, 8))
    gamma, beta, bias = ("gamma", floats(8)), ("beta", floats(8)), ("bias", floats(8))
    both = ["y", "", "", "sum"]
    for kind, beta_ in (("SkipLayerNormalization", [beta]),
                        ("SkipSimplifiedLayerNormalization", [])):
        short = "skip-layer" if beta_ else "skip-simplified"
        case(short, kind, [x, skip, gamma, *beta_], ["y"], epsilon=1e-5)
        case(short + "-sum", kind, [x, skip, gamma, *beta_], both, epsilon=0.3)
        case(short + "-bias", kind, [x, skip, gamma, *beta_, bias], both, epsilon=1e-5)
    case("skip-layer-no-beta", "SkipLayerNormalization", [x, skip, gamma], both, epsilon=1e-5)


def products():
    def one(name, rows, k, n, block, bits=4, zeros=False, bias=False, kind=np.float32):
        blocks = -(-k // block)
        inputs = [("a", floats(*rows, k).astype(kind)),
                  ("b", random.integers(0, 256, (n, blocks, block * bits // 8), np.uint8)),
                  ("scales", (0.1 + random.random((n, blocks))).astype(kind))]
        constants = ["b", "scales"]
        if zeros:
            inputs.append(("zeros", random.integers(
                0, 256, (n, -(-blocks * bits // 8)), np.uint8)))
            constants.append("zeros")
        if bias:
            inputs += [None] * (5 - len(inputs)) + [("bias", floats(n).astype(kind))]
            constants.append("bias")
        case(name, "MatMulNBits", inputs, ["y"], constants, K=k, N=n, bits=bits,
             block_size=block)

    one("matmul-4", [3], 64, 5, 32)
    one("matmul-4-16", [3], 48, 4, 16)
    one("matmul-4-rows", [2, 3], 128, 4, 64)
    one("matmul-4-short", [3], 40, 5, 32)
    one("matmul-4-zeros", [2], 96, 5, 32, zeros=True)
    one("matmul-4-zeros-even", [2], 128, 5, 32, zeros=True)
    one("matmul-4-bias", [2], 64, 5, 32, bias=True)
    one("matmul-8", [2], 64, 5, 32, bits=8)
    one("matmul-8-zeros", [2], 96, 5, 32, bits=8, zeros=True)
    one("matmul-2", [2], 64, 5, 32, bits=2)


def multi_head():
    q, k, v = (("q", floats(2, 3, 8)), ("k", floats(2, 5, 8)), ("v", floats(2, 5, 8)))
    own = [("k", floats(2, 3, 8)), ("v", floats(2, 3, 8))]
    bias = ("bias", floats(24))
    past = [("past_key", floats(2, 2, 4, 4)), ("past_value", floats(2, 2, 4, 4))]
    padding = ("padding", np.array([[1, 1, 1, 1, 0], [1, 0, 1, 0, 1]], np.int32))
    def one(name, inputs, outputs=("y",), **attributes):
        case("multi-head" + name, "MultiHeadAttention", inputs, list(outputs), num_heads=2,
             **attributes)
    one("", [q, k, v])
    one("-scale", [q, k, v], scale=0.9)
    one("-bias", [q, k, v, bias])
    one("-padding", [q, k, v, None, padding])
    one("-added", [q, k, v, None, None, ("added", floats(2, 2, 3, 5))])
    one("-added-to-all", [q, k, v, None, None, ("added", floats(1, 1, 3, 5))])
    one("-causal", [q, *own], unidirectional=1)
    present = ["y", "present_key", "present_value"]
    one("-past", [q, *own, None, None, None, *past], present)
    one("-past-causal", [q, *own, None, None, None, *past], present, unidirectional=1)


def group_query():
    tables = [("cos", np.cos(floats(12, 8))), ("sin", np.sin(floats(12, 8)))]
    present = ["y", "present_key", "present_value"]

    def one(name, batch, positions, past, lengths=None, tables=(), packed=False, extra=(),
            outputs=present, size=16, **attributes):
        total = past + positions
        qkv = [("q", floats(batch, positions, (4 if not packed else 8) * size))]
        qkv += [None, None] if packed else [(w, floats(batch, positions, 2 * size)) for w in "kv"]
        pasts = [(f"past_{w}", floats(batch, 2, past, size)) for w in ("key", "value")]
        lengths = np.array(lengths or [total - 1] * batch, np.int32)
        tail = [*(tables or (None, None)), *extra]
        case("group-query" + name, "GroupQueryAttention",
             qkv + (pasts if past else [None, None]) +
             [("lengths", lengths), ("total", np.array(total, np.int32))] + tail,
             outputs, ["total"], num_heads=4, kv_num_heads=2, **attributes)

    one("-prompt", 2, 3, 0)
    one("-prompt-rotary", 1, 3, 0, tables=tables, do_rotary=1)
    one("-decode", 2, 1, 5)
    one("-decode-rotary", 1, 1, 5, tables=tables, do_rotary=1)
    one("-interleaved", 1, 1, 5, tables=tables, do_rotary=1, rotary_interleaved=1)
    one("-partial", 1, 3, 0, tables=tables, do_rotary=1, size=32)
    one("-chunk", 1, 3, 4, tables=tables, do_rotary=1)
    one("-lengths", 2, 1, 5, lengths=[5, 3], tables=tables, do_rotary=1,
        outputs=["y", "-present_key", "-present_value"])
    one("-window", 1, 5, 0, local_window_size=2)
    one("-window-decode", 1, 1, 6, local_window_size=3)
    one("-cap", 1, 3, 0, softcap=2.0)
    one("-scale", 1, 3, 0, scale=0.9)
    one("-packed", 1, 3, 0, packed=True, tables=tables, do_rotary=1)
    one("-packed-decode", 1, 1, 5, packed=True, tables=tables, do_rotary=1)
    # Counting up: onnxruntime's CPU looks at the first alone.
    one("-positions", 1, 3, 0, tables=tables, do_rotary=1,
        extra=[("ids", np.array([[4, 5, 6]], np.int64))])
    one("-added", 1, 3, 0, extra=[None, ("added", floats(1, 4, 3, 3))])
    one("-added-to-all", 1, 3, 0, extra=[None, ("added", floats(1, 1, 3, 3))])
    one("-smooth", 1, 3, 0, smooth_softmax=1)
    one("-sink", 1, 3, 0, extra=[None, None, ("sink", floats(4))])


def main():
    shutil.rmtree(FOLDER, ignore_errors=True)
    for group in (rotary, norms, products, multi_head, group_query):
        group()
    print(f"{len(list(FOLDER.iterdir()))} cases")


if __name__ == "__main__":
    main()
