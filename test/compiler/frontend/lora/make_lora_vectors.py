"""Writes a tiny llama, adapters of it, and the weights that PEFT merges.

    python make_lora_vectors.py

Folders base, plain, rslora, patterns, embedding and half are as transformers and
PEFT save them; expected.safetensors holds, by adapter, every weight that
merge_and_unload changes. "both" is plain at half its strength, then rslora.
"""
import shutil

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(5)
config = LlamaConfig(hidden_size=16, intermediate_size=24, num_hidden_layers=2,
                     num_attention_heads=2, num_key_value_heads=1, vocab_size=40,
                     max_position_embeddings=64, tie_word_embeddings=False)
LlamaForCausalLM(config).save_pretrained("base")


def base():
    return LlamaForCausalLM.from_pretrained("base", dtype=torch.float32)


def adapter(name, half=False, **arguments):
    model = get_peft_model(base(), LoraConfig(**arguments))
    for key, value in model.named_parameters():
        if "lora_" in key:
            value.data = torch.randn_like(value) * 0.2
            if half:
                value.data = value.data.half()
    model.save_pretrained(name)
    shutil.os.remove(f"{name}/README.md")


ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj",
       "down_proj"]
adapter("plain", r=4, lora_alpha=8, target_modules=["q_proj", "k_proj"])
adapter("rslora", r=3, lora_alpha=6, use_rslora=True, target_modules=ALL)
adapter("patterns", r=2, lora_alpha=3, target_modules=ALL,
        rank_pattern={"down_proj": 3, "model.layers.1.self_attn.q_proj": 4},
        alpha_pattern={"q_proj": 5.0, "^model.layers.0.mlp.up_proj": 7.0})
adapter("embedding", r=2, lora_alpha=4, target_modules=["embed_tokens",
                                                        "lm_head"])
adapter("half", half=True, r=2, lora_alpha=4, target_modules=["o_proj"])


def merged(steps):
    model = base()
    for name, scale in steps:
        wrapped = PeftModel.from_pretrained(model, name)
        for module in wrapped.modules():
            if hasattr(module, "scale_layer"):
                module.scale_layer(scale)
        model = wrapped.merge_and_unload()
    return model.state_dict()


start, expected = base().state_dict(), {}
for name, steps in {
        "plain": [("plain", 1.0)], "rslora": [("rslora", 1.0)],
        "patterns": [("patterns", 1.0)], "embedding": [("embedding", 1.0)],
        "half": [("half", 1.0)],
        "both": [("plain", 0.5), ("rslora", 1.0)]}.items():
    for key, value in merged(steps).items():
        if not torch.equal(value, start[key]):
            expected[f"{name}.{key}"] = value.clone()
save_file(expected, "expected.safetensors")
