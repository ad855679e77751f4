#!/usr/bin/env python3
"""Makes continuations.jsonl, the small task that lm-evaluation-harness runs
against the server: of four lines, which goes on from a passage of
test/models/held-out.txt? The wrong ones stand elsewhere in the text.

    make_continuations.py > continuations.jsonl
"""
import json
import pathlib
import random

TEXT = pathlib.Path(__file__).resolve().parents[2] / "models/held-out.txt"
lines = [line for line in TEXT.read_text().splitlines()]
verses = [i for i, line in enumerate(lines)
          if 25 < len(line) < 60 and i > 8 and len(lines[i - 1]) > 20]
rng = random.Random(20)
for at in rng.sample(verses, 40):
    others = [lines[i] for i in rng.sample(verses, 6) if i != at][:3]
    gold = rng.randrange(4)
    choices = others[:gold] + [lines[at]] + others[gold:]
    print(json.dumps({"passage": "\n".join(lines[at - 1 - rng.randrange(6):at]) + "\n",
                      "choices": choices, "gold": gold}))
