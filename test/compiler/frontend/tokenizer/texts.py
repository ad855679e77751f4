#!/usr/bin/env python3
"""Writes a megabyte each of English, code and mixed Unicode, the same bytes
everywhere: english.txt, code.txt and unicode.txt. Only the standard library, no
random module, no table of Unicode: nothing here depends on the Python's version.

usage: texts.py FOLDER
"""
import functools
import os
import sys

SIZE = 1_000_000


class Random:
    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % n

    def pick(self, items):
        return items[self.below(len(items))]

    def rare(self, items):  # the first ones most often
        return items[min(self.below(len(items)), self.below(len(items)))]


WORDS = """the of and to a in that is was he for it with as his on be at by had not
are but from or have an they which one you were all her she there would their we him
been has when who will no more if out so up said what its about than into them can
only other time new some could these two may first then do any like my now over such
our man me even most made after also did many off before must well back through years
much where your way down should because long each just state people too mr little good
world make very year still see own men work here get both between life being under
three never know same last another while us might great go come since against right
came take used himself few house use place during high without again home around small
however found part school mrs thought went say general once upon water course company
system government number unlikely internationalization characteristically tokenizer
naïve café Zürich don't won't it's they're we've I'd she'll o'clock rock'n'roll""".split()
NAMES = "London Alice Newton Bob Paris McDonald O'Brien NASA iPhone GitHub Jean-Luc".split()


def english(random):
    out = []
    for _ in range(1 + random.below(9)):
        sentence = []
        for _ in range(3 + random.below(20)):
            kind = random.below(40)
            if kind == 0:
                word = str(random.below(10 ** (1 + random.below(9))))
            elif kind == 1:
                word = random.pick(NAMES)
            elif kind == 2:
                word = f"{random.below(100)}.{random.below(100):02d}%"
            elif kind == 3:
                word = f'"{random.rare(WORDS)}"'
            else:
                word = random.rare(WORDS)
            sentence.append(word + random.pick(["", "", "", "", "", "", ",", ";", " -", ":"]))
        text = " ".join(sentence)
        out.append(text[0].upper() + text[1:] + random.pick([".", ".", ".", "?", "!", "...", ".)"]))
    return random.pick([" ", " ", "  "]).join(out) + random.pick(["\n", "\n\n", "\r\n"])


IDENTIFIERS = """i j k n x self value index result buffer std::vector size_t uint32_t
getNextToken max_len __init__ HTTPServer parseJSON isOk kMaxDepth _private data2 a1b2c3
node->next ptr arr[i] foo.bar lambda return_value snake_case_name CamelCaseName""".split()
OPERATORS = "+ - * / % == != <= >= && || << >> += -= -> => := ?: ** // & | ^ ~".split()


def code(random):
    indent = random.pick(["    ", "\t", "  "]) * random.below(6)
    name, other = random.rare(IDENTIFIERS), random.rare(IDENTIFIERS)
    number = random.pick(["0", "1", "42", "0xFF", "1e-9", "3.14159", "1_000_000",
                          str(random.below(2**31))])
    return indent + random.pick([
        f"for (int {name} = 0; {name} < {number}; ++{name}) {{",
        f"if ({name} {random.pick(OPERATORS)} {other}) return {number};",
        f"def {name}({other}, *args, **kwargs):",
        f"    {name} = {other} {random.pick(OPERATORS)} {number}  # {random.rare(WORDS)} {random.rare(WORDS)}",
        f"// {' '.join(random.rare(WORDS) for _ in range(random.below(12)))}",
        f'printf("%d: %s\\n", {name}, "{random.rare(WORDS)}\\t{number}");',
        "}", "});", "", "", "#include <vector>", "@decorator", "/* */",
        f"<div class=\"{name}\">{other}</div>",
        f"SELECT {name}, COUNT(*) FROM {other} WHERE id={number};",
        f"{name} = [{', '.join(str(random.below(300)) for _ in range(random.below(9)))}]",
        f"https://example.org/{name}?q={number}#{other}",
        f"{{\"{name}\": {number}, \"{other}\": [null, true, -1.5e+10]}}",
    ]) + random.pick(["\n", "\n", "\n", " \n", "\r\n"])


# First and last characters of stretches to draw from, newer than Unicode 14 too.
BLOCKS = [
    (0x20, 0x7E), (0xA0, 0xFF), (0x100, 0x17F), (0x1E00, 0x1EFF), (0x370, 0x3FF),
    (0x400, 0x4FF), (0x530, 0x58F), (0x590, 0x5FF), (0x600, 0x6FF), (0x900, 0x97F),
    (0x980, 0x9FF), (0xE00, 0xE7F), (0x0F00, 0x0FFF), (0x1000, 0x109F), (0x10A0, 0x10FF),
    (0x1100, 0x11FF), (0x1200, 0x137F), (0x13A0, 0x13FF), (0x1780, 0x17FF),
    (0x2000, 0x206F), (0x2070, 0x209F), (0x20A0, 0x20CF), (0x2100, 0x214F),
    (0x2150, 0x218F), (0x2190, 0x22FF), (0x2460, 0x24FF), (0x2500, 0x259F),
    (0x2600, 0x27BF), (0x2E80, 0x2FDF), (0x3000, 0x303F), (0x3040, 0x309F),
    (0x30A0, 0x30FF), (0x3200, 0x33FF), (0x3400, 0x3500), (0x4E00, 0x9FFF),
    (0xA640, 0xA69F), (0xAC00, 0xD7A3), (0xE000, 0xE010), (0xF900, 0xFAFF),
    (0xFB00, 0xFB4F), (0xFE00, 0xFE0F), (0xFE30, 0xFE4F), (0xFF00, 0xFFEF),
    (0x10330, 0x1034F), (0x10400, 0x1044F), (0x1D400, 0x1D7FF), (0x1F100, 0x1F1FF),
    (0x1F300, 0x1FAFF), (0x20000, 0x20100), (0x2F800, 0x2FA1D), (0xE0020, 0xE007F),
    (0x1C89, 0x1C8A), (0xA7CB, 0xA7DC), (0x10D40, 0x10D8F), (0x11F00, 0x11F59),
    (0x1E030, 0x1E08F), (0x31350, 0x31360), (0x2EBF0, 0x2EC00), (0x1171D, 0x1172B),
]
PIECES = [
    "e\u0301", "n\u0303o", "\u1112\u1161\u11ab", "\u0e33\u0e49", "\U0001F468\u200D\U0001F469\u200D\U0001F467",
    "\U0001F1E9\U0001F1EA", "\U0001F44D\U0001F3FD", "\u2764\ufe0f", "1\ufe0f\u20e3", "\r\n", "\t", "\u00a0",
    "\u3000", "\u2028", "\u200b", "\ufeff", "\u0000", "\u0007", "\u007f", "\u0085", "\ufffd", "\ufb01", "\u0132",
    "\u0130", "\u0131", "\u1e9e", "\u03a3", "\u03c2", "\u0345", "q\u0323\u0307", "\u0958", "\u2126", "\u212b",
    "\uff76\uff9e", "\u30ab\u3099", "\u0627\u0653", "\u0915\u094d\u0937", "\u2581", "\u2581\u2581", "##a", "<0x0A>",
    " ", " ", " ", "  ", "   ", "\n", "\n\n", ", ", ". ", "12", "2024", "\u0661\u0662", "\u00b2\u00b3", "\u2167", "'s", "'\u017f", "'RE",
]


def mixed(random):
    kind = random.below(10)
    if kind < 5:
        first, last = random.pick(BLOCKS)
        return "".join(chr(first + random.below(last - first + 1))
                       for _ in range(1 + random.below(12))) + random.pick(["", " ", " ", "\n"])
    if kind < 8:
        return "".join(random.pick(PIECES) for _ in range(1 + random.below(6)))
    return random.rare(WORDS) + random.pick([" ", " ", ", "])


TEXTS = {"english": (english, 1), "code": (code, 2), "unicode": (mixed, 3)}


@functools.cache
def text(name):
    make, seed = TEXTS[name]
    random = Random(seed)
    parts, size = [], 0
    while size < SIZE:
        parts.append(make(random))
        size += len(parts[-1].encode())
    return "".join(parts)


def load(path):
    """The library's tokenizer of a file. It refuses merges that are written as one
    string and hold more than one space; they are cut here where both halves and the
    whole are tokens."""
    import json

    from tokenizers import Tokenizer

    description = json.load(open(path, encoding="utf-8"))
    vocab = description["model"]["vocab"]
    merges = description["model"].get("merges", [])
    for i, merge in enumerate(merges):
        if isinstance(merge, str):
            cuts = [(merge[:at], merge[at + 1 :]) for at, c in enumerate(merge) if c == " "]
            if len(cuts) > 1:
                cuts = [(a, b) for a, b in cuts if a in vocab and b in vocab and a + b in vocab]
            (merges[i],) = cuts
    return Tokenizer.from_str(json.dumps(description))


def main():
    for name in TEXTS:
        with open(os.path.join(sys.argv[1], name + ".txt"), "wb") as out:
            out.write(text(name).encode())


if __name__ == "__main__":
    main()
