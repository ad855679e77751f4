"""Checks that every numbered constraint of a dialect's .td files has a negative test.

usage: check_labels.py INVALID.mlir FILE.td...

A constraint is a line `- name_cN: ...` of a description; INVALID.mlir must expect
a diagnostic that starts with its label, and no label that does not exist.
"""

import re
import sys

invalid_path, *td_paths = sys.argv[1:]
declared = set()
for path in td_paths:
    with open(path) as file:
        declared |= set(re.findall(r"^ +- (\w+_c\d+):", file.read(), re.M))
with open(invalid_path) as file:
    expected = set(re.findall(r"\{\{.*?(\w+_c\d+)", file.read()))
if not declared:
    sys.exit("check_labels: no constraint found")
for label in sorted(declared - expected):
    print(f"check_labels: {label} has no negative test", file=sys.stderr)
for label in sorted(expected - declared):
    print(f"check_labels: {label} is in no description", file=sys.stderr)
sys.exit(1 if declared != expected else 0)
