#!/usr/bin/env python3
"""Writes families-gguf/NAME.gguf: the models of families as llama.cpp converts them.

  python make_family_ggufs.py LLAMA_CPP [NAME ...]

LLAMA_CPP is a source tree of llama.cpp; its own converter does the work, so that
names, orders of rows and metadata keys are its and not ours. Only its vocabulary
is left out, since these models have no tokenizer (for Gemma it would cut the
embedding to the tokenizer's size). Needs torch, safetensors, transformers.
"""

import json
import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Models that GGUF can express. It has no type of scaling for llama-dynamic, no
# ALiBi-free Falcon with sequential parts, and of Gemma 3 only the pattern of six. The
# converter loses the norms of stablelm-norms (see make_own_ggufs.py).
NAMES = ["cohere", "cohere2", "falcon", "falcon-groups", "gemma2", "gemma3-six", "gpt-neox",
         "gpt-neox-sequential", "gpt2", "granite", "llama-linear", "llama-yarn", "mixtral", "olmo2", "phi3",
         "phi4-mini", "qwen2-window", "qwen3-moe", "smollm3", "stablelm", "stablelm-parallel", "starcoder2"]


def convert(name):
    import gguf
    from conversion import ModelType, get_model_architecture, get_model_class
    from conversion.base import ModelBase, TextModel
    folder = HERE / "families" / name
    # transformers of today renames keys that the converter reads, and fills in
    # values (the key heads of Falcon) that old checkpoints do not state.
    stated = json.loads((folder / "config.json").read_text())
    hparams = dict(ModelBase.load_hparams(folder, False), **stated)
    if hparams["model_type"] == "falcon":
        hparams = stated
    if hparams["model_type"] == "cohere2":
        hparams["rotary_pct"] = 1.0  # as published configs state
    cls = get_model_class(get_model_architecture(hparams, ModelType.TEXT))

    class Converter(cls):
        model_arch = cls.model_arch

        def set_vocab(self):
            self._set_vocab_none()
            self.gguf_writer.add_vocab_size(hparams["vocab_size"])

        def modify_tensors(self, data_torch, name, bid):
            # Gemma's own step reads the tokenizer to cut the embedding.
            if "embed_tokens.weight" in name:
                return TextModel.modify_tensors(self, data_torch, name, bid)
            return super().modify_tensors(data_torch, name, bid)

    out = HERE / "families-gguf"
    out.mkdir(exist_ok=True)
    kinds = {"float32": gguf.LlamaFileType.ALL_F32, "float16": gguf.LlamaFileType.MOSTLY_F16,
             "bfloat16": gguf.LlamaFileType.MOSTLY_BF16}
    kind = kinds[hparams.get("torch_dtype") or hparams["dtype"]]
    Converter(folder, kind, out / (name + ".gguf"), eager=True, model_name=name,
              hparams=hparams).write()
    os.chmod(out / (name + ".gguf"), 0o644)


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    sys.path.insert(0, os.path.join(sys.argv[1], "gguf-py"))
    for model_name in sys.argv[2:] or NAMES:
        convert(model_name)
