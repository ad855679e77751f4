#!/usr/bin/env python3
"""Writes FilterCases.json: random inputs of the filters that are programs of
their own, with what Jinja2 renders for them. Needs jinja2 3.1 and Python 3.11.

usage: GenerateFilterCases.py > FilterCases.json
"""
import json
import random
import sys

from jinja2.sandbox import ImmutableSandboxedEnvironment

WORDS = ["a", "the", "well-known", "state-of-the-art", "x--y", "--", "-", "it's", "\"quoted\"", "end.",
         "Größe", "漢字かな交じり文", "🙂🙂", "a\u00a0b", "supercalifragilisticexpialidocious", "e-mail",
         "1-2", "a-1b-c2", "don't-do", "(see", "below)", "what?!--no", "A-", "-b", "ab-cd-ef-gh",
         "\u3000", "snake_case-word", "né-né", "x-y-z", "co-op--ed"]
BLANKS = [" ", " ", " ", "  ", "\t", "\n", "\r\n", "\n\n", "\x0b", "\u2028", "\x1c", "\u00a0"]
LINKS = ["http://example.com", "https://example.com/a?b=c&d=e#f", "www.example.org", "example.net",
         "(www.example.com)", "<http://a.bc>", "http://127.0.0.1:80/", "http://[2001:db8::1]/x",
         "mailto:a@b.cd", "a.b@c-d.example", "@a@b", "a@b", "user@host.com,", "https://例え.jp/パス",
         "http://x", "HTTP://EXAMPLE.COM", "www.a.b/(c)", "(http://a.com/(b))", "ftp://a.com/b",
         "git+ssh://x", "tel:123", "http://a.com.", "\"http://a.com\"", "&lt;www.a.com&gt;", "xn--p1ai.com",
         "a.museum", "foo.gov/x", "https://xn--80ak6aa92e.com", "http://a_b.com", "http://a.com:123456",
         "www.ſſ.com", "http://1.2.3", "http://1.2.3.4.5", "http://a.com))", "((www.a.com", "x@y.z)", "www."]
TAGS = ["<b>", "</b>", "<!-- c > -->", "<!--", "-->", "<", ">", "<a href='x>y'>", "&amp;", "&lt;i&gt;",
        "&#65;", "&#x41;", "&#128;", "&#0;", "&#xD800;", "&#1114112;", "&#99999999999999999999;", "&#1;",
        "&notit;", "&not", "&notin;", "&copy", "&copycat;", "&nosuch;", "&", "&;", "&#;", "&#x;", "&#xg",
        "&CounterClockwiseContourIntegral;", "&NotEqualTilde;", "&AMP", "&ampamp", "&#13;", "&#11;",
        "&#x10FFFF;", "&é;", "&acE;", "&fjlig;", "&lt", "&gtx"]


def text(rng, words, low=0, high=14, blanks=BLANKS):
    return "".join(rng.choice(words) + rng.choice(blanks + [""]) for _ in range(rng.randint(low, high)))


def value(rng, depth=0):
    kind = rng.randrange(10 if depth < 4 else 5)
    if kind == 0:
        return rng.choice([None, True, False, 0, -7, 3.5, 1e100, 123456789012])
    if kind < 4:
        return text(rng, WORDS, 0, 8 if depth else 40, [" ", " ", "  ", "\n", "\t"])
    if kind == 4:
        return rng.choice(WORDS)
    if kind < 7:
        return [value(rng, depth + 1) for _ in range(rng.randint(0, 6))]
    return {rng.choice(WORDS) + str(rng.randrange(30)): value(rng, depth + 1)
            for _ in range(rng.randint(0, 6))}


def cases():
    rng = random.Random(20)
    for _ in range(120):
        options = [str(rng.choice([1, 2, 3, 5, 8, 12, 20, 40, 79]))]
        if rng.random() < 0.3:
            options.append("break_long_words=false")
        if rng.random() < 0.3:
            options.append("break_on_hyphens=false")
        if rng.random() < 0.2:
            options.append("wrapstring='|'")
        yield f"{{{{ v|wordwrap({', '.join(options)}) }}}}", text(rng, WORDS, 0, 25)
    yield "{{ v|wordwrap }}", " ".join(rng.choice(WORDS) for _ in range(80))
    for width in (0, -1):
        yield "{{ v|wordwrap(%d) }}" % width, "a"
        yield "{{ v|wordwrap(%d) }}" % width, ""
    yield "{{ v|wordwrap }}", 5
    yield "{{ v|wordwrap('x') }}", "a"
    yield "{{ nope|wordwrap }}", ""
    for _ in range(120):
        yield "{{ v|pprint }}", value(rng)
    yield "{{ {1: 'a', none: 2, 'b': 3, true: 1.5, (1, 2): [none]}|pprint }}", ""
    yield "{{ (v, (v,), ((v,), ()))|pprint }}", "a word " * 9
    yield "{{ [v, v]|pprint }}", ""
    yield "{{ {'k': v}|pprint }}", "a word " * 30
    yield "{{ v|pprint }}", "x" * 100
    yield "{{ v|pprint }}", "line\n" * 30
    yield "{{ [v|safe]|pprint }}", "a b " * 40
    yield "{{ v|pprint }}", [[["deep " * 6] * 3] * 2] * 2
    yield "{{ nope|pprint }}{{ none|pprint }}{{ 1.5|pprint }}", ""
    for _ in range(100):
        yield "{{ v|striptags }}", text(rng, TAGS + ["x", "y z", "é"], 0, 14)
    yield "{{ v|safe|striptags }}{{ 5|striptags }}{{ nope|striptags }}{{ [1]|striptags }}", "<b>a"
    for _ in range(140):
        yield "{{ v|urlize }}", text(rng, LINKS + ["and", "x,"], 0, 8)
    for options in ("5", "trim_url_limit=0", "-3", "nofollow=true", "target='_blank'", "rel='me  b'",
                    "nofollow=true, rel='x\"'", "extra_schemes=['ftp://', 'tel:', 'git+ssh://']",
                    "extra_schemes=['a']", "extra_schemes=[5]", "extra_schemes='ftp:'", "target=''"):
        for _ in range(4):
            yield "{{ v|urlize(%s) }}" % options, text(rng, LINKS, 3, 8)
    yield "{{ v|safe|urlize }}{{ v|escape|urlize }}{{ 5|urlize }}{{ none|urlize }}", "<a> www.a.com <www.b.com>"
    for number in (0, 1, 1.0, 2, 999, 999.9, 1000, 1023, 1024, 1e6, 1048576, 123456789, 1e24, 1e27, 1e30,
                   1e300, -5, -1e6, 1.5, 0.5, True, "12345", " 7 ", "1e9", "x", None, [], "nan", "inf",
                   "-inf", 999949, 999950, 10 ** 15):
        yield "{{ v|filesizeformat }} {{ v|filesizeformat(true) }} {{ v|filesizeformat(binary=1) }}", number
    for exponent in range(3, 28):
        yield "{{ v|filesizeformat }} {{ v|filesizeformat(true) }}", float(10 ** exponent)
        yield "{{ v|filesizeformat }} {{ v|filesizeformat(true) }}", float(2 ** (3 * exponent))
    yield "{{ nope|filesizeformat }}", ""
    for given in ({}, {"a": 1}, {"a": "<\"&'>", "b": None, "c": True, "d": 1.5}, {"a b": 1}, {"a/": 1}, {"a>": 1},
                  {"a=": 1}, {"a\t": None}, {"é'": "x"}, {"a\u00a0b": 1}, [], "x", 5, None,
                  {"x": [1, "<"], "y": {"z": 1}}):
        yield "[{{ v|xmlattr }}][{{ v|xmlattr(false) }}][{{ v|xmlattr(autospace=true) }}]", given
    yield "{{ {'a': v|safe, 'b': nope, 1: none}|xmlattr }}", "<&>"
    yield "{{ {1: 2}|xmlattr }}", ""
    yield "{{ nope|xmlattr }}", ""
    for one in (["x"], "y", [[1, 2]], {}, [], "", 5, None):
        yield "{{ v|random }}", one
    yield "{{ [1]|map('string')|random }}", ""
    yield "{{ nope|random is defined }} {{ []|random is defined }} {{ range(1)|random }} {{ (7,)|random }}", ""
    yield "{{ {'a': 1}|random }}", ""
    yield "{{ {0: 'zero'}|random }}", ""


def main():
    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    out = []
    for template, given in cases():
        case = {"template": "{% set v = messages[0].content %}" + template, "value": given}
        try:
            case["output"] = env.from_string(case["template"]).render(messages=[{"content": given}])
        except Exception as error:  # whatever it is, we must refuse too
            case["error"] = str(error)
        out.append(case)
    sys.stdout.write("[\n" + ",\n".join(json.dumps(case, ensure_ascii=False) for case in out) + "\n]\n")


if __name__ == "__main__":
    main()
