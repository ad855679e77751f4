#!/usr/bin/env python3
"""What encodings of weights cost a model, against its dequantised weights in float32.

    quantized.py MODEL --text FILE [--calibrate FILE] [--bin BUILD/bin] [--tokens 16384]
        [--window 512] [--out FOLDER] [--json] [SPEC ...]

MODEL is compiled once with --quantize f32 --kv f32, which is the reference, and once for
each SPEC: `--quantize`'s words, behind a colon the cache's elements (`int4-g32-gptq:int8`;
f16 where none are named). `ingot eval --against` runs both on the same windows of FILE.
Behind each figure stands its 95 % interval, by bootstrap over windows (20 000 resamples);
`nearer by` is the difference of mean KL to the first SPEC, over the same resamples.
Calibrated codes are chosen by the text of --calibrate, which must be another one.

Standard library only. Artifacts are left in FOLDER where one is named.
"""
import argparse
import json
import math
import pathlib
import random
import subprocess
import tempfile

RESAMPLES = 20000


def compile_model(options, folder, quantize, kv):
    path = folder / (f"{quantize}-kv-{kv}".replace("*", "all").replace("/", "_") + ".ingot")
    command = [options.bin / "ingot", "compile", options.model, "-o", path,
               "--quantize", quantize, "--kv", kv]
    if options.levels:
        command += ["--levels", options.levels]
    if any(method in quantize for method in ("gptq", "awq")):
        if not options.calibrate:
            raise SystemExit(f"{quantize}: --calibrate is missing")
        command += ["--calibrate", options.calibrate, "--calibration-tokens",
                    str(options.calibration_tokens)]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{quantize}: {done.stderr.strip()}")
    return path


def measure(options, path, reference):
    done = subprocess.run(
        [str(options.bin / "ingot"), "eval", str(path), "--against", str(reference),
         "--text", options.text, "--window", str(options.window),
         "--max-tokens", str(options.tokens), "--json"], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{path}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def interval(values):
    values = sorted(values)
    return values[int(0.025 * len(values))], values[int(0.975 * len(values)) - 1]


def resamples(count):
    """The same choices of windows for every encoding."""
    source = random.Random(7)
    return [[source.randrange(count) for _ in range(count)] for _ in range(RESAMPLES)]


def mean_over(windows, field, choice=None):
    chosen = windows if choice is None else [windows[i] for i in choice]
    return sum(w[field] for w in chosen) / sum(w["predicted_tokens"] for w in chosen)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("spec", nargs="*", default=[])
    parser.add_argument("--bin", type=pathlib.Path, default=pathlib.Path("build/release/bin"))
    parser.add_argument("--text", required=True)
    parser.add_argument("--calibrate")
    parser.add_argument("--calibration-tokens", type=int, default=8192)
    parser.add_argument("--tokens", type=int, default=16384)
    parser.add_argument("--window", type=int, default=512)
    parser.add_argument("--levels", default="")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    specs = options.spec or ["none", "int8", "int4-g32"]
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.out or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        reference = compile_model(options, folder, "f32", "f32")
        base = measure(options, reference, reference)
        if base["mean_kl"] != 0:
            raise SystemExit(f"the reference differs from itself by {base['mean_kl']} nats")
        picks = resamples(base["windows"])
        rows, first = [], None
        if not options.json:
            print(f"float32: perplexity {base['perplexity']:.4f}, {base['predicted_tokens']} "
                  f"tokens in {base['windows']} windows of {base['window']}")
            print(f"{'':28} {'perplexity':>10} {'of it':>20} {'mean KL':>9} {'':21} "
                  f"{'p99 KL':>8} {'top-1':>8} {'MB':>7}  nearer by")
        for spec in specs:
            quantize, _, kv = spec.partition(":")
            path = compile_model(options, folder, quantize, kv or "f16")
            found = measure(options, path, reference)
            own, plain = found["by_window"], base["by_window"]
            kl = [mean_over(own, "kl", pick) for pick in picks]
            # Of float32's perplexity on the same windows.
            growth = [math.exp(mean_over(own, "negative_log_likelihood", pick)
                               - mean_over(plain, "negative_log_likelihood", pick)) - 1
                      for pick in picks]
            first = first or kl
            gain = [a - b for a, b in zip(first, kl)]
            row = {"spec": spec, "perplexity": found["perplexity"],
                   "growth": found["perplexity"] / base["perplexity"] - 1,
                   "growth_interval": interval(growth), "mean_kl": found["mean_kl"],
                   "mean_kl_interval": interval(kl), "p99_kl": found["p99_kl"],
                   "top1_agreement": found["top1_agreement"],
                   "bytes": path.stat().st_size, "nearer_by": sum(gain) / len(gain),
                   "nearer_by_interval": interval(gain)}
            rows.append(row)
            if options.json:
                continue
            low, high = row["growth_interval"]
            less, more = row["mean_kl_interval"]
            print(f"{spec:28} {row['perplexity']:10.3f} {100 * low:+8.2f} to {100 * high:+6.2f} % "
                  f"{row['mean_kl']:9.5f} [{less:9.5f},{more:9.5f}] {row['p99_kl']:8.4f} "
                  f"{100 * row['top1_agreement']:6.2f} % {row['bytes'] / 1e6:7.1f}  "
                  f"{row['nearer_by']:+.5f} [{row['nearer_by_interval'][0]:+.5f}, "
                  f"{row['nearer_by_interval'][1]:+.5f}]", flush=True)
    if options.json:
        print(json.dumps({"float32": base, "specs": rows}, indent=1))


main()
