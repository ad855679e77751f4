#!/usr/bin/env python3
"""Writes ConfiguredTokens.json: what transformers makes of added tokens that only
tokenizer_config.json names.

  python make_configured_tokens.py       needs transformers

Each case takes tokens out of the added ones of test/models/tiny-llama, puts the
keys of "config" into its tokenizer_config.json, and has the ids of "text".
"""

import json
import os
import tempfile

from transformers import AutoTokenizer

HERE = os.path.dirname(os.path.abspath(__file__))
MODEL = os.path.join(HERE, "../../../models/tiny-llama")
END = "<|im_end|>"
TEXT = "a <|im_end|> b<|new|>c"


def token(content, **flags):
    return dict(dict(content=content, single_word=False, lstrip=False, rstrip=False,
                     normalized=False, special=True), **flags)


CASES = {
    "nowhere": ([END], {}),
    "listed": ([END], {"added_tokens_decoder": {"2": token(END)}}),
    "listed under another number": ([END], {"added_tokens_decoder": {"7": token(END)}}),
    "listed with other flags": ([], {"added_tokens_decoder": {"2": token(END, lstrip=True)}}),
    "listed as an ordinary one": ([], {"added_tokens_decoder": {"2": token(END, special=False)}}),
    "listed as an ordinary one, named": ([END], {
        "added_tokens_decoder": {"2": token(END, special=False, normalized=True)},
        "eos_token": END}),
    "extra": ([END], {"extra_special_tokens": [END]}),
    "extra by names": ([END], {"extra_special_tokens": {"image_token": END}}),
    "additional": ([END], {"additional_special_tokens": [END]}),
    "named": ([END], {"pad_token": END}),
    "new": ([], {"added_tokens_decoder": {"1024": token("<|new|>")}}),
    "new under another number": ([], {"added_tokens_decoder": {"2000": token("<|new|>")}}),
    "two new": ([], {"added_tokens_decoder": {"1030": token("<|new|>"), "1028": token("b<")}}),
}


def main():
    with open(os.path.join(MODEL, "tokenizer.json"), encoding="utf-8") as f:
        tokenizer = json.load(f)
    made = []
    for name, (without, config) in CASES.items():
        changed = dict(tokenizer, added_tokens=[
            t for t in tokenizer["added_tokens"] if t["content"] not in without])
        config = dict(config, tokenizer_class="PreTrainedTokenizerFast")
        with tempfile.TemporaryDirectory() as folder:
            for file, value in (("tokenizer.json", changed), ("tokenizer_config.json", config)):
                with open(os.path.join(folder, file), "w", encoding="utf-8") as f:
                    json.dump(value, f)
            loaded = AutoTokenizer.from_pretrained(folder)
        made.append(dict(name=name, without=without, config=config, text=TEXT,
                         ids=loaded.encode(TEXT, add_special_tokens=False),
                         plain=loaded.decode(loaded.encode(TEXT), skip_special_tokens=True)))
    with open(os.path.join(HERE, "ConfiguredTokens.json"), "w", encoding="utf-8") as f:
        f.write("[\n" + ",\n".join(json.dumps(case) for case in made) + "\n]\n")


if __name__ == "__main__":
    main()
