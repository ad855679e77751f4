#!/usr/bin/env python3
"""Writes encoders/NAME: a tiny random model for each variation of an encoder.

Each has a vocabulary of 160 and positions for 320 tokens, and comes in another of
the forms in which checkpoints are published: beside files of sentence-transformers,
with a head that is left out and the older names of norms, with positions behind
those of padding. `bert` has a WordPiece tokenizer, so that texts can be served.

  python make_tiny_encoders.py [NAME ...]     needs torch, transformers, safetensors
"""

import json
import math
import os
import shutil
import string
import sys
import zlib

import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM

HERE = os.path.dirname(os.path.abspath(__file__))
BERT = dict(vocab_size=160, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
            intermediate_size=48, hidden_act="gelu", hidden_dropout_prob=0.1,
            attention_probs_dropout_prob=0.1, max_position_embeddings=320, type_vocab_size=2,
            initializer_range=0.02, layer_norm_eps=1e-12, pad_token_id=0,
            position_embedding_type="absolute", use_cache=True, torch_dtype="float32")

CONFIGS = {
    "bert": dict(BERT, architectures=["BertModel"], model_type="bert", classifier_dropout=None,
                 gradient_checkpointing=False),
    # Saved with its head, norms called gamma and beta, three heads of 16.
    "bert-masked": dict(BERT, architectures=["BertForMaskedLM"], model_type="bert", hidden_size=48,
                        num_attention_heads=3, intermediate_size=80, hidden_act="gelu_new",
                        torch_dtype="float16"),
    "roberta": dict(BERT, architectures=["RobertaModel"], model_type="roberta", bos_token_id=0,
                    eos_token_id=2, pad_token_id=1, type_vocab_size=1, layer_norm_eps=1e-5,
                    max_position_embeddings=322, num_hidden_layers=3, torch_dtype="bfloat16"),
    "distilbert": dict(vocab_size=160, architectures=["DistilBertModel"], model_type="distilbert",
                       activation="gelu", dim=32, hidden_dim=64, n_heads=2, n_layers=2,
                       max_position_embeddings=320, dropout=0.1, attention_dropout=0.1,
                       qa_dropout=0.1, seq_classif_dropout=0.2, sinusoidal_pos_embds=False,
                       tie_weights_=True, pad_token_id=0, initializer_range=0.02,
                       torch_dtype="float32"),
}

# What sentence-transformers writes beside a model; the other folders have none.
MODULES = {"bert": ("mean", True), "roberta": ("cls", False)}


def random_weight(name, shape):
    if len(shape) == 1:
        if name.endswith("bias") or name.endswith("beta"):
            return 0.3 * torch.randn(shape)
        return 1 + 0.2 * torch.randn(shape)
    if "embeddings" in name:
        return 0.5 * torch.randn(shape)
    gain = 1.6 if "query" in name or "key" in name or "q_lin" in name or "k_lin" in name else 1.0
    return gain / math.sqrt(shape[-1]) * torch.randn(shape)


def write_json(folder, name, value):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "w", encoding="utf-8", newline="\n") as f:
        json.dump(value, f, indent=2)
        f.write("\n")


def write_modules(folder, hidden, pooling, normalized):
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    if normalized:
        modules.append(("2_Normalize", "Normalize"))
    write_json(folder, "modules.json", [
        dict(idx=i, name=str(i), path=path, type="sentence_transformers.models." + kind)
        for i, (path, kind) in enumerate(modules)])
    modes = dict(cls_token="cls", mean_tokens="mean", max_tokens="max",
                 mean_sqrt_len_tokens="mean_sqrt_len")
    write_json(os.path.join(folder, "1_Pooling"), "config.json", dict(
        {"word_embedding_dimension": hidden},
        **{"pooling_mode_" + key: value == pooling for key, value in modes.items()}))


def write_tokenizer(folder):
    """WordPiece in 160 pieces: the special tokens, letters, and some pairs and words."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces += list(string.ascii_lowercase) + ["##" + c for c in string.ascii_lowercase]
    pieces += list(string.digits) + ["##" + c for c in string.digits] + list(".,;:!?'-")
    pieces += ["the", "and", "of", "to", "in", "cat", "dog", "sat", "mat", "on", "is", "it"]
    pieces += ["##ing", "##ed", "##er", "##th", "##on", "##an", "##re", "##es"]
    pieces = list(dict.fromkeys(pieces))
    pieces += [f"[unused{i}]" for i in range(160 - len(pieces))]
    special = [dict(id=i, content=pieces[i], single_word=False, lstrip=False, rstrip=False,
                    normalized=False, special=True) for i in range(5)]

    def one(kind, name, number):
        return {kind: {"id": name, "type_id": number}}

    write_json(folder, "tokenizer.json", {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": special,
        "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True,
                       "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [one("SpecialToken", "[CLS]", 0), one("Sequence", "A", 0),
                       one("SpecialToken", "[SEP]", 0)],
            "pair": [one("SpecialToken", "[CLS]", 0), one("Sequence", "A", 0),
                     one("SpecialToken", "[SEP]", 0), one("Sequence", "B", 1),
                     one("SpecialToken", "[SEP]", 1)],
            "special_tokens": {name: {"id": name, "ids": [i], "tokens": [name]}
                               for name, i in (("[CLS]", 2), ("[SEP]", 3))}},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                  "max_input_chars_per_word": 100,
                  "vocab": {piece: i for i, piece in enumerate(pieces)}}})
    write_json(folder, "tokenizer_config.json", dict(
        tokenizer_class="BertTokenizer", do_lower_case=True, unk_token="[UNK]", sep_token="[SEP]",
        pad_token="[PAD]", cls_token="[CLS]", mask_token="[MASK]", model_max_length=320))


def make(name, config):
    folder = os.path.join(HERE, "encoders", name)
    shutil.rmtree(folder, ignore_errors=True)
    write_json(folder, "config.json", config)
    loader = AutoModelForMaskedLM if "Masked" in config["architectures"][0] else AutoModel
    model = loader.from_config(AutoConfig.from_pretrained(folder))
    torch.manual_seed(zlib.crc32(name.encode()))
    dtype = getattr(torch, config["torch_dtype"])
    weights = {}
    for key, value in sorted(model.state_dict().items()):
        if key == "cls.predictions.decoder.weight":
            continue  # tied to the embedding
        made = random_weight(key, value.shape) if value.is_floating_point() else value
        if name == "bert-masked":
            key = key.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
                "LayerNorm.bias", "LayerNorm.beta")
        weights[key] = made.to(dtype).contiguous() if value.is_floating_point() else made
    path = os.path.join(folder, "model.safetensors")
    save_file(weights, path, metadata={"format": "pt"})
    os.chmod(path, 0o644)
    if name in MODULES:
        write_modules(folder, config["hidden_size"], *MODULES[name])
    if name == "bert":
        write_tokenizer(folder)
    print(f"{name}: {sum(w.numel() for w in weights.values())} parameters")


if __name__ == "__main__":
    for model_name in sys.argv[1:] or CONFIGS:
        make(model_name, CONFIGS[model_name])
