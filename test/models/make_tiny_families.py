#!/usr/bin/env python3
"""Writes families/NAME: a tiny random model for each variation of a block.

Each has a vocabulary of 160 and no tokenizer, a context of 512, and windows and
original lengths far below that, so that short prompts reach past them. The
configs are written by hand in the forms in which checkpoints come (those of
transformers 4 and 5). The scales are chosen so that attention is far from
uniform and the logits have clear winners.

  python make_tiny_families.py [NAME ...]     needs torch, transformers, safetensors
"""

import json
import math
import os
import shutil
import sys
import tempfile
import zlib

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForImageTextToText

HERE = os.path.dirname(os.path.abspath(__file__))
COMMON = dict(vocab_size=160, max_position_embeddings=512, bos_token_id=None, eos_token_id=0,
              pad_token_id=None, use_cache=True, initializer_range=0.02)
SMALL = dict(COMMON, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, intermediate_size=48)


def llama(**more):
    return dict(SMALL, architectures=["LlamaForCausalLM"], model_type="llama", hidden_act="silu",
                rms_norm_eps=1e-5, rope_theta=10000.0, tie_word_embeddings=False,
                attention_dropout=0.0, torch_dtype="bfloat16", **more)


def neox(**more):
    return dict(COMMON, architectures=["GPTNeoXForCausalLM"], model_type="gpt_neox", hidden_size=32,
                num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, hidden_act="gelu",
                rotary_pct=0.25, rotary_emb_base=10000, layer_norm_eps=1e-5, attention_dropout=0.0,
                hidden_dropout=0.0, tie_word_embeddings=False, torch_dtype="float16", **more)


def stablelm(**more):
    return dict(SMALL, architectures=["StableLmForCausalLM"], model_type="stablelm", hidden_act="silu",
                num_attention_heads=2, num_key_value_heads=1, layer_norm_eps=1e-5, rope_theta=10000,
                partial_rotary_factor=0.25, attention_dropout=0.0, hidden_dropout=0.0,
                qk_layernorm=False, tie_word_embeddings=False, torch_dtype="bfloat16", **more)


def falcon(**more):
    config = dict(COMMON, architectures=["FalconForCausalLM"], model_type="falcon", hidden_size=32,
                  num_hidden_layers=2, num_attention_heads=4, layer_norm_epsilon=1e-5, alibi=False,
                  attention_dropout=0.0, hidden_dropout=0.0, activation="gelu",
                  apply_residual_connection_post_layernorm=False, torch_dtype="bfloat16")
    return dict(config, **more)


def experts(**more):
    return dict(SMALL, hidden_act="silu", rope_theta=10000.0, tie_word_embeddings=False,
                attention_dropout=0.0, output_router_logits=False, router_aux_loss_coef=0.02,
                torch_dtype="bfloat16", **more)


# Tensors that published checkpoints spell otherwise than today's transformers.
RENAMED = {"gpt-neox": {"lm_head.weight": "embed_out.weight"}}

CONFIGS = {
    "mixtral": experts(architectures=["MixtralForCausalLM"], model_type="mixtral",
                       rms_norm_eps=1e-5, sliding_window=None, num_local_experts=4,
                       num_experts_per_tok=2),
    "qwen3-moe": experts(architectures=["Qwen3MoeForCausalLM"], model_type="qwen3_moe", head_dim=16,
                         rms_norm_eps=1e-6, num_experts=8, num_experts_per_tok=3,
                         norm_topk_prob=True, moe_intermediate_size=24, decoder_sparse_step=1,
                         mlp_only_layers=[], use_sliding_window=False, sliding_window=None,
                         max_window_layers=2, attention_bias=False),
    # Experts in one layer of three, all of them for each token; one for each token.
    "qwen3-moe-mixed": dict(
        experts(architectures=["Qwen3MoeForCausalLM"], model_type="qwen3_moe", head_dim=8,
                rms_norm_eps=1e-6, num_experts=3, num_experts_per_tok=3, norm_topk_prob=False,
                moe_intermediate_size=16, decoder_sparse_step=2, mlp_only_layers=[3],
                use_sliding_window=False, sliding_window=None, max_window_layers=2,
                attention_bias=True), num_hidden_layers=4),
    "mixtral-one": experts(architectures=["MixtralForCausalLM"], model_type="mixtral",
                           rms_norm_eps=1e-5, sliding_window=40, num_local_experts=3,
                           num_experts_per_tok=1),
    "llama-linear": llama(rope_scaling=dict(type="linear", factor=4.0), attention_bias=True,
                          mlp_bias=True),
    "llama-dynamic": dict(llama(rope_scaling=dict(type="dynamic", factor=8.0)),
                          max_position_embeddings=64),
    "llama-yarn": llama(rope_scaling=dict(rope_type="yarn", factor=8.0,
                                          original_max_position_embeddings=64)),
    "qwen2-window": dict(SMALL, architectures=["Qwen2ForCausalLM"], model_type="qwen2",
                         hidden_act="silu", rms_norm_eps=1e-6, rope_theta=10000.0,
                         use_sliding_window=True, sliding_window=40, max_window_layers=1,
                         attention_dropout=0.0, tie_word_embeddings=False, torch_dtype="bfloat16"),
    "gemma2": dict(SMALL, architectures=["Gemma2ForCausalLM"], model_type="gemma2", head_dim=16,
                   hidden_activation="gelu_pytorch_tanh", hidden_act="gelu_pytorch_tanh",
                   rms_norm_eps=1e-6, rope_theta=10000.0, query_pre_attn_scalar=16,
                   sliding_window=40, attn_logit_softcapping=5.0, final_logit_softcapping=8.0,
                   attention_bias=False, attention_dropout=0.0, cache_implementation="hybrid",
                   torch_dtype="bfloat16"),
    "gemma3": dict(SMALL, architectures=["Gemma3ForCausalLM"], model_type="gemma3_text",
                   num_hidden_layers=3, head_dim=16, hidden_activation="gelu_pytorch_tanh",
                   rms_norm_eps=1e-6, rope_theta=100000.0, rope_local_base_freq=10000.0,
                   rope_scaling=dict(rope_type="linear", factor=4.0), query_pre_attn_scalar=24,
                   sliding_window=40, sliding_window_pattern=3, attn_logit_softcapping=None,
                   final_logit_softcapping=None, attention_bias=False, attention_dropout=0.0,
                   torch_dtype="bfloat16"),
    "gemma3-six": dict(SMALL, architectures=["Gemma3ForCausalLM"], model_type="gemma3_text",
                       num_hidden_layers=6, num_attention_heads=2, num_key_value_heads=1,
                       head_dim=16, hidden_activation="gelu_pytorch_tanh", rms_norm_eps=1e-6,
                       rope_theta=100000.0, rope_local_base_freq=10000.0, rope_scaling=None,
                       query_pre_attn_scalar=16, sliding_window=40, attention_bias=False,
                       attention_dropout=0.0, torch_dtype="bfloat16"),
    "phi3": dict(SMALL, architectures=["Phi3ForCausalLM"], model_type="phi3", hidden_act="silu",
                 rms_norm_eps=1e-5, rope_theta=10000.0, rope_scaling=None, sliding_window=50,
                 original_max_position_embeddings=512, attention_bias=False, attention_dropout=0.0,
                 embd_pdrop=0.0, resid_pdrop=0.0, tie_word_embeddings=False,
                 torch_dtype="bfloat16"),
    "phi4-mini": dict(SMALL, architectures=["Phi3ForCausalLM"], model_type="phi3", hidden_act="silu",
                      num_attention_heads=2, num_key_value_heads=1, rms_norm_eps=1e-5,
                      rope_theta=10000.0, partial_rotary_factor=0.75,
                      rope_scaling=dict(type="longrope",
                                        short_factor=[1.0, 1.0, 1.1, 1.2, 1.3, 1.5],
                                        long_factor=[1.0, 1.5, 2.5, 4.0, 7.0, 9.0]),
                      sliding_window=4096, original_max_position_embeddings=64,
                      attention_bias=False, attention_dropout=0.0, embd_pdrop=0.0, resid_pdrop=0.0,
                      full_attn_mod=1, interpolate_factor=1, lm_head_bias=False, mlp_bias=False,
                      tie_word_embeddings=True, torch_dtype="bfloat16"),
    "gpt2": dict(architectures=["GPT2LMHeadModel"], model_type="gpt2", vocab_size=160, n_positions=512,
                 n_ctx=512, n_embd=32, n_layer=2, n_head=4, n_inner=None, activation_function="gelu_new",
                 layer_norm_epsilon=1e-5, attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0,
                 bos_token_id=0, eos_token_id=0, initializer_range=0.02, torch_dtype="float32"),
    "gpt-neox": neox(use_parallel_residual=True),
    "gpt-neox-sequential": neox(use_parallel_residual=False),
    "olmo2": dict(SMALL, architectures=["Olmo2ForCausalLM"], model_type="olmo2", hidden_act="silu",
                  rms_norm_eps=1e-6, rope_theta=500000, rope_scaling=None, attention_bias=False,
                  attention_dropout=0.0, tie_word_embeddings=False, torch_dtype="bfloat16"),
    "smollm3": dict(SMALL, architectures=["SmolLM3ForCausalLM"], model_type="smollm3",
                    num_hidden_layers=4, hidden_act="silu", rms_norm_eps=1e-6, rope_theta=2000000.0,
                    rope_scaling=None, no_rope_layers=[1, 1, 1, 0], no_rope_layer_interval=4,
                    layer_types=["full_attention"] * 4, use_sliding_window=False,
                    sliding_window=None, max_window_layers=28, attention_bias=False, mlp_bias=False,
                    attention_dropout=0.0, pretraining_tp=2, tie_word_embeddings=True,
                    torch_dtype="bfloat16"),
    "granite": dict(SMALL, architectures=["GraniteForCausalLM"], model_type="granite",
                    hidden_act="silu", rms_norm_eps=1e-5, rope_theta=10000.0, rope_scaling=None,
                    embedding_multiplier=12.0, logits_scaling=2.0, residual_multiplier=0.22,
                    attention_multiplier=0.2, attention_bias=False, mlp_bias=False,
                    attention_dropout=0.1, tie_word_embeddings=False, torch_dtype="bfloat16"),
    "starcoder2": dict(SMALL, architectures=["Starcoder2ForCausalLM"], model_type="starcoder2",
                       hidden_act="gelu_pytorch_tanh", norm_epsilon=1e-5, rope_theta=100000,
                       use_bias=True, sliding_window=40, mlp_type="default", norm_type="layer_norm",
                       attention_dropout=0.1, residual_dropout=0.1, embedding_dropout=0.1,
                       attention_softmax_in_fp32=True, scale_attention_softmax_in_fp32=True,
                       scale_attn_weights=True, torch_dtype="bfloat16"),
    "stablelm": stablelm(use_qkv_bias=True, use_parallel_residual=False),
    "stablelm-parallel": stablelm(use_qkv_bias=False, use_parallel_residual=True),
    "stablelm-norms": dict(stablelm(use_qkv_bias=False, use_parallel_residual=True),
                           qk_layernorm=True, num_attention_heads=4, num_key_value_heads=2,
                           partial_rotary_factor=0.5),
    "cohere": dict(SMALL, architectures=["CohereForCausalLM"], model_type="cohere",
                   hidden_act="silu", layer_norm_eps=1e-5, logit_scale=0.5, rope_theta=10000.0,
                   use_qk_norm=True, attention_bias=False, attention_dropout=0.0,
                   torch_dtype="float16"),
    "cohere2": dict(SMALL, architectures=["Cohere2ForCausalLM"], model_type="cohere2",
                    num_hidden_layers=4, head_dim=8, hidden_act="silu", layer_norm_eps=1e-5,
                    logit_scale=0.5, rope_theta=50000, sliding_window=40,
                    layer_types=["sliding_attention"] * 3 + ["full_attention"],
                    attention_bias=False, attention_dropout=0.0, torch_dtype="bfloat16"),
    "falcon": falcon(new_decoder_architecture=False, multi_query=True, parallel_attn=True, bias=False),
    "falcon-alibi": dict(falcon(new_decoder_architecture=False, multi_query=False, parallel_attn=False,
                                bias=True), alibi=True),
    "bloom": dict(architectures=["BloomForCausalLM"], model_type="bloom", vocab_size=160,
                  bos_token_id=None, eos_token_id=0, use_cache=True, hidden_size=48, n_layer=2,
                  n_head=6, seq_length=512, layer_norm_epsilon=1e-5, attention_dropout=0.0,
                  hidden_dropout=0.0, pretraining_tp=1,
                  slow_but_exact=False, offset_alibi=100, masked_softmax_fusion=True,
                  apply_residual_connection_post_layernorm=False, torch_dtype="float16"),
    "mpt": dict(architectures=["MPTForCausalLM"], model_type="mpt", vocab_size=160, d_model=48,
                n_layers=2, n_heads=6, expansion_ratio=4, max_seq_len=512, no_bias=True,
                emb_pdrop=0, resid_pdrop=0, learned_pos_emb=True, logit_scale=None,
                norm_type="low_precision_layernorm", use_cache=False, init_device="cpu", verbose=0,
                embedding_fraction=1.0, torch_dtype="bfloat16", eos_token_id=0,
                attn_config=dict(alibi=True, alibi_bias_max=8, attn_impl="torch", attn_pdrop=0,
                                 attn_type="multihead_attention", attn_uses_sequence_id=False,
                                 clip_qkv=None, prefix_lm=False, qk_ln=False, softmax_scale=None)),
    "falcon-groups": falcon(new_decoder_architecture=True, num_kv_heads=2, multi_query=True,
                            parallel_attn=True, bias=False),
    "falcon-sequential": falcon(new_decoder_architecture=False, multi_query=False,
                                parallel_attn=False, bias=True),
}

# Models that see images too, of which the text part is read. The keys are where
# published checkpoints have them: Qwen 2.5's among those of the whole, as in its
# first files, Gemma's partly nowhere.
SEES = dict(hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
            image_size=28, patch_size=14)
QWEN_SEES = dict(depth=1, hidden_size=16, intermediate_size=16, num_heads=2, out_hidden_size=32)
QWEN_IMAGES = dict(image_token_id=155, video_token_id=156, vision_start_token_id=157,
                   vision_end_token_id=158)
CONFIGS |= {
    "gemma3-images": dict(
        architectures=["Gemma3ForConditionalGeneration"], model_type="gemma3",
        boi_token_index=157, eoi_token_index=158, image_token_index=155, eos_token_id=[0, 1],
        mm_tokens_per_image=4, initializer_range=0.02, torch_dtype="bfloat16",
        vision_config=dict(SEES, model_type="siglip_vision_model", vision_use_head=False),
        text_config=dict(model_type="gemma3_text", vocab_size=160, hidden_size=32,
                         intermediate_size=48, num_hidden_layers=6, head_dim=8,
                         max_position_embeddings=512, sliding_window=40, query_pre_attn_scalar=8,
                         rope_scaling=dict(rope_type="linear", factor=8.0))),
    "qwen2-images": dict(
        SMALL, architectures=["Qwen2_5_VLForConditionalGeneration"], model_type="qwen2_5_vl",
        hidden_act="silu", rms_norm_eps=1e-6, rope_theta=1000000.0, max_window_layers=2,
        sliding_window=32768, use_sliding_window=False, attention_dropout=0.0,
        tie_word_embeddings=False, rope_scaling=dict(type="mrope", mrope_section=[1, 1, 2]),
        vision_token_id=159, vision_config=dict(QWEN_SEES, fullatt_block_indexes=[0]),
        torch_dtype="bfloat16", **QWEN_IMAGES),
    "qwen3-images": dict(
        architectures=["Qwen3VLForConditionalGeneration"], model_type="qwen3_vl",
        tie_word_embeddings=False, torch_dtype="bfloat16",
        vision_config=dict(QWEN_SEES, num_position_embeddings=16, deepstack_visual_indexes=[0]),
        text_config=dict(SMALL, model_type="qwen3_vl_text", hidden_act="silu", head_dim=16,
                         rms_norm_eps=1e-6, attention_bias=False, attention_dropout=0.0,
                         rope_theta=5000000, rope_scaling=dict(
                             rope_type="default", mrope_section=[4, 2, 2], mrope_interleaved=True)),
        **QWEN_IMAGES),
    "mistral3-images": dict(
        architectures=["Mistral3ForConditionalGeneration"], model_type="mistral3",
        image_token_index=155, multimodal_projector_bias=False, projector_hidden_act="gelu",
        spatial_merge_size=2, vision_feature_layer=-1, torch_dtype="bfloat16",
        tie_word_embeddings=False,
        vision_config=dict(SEES, model_type="pixtral", head_dim=8),
        text_config=dict(SMALL, model_type="mistral", hidden_act="silu", head_dim=8,
                         rms_norm_eps=1e-5, rope_theta=1000000000.0, sliding_window=None,
                         attention_dropout=0.0)),
    "smolvlm": dict(
        architectures=["SmolVLMForConditionalGeneration"], model_type="smolvlm",
        image_token_id=155, scale_factor=2, tie_word_embeddings=False, torch_dtype="bfloat16",
        vision_config=dict(SEES, model_type="smolvlm_vision"),
        text_config=dict(SMALL, model_type="llama", hidden_act="silu", rms_norm_eps=1e-5,
                         rope_theta=100000.0, attention_bias=False, mlp_bias=False,
                         pretraining_tp=1, attention_dropout=0.0, tie_word_embeddings=False)),
}


def model_of(config):
    """A model of the class that reads the config."""
    sees = hasattr(config, "vision_config")
    return (AutoModelForImageTextToText if sees else AutoModelForCausalLM).from_config(config)


def random_weight(name, shape, config):
    """Scaled by the part of the name that says what the tensor does."""
    tied = config.tie_word_embeddings
    if any(part in name for part in ("visual.", "vision_", "projector.", "connector.")):
        return 0.02 * torch.randn(shape)
    last = name.removesuffix(".weight").rsplit(".", 1)[-1]
    offset = 1.0 if config.model_type.startswith("gemma") else 0.0
    if len(shape) == 1 and name.endswith(".bias"):
        return 0.3 * torch.randn(shape)
    if "norm" in last or last.startswith("ln_") or ".norms." in name:
        # With positive scales a tied head would only echo the last token.
        final = ".layers." not in name and ".h." not in name
        return (torch.randn(shape) if final and tied else 1 + 0.2 * torch.randn(shape)) - offset
    if last in ("embed_tokens", "embed_in", "wte", "wpe", "word_embeddings"):
        return 0.35 * torch.randn(shape)
    fan_in = shape[0] if config.model_type == "gpt2" and last.startswith("c_") else shape[-1]
    gain = {"lm_head": 3.0, "embed_out": 3.0, "q_proj": 1.6, "k_proj": 1.6, "qkv_proj": 1.4,
            "query_key_value": 1.4, "c_attn": 1.4, "Wqkv": 1.4, "gate": 2.0}.get(last, 1.0)
    return gain / math.sqrt(fan_in) * torch.randn(shape)


def published(weights, family):
    """Experts as checkpoints have them: a matrix each, where transformers stacks them."""
    names = {"gate_proj": "gate_proj", "up_proj": "up_proj", "down_proj": "down_proj"}
    if family == "mixtral":
        names = {"gate_proj": "w1", "up_proj": "w3", "down_proj": "w2"}
    made = {}
    for key, value in weights.items():
        stem, _, last = key.rpartition(".")
        if stem.endswith(".experts"):
            parts = {last: value}
            if last == "gate_up_proj":
                half = value.shape[1] // 2
                parts = {"gate_proj": value[:, :half], "up_proj": value[:, half:]}
            for part, matrices in parts.items():
                for e, matrix in enumerate(matrices):
                    made[f"{stem}.{e}.{names[part]}.weight"] = matrix.contiguous()
        else:
            made[key] = value
    if family == "mixtral":
        made = {key.replace(".mlp.", ".block_sparse_moe."): v for key, v in made.items()}
    return made


def as_saved(model, weights):
    """The weights by the names that transformers saves them by."""
    own = {key: float(i) for i, key in enumerate(weights)}
    with tempfile.TemporaryDirectory() as folder:
        with torch.no_grad():
            for key, tensor in model.state_dict().items():
                if key in own:  # a tied head is the embedding's own memory
                    tensor.fill_(own[key])
        model.save_pretrained(folder)
        saved = load_file(os.path.join(folder, "model.safetensors"))
    keys = list(weights)
    made = {name: weights[keys[int(tensor.flatten()[0])]] for name, tensor in saved.items()}
    for name, tensor in saved.items():
        assert made[name].shape == tensor.shape, name
    return made


def make(name, config):
    folder = os.path.join(HERE, "families", name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8", newline="\n") as f:
        json.dump(config, f, indent=2)
        f.write("\n")
    model = model_of(AutoConfig.from_pretrained(folder))
    torch.manual_seed(zlib.crc32(name.encode()))
    dtype = getattr(torch, config["torch_dtype"])
    weights = {}
    for key, value in sorted(model.state_dict().items()):
        if key == "lm_head.weight" and model.config.tie_word_embeddings:
            continue
        key_in_file = RENAMED.get(name, {}).get(key, key)
        weights[key_in_file] = random_weight(key, value.shape, model.config).to(dtype).contiguous()
    weights = published(weights, config["model_type"])
    if "vision_config" in config:
        weights = as_saved(model, weights)
    path = os.path.join(folder, "model.safetensors")
    save_file(weights, path, metadata={"format": "pt"})
    os.chmod(path, 0o644)
    print(f"{name}: {sum(w.numel() for w in weights.values())} parameters")


if __name__ == "__main__":
    for model_name in sys.argv[1:] or CONFIGS:
        make(model_name, CONFIGS[model_name])
