"""ingot run and ingot serve with --draft, --speculate and --draft-tokens."""
import json
import pathlib
import re
import shutil
import subprocess
import sys

models, scratch = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
shutil.rmtree(scratch, ignore_errors=True)
scratch.mkdir(parents=True)


def run(code, *arguments):
    """(standard output, standard error) of ingot, which must end with `code`."""
    done = subprocess.run(["ingot", *map(str, arguments)], capture_output=True, text=True,
                          timeout=120)
    if done.returncode != code:
        sys.exit(f"{arguments}: expected {code}, found {done.returncode}: {done.stderr}")
    return done.stdout, done.stderr


def compiled(folder):
    artifact = scratch / f"{folder.name}.ingot"
    run(0, "compile", folder, "-o", artifact, "--levels", "x86-64-v3", "--quantize", "int8")
    return artifact


# Two words of the stranger have each other's ids.
shutil.copytree(models / "draft", scratch / "stranger")
file = scratch / "stranger/tokenizer.json"
tokenizer = json.loads(file.read_text())
words = tokenizer["model"]["vocab"]
one, other = [word for word, id in words.items() if id in (500, 501)]
words[one], words[other] = words[other], words[one]
file.write_text(json.dumps(tokenizer))
target, draft = compiled(models / "target"), compiled(models / "draft")
stranger = compiled(scratch / "stranger")
prompt = ["-p", "KING RICHARD:\nMy lord, my lord, my lord, my", "--ignore-eos",
          "--max-tokens", "60", "--seed", "5", "--stats"]

# The same text, greedy and sampled; --stats tells of speculation where there is
# some.
for temperature in ("0.8", "1.2"):
    arguments = ["run", target, *prompt, "--temperature", temperature]
    plain, said = run(0, *arguments)
    assert "speculation by" not in said, said
    for flags in (["--draft", draft], ["--draft", draft, "--draft-tokens", "3"],
                  ["--speculate", "ngram"], ["--speculate", "ngram", "--draft-tokens", "64"],
                  ["--draft", target]):
        text, said = run(0, *arguments, *flags)
        assert text == plain, (flags, text, plain)
        assert "speculation by" in said, said
greedy = ["-p", "To be", "--temperature", "0", "--max-tokens", "40", "--ignore-eos"]
plain, _ = run(0, "run", target, *greedy)
assert run(0, "run", target, *greedy, "--draft", draft)[0] == plain
assert run(0, "run", target, *greedy, "--speculate", "ngram")[0] == plain

# Wrong use: 1, with the flag and what it takes. So for both commands.
for command in (["run", target, "-p", "a"], ["serve", target, "--port", "0"]):
    for flags, words in ((["--speculate", "magic"], "--speculate.*magic"),
                         (["--speculate", ""], "--speculate"),
                         (["--speculate"], "--speculate"),
                         (["--draft"], "--draft"),
                         (["--draft", draft, "--speculate", "ngram"], "--draft|--speculate"),
                         (["--speculate", "ngram", "--draft-tokens", "0"], "--draft-tokens"),
                         (["--speculate", "ngram", "--draft-tokens", "65"], "--draft-tokens"),
                         (["--speculate", "ngram", "--draft-tokens", "two"], "--draft-tokens")):
        _, said = run(2, *command, *flags)
        assert re.search(words, said), (flags, said)
    # What would have no effect, what is not there, and what is no draft: 2.
    for flags, words in ((["--draft-tokens", "4"], r"draft-tokens.*(--draft|--speculate)"),
                         (["--draft", scratch / "none.ingot"], "none.ingot"),
                         (["--draft", models / "target/config.json"], "config.json"),
                         (["--draft", stranger], "token id 500")):
        _, said = run(2, *command, *flags)
        assert re.search(words, said, re.S), (flags, said)
