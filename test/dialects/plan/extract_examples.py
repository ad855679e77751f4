"""Prints the examples of the plan dialect's .td files as modules to parse.

usage: extract_examples.py PRELUDE.txt FILE.td...

Every op has an example in a ```mlir block, every type and attribute one in back
quotes. A launch stands in the segment of the prelude, other ops alone.
"""
import re
import sys

prelude = open(sys.argv[1]).read()
modules = []
for path in sys.argv[2:]:
    text = open(path).read()
    for body in re.split(r"(?m)^(?=(?:def|class) )", text):
        name = re.match(r"def (Plan_\w+)\s*:\s*Plan_(Op|LaunchOp|Type|Attr)<", body)
        if not name:
            continue
        if name.group(2) in ("Op", "LaunchOp"):
            found = re.findall(r"```mlir\n(.*?)```", body, re.S)
        else:
            tail = body[body.find("Example"):]
            found = [f"module attributes {{test.example = {example}}} {{}}"
                     for example in re.findall(r"`([!#][^`]*)`", tail)]
        if not found or not re.search(r'let summary = "[^"]*\.";', body):
            sys.exit(f"extract_examples: {name.group(1)} lacks a summary or example")
        for example in found:
            modules.append(prelude.replace("@LAUNCH@", example)
                           if name.group(2) == "LaunchOp" else example)
if len(modules) < 20:
    sys.exit("extract_examples: too few definitions found")
print("\n// -----\n".join(modules))
