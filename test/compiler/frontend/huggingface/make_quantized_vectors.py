"""Writes quantized-vectors.safetensors and quantized-vectors.json: small weights
in every form of checkpoint that the importer reads, with the numbers that their
own libraries make of them.

    python make_quantized_vectors.py

compressed-tensors' weights are packed and unpacked by that package; AWQ is
unpacked by its converter for AutoAWQ, FP8 by PyTorch. GPTQ's own libraries need
a GPU to build: its two versions are written here from their description, w =
(q - (z + 1)) * s and w = (q - z) * s, products in the scales' type.
"""
import json

import numpy as np
import torch
from compressed_tensors.compressors.naive_quantized.base import (
    NaiveQuantizationCompressor)
from compressed_tensors.compressors.pack_quantized.base import (
    PackedQuantizationCompressor)
from compressed_tensors.entrypoints.convert.converters.autoawq import (
    AutoAWQConverter)
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from safetensors.torch import save_file

tensors, cases = {}, []
rng = np.random.default_rng(11)
torch.manual_seed(11)


def add(name, config, parts, expected, encoding):
    """`encoding` is what the importer should make of it as stored."""
    rounding = {torch.float16: "f16", torch.bfloat16: "bf16",
                torch.float32: "f32"}[expected.dtype]
    for part, value in parts.items():
        tensors[f"{name}.{part}"] = value.contiguous()
    tensors[f"{name}.expected"] = expected.float().contiguous()
    cases.append({"name": name, "config": config, "round": rounding,
                  "encoding": encoding})


# --- GPTQ --------------------------------------------------------------------

def stream(values, bits):
    """Codes along the first axis into int32 words, lowest bits first."""
    count, width = values.shape
    words = np.zeros((count * bits // 32, width), np.uint64)
    for i in range(count):
        word, shift = divmod(i * bits, 32)
        words[word] |= values[i].astype(np.uint64) << np.uint64(shift)
        if shift + bits > 32:
            words[word + 1] |= values[i].astype(np.uint64) >> np.uint64(32 - shift)
    return torch.from_numpy((words & 0xFFFFFFFF).astype(np.uint32).view(np.int32))


def gptq(name, encoding, bits=4, group=32, version=2, zeros="middle", order=None,
         sym=None, said=None, rows=32, columns=64, dtype=torch.float16):
    top = 2 ** bits
    codes = rng.integers(0, top, (columns, rows))
    size = columns if group == -1 else group
    groups = -(-columns // size)
    if zeros == "middle":
        points = np.full((groups, rows), top // 2)
    else:
        # Version 1 cannot say 0: it stores z - 1.
        points = rng.integers(1 if version == 1 else 0, top, (groups, rows))
        points[0, 0] = 1 if version == 1 else 0
    scales = torch.from_numpy(rng.uniform(1e-3, 0.02, (groups, rows))).to(dtype)
    index = np.arange(columns) // size
    if order == "permuted":
        index = rng.permutation(index)
    stored = points - (1 if version == 1 else 0)
    qzeros = torch.from_numpy(stream(stored.T.copy(), bits).numpy().T.copy())
    parts = {"qweight": stream(codes, bits), "qzeros": qzeros, "scales": scales}
    if order:
        parts["g_idx"] = torch.from_numpy(index.astype(np.int32))
    differences = torch.from_numpy(codes - points[index]).to(dtype)
    expected = (differences * scales[torch.from_numpy(index)]).T
    config = {"quant_method": "gptq", "bits": bits, "group_size": group,
              "desc_act": order == "permuted",
              "sym": zeros == "middle" if sym is None else sym,
              "checkpoint_format": said or ("gptq" if version == 1 else "gptq_v2")}
    add(name, config, parts, expected, encoding)


gptq("gptq_v1_sym", "i4-g32", version=1)
gptq("gptq_v2_sym", "i4-g32", version=2)
gptq("gptq_misnamed", "i4-g32", version=2, said="gptq")
gptq("gptq_v1_asym", "i4-g32-min", version=1, zeros="any")
gptq("gptq_v2_asym", "i4-g32-min", version=2, zeros="any")
gptq("gptq_2bit", "i4-g32", bits=2)
gptq("gptq_3bit", "i4-g32-min", bits=3, zeros="any")
gptq("gptq_8bit", "i8-g32", bits=8, version=1)
gptq("gptq_8bit_asym", "i8-g32", bits=8, zeros="any")
gptq("gptq_trivial_index", "i4-g32", version=1, order="trivial")
gptq("gptq_act_order", "i8-g32", version=1, zeros="any", order="permuted")
gptq("gptq_one_group", "i4-g64", group=-1, version=1)
gptq("gptq_one_group_index", "i4-g64", group=-1, order="trivial")
gptq("gptq_wide_group", "i4-g128", group=256, columns=512, rows=8)
gptq("gptq_small_group", "i8-g32", group=16)
gptq("gptq_float_scales", "i4-g32-min", zeros="any", dtype=torch.float32)


# --- AWQ ---------------------------------------------------------------------

def awq(name, encoding, group, rows=32, columns=64):
    order = [0, 2, 4, 6, 1, 3, 5, 7]

    def pack(values):
        words = np.zeros((values.shape[0], values.shape[1] // 8), np.uint64)
        for nibble, column in enumerate(order):
            words |= values[:, column::8].astype(np.uint64) << np.uint64(4 * nibble)
        return torch.from_numpy(words.astype(np.uint32).view(np.int32))

    size = columns if group == -1 else group
    groups = columns // size
    parts = {"qweight": pack(rng.integers(0, 16, (columns, rows))),
             "qzeros": pack(rng.integers(0, 16, (groups, rows))),
             "scales": torch.from_numpy(
                 rng.uniform(1e-3, 0.02, (groups, rows))).half()}
    converter = AutoAWQConverter(bits=4, group_size=size, ignore=())
    made = converter.process({f"m.{k}": v for k, v in parts.items()})
    scheme = QuantizationScheme(targets=["Linear"], weights=QuantizationArgs(
        num_bits=4, symmetric=False, strategy="group", group_size=size))
    made = PackedQuantizationCompressor.decompress(
        {k.removeprefix("m."): v for k, v in made.items()}, scheme)
    config = {"quant_method": "awq", "bits": 4, "group_size": group,
              "zero_point": True, "version": "gemm"}
    add(name, config, parts, made["weight"], encoding)


awq("awq_group", "i4-g32-min", 32)
awq("awq_one_group", "i4-g64-min", -1)


# --- compressed-tensors ------------------------------------------------------

def compressed(name, encoding, form, rows=16, columns=64, dtype=torch.bfloat16,
               **arguments):
    args = QuantizationArgs(**arguments)
    scheme = QuantizationScheme(targets=["Linear"], weights=args)
    weight = torch.randn(rows, columns) * 0.05
    if args.strategy == "tensor":
        shape = (1,)
    elif args.strategy == "channel":
        shape = (rows, 1)
    elif args.strategy == "group":
        shape = (rows, -(-columns // args.group_size))
    else:
        shape = tuple(-(-n // b) for n, b in zip((rows, columns),
                                                  args.block_structure))
    largest = 448.0 if args.type == "float" else 2.0 ** (args.num_bits - 1) - 0.5
    scale = (torch.rand(shape) * 0.05 + 0.15).to(dtype) / largest
    state = {"weight": weight.to(dtype), "weight_scale": scale.to(dtype)}
    if not args.symmetric:
        least = -(2 ** (args.num_bits - 1))
        state["weight_zero_point"] = torch.randint(
            least, -least, shape, dtype=torch.int8)
    compressor = (PackedQuantizationCompressor if form == "pack-quantized"
                  else NaiveQuantizationCompressor)
    stored = compressor.compress(state, scheme)
    made = compressor.decompress(dict(stored), scheme)
    config = {"quant_method": "compressed-tensors", "format": form,
              "quantization_status": "compressed", "ignore": ["lm_head"],
              "config_groups": {"group_0": {
                  "targets": ["Linear"],
                  "weights": json.loads(args.model_dump_json()),
                  "input_activations": None, "output_activations": None}}}
    add(name, config, stored, made["weight"], encoding)


compressed("ct_int4_group", "i4-g32", "pack-quantized", num_bits=4,
           strategy="group", group_size=32)
compressed("ct_int4_asym", "i4-g32-min", "pack-quantized", num_bits=4,
           symmetric=False, strategy="group", group_size=32)
compressed("ct_int4_channel", "i4-g64", "pack-quantized", num_bits=4,
           strategy="channel")
compressed("ct_int4_odd", "i4-g64", "pack-quantized", columns=52, num_bits=4,
           strategy="channel", dtype=torch.float32)
compressed("ct_int4_odd_rows", "i4-g32-min", "pack-quantized", rows=12,
           num_bits=4, symmetric=False, strategy="group", group_size=32)
compressed("ct_int8_pack", "i8-g32", "pack-quantized", num_bits=8,
           strategy="group", group_size=32, dtype=torch.float16)
compressed("ct_int8_channel", "i8-g64", "int-quantized", num_bits=8,
           strategy="channel")
compressed("ct_int8_tensor", "i8-g64", "int-quantized", num_bits=8,
           strategy="tensor", dtype=torch.float32)
compressed("ct_int8_asym", "i8-g32", "int-quantized", num_bits=8,
           symmetric=False, strategy="channel")
compressed("ct_fp8_channel", "f16", "float-quantized", num_bits=8, type="float",
           strategy="channel")
compressed("ct_fp8_tensor", "f16", "float-quantized", num_bits=8, type="float",
           strategy="tensor", dtype=torch.float32)
compressed("ct_fp8_block", "f16", "float-quantized", rows=48, columns=80,
           num_bits=8, type="float", strategy="block", block_structure=[32, 32],
           dtype=torch.float32)


# --- FP8 as DeepSeek and AutoFP8 store it ------------------------------------

def fp8(name, scale_name, block, dtype=torch.float32, rows=40, columns=72):
    weight = (torch.randn(rows, columns) * 100).clamp(-448, 448).to(
        torch.float8_e4m3fn)
    if block:
        shape = tuple(-(-n // b) for n, b in zip((rows, columns), block))
    else:
        shape = ()
    scale = torch.rand(shape) * 1e-3 + 1e-4
    if dtype == "e8m0":
        scale = torch.exp2(torch.randint(-14, -8, shape).float()).to(
            torch.float8_e8m0fnu)
    wide = scale.float()
    if block:
        wide = wide.repeat_interleave(block[0], 0)[:rows]
        wide = wide.repeat_interleave(block[1], 1)[:, :columns]
    config = {"quant_method": "fp8", "activation_scheme": "dynamic",
              "fmt": "e4m3"}
    if block:
        config["weight_block_size"] = block
    add(name, config, {"weight": weight, scale_name: scale},
        weight.float() * wide, "f16")


fp8("fp8_block", "weight_scale_inv", [32, 32])
fp8("fp8_block_e8m0", "weight_scale_inv", [32, 32], "e8m0")
fp8("fp8_tensor", "weight_scale", None)

save_file(tensors, "quantized-vectors.safetensors")
with open("quantized-vectors.json", "w") as file:
    json.dump(cases, file, indent=1)
    file.write("\n")
