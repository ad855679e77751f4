"""Runs ingot-compiler on good and bad input and checks exit codes and messages."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

models, scratch = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
shutil.rmtree(scratch, ignore_errors=True)
scratch.mkdir(parents=True)
tiny = str(models / "tiny-llama")
out = str(scratch / "out.ingot")


def run(code, message, *arguments, stdin=""):
    done = subprocess.run(["ingot-compiler", *arguments], input=stdin.encode(),
                          capture_output=True)
    text = (done.stdout + done.stderr).decode(errors="replace")
    if done.returncode != code or message not in text:
        sys.exit(f"{arguments}: expected {code} and {message!r}, "
                 f"found {done.returncode} and {text}")
    return done.stdout.decode()


def file(name, text):
    (scratch / name).write_text(text)
    return str(scratch / name)


# 0: done.
run(0, "Exit codes", "compile", "--help")
run(0, "quantize-weights{encoding=int4 group=32", "compile", "--print-pipeline",
    "--quantize", "int4-g32")
recipe = str(scratch / "recipe.json")
run(0, "encoding=int8", "compile", "--print-pipeline", "--quantize", "int8",
    "--save-recipe", recipe)
run(0, "encoding=int8", "compile", "--print-pipeline", "--recipe", recipe)
run(0, "encoding=f16", "compile", "--print-pipeline", "--recipe", recipe,
    "--quantize", "f16")
run(0, "insert-early-exits{layers=2,4},quantize-weights", "compile", "--print-pipeline",
    "--exits", "2,4")
summary = json.loads(run(0, "", "compile", tiny, "-o", out, "--levels", "x86-64-v3",
                         "--context", "64", "--json"))
assert summary["artifact_bytes"] == os.path.getsize(out), summary
assert summary["context"] == 64, summary
ids = run(0, "", "tokenize", tiny, stdin="To be, or not\n")
assert run(0, "", "tokenize", out, "--no-special", stdin="To be, or not\n") == ids
assert run(0, "", "tokenize", out, "--decode", stdin=ids) == '"To be, or not"\n'

assert "will compile" in run(0, "yes", "check", tiny, "--quantize", "int8")
report = json.loads(run(0, "", "check", tiny, "--context", "64", "--json"))
assert report["compiles"] and report["context"] == 64, report
assert report["memory"]["weights_bytes"] == summary["memory"]["weights_bytes"], report

# What `check` foretells of disk and memory is what the compilation then takes.
target = str(models / "target")
options = ("--levels", "x86-64-v3", "--threads", "2", "--json")
report = json.loads(run(0, "", "check", target, *options))
child = subprocess.Popen(["ingot-compiler", "compile", target, "-o", out, *options],
                         stdout=subprocess.PIPE)
summary = json.loads(child.stdout.read())
_, status, usage = os.wait4(child.pid, 0)
assert status == 0, status
for key in ("weights_bytes", "arena_bytes_per_token", "arena_bytes_per_logits_row",
            "kv_bytes_per_token"):
    assert report["memory"][key] == summary["memory"][key], (key, report, summary)
disk = report["estimates"]["artifact_bytes"]
assert abs(disk - os.path.getsize(out)) < 0.05 * os.path.getsize(out), (disk, summary)
# Mapped files count too. Sanitizers keep books of their own in memory.
program = pathlib.Path(shutil.which("ingot-compiler")).read_bytes()
if b"__asan_init" not in program and b"__tsan_init" not in program:
    peak = usage.ru_maxrss * 1024 - summary["source_bytes"]
    memory = report["estimates"]["compile_memory_bytes"]
    assert memory / 3 < peak < memory, (peak, memory)

# 2: wrong use of the command line, or of its values.
run(2, "--bogus", "check", tiny, "--bogus")
run(2, "MODEL", "check")
run(2, "--bogus", "compile", tiny, "--bogus")
run(2, "MODEL is missing", "compile", "-o", out)
run(2, "--output is missing", "compile", tiny)
run(2, "leave out --output", "compile", tiny, "-o", out, "--dump-ir-after", "fuse")
run(2, "no command is named \"melt\"", "melt")
run(2, "it needs --output", "compile", tiny, "--dump-ir-after", "fuse", "--json")

# 2 as well: an input is missing or broken.
run(2, "no such file", "compile", str(scratch / "none"), "-o", out)
run(2, "no phase is named", "compile", tiny, "--dump-ir-after", "melt")
run(2, "int3", "compile", tiny, "-o", out, "--quantize", "int3")
run(2, "unknown key", "compile", tiny, "-o", out, "--recipe", file("r.json", '{"a": 1}'))
run(2, "table \"int5\"", "compile", tiny, "-o", out, "--table", "int5")
run(2, "\"]\" is missing", "compile", "-o", out, "--skip", "layer.[0", tiny)
run(2, "pipeline of fuse", "compile", tiny, "-o", out, "--recipe",
    file("open.json", '{"pipelines": {"fuse": "a{b=["}}'))
run(2, "source folder", "compile", tiny, "-o", out, "--source-folder", tiny)
run(2, "exit maps", "compile", tiny, "-o", out, "--exit-maps", recipe)
run(2, "r.json", "compile", tiny, "-o", out, "--exits", "1", "--exit-maps",
    file("r.json", '{"a": 1}'))
run(2, "expected at least 8 windows of 16", "fit-exits", tiny, "-o", str(scratch / "maps"),
    "--exits", "1", "--window", "16", "--text", file("short.txt", "To be, or not"))
run(3, "maps are fitted for models whose codes need none", "fit-exits", tiny, "-o",
    str(scratch / "maps"), "--exits", "1", "--quantize", "int4-gptq", "--text",
    str(models / "held-out.txt"))
# A text is no more than text: what looks like a special token of the model is not one
# (100 of those would be too few).
fitted = json.loads(run(0, "", "fit-exits", tiny, "-o", str(scratch / "maps"), "--exits", "1",
                        "--window", "16", "--json", "--text",
                        file("special.txt", "<|endoftext|>" * 100)))
assert fitted["fitted_tokens"] + fitted["held_out_tokens"] > 128, fitted
# No file but an artifact is replaced, and that is known before the work.
own = str(scratch / "own")
shutil.copytree(tiny, own)
run(2, "config.json: exists and is no artifact", "compile", own, "-o",
    own + "/config.json")
assert pathlib.Path(own, "config.json").read_bytes() == \
    pathlib.Path(tiny, "config.json").read_bytes()
run(2, "belongs to the model", "fit-exits", own, "--exits", "1", "--text",
    str(models / "held-out.txt"), "-o", own + "/model-00001-of-00002.safetensors")
run(2, "belongs to the model", "debug", "trace", own, "--tokens", "1", "-o",
    own + "/tokenizer.json")
run(2, "control character", "compile", tiny, "-o", out, "--name", "a\nb")
run(2, "is not a valid module", "compile", file("bad.mlir", "module {"), "-o", out)
run(2, "bad.mlir:1:", "compile", str(scratch / "bad.mlir"), "-o", out)
run(2, "expected a JSON list", "tokenize", tiny, "--decode", stdin="7\n")
run(2, "line 1", "tokenize", tiny, "--decode", stdin="[99999999]\n")
run(2, "messages: not valid JSON", "render", tiny, file("m.json", "["))
run(2, "documents: expected a list", "render", tiny,
    file("hi.json", '[{"role": "user", "content": "hi"}]'), "--documents",
    file("d.json", "{}"))
(scratch / "empty").mkdir()
run(2, "", "compile", str(scratch / "empty"), "-o", out)

run(2, "will compile          no", "check", str(scratch / "empty"))
run(2, "no such file", "check", str(scratch / "none"), "--json")
run(2, "expected a folder", "compile", tiny, "-o", out, "--lora", str(scratch / "none"))
run(2, "FOLDER:scale", "compile", tiny, "-o", out, "--lora", ":2")

# 3: well formed, but not something this build can do.
run(3, "target \"tpu\"", "check", tiny, "--target", "tpu")
run(3, "an exit after 9 layers, expected 1 to", "compile", tiny, "-o", out,
    "--exits", "9")
run(3, "target \"tpu\"", "compile", tiny, "-o", out, "--target", "tpu")
run(3, "level \"x86-64-v9\" is unknown", "compile", tiny, "-o", out, "--levels",
    "x86-64-v9")

# 4: the system refused.
run(4, "none/out.ingot", "compile", tiny, "-o", str(scratch / "none/out.ingot"),
    "--levels", "x86-64-v3")
