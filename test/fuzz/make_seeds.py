"""Writes the seeds of the fuzz targets for models: small files that the readers
take, each with a part of the formats that the others lack.

    python make_seeds.py

seeds/safetensors and seeds/gguf are files; seeds/config holds JSON files with a
leading digit that says which file of which folder of seeds/models each is
(ConfigFuzz.cpp). Seeds of artifacts come from WriteArtifactSeeds.
"""
import json
import os
import shutil

import numpy as np
from gguf import GGUFWriter
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as Type
from safetensors.numpy import save_file

rng = np.random.default_rng(3)
HIDDEN, FFN, VOCAB, HEADS = 32, 64, 24, 2
CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama",
    "hidden_size": HIDDEN, "intermediate_size": FFN, "num_hidden_layers": 1,
    "num_attention_heads": HEADS, "num_key_value_heads": 1, "vocab_size": VOCAB,
    "max_position_embeddings": 64, "rms_norm_eps": 1e-5, "hidden_act": "silu",
    "rope_theta": 10000.0, "rope_scaling": None, "tie_word_embeddings": True,
    "bos_token_id": 1, "eos_token_id": [2, 3], "torch_dtype": "float16"}
LINEAR = {"self_attn.q_proj": (HIDDEN, HIDDEN),
          "self_attn.k_proj": (HIDDEN // HEADS, HIDDEN),
          "self_attn.v_proj": (HIDDEN // HEADS, HIDDEN),
          "self_attn.o_proj": (HIDDEN, HIDDEN), "mlp.gate_proj": (FFN, HIDDEN),
          "mlp.up_proj": (FFN, HIDDEN), "mlp.down_proj": (HIDDEN, FFN)}


def half(*shape):
    return rng.normal(0, 0.1, shape).astype(np.float16)


def folder(*names):
    path = os.path.join("seeds", *names)
    shutil.rmtree(path, ignore_errors=True)
    os.makedirs(path)
    return path


def dump(path, value):
    with open(path, "w") as file:
        json.dump(value, file, indent=1)


def rest():
    return {"model.embed_tokens.weight": half(VOCAB, HIDDEN),
            "model.norm.weight": half(HIDDEN),
            "model.layers.0.input_layernorm.weight": half(HIDDEN),
            "model.layers.0.post_attention_layernorm.weight": half(HIDDEN)}


def plain():
    tensors = rest()
    for name, shape in LINEAR.items():
        tensors[f"model.layers.0.{name}.weight"] = half(*shape)
    return tensors


def models():
    path = folder("models", "plain")
    dump(f"{path}/config.json", CONFIG)
    dump(f"{path}/generation_config.json",
         {"eos_token_id": 2, "temperature": 0.5, "top_k": 40, "top_p": 0.9})
    save_file(plain(), f"{path}/model.safetensors")

    path = folder("models", "shards")
    dump(f"{path}/config.json", CONFIG)
    tensors, where = list(plain().items()), {}
    for shard in range(2):
        name = f"model-{shard + 1:05}-of-00002.safetensors"
        part = dict(tensors[shard::2])
        save_file(part, f"{path}/{name}")
        where |= {key: name for key in part}
    dump(f"{path}/model.safetensors.index.json",
         {"metadata": {"total_size": 1}, "weight_map": where})

    path = folder("models", "quantized")
    tensors = rest()
    for name, (rows, columns) in LINEAR.items():
        words = lambda *shape: rng.integers(0, 2**31, shape).astype(np.int32)
        stem = f"model.layers.0.{name}"
        tensors |= {f"{stem}.qweight": words(columns // 8, rows),
                    f"{stem}.qzeros": words(columns // 32, rows // 8),
                    f"{stem}.scales": np.abs(half(columns // 32, rows)),
                    f"{stem}.g_idx": (np.arange(columns) // 32).astype(np.int32)}
    quantized = CONFIG | {"quantization_config": {
        "quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": False,
        "sym": False, "checkpoint_format": "gptq"}}
    dump(f"{path}/config.json", quantized)
    save_file(tensors, f"{path}/model.safetensors")

    path = folder("models", "adapter")
    stem = "base_model.model.model.layers.0.self_attn.q_proj"
    save_file({f"{stem}.lora_A.weight": half(2, HIDDEN),
               f"{stem}.lora_B.weight": half(HIDDEN, 2)},
              f"{path}/adapter_model.safetensors")
    dump(f"{path}/adapter_config.json",
         {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "bias": "none",
          "rank_pattern": {"q_proj": 2}, "alpha_pattern": {"^a.b": 1.0},
          "use_rslora": True, "target_modules": ["q_proj"]})


def configs():
    path = folder("config")
    files = ["plain/config.json", "quantized/config.json",
             "shards/model.safetensors.index.json",
             "plain/generation_config.json", "adapter/adapter_config.json"]
    for digit, name in enumerate(files):
        with open(f"seeds/models/{name}") as file:
            text = file.read()
        with open(f"{path}/{name.replace('/', '-')}", "w") as file:
            file.write(str(digit) + text)
    others = {
        "awq": {"quant_method": "awq", "bits": 4, "group_size": 32,
                "zero_point": True, "version": "gemm"},
        "compressed": {"quant_method": "compressed-tensors",
                       "format": "pack-quantized",
                       "quantization_status": "compressed",
                       "config_groups": {"group_0": {
                           "targets": ["Linear"], "weights": {
                               "num_bits": 4, "strategy": "group",
                               "group_size": 32}}}},
        "fp8": {"quant_method": "fp8", "weight_block_size": [32, 32]}}
    for name, quantization in others.items():
        with open(f"{path}/quantized-{name}.json", "w") as file:
            file.write("1" + json.dumps(
                CONFIG | {"quantization_config": quantization}))
    rope = CONFIG | {"rope_scaling": {
        "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
        "high_freq_factor": 4.0, "original_max_position_embeddings": 32}}
    with open(f"{path}/plain-rope.json", "w") as file:
        file.write("0" + json.dumps(rope))


def safetensors():
    path = folder("safetensors")
    save_file({"a": half(2, 3), "b": np.zeros((0, 4), np.float32),
               "c": np.array(1.0), "d": np.arange(5, dtype=np.int64)},
              f"{path}/mixed.safetensors", metadata={"format": "pt"})
    save_file({}, f"{path}/empty.safetensors")
    shutil.copy("seeds/models/adapter/adapter_model.safetensors",
                f"{path}/adapter.safetensors")


def gguf(name, hidden, head, kinds):
    """`kinds` are those of the matrices in turn, where their rows allow it."""
    ffn = FFN if hidden == HIDDEN else 32
    writer = GGUFWriter(f"seeds/gguf/{name}.gguf", "llama")
    writer.add_block_count(1)
    writer.add_context_length(64)
    writer.add_embedding_length(hidden)
    writer.add_feed_forward_length(ffn)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(1)
    writer.add_key_length(head)
    writer.add_value_length(head)
    writer.add_rope_dimension_count(head)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10000.0)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("llama-bpe")
    words = ["t", "1", "2", "t1", "t2"]
    writer.add_token_list(words + [f"w{i}" for i in range(VOCAB - len(words))])
    writer.add_token_types([1] * VOCAB)
    writer.add_token_merges(["t 1", "t 2"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_chat_template("{{ messages }}")

    def matrix(name, rows, columns, index):
        kind = kinds[index % len(kinds)]
        block, size = GGML_QUANT_SIZES[kind]
        if columns % block:
            kind = Type.F16
        if kind == Type.F16:
            writer.add_tensor(name, half(rows, columns))
            return
        data = rng.integers(0, 256, (rows * columns // block, size),
                            dtype=np.uint8)
        # Scales and minima are halves, of sizes that weights have.
        places = [size - 2] if kind == Type.Q6_K else [0]
        if kind in (Type.Q4_1, Type.Q5_1, Type.Q4_K, Type.Q5_K):
            places.append(2)
        for place in places:
            data[:, place:place + 2] = (half(len(data), 1) / 10).view(np.uint8)
        writer.add_tensor(name, data.reshape(rows, -1), raw_dtype=kind)

    matrix("token_embd.weight", VOCAB, hidden, 0)
    writer.add_tensor("output_norm.weight", np.ones(hidden, np.float32))
    for norm in ("attn_norm", "ffn_norm"):
        writer.add_tensor(f"blk.0.{norm}.weight", np.ones(hidden, np.float32))
    for index, (key, value) in enumerate({
            "attn_q": (HEADS * head, hidden), "attn_k": (head, hidden),
            "attn_v": (head, hidden), "attn_output": (hidden, HEADS * head),
            "ffn_gate": (ffn, hidden), "ffn_up": (ffn, hidden),
            "ffn_down": (hidden, ffn)}.items()):
        matrix(f"blk.0.{key}.weight", *value, index)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


models()
configs()
safetensors()
folder("gguf")
gguf("plain", HIDDEN, 16, [Type.F16])
gguf("blocks", HIDDEN, 16, [Type.Q8_0, Type.Q4_0, Type.Q4_1, Type.Q5_0,
                            Type.Q5_1])
gguf("kquants", 256, 8, [Type.Q4_K, Type.Q5_K, Type.Q6_K])
