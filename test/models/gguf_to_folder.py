#!/usr/bin/env python3
"""Writes a GGUF file of a Llama model as the folder that from_pretrained reads.

usage: gguf_to_folder.py FILE.gguf FOLDER [float16|float32]

Weights are what the codes stand for, rounded to the type (by default float16). It is for
export_onnx.py, where a model exists as GGUF only; needs torch, transformers and gguf.
"""
import pathlib
import sys

import torch
from transformers import AutoTokenizer

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "e2e" / "goldens"))
from make_goldens import load_gguf  # noqa: E402


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    file, folder = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2]
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    model = load_gguf(str(file)).to(getattr(torch, (sys.argv[3:] or ["float16"])[0]))
    for config in (model.config, model.generation_config):
        config.bos_token_id = tokenizer.bos_token_id
        config.eos_token_id = tokenizer.eos_token_id
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    main()
