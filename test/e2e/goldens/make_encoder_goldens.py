#!/usr/bin/env python3
"""Writes encoders/NAME.json: the results of transformers for test/models/encoders.

  python make_encoder_goldens.py [NAME ...]

Truth and yardstick are those of make_goldens.py: the model in float64, and the
largest difference of transformers' own float32 run from it. For texts of several
lengths each file holds the last layer's first and last row, and the vector that
their mean gives when it is divided by its length.
"""

import os
import sys

import numpy as np
import torch
import transformers
from transformers import AutoModel

from make_goldens import HERE, MODELS_FOLDER, Digits, Float64, hash_of, splitmix64, write

# Across blocks of 32 positions, and all positions there are.
LENGTHS = [1, 5, 17, 32, 33, 64, 130, 300, 320]
VOCABULARY = 160
PROMPTS = "prompts-encoders.json"


def texts():
    """Token i of text k is splitmix64(1000 k + i) mod 155, plus 5: no special one."""
    made = []
    for k, length in enumerate(LENGTHS):
        values = splitmix64(np.arange(1000 * k, 1000 * k + length, dtype=np.uint64))
        made.append([int(v % np.uint64(VOCABULARY - 5)) + 5 for v in values])
    return made


def load_pair(name):
    """(float32 model, float64 model) with equal weights."""
    folder = os.path.join(MODELS_FOLDER, "encoders", name)
    single = AutoModel.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    weights = single.state_dict()
    with Float64():
        double = AutoModel.from_config(single.config, dtype=torch.float64,
                                       attn_implementation="eager")
        double.load_state_dict({k: v.double() if v.is_floating_point() else v
                                for k, v in weights.items()})
    return single.eval(), double.eval()


def rows_of(model, ids):
    return model(input_ids=torch.tensor([ids])).last_hidden_state[0].numpy()


def vectors(rows):
    mean = rows.mean(axis=0)
    return dict(cls=rows[0], last=rows[-1], mean=mean / np.linalg.norm(mean))


@torch.no_grad()
def results(pair, ids):
    single = vectors(rows_of(pair[0], ids))
    with Float64():
        double = vectors(rows_of(pair[1], ids))
    row = {}
    for key, truth in double.items():
        row[key] = [Digits(x, 10) for x in truth]
        row[key + "Error"] = Digits(np.abs(single[key] - truth).max(), 3)
    return row


def main():
    torch.set_num_threads(1)
    ids = texts()
    write(PROMPTS, dict(vocabulary=VOCABULARY, source="splitmix64"), prompts=ids)
    names = sys.argv[1:] or sorted(os.listdir(os.path.join(MODELS_FOLDER, "encoders")))
    os.makedirs(os.path.join(HERE, "encoders"), exist_ok=True)
    for name in names:
        pair = load_pair(name)
        rows = [dict(prompt=k, **results(pair, p)) for k, p in enumerate(ids)]
        write(f"encoders/{name}.json", dict(
            model="encoders/" + name, weightsSha256=hash_of("encoders/" + name, None),
            transformers=transformers.__version__, torch=torch.__version__,
            vocabulary=VOCABULARY, promptFile=PROMPTS), texts=rows)
        worst = {key: max(row[key + "Error"] for row in rows) for key in ("cls", "last", "mean")}
        print(name, {key: f"{value:.2g}" for key, value in worst.items()}, flush=True)


if __name__ == "__main__":
    main()
