"""ingot compile, check, inspect and embed of an encoder, and every other command on it."""
import json
import math
import pathlib
import shutil
import subprocess
import sys

models, scratch = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
shutil.rmtree(scratch, ignore_errors=True)
scratch.mkdir(parents=True)
model = str(models / "encoders/bert")
artifact, stages = str(scratch / "bert.ingot"), scratch / "stages"


def run(code, message, *arguments, stdin=b""):
    """Runs ingot, which must end with `code` and say `message`."""
    done = subprocess.run(["ingot", *arguments], input=stdin, timeout=120, capture_output=True)
    text = (done.stdout + done.stderr).decode()
    if done.returncode != code or message not in text:
        sys.exit(f"{arguments}: expected {code} and {message!r}, found {done.returncode} and {text}")
    return done.stdout.decode()


# What it is, before and after.
gives = "vectors of 32 numbers, mean pooling, of length 1"
run(0, gives, "check", model)
assert json.loads(run(0, "", "check", model, "--json"))["gives"] == gives
assert json.loads(run(0, "", "check", str(models / "families/gpt2"), "--json"))["gives"] == "logits"
run(0, "vectors of 32 numbers, last pooling, of any length", "check", model, "--pooling", "last:raw")
run(0, gives, "compile", model, "-o", artifact, "--levels", "x86-64-v3", "--quantize", "f32",
    "--kv", "f32", "--save-stages", str(stages))
run(0, f"an encoder: {gives}", "inspect", artifact)
assert json.loads(run(0, "", "inspect", artifact, "--json"))["model"]["embedding"] == dict(
    dimensions=32, pooling="mean", normalized=True)

# The program: types in the embedding, one look both ways a layer, norms behind the sums.
lm = (stages / "0-import.mlir").read_text()
assert "lm.embed %tokens, @embed bias @token_types" in lm or "@embed bias @token_types" in lm, lm
assert lm.count("lm.attention") == 2 and lm.count("bidirectional") == 2, lm
assert lm.count("lm.layer_norm") == 5 and "lm.pool mean" in lm and "lm.select_rows" not in lm, lm
plan = (stages / "4-lower.mlir").read_text()
assert plan.count("plan.attention") == 2 and plan.count("{bidirectional}") == 2, plan
assert 'plan.pool "mean"' in plan and "normalize" in plan and "plan.gather_rows" not in plan, plan

# A line of numbers for each text, the same as JSON, from arguments or a file.
texts = ["the cat sat on the mat", "a dog", "it is in it"]
lines = run(0, "", "embed", artifact, *texts).splitlines()
vectors = [[float(x) for x in line.split()] for line in lines]
assert [len(v) for v in vectors] == [32] * 3, vectors
assert all(abs(math.fsum(x * x for x in v) - 1) < 1e-5 for v in vectors), vectors
assert run(0, "", "embed", artifact, texts[1]).splitlines() == lines[1:2]
file = scratch / "texts.txt"
file.write_text("\n".join(texts) + "\n")
answer = json.loads(run(0, "", "embed", artifact, "--file", str(file), "--json"))
assert (answer["model"], answer["dimensions"], answer["pooling"]) == ("bert", 32, "mean"), answer
assert [one["embedding"] for one in answer["data"]] == vectors, answer
assert [one["tokens"] for one in answer["data"]] == [8, 4, 6], answer
piped = run(0, "", "embed", artifact, "--file", "-", stdin="\r\n".join(texts).encode())
assert piped.splitlines() == lines, piped

# Refused.
run(2, "no text: give one or more, or --file FILE", "embed", artifact)
run(2, "expected one of the two", "embed", artifact, "a", "--file", str(file))
run(2, "text 2: the text has 322 tokens, the longest that is taken has 320; nothing is cut off",
    "embed", artifact, "a", "a " * 320)
run(2, "the longest that is taken has 4", "embed", artifact, "a cat sat", "--context", "4")
run(2, "--device", "embed", artifact, "a", "--device", "cuda")
run(2, "context is 321, expected 1 to 320", "embed", artifact, "a", "--context", "321")
run(2, 'pooling "max": expected mean, cls or last', "compile", model, "-o", artifact, "--pooling", "max")
run(2, "is not an encoder; it generates", "compile", str(models / "families/gpt2"), "-o", artifact,
    "--pooling", "cls")
run(3, "selects no rows, so an exit has no head", "compile", model, "-o", artifact, "--exits", "1")
one_sentence = "is an encoder: it gives vectors (`ingot embed`, /v1/embeddings) and generates no text"
run(3, one_sentence, "run", artifact, "-p", "a")
run(3, one_sentence, "eval", artifact, "--text", str(file))
run(3, one_sentence, "bench", artifact)
for flag in (["--speculate", "ngram"], ["--kv-memory", "64"], ["--chunk-tokens", "8"],
             ["--stall-factor", "3"], ["--allow-control-tokens"], ["--device", "cuda"]):
    run(2, "for models that generate, and all of these are encoders", "serve", artifact, *flag,
        "--port", "0")
generator = str(scratch / "gpt2.ingot")
run(0, "", "compile", str(models / "families/gpt2"), "-o", generator, "--levels", "x86-64-v3")
run(3, "generates text and gives no vectors", "embed", generator, "a")
run(3, one_sentence, "run", generator, "-p", "a", "--draft", artifact)
