"""Runs ingot on good and bad input and checks exit codes and messages."""
import fcntl
import json
import math
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

models, scratch = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
shutil.rmtree(scratch, ignore_errors=True)
scratch.mkdir(parents=True)
tiny = str(models / "tiny-llama")
good = str(scratch / "good.ingot")


def run(code, message, *arguments, stdin=b"", **streams):
    """Runs ingot, which must end with `code` and say `message`."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    done = subprocess.run(["ingot", *arguments], input=stdin, timeout=120, **streams)
    text = ((done.stdout or b"") + (done.stderr or b"")).decode(errors="replace")
    if done.returncode != code or message not in text:
        sys.exit(f"{arguments}: expected {code} and {message!r}, "
                 f"found {done.returncode} and {text}")
    return (done.stdout or b"").decode(errors="replace")


def file(name, content):
    (scratch / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(scratch / name)


greedy = ["-p", "To be", "--temperature", "0", "--ignore-eos", "--max-tokens", "4"]
hello = file("hello.json", '[{"role": "user", "content": "hi"}]')

# 0: done, with nothing but the answer on standard output.
run(0, "130 interrupted", "--help")
run(0, "ingot ", "--version")
run(0, "", "compile", tiny, "-o", good, "--levels", "x86-64-v3", "--context", "64")
text = run(0, "", "run", good, *greedy, "--stats")
assert text and "tokens/s" not in text, text
assert run(0, "", "run", good, *greedy[2:], stdin=b"To be") == text
assert json.loads(run(0, "", "inspect", good, "--json"))["model"]["context"] == 64
run(0, "checksums verified", "inspect", good, "--verify")
held_out = file("text.txt", "To be, or not to be, that is the question.\n" * 4)
scores = json.loads(run(0, "", "eval", good, "--text", held_out, "--window", "32", "--json"))
windows = scores["by_window"]
assert len(windows) == scores["windows"] > 1, scores
assert sum(w["predicted_tokens"] for w in windows) == scores["predicted_tokens"], scores
mean = sum(w["negative_log_likelihood"] for w in windows) / scores["predicted_tokens"]
assert abs(math.exp(mean) / scores["perplexity"] - 1) < 1e-9 and mean > 0, scores
ids = run(0, "[", "tokenize", good, "--no-special", stdin=b"To be\n")
assert run(0, "", "tokenize", good, "--decode", stdin=ids.encode()) == '"To be"\n'
early = str(scratch / "early.ingot")
run(0, "", "compile", tiny, "-o", early, "--levels", "x86-64-v3", "--exits", "1")
curve = json.loads(run(0, "", "measure-exits", early, "--text", held_out, "--window", "16",
                       "--prompt", "4", "--thresholds", "1e-9,1", "--json"))
assert [point["bytes"] < 1 for point in curve["thresholds"]] == [True, False], curve
assert curve["thresholds"][1]["disagreement"] == 0 and curve["rows"] > 0, curve

# 2: wrong use of the command line, or of its values.
run(2, "subcommand", )
run(2, 'no command is named "melt"', "melt")
run(2, 'expected a command, found "--bogus"', "--bogus", "run", good)
run(2, "--bogus", "run", good, "--bogus")
run(2, "model is required", "run")
run(2, "--threads", "run", good, "--threads", "0")
run(2, "expected a whole number", "run", good, "--max-tokens", "-5")
run(2, "expected a whole number", "run", good, "--context", "99999999999")
run(2, "--keep-special", "tokenize", good, "--keep-special")
run(2, "--chat", "run", good, "--system", "be brief")
run(2, "--exit-threshold", "run", good, *greedy, "--exit-threshold", "2")
run(2, "--bogus", "compile", tiny, "--bogus")
for speculate in ("exit", "exit:", "exit:0", "exit:2x", "exit:-1", "ngrams"):
    run(2, "expected ngram, or exit:N", "run", good, *greedy, "--speculate", speculate)

run(2, "--host is empty", "serve", good, "--host", "")
run(2, "expected a name before the =", "serve", "=" + good)

# 2 as well: an input is missing or broken. A damaged artifact is refused wherever it is
# damaged; where only the weights are, --verify finds it.
missing = str(scratch / "missing.ingot")
for command in (["run", missing, "-p", "a"], ["inspect", missing], ["bench", missing],
                ["eval", missing, "--text", held_out], ["tokenize", missing],
                ["render", missing, hello], ["compile", missing, "-o", good + "2"]):
    run(2, missing, *command)
run(2, "has none; compile it with --exits", "run", good, *greedy, "--speculate", "exit:1")
run(3, "has no early exits", "measure-exits", good, "--text", held_out, "--window", "16",
    "--prompt", "4")
run(2, "--thresholds", "measure-exits", good, "--text", held_out, "--thresholds", "2")
run(3, "has no early exits", "run", good, *greedy, "--exit-threshold", "0.5")
whole = pathlib.Path(good).read_bytes()
segments = json.loads(run(0, "", "inspect", good, "--json"))["segments"]
damaged = str(scratch / "damaged.ingot")


def damage(offset):
    content = bytearray(whole)
    content[offset] ^= 0x55
    file("damaged.ingot", bytes(content))


for offset in [0, 12, 64, 80]:
    damage(offset)
    run(2, damaged, "run", damaged, *greedy)
damage(8)
run(3, "container version", "run", damaged, *greedy)
for segment in segments:
    damage(segment["offset"] + segment["bytes"] // 2)
    run(2, "checksum", "inspect", damaged, "--verify")
    if segment["kind"] != "weights":
        run(2, damaged, "run", damaged, *greedy)
for size in [0, 1, 63, 64, 4096, len(whole) - 1]:
    run(2, "", "run", file("short.ingot", whole[:size]), *greedy)
run(2, "", "inspect", file("text.ingot", "not an artifact, but long enough for a header " * 9))
run(2, "level", "run", good, *greedy, "--level", "x86-64-v9")
run(2, "temperature", "run", good, "-p", "To be", "--temperature", "-1")
run(2, "context", "run", good, *greedy, "--context", "65")
run(2, "missing.txt", "eval", good, "--text", str(scratch / "missing.txt"))
run(2, "prompt", "run", good, "-p", "to be " * 200)
run(2, "UTF-8", "run", good, "-p", b"a\xff")
run(2, "line 2: expected a JSON list", "tokenize", good, "--decode", stdin=b"[1]\n7\n")

# An empty file of tools is no list of tools, for either program.
empty = file("empty.json", "")
for model in (tiny, good):
    for flag in ("--tools", "--documents"):
        run(2, f"{empty}: is empty", "render", model, hello, flag, empty)
    run(2, f"{empty}: is empty", "render", model, empty)
    run(2, "standard input: is empty", "render", model, "-")

# 2 and 3: a model that is no model, and a family that is not known.
(scratch / "empty").mkdir()
run(2, "config.json", "compile", str(scratch / "empty"), "-o", good + "2")
strange = scratch / "strange"
shutil.copytree(tiny, strange)
config = json.loads((strange / "config.json").read_text())
config["model_type"] = "strange"
config["architectures"] = ["StrangeForCausalLM"]
(strange / "config.json").write_text(json.dumps(config))
run(3, "strange", "compile", str(strange), "-o", good + "2")
assert not os.path.exists(good + "2")

# 4: the system refused: a full disk, a closed stream, too little memory.
full = lambda: open("/dev/full", "wb")
for arguments in (["run", good, *greedy], ["inspect", good], ["inspect", good, "--json"],
                  ["--help"], ["render", good, hello]):
    with full() as stream:
        run(4, "standard output: cannot write", *arguments, stdout=stream)
with full() as stream:
    run(4, "standard output: cannot write", "tokenize", good, stdin=b"a\n", stdout=stream)
closed = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", "ingot", "inspect", good],
                        capture_output=True)
assert closed.returncode == 4 and b"standard output" in closed.stderr, closed
run(4, "none/out.ingot", "compile", tiny, "-o", str(scratch / "none/out.ingot"),
    "--levels", "x86-64-v3")

# 130: interrupted. The pipe has no room, so the first piece of text waits in
# write() until the interrupt has come; nothing but that piece is written.
read_end, write_end = os.pipe()
size = fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, 4096)
os.write(write_end, b"\0" * size)
child = subprocess.Popen(["ingot", "run", good, *greedy[:-1], "50"], stdout=write_end,
                         stderr=subprocess.PIPE)
os.close(write_end)
deadline = time.monotonic() + 60


def status_field(name):
    for line in pathlib.Path(f"/proc/{child.pid}/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1], 16)


mask = 1 << (signal.SIGINT - 1)
while not status_field("SigCgt") & mask and time.monotonic() < deadline:
    time.sleep(0.01)
child.send_signal(signal.SIGINT)
while (status_field("SigPnd") | status_field("ShdPnd")) & mask and time.monotonic() < deadline:
    time.sleep(0.01)
output = b""
while piece := os.read(read_end, 65536):
    output += piece
_, errors = child.communicate(timeout=60)
assert child.returncode == 130 and errors == b"", (child.returncode, errors)
part = output[size:].decode()
whole_answer = run(0, "", "run", good, *greedy[:-1], "50")
assert part and whole_answer.startswith(part) and len(part) < len(whole_answer), part

# What the model's authors wrote cannot command a terminal: not the name of its
# folder, which becomes the model's, nor a value that an error quotes.
evil = "evil\u001b[2J\u009b31m\u202etxt"
named = str(scratch / "named.ingot")
shutil.copytree(tiny, scratch / evil)
config["model_type"] = "llama"
config["architectures"] = [evil]
(strange / "config.json").write_text(json.dumps(config, ensure_ascii=False))
outputs = []
for code, arguments in (
        (0, ["compile", str(scratch / evil), "-o", named, "--levels", "x86-64-v3"]),
        (0, ["inspect", named]), (0, ["inspect", named, "--json"]),
        (0, ["bench", named, "--prompt", "4", "--generate", "4", "--batch", "1"]),
        (None, ["compile", str(strange), "-o", good + "2"])):
    done = subprocess.run(["ingot", *arguments], capture_output=True, timeout=120)
    if code is not None and done.returncode != code:
        sys.exit(f"{arguments}: {done}")
    outputs.append(done.stdout + done.stderr)
assert b"evil\\x1b[2J\\x9b31m\\u202etxt" in outputs[1], outputs[1]
assert b"evil\\u001b[2J\\u009b31m\\u202etxt" in outputs[2], outputs[2]
assert b"evil" in outputs[-1], outputs[-1]
for output in outputs:
    for obeyed in ("\u001b", "\u009b", "\u202e"):
        assert obeyed.encode() not in output, output
