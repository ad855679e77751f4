#!/usr/bin/env python3
"""What onnxruntime gives for the shared tiny-random-gpt2-fp32 without a past, as
tiny-random-gpt2-fp32.json: all logits behind each prompt, and a greedy continuation.

usage: make_onnxruntime_goldens.py past.onnx    (needs numpy and onnxruntime)
"""
import json
import pathlib
import sys

import numpy as np
import onnxruntime

LENGTHS = [1, 17, 33, 100]
STEPS = 24


def main():
    session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
    pasts = [i.name for i in session.get_inputs() if i.name.startswith("past")]

    def logits_of(tokens):
        count = len(tokens)
        feeds = {name: np.zeros((2, 1, 4, 0, 8), np.float32) for name in pasts}
        feeds |= {"input_ids": np.array([tokens], np.int32),
                  "position_ids": np.arange(count, dtype=np.int32)[None],
                  "attention_mask": np.ones((1, count), np.int32)}
        return session.run(["logits"], feeds)[0][0, -1]

    random = np.random.default_rng(1)
    rows = []
    for length in LENGTHS:
        prompt = random.integers(0, 1000, length).tolist()
        tokens, gaps = list(prompt), []
        for _ in range(STEPS):
            logits = logits_of(tokens)
            best = np.sort(logits)[-2:]
            gaps.append(float(f"{best[1] - best[0]:.3g}"))
            tokens.append(int(logits.argmax()))
        rows.append({"prompt": prompt, "greedy": tokens[length:], "gaps": gaps,
                     "logits": [float(f"{x:.7g}") for x in logits_of(prompt)]})
    lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows)
    (pathlib.Path(__file__).parent / "tiny-random-gpt2-fp32.json").write_text(f"[{lines}]\n")
    print("smallest lead", min(min(row["gaps"]) for row in rows))


if __name__ == "__main__":
    main()
