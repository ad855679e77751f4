"""Prints the examples of a dialect's .td files as modules to parse.

usage: extract_examples.py PRELUDE.mlir FILE.td...

Every op must have a one-sentence summary and an example in a ```mlir block;
every type and attribute an `example` in back quotes. Examples that start with a
symbol op go behind the prelude's symbols, others into its program. A definition
without an example, or a .td without definitions, fails.
"""

import re
import sys

SYMBOL_OPS = ("lm.source", "lm.weight", "lm.state", "lm.program")


def definitions(text):
    """(name, body) of every `def` at the start of a line."""
    starts = [m.start() for m in re.finditer(r"^def \w+", text, re.M)]
    for start, end in zip(starts, starts[1:] + [len(text)]):
        body = text[start:end]
        yield re.match(r"def (\w+)", body).group(1), body


def fail(message):
    sys.exit(f"extract_examples: {message}")


def examples_of(name, body):
    """The examples of an op, a type or an attribute; None for other things."""
    header = body.split("{", 1)[0]
    if re.search(r"_(?:SymbolUser)?Op<", header):
        found = re.findall(r"```mlir\n(.*?)```", body, re.S)
    elif re.search(r"_(?:Type|Attr)<\"", header):
        tail = re.search(r"Examples?:(.*?)\}\]", body, re.S)
        found = [re.sub(r"\s+", " ", text)
                 for text in re.findall(r"`([!#][^`]*)`", tail.group(1))] \
            if tail else []
    else:
        return None
    summary = re.search(r'let summary = "([^"]*)"', body)
    if not summary or not summary.group(1).endswith("."):
        fail(f"{name} has no one-sentence summary")
    if not found:
        fail(f"{name} has no example")
    return found


def main():
    prelude_path, *td_paths = sys.argv[1:]
    with open(prelude_path) as file:
        symbols, opening, closing = file.read().split("// EXAMPLES HERE\n")
    modules = []
    for path in td_paths:
        with open(path) as file:
            text = file.read()
        for name, body in definitions(text):
            for example in examples_of(name, body) or []:
                if example.startswith(("!", "#")):
                    example = ("lm.state @example {layers = 1 : i64, kv_heads = 1 "
                               ": i64, head_dim = 2 : i64, dtype = f16, "
                               f"example = {example}}}\n")
                first = example.split()[0]
                modules.append(
                    f"// {name}\n{symbols}{example}"
                    if first in SYMBOL_OPS
                    else f"// {name}\n{symbols}{opening}{example}{closing}")
    if not modules:
        fail("no definitions found")
    print("// -----\n".join(modules))
    print(f"extract_examples: {len(modules)} examples", file=sys.stderr)


main()
