#!/usr/bin/env python3
"""Writes the tiny random models, one a family: tiny-{llama,mistral,qwen2,qwen3}.

They mean nothing; each exists for the shape of its family and for the form in
which a checkpoint may come:

  tiny-llama    llama3 rotary scaling, a head of its own (untied), float16, two
                shards and an index, config in the form of transformers 4
  tiny-mistral  sliding window of 64, head_dim 24 (not hidden / heads), bfloat16
  tiny-qwen2    biases of q, k and v, tied head, float32
  tiny-qwen3    norms of q and k, heads x head_dim = 2 x hidden, bfloat16, config
                in the form of transformers 5 (rope_parameters, dtype)

The scales are chosen so that attention is far from uniform and the logits have
clear winners; with the usual 0.02 a wrong kernel would hardly show. The
tokenizer is that of the trained models, which must exist already.

  python make_tiny_random.py          needs torch, transformers, safetensors
"""

import json
import math
import os
import shutil

import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

HERE = os.path.dirname(os.path.abspath(__file__))
VOCAB = 1024
COMMON = dict(vocab_size=VOCAB, hidden_act="silu", max_position_embeddings=1024,
              attention_dropout=0.0, initializer_range=0.02, use_cache=True,
              bos_token_id=None, eos_token_id=0)

CONFIGS = {
    "tiny-llama": dict(
        architectures=["LlamaForCausalLM"], model_type="llama", hidden_size=48,
        num_hidden_layers=3, num_attention_heads=3, num_key_value_heads=1, head_dim=16,
        intermediate_size=112, rms_norm_eps=1e-5, rope_theta=10000.0,
        rope_scaling=dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0,
                          high_freq_factor=4.0, original_max_position_embeddings=256),
        attention_bias=False, mlp_bias=False, tie_word_embeddings=False,
        torch_dtype="float16", **COMMON),
    "tiny-mistral": dict(
        architectures=["MistralForCausalLM"], model_type="mistral", hidden_size=48,
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=24,
        intermediate_size=80, rms_norm_eps=1e-5, rope_theta=10000.0, sliding_window=64,
        tie_word_embeddings=False, torch_dtype="bfloat16", **COMMON),
    "tiny-qwen2": dict(
        architectures=["Qwen2ForCausalLM"], model_type="qwen2", hidden_size=48,
        num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=1,
        intermediate_size=72, rms_norm_eps=1e-6, rope_theta=1000000.0,
        use_sliding_window=False, sliding_window=32, max_window_layers=2,
        tie_word_embeddings=True, torch_dtype="float32", **COMMON),
    "tiny-qwen3": dict(
        architectures=["Qwen3ForCausalLM"], model_type="qwen3", hidden_size=64,
        num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=32,
        intermediate_size=96, rms_norm_eps=1e-6,
        rope_parameters=dict(rope_type="default", rope_theta=1000000.0),
        attention_bias=False, use_sliding_window=False, sliding_window=None,
        max_window_layers=2, tie_word_embeddings=True, dtype="bfloat16", **COMMON),
}


def random_weight(name, shape, tied):
    """Scaled by the part of the name that says what the tensor does."""
    if name == "model.norm.weight" and tied:
        # With positive scales a tied head would only echo the last token.
        return torch.randn(shape)
    if name.endswith("norm.weight"):
        return 1 + 0.2 * torch.randn(shape)
    if name.endswith(".bias"):
        return 0.5 * torch.randn(shape)
    if "embed_tokens" in name:
        return 0.35 * torch.randn(shape)
    gain = 3.0 if "lm_head" in name else 1.6 if "q_proj" in name or "k_proj" in name else 1.0
    return gain / math.sqrt(shape[1]) * torch.randn(shape)


def write_json(path, value):
    with open(path, "w", encoding="utf-8", newline="\n") as f:
        json.dump(value, f, indent=2)
        f.write("\n")


def write_weights(path, weights):
    save_file(weights, path, metadata={"format": "pt"})
    os.chmod(path, 0o644)


def make(name, config, seed):
    folder = os.path.join(HERE, name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    write_json(os.path.join(folder, "config.json"), config)
    for file in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        shutil.copyfile(os.path.join(HERE, "target", file), os.path.join(folder, file))

    # The class tells the names and shapes; the order of drawing is that of the names.
    model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder))
    torch.manual_seed(seed)
    dtype = getattr(torch, config.get("dtype") or config["torch_dtype"])
    tied = config["tie_word_embeddings"]
    weights = {}
    for key, value in sorted(model.state_dict().items()):
        if not (tied and key == "lm_head.weight"):
            weights[key] = random_weight(key, value.shape, tied).to(dtype).contiguous()
    if name != "tiny-llama":
        write_weights(os.path.join(folder, "model.safetensors"), weights)
        return

    # Two shards, cut in the middle of a layer as large checkpoints are.
    keys = list(weights)
    cut = len(keys) // 2
    where, total = {}, 0
    for i, part in enumerate((keys[:cut], keys[cut:]), 1):
        file = f"model-{i:05}-of-00002.safetensors"
        write_weights(os.path.join(folder, file), {k: weights[k] for k in part})
        where.update({k: file for k in part})
        total += sum(weights[k].nbytes for k in part)
    write_json(os.path.join(folder, "model.safetensors.index.json"),
               dict(metadata=dict(total_size=total), weight_map=where))


if __name__ == "__main__":
    for number, (model_name, model_config) in enumerate(CONFIGS.items()):
        make(model_name, model_config, 1000 + number)
