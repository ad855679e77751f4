#!/usr/bin/env python3
"""Writes GGUF files of models that make_family_ggufs.py cannot make.

  python make_own_ggufs.py       needs gguf, safetensors, torch

The gguf package writes them; names of keys and tensors and their shapes are those
that llama.cpp's loader reads. families-gguf/stablelm-norms.gguf: the norms of heads
as one matrix, which the converter drops for one layer norm a head. encoders-gguf:
bert with its vocabulary, for which the converter needs a tokenizer it knows.
"""

import json
import os

import gguf
import torch
from safetensors.torch import load_file

HERE = os.path.dirname(os.path.abspath(__file__))


def open_folder(name):
    folder = os.path.join(HERE, name)
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
        config = json.load(f)
    return folder, config, load_file(os.path.join(folder, "model.safetensors"))


def finish(writer, path):
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    os.chmod(path, 0o644)


def sizes(writer, config):
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_layer_norm_eps(config["layer_norm_eps"])


def add_tensors(writer, weights, names, arch, layers):
    mapping = gguf.get_tensor_name_map(arch, layers)
    for key, tensor in sorted(weights.items()):
        name = names.get(key) or mapping.get_name(key, try_suffixes=(".weight", ".bias"))
        assert name, key
        # Vectors are float32 in such files, whatever the matrices are.
        writer.add_tensor(name, tensor.float().numpy())


def stablelm_norms():
    _, config, weights = open_folder("families/stablelm-norms")
    path = os.path.join(HERE, "families-gguf", "stablelm-norms.gguf")
    writer = gguf.GGUFWriter(path, "stablelm")
    sizes(writer, config)
    heads = config["num_attention_heads"]
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_dimension_count(
        int(config["partial_rotary_factor"] * config["hidden_size"] // heads))
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_parallel_residual(config["use_parallel_residual"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_tokenizer_model("none")
    made = {}
    for key, tensor in weights.items():
        stem, _, rest = key.partition("_layernorm.norms.")
        if not rest:
            made[key] = tensor
        elif rest == "0.weight":
            count = heads if stem.endswith("q") else config["num_key_value_heads"]
            rows = [weights[f"{stem}_layernorm.norms.{i}.weight"] for i in range(count)]
            made[f"{stem}_layernorm.weight"] = torch.stack(rows)
    add_tensors(writer, made, {}, gguf.MODEL_ARCH.STABLELM, config["num_hidden_layers"])
    finish(writer, path)


def bert():
    folder, config, weights = open_folder("encoders/bert")
    out = os.path.join(HERE, "encoders-gguf")
    os.makedirs(out, exist_ok=True)
    path = os.path.join(out, "bert.gguf")
    writer = gguf.GGUFWriter(path, "bert")
    sizes(writer, config)
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    writer.add_token_type_count(config["type_vocab_size"])
    with open(os.path.join(folder, "tokenizer.json"), encoding="utf-8") as f:
        tokenizer = json.load(f)
    special = {t["content"]: t["id"] for t in tokenizer["added_tokens"]}
    vocab = sorted(tokenizer["model"]["vocab"].items(), key=lambda e: e[1])
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([t if t in special else t[2:] if t.startswith("##") else "\u2581" + t
                           for t, _ in vocab])
    writer.add_token_types([gguf.TokenType.UNKNOWN if t == "[UNK]" else
                            gguf.TokenType.CONTROL if t in special else gguf.TokenType.NORMAL
                            for t, _ in vocab])
    writer.add_unk_token_id(special["[UNK]"])
    writer.add_sep_token_id(special["[SEP]"])
    writer.add_pad_token_id(special["[PAD]"])
    writer.add_bos_token_id(special["[CLS]"])
    writer.add_mask_token_id(special["[MASK]"])
    weights = {k: v for k, v in weights.items() if not k.startswith("pooler.") and
               k != "embeddings.position_ids"}
    add_tensors(writer, weights, {}, gguf.MODEL_ARCH.BERT, config["num_hidden_layers"])
    finish(writer, path)


if __name__ == "__main__":
    stablelm_norms()
    bert()
