#!/usr/bin/env python3
"""EleutherAI's lm-evaluation-harness against `ingot serve`: what it gets over
/v1/completions (log-likelihoods by echo and logprobs, and texts) and what it
makes of them equal what the same harness gets from Hugging Face transformers
with the same weights in float32. The tasks are those of test/e2e/lm-eval.

    lm_evaluation.py --bin DIR [--compiler FILE] [--python PYTHON]
                     [--model test/models/target]

Exit code 77 where the packages lm_eval, datasets, torch and transformers cannot
be imported: a skip. With --python, that interpreter is tried where this one
lacks them. Nothing comes from the network.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
TASKS = SOURCE / "test/e2e/lm-eval"
PACKAGES = "import aiohttp, datasets, lm_eval, tenacity, torch, transformers"
sys.path.insert(0, str(SOURCE / "test/bench"))

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--bin", type=pathlib.Path, required=True)
parser.add_argument("--compiler", type=pathlib.Path, help="default: ingot-compiler of --bin")
parser.add_argument("--python", type=pathlib.Path)
parser.add_argument("--model", type=pathlib.Path, default=SOURCE / "test/models/target")
options = parser.parse_args()
BIN = options.bin.resolve()
COMPILER = (options.compiler or BIN / "ingot-compiler").resolve()
MODEL = options.model.resolve()

# Read when the packages are imported.
CACHE = tempfile.TemporaryDirectory()
os.environ.update(HF_HOME=CACHE.name, HF_DATASETS_OFFLINE="1", HF_HUB_OFFLINE="1",
                  TRANSFORMERS_OFFLINE="1", TOKENIZERS_PARALLELISM="false",
                  OMP_NUM_THREADS="1", OPENAI_API_KEY="none")
try:
    exec(PACKAGES)
except ImportError as error:
    if options.python and options.python.exists() and subprocess.run(
            [options.python, "-c", PACKAGES], capture_output=True).returncode == 0:
        os.execv(options.python, [str(options.python), *sys.argv])
    print(f"lm-evaluation-harness cannot be imported: {error}")
    sys.exit(77)

import lm_eval  # noqa: E402
import torch  # noqa: E402
from lm_eval.tasks import TaskManager  # noqa: E402
from served import Ingot, compile_model  # noqa: E402

# The largest difference of a log-likelihood, a sum over tens of tokens: float32
# in another order.
MOST = 2e-3


def evaluate(kind, batch, **arguments):
    """{task: {metric: value}} and {task: the answers of each document}"""
    found = lm_eval.simple_evaluate(
        model=kind, model_args=arguments, tasks=["continuations", "passages", "next-lines"],
        task_manager=TaskManager(include_path=str(TASKS), include_defaults=False),
        batch_size=batch, log_samples=True, bootstrap_iters=0)
    scores = {task: {metric: value for metric, value in results.items()
                     if isinstance(value, float) and "stderr" not in metric}
              for task, results in found["results"].items()}
    answers = {task: [sample["resps"] for sample in
                      sorted(samples, key=lambda sample: sample["doc_id"])]
               for task, samples in found["samples"].items()}
    return scores, answers


def flattened(value):
    """The numbers and texts in nested lists."""
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in flattened(item)]
    return [value if isinstance(value, str) else float(value)]


def compare(task, served, direct):
    """What is wrong, and the largest difference of two numbers."""
    ours, theirs = flattened(served), flattened(direct)
    if len(ours) != len(theirs):
        return [f"{task}: {len(ours)} answers, {len(theirs)} expected"], 0
    wrong = [f"{task}: {a!r} served, {b!r} direct" for a, b in zip(ours, theirs)
             if isinstance(a, str) and a != b]
    difference = max([abs(a - b) for a, b in zip(ours, theirs) if not isinstance(a, str)],
                     default=0)
    if difference > MOST:
        wrong.append(f"{task}: log-likelihoods differ by {difference}")
    return wrong, difference


def main():
    os.chdir(TASKS)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        artifact = compile_model(COMPILER, MODEL, pathlib.Path(folder) / "model.ingot",
                                 "--quantize", "f32", "--kv", "f32")
        with Ingot(BIN / "ingot", f"model={artifact}", "--sequences", 8) as server:
            served, ours = evaluate("local-completions", 4, model="model",
                                    base_url=server.url() + "/v1/completions",
                                    tokenizer=str(MODEL), tokenizer_backend="huggingface",
                                    num_concurrent=4, max_length=1024, max_retries=1)
            held = server.metric("ingot_kv_cache_blocks_used")
    direct, theirs = evaluate("hf", 1, pretrained=str(MODEL), dtype="float32",
                              device="cpu", max_length=1024)
    failures = [f"{held} cache blocks are still held"] if held else []
    for task, scores in direct.items():
        wrong, difference = compare(task, ours[task], theirs[task])
        failures += wrong[:5]
        print(f"{task}: {len(flattened(ours[task]))} answers, the largest difference {difference:.1e}")
        for metric, value in scores.items():
            print(f"    {metric}: {served[task][metric]:.6f} served, {value:.6f} direct")
            exact = task != "passages"
            if abs(served[task][metric] - value) > (0 if exact else 1e-4 * abs(value)):
                failures.append(f"{task} {metric}: {served[task][metric]} served, {value} direct")
    if not 0.25 < direct["continuations"]["acc,none"] < 1:
        failures.append(f"the task tells nothing: {direct['continuations']}")
    sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
