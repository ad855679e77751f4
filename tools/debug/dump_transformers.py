#!/usr/bin/env python3
"""Writes the intermediates of a Hugging Face model under Ingot's names.

    dump_transformers.py MODEL --tokens 1,5,9 -o dump.safetensors
    ingot debug compare model.ingot dump.safetensors

The names are those of docs/debugging.md: layer.3.q, layer.3.attention,
layer.3.ffn_residual, final_norm, lm_head. A module that has no such name is left out
and listed on standard error; "tokens" holds the ids. Needs torch, transformers and
safetensors.
"""
import argparse
import re
import sys

import torch
import transformers
from safetensors.torch import save_file

# The last part of a module's path within its layer: the result's name.
OUTPUTS = {
    "q_proj": "q", "k_proj": "k", "v_proj": "v", "q_norm": "q_norm", "k_norm": "k_norm",
    "self_attn.o_proj": "o", "self_attn.dense": "o", "attention.dense": "o",
    "self_attention.dense": "o", "attn.c_proj": "o",
    "gate_proj": "gate", "up_proj": "up", "mlp.c_fc": "up", "mlp.dense_h_to_4h": "up",
    "mlp.down_proj": "down", "mlp.c_proj": "down", "mlp.dense_4h_to_h": "down",
    "input_layernorm": "attn_norm", "ln_1": "attn_norm", "ln_2": "ffn_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "ffn_post_norm",
}
# What such a module is given.
INPUTS = {"o": "attention", "down": "activation"}
CONTAINERS = {"self_attn", "self_attention", "attention", "attn", "mlp", "act_fn", "act",
              "rotary_emb", "resid_dropout", "attn_dropout", "dropout"}


def rows(value):
    """[1, positions, ...] as [positions, columns]."""
    if isinstance(value, tuple):
        value = value[0]
    value = value.detach().to(torch.float32)
    return value.reshape(value.shape[1], -1).contiguous().clone()


class Dump:
    def __init__(self, model):
        self.tensors = {}
        self.left_out = set()
        layer_path = re.compile(r"(?:^|\.)(?:layers|h)\.(\d+)$")
        for path, module in model.named_modules():
            if match := layer_path.search(path):
                self.watch_layer(int(match.group(1)), module)
        base = model.base_model
        norm = next((getattr(base, name) for name in
                     ("norm", "final_layernorm", "final_layer_norm", "ln_f")
                     if hasattr(base, name)), None)
        if norm is not None:
            self.output(norm, "final_norm")

    def output(self, module, name):
        module.register_forward_hook(
            lambda _module, _args, result: self.tensors.__setitem__(name, rows(result)))

    def input(self, module, name):
        def take(_module, args, kwargs):
            value = args[0] if args else kwargs["hidden_states"]
            self.tensors[name] = rows(value)
        module.register_forward_pre_hook(take, with_kwargs=True)

    def watch_layer(self, index, layer):
        prefix = f"layer.{index}."
        modules = dict(layer.named_modules())
        self.output(layer, prefix + "ffn_residual")
        if index == 0:
            self.input(layer, "stream")
        for path, module in modules.items():
            name = OUTPUTS.get(path) or OUTPUTS.get(".".join(path.split(".")[-2:])) \
                or OUTPUTS.get(path.split(".")[-1])
            if path == "post_attention_layernorm":
                # Before the feed-forward part, or behind the attention part.
                name = ("attn_post_norm" if "post_feedforward_layernorm" in modules
                        else "ffn_norm")
            if not name:
                if path and path.split(".")[-1] not in CONTAINERS:
                    self.left_out.add(path)
                continue
            self.output(module, prefix + name)
            if name in INPUTS:
                self.input(module, prefix + INPUTS[name])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a Hugging Face folder")
    parser.add_argument("-o", "--output", required=True)
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--tokens", help="ids, by commas")
    chosen.add_argument("-p", "--prompt", help="a text for the model's own tokenizer")
    parser.add_argument("--dtype", default="float32",
                        choices=["float64", "float32", "bfloat16", "float16"])
    arguments = parser.parse_args()

    model = transformers.AutoModelForCausalLM.from_pretrained(
        arguments.model, torch_dtype=getattr(torch, arguments.dtype),
        attn_implementation="eager", local_files_only=True).eval()
    if arguments.tokens:
        ids = [int(token) for token in arguments.tokens.split(",")]
    else:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            arguments.model, local_files_only=True)
        ids = tokenizer(arguments.prompt)["input_ids"]
    dump = Dump(model)
    with torch.no_grad():
        result = model(torch.tensor([ids]), use_cache=False)
    tensors = dump.tensors
    config = model.config
    capped = any(getattr(config, key, None) not in (None, 1, 1.0) for key in
                 ("final_logit_softcapping", "logit_scale", "logits_scaling"))
    tensors["logits" if capped else "lm_head"] = rows(result.logits)
    has_positions = any(hasattr(model.base_model, name) for name in ("wpe", "embed_positions"))
    tensors["embed_positions" if has_positions else "embed"] = tensors.pop("stream")
    tensors["tokens"] = torch.tensor(ids, dtype=torch.int32)
    save_file(tensors, arguments.output)
    if dump.left_out:
        print("left out: " + ", ".join(sorted(dump.left_out)), file=sys.stderr)
    print(f"{len(tensors)} tensors of {len(ids)} tokens in {arguments.output}")


if __name__ == "__main__":
    main()
