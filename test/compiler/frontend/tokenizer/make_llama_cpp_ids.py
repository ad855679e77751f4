#!/usr/bin/env python3
"""Token ids of a GGUF file by llama.cpp itself, and ours beside them.

usage: make_llama_cpp_ids.py MODEL.gguf SHARED_DATA [--out FILE]
       make_llama_cpp_ids.py MODEL.gguf SHARED_DATA --compare INGOT

The texts are those of the shared test data: the corpora, the texts of llama.cpp's
own vectors, and the rendered chat prompts. Written is one entry a file, with the
number of ids and the SHA-256 of them all (int32, little endian, -1 after each
text). Special tokens in a text are parsed and none is added, but for the first
text, which is taken once more with those that the model adds.

--compare asks `INGOT tokenize` for the same texts and shows the first difference
of each file. Needs llama-cpp-python (PyPI), nothing of it at test time.
"""
import argparse
import hashlib
import json
import pathlib
import struct
import subprocess
import sys


def read_texts(data):
    """File (relative to the shared data) to the texts that are taken from it."""
    texts = {}
    for name in ("corpora/tinystories_sample.txt", "corpora/tinyshakespeare.txt",
                 "corpora/wikitext-2/test.txt"):
        texts[name] = [(data / name).read_bytes().decode()]
    for path in sorted((data / "tokenizers/llamacpp-vocab").glob("*.inp")):
        parts = path.read_bytes().decode().split("\n__ggml_vocab_test__\n")
        if parts[:-1] not in texts.values():  # most hold the same
            texts[str(path.relative_to(data))] = parts[:-1]
    golden = json.loads((data / "chat-templates/golden.json").read_text())
    texts["chat-templates/golden.json"] = sorted(set(strings_of(golden["goldens"])))
    return texts


def strings_of(value):
    """All strings of a JSON value, keys apart."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for element in value.values() if isinstance(value, dict) else value:
            yield from strings_of(element)


def llama_cpp_ids(model, texts, add_special):
    import llama_cpp

    llama = llama_cpp.Llama(model, vocab_only=True, verbose=False)
    return [llama.tokenize(text.encode(), add_bos=add_special, special=True)
            for text in texts], llama_cpp.__version__


def our_ids(ingot, model, texts, add_special):
    flags = [] if add_special else ["--no-special"]
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    done = subprocess.run([ingot, "tokenize", model, "--json-text", *flags],
                          input=lines.encode(), stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def compare(ingot, model, texts):
    different = 0
    for name, parts in texts.items():
        for add_special in (False, True):
            theirs, _ = llama_cpp_ids(model, parts, add_special)
            ours = our_ids(ingot, model, parts, add_special)
            assert len(ours) == len(parts), (name, len(ours), len(parts))
            for text, one, other in zip(parts, ours, theirs):
                if one == other:
                    continue
                different += 1
                at = next((i for i, (a, b) in enumerate(zip(one, other)) if a != b),
                          min(len(one), len(other)))
                print(f"{name}: {text[:40]!r}... ids differ from {at}: "
                      f"ours {one[max(at - 2, 0):at + 6]}, "
                      f"llama.cpp's {other[max(at - 2, 0):at + 6]}")
    print(f"{different} of {2 * sum(map(len, texts.values()))} texts differ")
    return 1 if different else 0


def entry(name, ids):
    packed = b"".join(struct.pack(f"<{len(one) + 1}i", *one, -1) for one in ids)
    return {"file": name, "texts": len(ids), "ids": sum(map(len, ids)),
            "sha256": hashlib.sha256(packed).hexdigest()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path,
                        default=pathlib.Path(__file__).with_name("SmolLM2Ids.json"))
    parser.add_argument("--compare", metavar="INGOT")
    arguments = parser.parse_args()
    texts = read_texts(arguments.data)
    if arguments.compare:
        return compare(arguments.compare, arguments.model, texts)
    entries = []
    for name, parts in texts.items():
        ids, version = llama_cpp_ids(arguments.model, parts, add_special=False)
        entries.append(entry(name, ids))
    first, parts = next(iter(texts.items()))
    whole, _ = llama_cpp_ids(arguments.model, parts, add_special=True)
    golden = {"llama_cpp_python": version,
              "model": pathlib.Path(arguments.model).name,
              "with_added": entry(first, whole), "entries": entries}
    lines = ",\n".join("    " + json.dumps(one) for one in entries)
    golden["entries"] = "@"
    text = json.dumps(golden, indent=2).replace('"@"', "[\n" + lines + "\n  ]")
    arguments.out.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
