"""Tokens a second of an artifact with early exits, by threshold and by exit drafts.

usage: early_exit.py --bin BUILD/bin ARTIFACT --prompts FILE [--tokens 128]

FILE holds prompts with a blank line between them. Each way of decoding says what
it says to each prompt at temperature 0; beside its speed stands how many of its
tokens are the model's own until the first that is not (1 for exact ways), and
which rows left where.
"""

import argparse
import json
import pathlib
import re
import subprocess


def run(options, prompt, *flags):
    done = subprocess.run(
        [str(options.bin / "ingot"), "run", options.artifact, "-p", prompt,
         "--temperature", "0", "--ignore-eos", "--max-tokens", str(options.tokens),
         "--stats", *flags],
        capture_output=True, check=True)
    stats = done.stderr.decode(errors="replace")
    speed = re.search(r"output (\d+) tokens, ([\d.]+) tokens/s", stats)
    left = {int(layers): float(share) / 100 for share, layers in
            re.findall(r"([\d.]+) % of \d+ rows left after (\d+) layers", stats)}
    return {"text": done.stdout.decode(errors="replace"),
            "seconds": int(speed.group(1)) / max(float(speed.group(2)), 1e-9),
            "tokens": int(speed.group(1)), "left": left}


def common(first, second):
    """The share of `first` that `second` begins with, in characters."""
    length = 0
    while length < min(len(first), len(second)) and first[length] == second[length]:
        length += 1
    return length / max(len(first), 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("artifact")
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--prompts", type=pathlib.Path, required=True)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--thresholds", default="0.7,0.8,0.9,0.95,0.99")
    options = parser.parse_args()
    prompts = [p for p in options.prompts.read_text().split("\n\n") if p.strip()]
    report = json.loads(subprocess.run(
        [str(options.bin / "ingot"), "inspect", options.artifact, "--json"],
        capture_output=True, check=True).stdout)
    exits = [e["layers"] for t in report["targets"] for e in t["exits"]]
    ways = [("all layers", [])]
    ways += [(f"--speculate exit:{n}", ["--speculate", f"exit:{n}"]) for n in exits]
    ways += [(f"--exit-threshold {t}", ["--exit-threshold", t])
             for t in options.thresholds.split(",")]
    whole = []
    print(f"{'':24} {'tokens/s':>9} {'speed':>6} {'same text':>10}  rows left after layers")
    for name, flags in ways:
        said = [run(options, prompt, *flags) for prompt in prompts]
        whole = whole or said
        speed = sum(s["tokens"] for s in said) / sum(s["seconds"] for s in said)
        base = sum(s["tokens"] for s in whole) / sum(s["seconds"] for s in whole)
        same = sum(common(a["text"], b["text"])
                   for a, b in zip(whole, said)) / len(said)
        left = {n: sum(s["left"].get(n, 0) for s in said) / len(said) for n in exits}
        shares = " ".join(f"{n}: {share:.0%}" for n, share in left.items() if share)
        print(f"{name:24} {speed:9.1f} {speed / base:6.2f} {same:10.0%}  {shares}")


main()
