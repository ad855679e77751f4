#!/usr/bin/env python3
"""Writes families/NAME.json: the results of transformers for test/models/families.

  python make_family_goldens.py [NAME ...]

Truth, format and yardstick are those of make_goldens.py; only the prompts are
fewer (prompts-families.json: lengths 1, 17, 48, 130 and 300, so that each window
of 40 or 50 and each original length of 64 is straddled), and 32 tokens follow
two of them. Every prompt runs in a process of its own: transformers keeps rotary
frequencies that it has once scaled for a longer text.
"""

import math
import multiprocessing
import os
import sys

import numpy as np
import torch
import transformers

from make_goldens import (HERE, MODELS_FOLDER, TOP, Digits, Float64, hash_of, load_pair, logits_at,
                          signs, splitmix64, write)
from transformers import DynamicCache

LENGTHS = [1, 17, 48, 130, 300]
# Prompts that are continued; with their 32 tokens they stay on one side of 64.
CONTINUED = [1, 4]
STEPS = 32
VOCABULARY = 160
PROMPTS = "prompts-families.json"


def prompts():
    """Token i of prompt k is splitmix64(1000 k + i) mod 159, plus one."""
    made = []
    for k, length in enumerate(LENGTHS):
        values = splitmix64(np.arange(1000 * k, 1000 * k + length, dtype=np.uint64))
        made.append([int(v % np.uint64(VOCABULARY - 1)) + 1 for v in values])
    return made


def greedy(model, ids):
    """STEPS tokens with the cache, and the lead of each over the second best."""
    tokens, gaps = [], []
    cache = DynamicCache(config=model.config)
    inputs = torch.tensor([ids])
    for _ in range(STEPS):
        out = model(input_ids=inputs, past_key_values=cache, use_cache=True, logits_to_keep=1)
        top = out.logits[0, -1].topk(2)
        tokens.append(int(top.indices[0]))
        gaps.append(Digits(top.values[0] - top.values[1], 4))
        inputs = top.indices[:1].reshape(1, 1)
    return tokens, gaps


@torch.no_grad()
def one_prompt(job):
    name, k, ids, continues = job
    torch.set_num_threads(1)
    single, double = load_pair("families/" + name, None)
    low = logits_at(single, ids, [len(ids)])[0]
    with Float64():
        logits = logits_at(double, ids, [len(ids)])[0]
    error = low - logits
    order = np.argsort(-logits, kind="stable")[:TOP]
    peak = logits.max()
    row = dict(prompt=k, ids=order.tolist(), logits=[Digits(x) for x in logits[order]],
               logSumExp=Digits(peak + math.log(np.exp(logits - peak).sum()), 10),
               projections=[Digits(x, 10) for x in signs(len(logits)) @ logits],
               maxError=Digits(np.abs(error).max(), 3),
               rmsError=Digits(math.sqrt((error ** 2).mean()), 3))
    if not continues:
        return row, None
    single, _ = load_pair("families/" + name, None)
    tokens, gaps = greedy(single, ids)
    return row, dict(prompt=k, tokens=tokens, gaps=gaps)


def main():
    ids = prompts()
    write(PROMPTS, dict(vocabulary=VOCABULARY, source="splitmix64"), prompts=ids)
    names = sys.argv[1:] or sorted(os.listdir(os.path.join(MODELS_FOLDER, "families")))
    os.makedirs(os.path.join(HERE, "families"), exist_ok=True)
    context = multiprocessing.get_context("fork")
    for name in names:
        jobs = [(name, k, p, k in CONTINUED) for k, p in enumerate(ids)]
        with context.Pool(1, maxtasksperchild=1) as pool:
            results = pool.map(one_prompt, jobs, chunksize=1)
        rows = [row for row, _ in results]
        continued = [c for _, c in results if c]
        write(f"families/{name}.json", dict(
            model="families/" + name, weightsSha256=hash_of("families/" + name, None),
            transformers=transformers.__version__, torch=torch.__version__,
            vocabulary=VOCABULARY, promptFile=PROMPTS), logits=rows, greedy=continued)
        worst = max(row["maxError"] for row in rows)
        least = min(min(c["gaps"]) for c in continued)
        print(f"{name}: largest float32 error {worst:.3g}, smallest greedy lead {least:.3g}",
              flush=True)


if __name__ == "__main__":
    main()
