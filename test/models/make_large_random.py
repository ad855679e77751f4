#!/usr/bin/env python3
"""Writes a Llama folder of random weights of any size, in pieces: what a large
checkpoint looks like on disk, without one.

    make_large_random.py FOLDER [--size 8b|small] [--layers N] [--seed 1]

  8b     32 layers of 4096, 14336 inside, 32 heads and 8 for keys, a vocabulary of
         128256: 8.03 billion parameters, 16.1 GB
  small  8 layers of 1024, 4096 inside, 16 heads and 4 for keys, a vocabulary of
         8192: 142 million parameters, 0.28 GB

Every number of every tensor is drawn, bfloat16: bits of a seeded generator, whose
exponents are spread like those of normal numbers with a standard deviation near 0.02,
one in 256 up to eight times as large. Norms lie between 0.75 and 1.5. Shards are
cut at 2 GB. The tokenizer is byte-level BPE with as many tokens as the config says,
merges of bytes and of pairs. At most --piece-mb (16) of a tensor are in memory.

Standard library only.
"""
import argparse
import json
import os
import random
import struct

SIZES = {
    "8b": dict(hidden_size=4096, intermediate_size=14336, num_hidden_layers=32,
               num_attention_heads=32, num_key_value_heads=8, vocab_size=128256),
    "small": dict(hidden_size=1024, intermediate_size=4096, num_hidden_layers=8,
                  num_attention_heads=16, num_key_value_heads=4, vocab_size=8192),
}
SHARD_BYTES = 2_000_000_000
NUM_SPECIAL = 256  # tokens at the end of the vocabulary, as Llama 3 has them


def config_of(size, layers):
    config = dict(
        architectures=["LlamaForCausalLM"], model_type="llama", **SIZES[size],
        hidden_act="silu", max_position_embeddings=8192, rms_norm_eps=1e-5,
        rope_theta=500000.0, rope_scaling=None, attention_bias=False,
        attention_dropout=0.0, mlp_bias=False, tie_word_embeddings=False,
        initializer_range=0.02, use_cache=True, torch_dtype="bfloat16")
    if layers:
        config["num_hidden_layers"] = layers
    config["bos_token_id"] = config["vocab_size"] - NUM_SPECIAL
    config["eos_token_id"] = config["bos_token_id"] + 1
    return config


def tensors_of(config):
    """(name, shape) in the order of the file."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    keys = hidden // config["num_attention_heads"] * config["num_key_value_heads"]
    yield "model.embed_tokens.weight", (config["vocab_size"], hidden)
    for i in range(config["num_hidden_layers"]):
        layer = f"model.layers.{i}."
        yield layer + "input_layernorm.weight", (hidden,)
        yield layer + "self_attn.q_proj.weight", (hidden, hidden)
        yield layer + "self_attn.k_proj.weight", (keys, hidden)
        yield layer + "self_attn.v_proj.weight", (keys, hidden)
        yield layer + "self_attn.o_proj.weight", (hidden, hidden)
        yield layer + "post_attention_layernorm.weight", (hidden,)
        yield layer + "mlp.gate_proj.weight", (inner, hidden)
        yield layer + "mlp.up_proj.weight", (inner, hidden)
        yield layer + "mlp.down_proj.weight", (hidden, inner)
    yield "model.norm.weight", (hidden,)
    yield "lm_head.weight", (config["vocab_size"], hidden)


def high_bytes():
    """Sign and upper seven bits of the exponent, by a random byte. A byte 0x3c
    stands for 2^-7 to 2^-5, one below for a quarter of that."""
    table = [0x3d]
    for high, share in ((0x3c, 95), (0x3b, 24), (0x3a, 6), (0x39, 2)):
        table += [high] * share
    return bytes(table + [high | 0x80 for high in table])


MATRIX_HIGH = high_bytes()
NORM_LOW = bytes(0x40 + (byte & 0x7f) for byte in range(256))


def random_numbers(generator, count, is_norm):
    data = bytearray(generator.randbytes(2 * count))
    if is_norm:
        data[0::2] = data[0::2].translate(NORM_LOW)
        data[1::2] = b"\x3f" * count
    else:
        data[1::2] = data[1::2].translate(MATRIX_HIGH)
    return data


def elements(shape):
    count = 1
    for side in shape:
        count *= side
    return count


def write_shard(path, tensors, seed, piece):
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors:
        size = 2 * elements(shape)
        header[name] = dict(dtype="BF16", shape=list(shape), data_offsets=[offset, offset + size])
        offset += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in tensors:
            generator = random.Random(f"{seed} {name}")
            left = elements(shape)
            while left:
                count = min(left, piece)
                file.write(random_numbers(generator, count, len(shape) == 1))
                left -= count
    return offset


def byte_characters():
    """The printable characters that byte-level BPE writes bytes with."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = (chr(256 + i) for i in range(256))
    return [chr(byte) if byte in kept else next(others) for byte in range(256)]


def tokenizer_of(vocab_size):
    characters = byte_characters()
    tokens = list(characters)
    merges = []
    wanted = vocab_size - NUM_SPECIAL

    def merge(firsts):
        for first in firsts:
            for second in characters:
                if len(tokens) == wanted:
                    return
                merges.append([first, second])
                tokens.append(first + second)

    merge(list(characters))
    merge(tokens[256:])
    names = ["<|begin_of_text|>", "<|end_of_text|>"]
    names += [f"<|reserved_{i}|>" for i in range(NUM_SPECIAL - len(names))]
    added = [dict(id=wanted + i, content=name, single_word=False, lstrip=False, rstrip=False,
                  normalized=False, special=True) for i, name in enumerate(names)]
    level = dict(type="ByteLevel", add_prefix_space=False, trim_offsets=True, use_regex=True)
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        "normalizer": None, "pre_tokenizer": level, "post_processor": None, "decoder": level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None,
                  "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": {token: i for i, token in enumerate(tokens)}, "merges": merges},
    }


def write_json(path, value):
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        json.dump(value, file)
        file.write("\n")


def make(folder, size, layers=None, seed=1, piece_bytes=16 << 20):
    """Writes the folder; the number of parameters."""
    os.makedirs(folder, exist_ok=True)
    config = config_of(size, layers)
    write_json(os.path.join(folder, "config.json"), config)
    write_json(os.path.join(folder, "tokenizer.json"), tokenizer_of(config["vocab_size"]))
    write_json(os.path.join(folder, "tokenizer_config.json"),
               dict(tokenizer_class="PreTrainedTokenizerFast", bos_token="<|begin_of_text|>",
                    eos_token="<|end_of_text|>"))
    shards, filled = [[]], 0
    for name, shape in tensors_of(config):
        if shards[-1] and filled + 2 * elements(shape) > SHARD_BYTES:
            shards.append([])
            filled = 0
        shards[-1].append((name, shape))
        filled += 2 * elements(shape)
    where, total = {}, 0
    for i, tensors in enumerate(shards, 1):
        file = f"model-{i:05}-of-{len(shards):05}.safetensors"
        total += write_shard(os.path.join(folder, file), tensors, seed, max(1, piece_bytes // 2))
        where.update({name: file for name, _ in tensors})
    write_json(os.path.join(folder, "model.safetensors.index.json"),
               dict(metadata=dict(total_size=total), weight_map=where))
    return total // 2


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--size", choices=sorted(SIZES), default="8b")
    parser.add_argument("--layers", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--piece-mb", type=int, default=16)
    options = parser.parse_args()
    parameters = make(options.folder, options.size, options.layers, options.seed,
                      options.piece_mb << 20)
    print(f"{parameters} parameters in {options.folder}")
