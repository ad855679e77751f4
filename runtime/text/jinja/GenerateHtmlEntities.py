#!/usr/bin/env python3
"""Writes HtmlEntities.inc: the names that Python's html.unescape knows, and the
numbers that stand for another character or for none.

usage: GenerateHtmlEntities.py > HtmlEntities.inc
"""
import html
import html.entities
import sys


def literal(text):
    return '"' + "".join(f"\\{byte:03o}" for byte in text.encode()) + '"'


def main():
    out = ["// Made by GenerateHtmlEntities.py. Names in the order of their bytes.",
           "constexpr Entity entities[] = {"]
    for name, text in sorted(html.entities.html5.items(), key=lambda e: e[0].encode()):
        out.append(f'    {{"{name}", {literal(text)}}},')
    out += ["};", "constexpr Replacement replacements[] = {"]
    for number, text in sorted(html._invalid_charrefs.items()):
        out.append(f"    {{{number}, {literal(text) if text != chr(0) else None}}},")
    out += ["};", "constexpr Span dropped[] = {"]
    numbers = sorted(html._invalid_codepoints)
    begin = 0
    for i, number in enumerate(numbers):
        if i + 1 == len(numbers) or numbers[i + 1] != number + 1:
            out.append(f"    {{{numbers[begin]}, {number}}},")
            begin = i + 1
    out.append("};")
    sys.stdout.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
