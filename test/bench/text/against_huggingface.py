#!/usr/bin/env python3
"""Encodes the same texts with Ingot's tokenizer and with Hugging Face's library,
one thread each, side by side; says by how much Ingot is the faster one and
whether the ids are as many. Needs the PyPI package `tokenizers`.

usage: against_huggingface.py [--rounds N] BENCH [NAME|NAME=FOLDER|NAME=tokenizer.json...]

BENCH is the program TokenizeBench of a release build. A bare NAME is a tokenizer of
test/compiler/frontend/tokenizer/Tokenizers.json; nothing given means all of them. The
texts are the megabytes of texts.py beside it. Every figure is the best of N runs (5),
in time of the processor, so that other work on the machine counts little;
for the library, of its `encode` and of its `encode_batch_fast`, which keeps no
offsets. Exit code 1: somewhere slower, or other ids.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../compiler/frontend/tokenizer"))

import texts  # noqa: E402


def main():
    arguments = sys.argv[1:]
    rounds = 5
    if arguments[0] == "--rounds":
        rounds, arguments = int(arguments[1]), arguments[2:]
    bench, arguments = arguments[0], arguments[1:]
    own = os.path.join(HERE, "../../compiler/frontend/tokenizer/Tokenizers.json")
    slower = False
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name in texts.TEXTS:
            files.append(os.path.join(folder, name + ".txt"))
            with open(files[-1], "wb") as f:
                f.write(texts.text(name).encode())
        reference = json.load(open(own))["tokenizers"]
        sources = []
        for argument in arguments or reference:
            name, _, path = argument.partition("=")
            if not path:
                path = os.path.join(folder, name + ".json")
                json.dump(reference[name]["tokenizer"], open(path, "w"))
            sources.append((name, path))
        print(f"{'tokenizer':22}{'text':9}{'HF MB/s':>9}{'Ingot MB/s':>12}{'ratio':>7}")
        for name, path in sources:
            lines = subprocess.run([bench, str(rounds), path, *files], check=True, capture_output=True,
                                   text=True).stdout.split("\n")
            is_folder = os.path.isdir(path)
            library = texts.load(os.path.join(path, "tokenizer.json") if is_folder else path)
            for text, file, line in zip(texts.TEXTS, files, lines):
                content = open(file, encoding="utf-8", newline="").read()
                best = float("inf")
                for encode in (
                    lambda: library.encode(content, add_special_tokens=False),
                    lambda: library.encode_batch_fast([content], add_special_tokens=False)[0],
                ):
                    for _ in range(rounds):
                        start = time.process_time()
                        count = len(encode())
                        best = min(best, time.process_time() - start)
                seconds, ours = float(line.split()[0]), int(line.split()[1])
                ratio = best / seconds
                note = "" if ours == count else f"  ids: {ours}, there {count}"
                print(f"{name:22}{text:9}{1 / best:9.2f}{1 / seconds:12.2f}{ratio:7.1f}{note}")
                slower |= ratio < 1 or ours != count
    sys.exit(1 if slower else 0)


main()
