"""Puts each case of a file into a prelude, as modules split by "// -----".

A case is a line with the expected message and a line with the launch; lines
that start with "#" and empty lines are skipped.
"""
import sys

prelude = open(sys.argv[1]).read()
lines = [line.strip() for line in open(sys.argv[2])]
lines = [line for line in lines if line and not line.startswith("#")]
assert len(lines) % 2 == 0 and lines, "a case is two lines"
print("\n// -----\n".join(
    prelude.replace("@MESSAGE@", message).replace("@LAUNCH@", launch)
    for message, launch in zip(lines[::2], lines[1::2])))
