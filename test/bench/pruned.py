"""Speed and size of pruned artifacts by those of the whole model.

usage: pruned.py --bin BUILD/bin MODEL --calibrate TEXT [--quantize int8]
                 [--variants "--prune-layers 8;--prune-ffn 0.25"] [--rounds 5]
                 [--calibration-tokens N] [--keep FOLDER]

Compiles the model whole and with each variant, then times decoding of one sequence
(`ingot bench`), round by round, every artifact once in a round and in alternating
order. A speed is the ratio of tokens a second within a round: the median of the
rounds, with the lowest and the highest.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

VARIANTS = ("--prune-layers 8;--prune-ffn 0.25;--prune-ffn 0.5;--prune-heads 15;"
            "--prune-layers 8 --prune-ffn 0.25")


def compile_all(options, folder):
    artifacts = []
    for index, variant in enumerate([""] + options.variants.split(";")):
        path = folder / f"{index}.ingot"
        artifacts.append((variant, path))
        if path.exists():
            continue
        command = [options.bin / "ingot-compiler", "compile", options.model, "-o", path,
                   "--quantize", options.quantize, *variant.split()]
        if variant:
            command += ["--calibrate", options.calibrate]
            if options.calibration_tokens:
                command += ["--calibration-tokens", str(options.calibration_tokens)]
            command += ["--calibration-cache", folder / "cache"]
        subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)
    return artifacts


def bench(options, path):
    done = subprocess.run(
        [str(options.bin / "ingot"), "bench", str(path), "--prompt", "16", "--generate",
         str(options.generate), "--batch", "1", "--json", *options.flags.split()],
        capture_output=True, check=True)
    report = json.loads(done.stdout)
    return report["decode"][0]["tokens_per_second"], report["weight_bytes_per_step"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("model")
    parser.add_argument("--bin", type=pathlib.Path, required=True)
    parser.add_argument("--calibrate", required=True)
    parser.add_argument("--calibration-tokens", type=int)
    parser.add_argument("--quantize", default="int8")
    parser.add_argument("--variants", default=VARIANTS, help="by semicolons")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--generate", type=int, default=128)
    parser.add_argument("--flags", default="", help="more options of ingot bench")
    parser.add_argument("--keep", type=pathlib.Path,
                        help="leave the artifacts there, and take those that are there")
    parser.add_argument("--compile-only", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        artifacts = compile_all(options, folder)
        if options.compile_only:
            return
        ratios = {variant: [] for variant, _ in artifacts}
        sizes = {}
        for number in range(options.rounds):
            order = artifacts if number % 2 == 0 else artifacts[::-1]
            speeds = {}
            for variant, path in order:
                speeds[variant], step = bench(options, path)
                sizes[variant] = (step, path.stat().st_size)
            for variant in speeds:
                ratios[variant].append(speeds[variant] / speeds[""])
        whole = sizes[""]
        print(f"{'':36} {'weights/step':>12} {'file':>6} {'1/bytes':>8}  tokens/s")
        for variant, _ in artifacts:
            step, size = sizes[variant]
            print(f"{variant or 'whole':36} {step / whole[0]:12.3f} {size / whole[1]:6.3f} "
                  f"{whole[0] / step:8.2f}  {statistics.median(ratios[variant]):.2f} "
                  f"[{min(ratios[variant]):.2f}, {max(ratios[variant]):.2f}]")
        print(f"whole: {whole[0] / 1e6:.2f} MB of weights a step, file {whole[1] / 1e6:.2f} MB")


main()
