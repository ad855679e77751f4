"""A compilation that is ended leaves nothing; what kill -9 leaves, the next removes.

    killed.py MODELS SCRATCH
"""
import pathlib
import shutil
import signal
import subprocess
import sys
import time

models, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
shutil.rmtree(folder, ignore_errors=True)
folder.mkdir(parents=True)
text = folder / "text.txt"
text.write_bytes((models / "held-out.txt").read_bytes()[:40000])
COMMAND = ["ingot-compiler", "compile", str(models / "draft"), "--quantize", "int4-g32-gptq",
           "--levels", "x86-64-v3", "--calibrate", str(text), "--calibration-tokens", "4096"]


def leftovers(where):
    return sorted(str(each.relative_to(where)) for each in where.rglob("*") if each.is_file() or
                  ".scratch-" in each.name)


def ended(by, where):
    """A compilation that is ended by a signal when its scratch folder is there."""
    where.mkdir(exist_ok=True)
    child = subprocess.Popen([*COMMAND, "--calibration-cache", str(where), "-o",
                              str(where / "out.ingot")], stderr=subprocess.PIPE,
                             preexec_fn=lambda: signal.signal(by, signal.SIG_DFL)
                             if by != signal.SIGKILL else None)
    while not list(where.glob("*.scratch-*/*")):
        assert child.poll() is None, ("it ended first", child.communicate())
        time.sleep(0.002)
    child.send_signal(by)
    child.communicate(timeout=60)
    assert child.returncode == -by, child.returncode


for by in (signal.SIGINT, signal.SIGTERM):
    ended(by, folder / by.name)
    assert leftovers(folder / by.name) == [], (by, leftovers(folder / by.name))
killed = folder / "killed"
ended(signal.SIGKILL, killed)
assert any(".scratch-" in name for name in leftovers(killed)), "what the next is to remove"
subprocess.run([*COMMAND, "--calibration-cache", str(killed), "-o", str(killed / "out.ingot")],
               check=True, stdout=subprocess.DEVNULL, timeout=120)
left = leftovers(killed)
assert "out.ingot" in left and len(left) == 2 and ".scratch-" not in "".join(left), left

# A file that cannot be written whole is not written: the old one stays.
recipe = folder / "recipe.json"
recipe.write_text("old")
done = subprocess.run(["sh", "-c", 'ulimit -f 0; trap "" XFSZ; exec "$@"', "sh", "ingot-compiler",
                       "compile", "--print-pipeline", "--quantize", "int8", "--save-recipe",
                       str(recipe)], capture_output=True, text=True)
assert done.returncode == 4 and "recipe.json" in done.stderr, done
assert recipe.read_text() == "old" and len(list(folder.glob(".ingot-*"))) == 0
# What is no file is written as it is.
done = subprocess.run(["ingot-compiler", "compile", "--print-pipeline", "--quantize", "int8",
                       "--save-recipe", "/dev/stdout"], capture_output=True, text=True)
assert done.returncode == 0 and '"quantize": "int8"' in done.stdout, done
