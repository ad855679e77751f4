#!/usr/bin/env python3
"""Writes Cases.json: templates of one feature each, with what Jinja2 renders
for them under Hugging Face's settings. Needs jinja2 3.1.

usage: GenerateCases.py > Cases.json
"""
import datetime
import json
import sys

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

MESSAGES = [
    {"role": "system", "content": "Be <brief> & \"kind\".\n"},
    {"role": "user", "content": "  Größe 漢字 🙂 it's \\ ok\t"},
    {"role": "assistant", "content": "<think>a b</think>\n\nSure", "n": 3, "f": 1.5,
     "items": [1, 2.0, True, None, "x"], "d": {"b": 1, "a": [{}], "C": "z"}},
]
TOOLS = [{"type": "function", "function": {"name": "get", "parameters": {
    "type": "object", "properties": {"city": {"type": "string", "enum": ["a", "b"]}}}}}]

CASES = r"""
{{ messages|length }} {{ messages[0].role }} {{ messages[-1]['content'] }}
{%- for m in messages -%} [{{ loop.index }}/{{ loop.length }} {{ loop.first }} {{ loop.last }} {{ loop.revindex }} {{ loop.revindex0 }} {{ loop.previtem.role if loop.previtem is defined }} {{ loop.nextitem.role if loop.nextitem is defined }} {{ loop.cycle('a','b') }} {{ loop.changed(m.role) }} {{ loop.depth }}] {%- endfor %}
{% for x in [] %}a{% else %}empty{% endfor %}
{% for x in range(10) if x % 2 %}{{ x }}{{ "," if not loop.last }}{% endfor %}
{% for x in range(9) %}{% if x == 3 %}{% continue %}{% endif %}{% if x > 5 %}{% break %}{% endif %}{{ x }}{% endfor %}
{% set x = 1 %}{% for i in [1,2] %}{{ x }}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}
{% set ns = namespace(x=1, y='a') %}{% for i in [1,2] %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}{{ ns.y }}{{ ns.z is defined }}
{% if false %}{% set q = 1 %}{% endif %}{{ q is defined }}{% if true %}{% set q = 2 %}{% endif %}{{ q }}
{% macro f(a, b=2, c=a) %}({{ a }},{{ b }},{{ c }}{{ varargs }}{{ kwargs }}){% endmacro %}{{ f(1) }}{{ f(1, c=5) }}{{ f(1,2,3,4,z=5) }}
{% macro w() %}<{{ caller('k') }}>{% endmacro %}{% call(x) w() %}body {{ x }}{% endcall %}
{% macro r(n) %}{{ n }}{% if n > 0 %}{{ r(n - 1) }}{% endif %}{% endmacro %}{{ r(5) }}
{% macro late() %}{{ later }}{% endmacro %}{% set later = 7 %}{{ late() }}
{% set b %}  hi {{ 1 + 1 }} {% endset %}[{{ b }}]{% set c | trim | upper %} abc {% endset %}[{{ c }}]
{% filter upper %}abc{{ 'd' }}{% endfilter %}
{% with a = 1, b = 2 %}{{ a + b }}{% endwith %}{{ a is defined }}
{% raw %}{{ not }} {% if %}{% endraw %}x
   {%- raw -%}  a  {%- endraw -%}   y
a {# c #} b{#- d -#} c
a   {%+ if true %}b{% endif +%}
 c
  {% if true %}
    x
  {% endif %}
 y
{{ 'a' 'b' }}{{ "q\"\n\x41\u00e9\101" }}{{ 'it\'s' }}{{ '\d' }}
{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % -3 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 1_000 }} {{ 0x1F }} {{ 1e3 }} {{ 1.5e-7 }} {{ 1e16 }} {{ 123456789012345678 }} {{ 0.1 + 0.2 }}
{{ -2 ** 2 }} {{ 2 ** 3 ** 2 }} {{ 1 + 2 * 3 - 4 }} {{ (1, 2) + (3,) }} {{ [1] * 3 }} {{ 'ab' * 2 }} {{ 3 * 'x' }}
{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 }} {{ true == 1 }} {{ 'a' < 'b' }} {{ [1,2] < [1,3] }} {{ none == none }} {{ 1 != 2 }} {{ 'a' in 'abc' }} {{ 1 not in [1] }} {{ 'b' in {'b': 1} }}
{{ true and 'x' }} {{ '' or 'y' }} {{ not 1 }} {{ 'a' if 0 else 'b' }} [{{ 'a' if 0 }}] {{ 1 ~ 'b' ~ none ~ true ~ 1.0 }}
{{ 'abcdef'[1:3] }} {{ 'abcdef'[::-1] }} {{ 'abcdef'[-2:] }} {{ 'abcdef'[5:1:-2] }} {{ [1,2,3,4][1::2] }} {{ 'Größe 漢字'[3:8] }} {{ (1,2,3)[:-1] }} {{ 'abc'[10:] }} {{ 'abc'[-1] }}
{{ {'a': 1, 2: [None, true, 1.5, 'it''s', "q'", 'n\n']} }} {{ (1,) }} {{ () }} {{ [] }} {{ {} }}
{{ messages[2]['items'] }} {{ messages[2].d }} {{ messages[1] }}
{{ messages[2]|tojson }}
{{ messages[2]|tojson(indent=2) }} {{ [1,{}]|tojson(separators=(',', ':')) }} {{ {'b':1,'a':2}|tojson(sort_keys=true) }} {{ 'é<&>"漢🙂'|tojson(ensure_ascii=true) }} {{ (1,2)|tojson }} {{ {1: 2, none: 3, true: 4}|tojson }}
{{ tools|tojson(indent=4) }}
{{ '  a '|trim }}|{{ 'xxaxx'|trim('x') }}|{{ 5|trim }}|{{ undefined_thing|trim }}|
{{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a b c'.split(' ', 1) }} {{ 'a b c'.rsplit(' ', 1) }} {{ 'a  b c '.rsplit(none, 1) }} {{ ' a  b c '.split(none, 1) }} {{ 'a-b-c'.partition('-') }} {{ 'a-b-c'.rpartition('-') }} {{ 'abc'.partition('x') }} {{ 'abc'.rpartition('x') }}
{{ 'abc'.startswith('ab') }} {{ 'abc'.endswith(('x', 'c')) }} {{ 'abcabc'.find('c') }} {{ 'abcabc'.rfind('c') }} {{ 'abcabc'.count('bc') }} {{ 'abc'.index('b') }} {{ 'äbc'.find('c', 1) }} {{ 'abc'.startswith('b', 1) }}
{{ 'hello wORLD'.title() }} {{ 'hello wORLD'|title }} {{ "they're bill's-friends"|title }} {{ "they're bill's".title() }} {{ 'hELLO'.capitalize() }} {{ 'ß straße'.upper() }} {{ 'ΑΣ ΣΑΣ'.lower() }} {{ 'İ'.lower()|length }} {{ 'aBc'.swapcase() }} {{ 'Straße'.casefold() }} {{ 'ǆ'.title() }}
{{ 'a1'.isalnum() }} {{ 'a'.isalpha() }} {{ '12'.isdigit() }} {{ '½'.isnumeric() }} {{ 'A'.isupper() }} {{ 'a'.islower() }} {{ ' \t'.isspace() }} {{ 'Ab Cd'.istitle() }} {{ ''.isalpha() }} {{ 'x_1'.isidentifier() }}
{{ 'a'.center(5, '*') }} {{ 'ab'.center(5) }}| {{ 'a'.ljust(3) }}| {{ 'a'.rjust(3, '0') }} {{ '-5'.zfill(4) }} {{ 'a\tb'.expandtabs(4) }} {{ 'xab'.removeprefix('x') }} {{ 'abx'.removesuffix('x') }} {{ 'a\nb\r\nc\n'.splitlines() }} {{ 'a\nb'.splitlines(true) }}
{{ ', '.join(['a', 'b']) }} {{ 'aXbX'.replace('X', 'YY') }} {{ 'aXbX'.replace('X', '', 1) }} {{ 'abc'.replace('', '-') }} {{ 'aXbX'|replace('X', 1) }} {{ ' \n a'.lstrip() }} {{ 'axx'.rstrip('x') }}| {{ '\u00a0a\u3000'.strip() }}
{{ '%s is %d and %5.2f %x %o %e %g %c %% %r' % ('a', 3.9, 2.555, 255, 8, 12345.678, 0.0001, 'z', "q") }} {{ '%(a)s-%(b)03d' % {'a': 1, 'b': 7} }} {{ '%-5s|%5s|%+d|% d|%05d|%#x' % ('a', 'b', 3, 4, -5, 255) }} {{ '%s' % none }} {{ '%s' % [1] }} {{ '%.2s' % 'abc' }} {{ '%*d' % (5, 3) }}
{{ '{} {}'.format(1, 'a') }} {{ '{0}{1}{0}'.format('x', 'y') }} {{ '{a.b}{c[0]}{d[k]}'.format(a={'b': 1}, c=[2], d={'k': 3}) }} {{ '{:>5}|{:<5}|{:^5}|{:*^7}|{:05d}|{:,}|{:.2f}|{:x}|{:#x}|{:b}|{:e}|{:%}|{:+d}|{!r}|{:{}}'.format('a', 'b', 'c', 'd', 42, 1234567, 3.14159, 255, 255, 5, 1234.5, 0.25, 3, 'q', 'w', 4) }} {{ '{{}}'.format() }} {{ '{:.3}'.format('abcdef') }} {{ '{:.3}'.format(3.14159) }} {{ '{}'.format(none) }}
{{ messages|map(attribute='role')|join(', ') }} {{ messages|map(attribute='n', default=0)|list }} {{ ['a','b']|map('upper')|list }} {{ [1,2,3]|select('odd')|list }} {{ [1,2,3]|reject('gt', 1)|list }} {{ messages|selectattr('role', 'equalto', 'user')|list|length }} {{ messages|rejectattr('n', 'defined')|map(attribute='role')|list }} {{ [0,1,'']|select|list }} {{ [{'a': {'b': 3}}]|map(attribute='a.b')|first }}
{{ [3,1,2]|sort }} {{ ['b','A','c']|sort }} {{ ['b','A']|sort(case_sensitive=true) }} {{ [3,1]|sort(reverse=true) }} {{ messages|sort(attribute='role')|map(attribute='role')|list }} {{ {'b':1,'A':2}|dictsort }} {{ {'b':1,'A':2}|dictsort(false, 'value', true) }} {{ ['a','A','b']|unique|list }} {{ [1,2,3]|reverse|list }} {{ 'abc'|reverse }} {{ [1,5,2]|max }} {{ ['b','A']|min }} {{ [1,2]|sum }} {{ [{'v':1},{'v':2}]|sum(attribute='v', start=10) }}
{{ [1,2,3]|first }} {{ [1,2,3]|last }} {{ 'abc'|first }} {{ 'abc'|last }} {{ []|first is defined }} {{ {'a':1}|first }} {{ [1,2,3,4,5]|batch(2)|list }} {{ [1,2,3,4,5]|batch(2, 0)|list }} {{ [1,2,3,4,5]|slice(2)|list }} {{ 'abc'|list }} {{ {'a':1}|items|list }} {{ {'a':1}|list }}
{% for k, v in messages[2].d.items() %}{{ k }}={{ v }};{% endfor %} {{ {'a':1}.keys() }} {{ {'a':1}.values()|list }} {{ {'a':1}.get('b') }} {{ {'a':1}.get('b', 2) }} {{ {'a':1}.items() }} {{ dict(a=1, b=2) }} {{ dict([('x', 1)], y=2) }} {{ messages[2].items is callable }} {{ messages[2]['items']|length }}
{% for g in [{'k':'b','v':1},{'k':'A','v':2},{'k':'b','v':3}]|groupby('k') %}{{ g.grouper }}:{{ g.list|length }} {% endfor %}{% for k, l in [{'k':1},{'k':1}]|groupby('k') %}{{ k }}{{ l }}{% endfor %}
{{ 'a\nb\n\nc'|indent }} {{ 'a\nb'|indent(2, true) }} {{ 'a\n\nb'|indent('>', blank=true) }}
{{ '42'|int }} {{ '4.7'|int }} {{ 'x'|int }} {{ 'x'|int(5) }} {{ 'ff'|int(0, 16) }} {{ 3.9|int }} {{ -3.9|int }} {{ '1_0'|int }} {{ ' 7 '|int }} {{ true|int }} {{ none|int }} {{ '1.5'|float }} {{ 'x'|float }} {{ 3|float }} {{ '1e3'|float }} {{ 1.5|string + 'a' }} {{ 3|abs }} {{ -2.5|abs }}
{{ 2.5|round }} {{ 3.5|round }} {{ 2.675|round(2) }} {{ 42.55|round(1, 'floor') }} {{ 42.51|round(1, 'ceil') }} {{ 1234|round(-2) }} {{ 5|round }} {{ 1250.0|round(-2) }}
{{ 'x' is string }} {{ 1 is number }} {{ true is number }} {{ 1 is integer }} {{ true is integer }} {{ 1.0 is float }} {{ true is boolean }} {{ none is none }} {{ [] is sequence }} {{ 'a' is sequence }} {{ {} is sequence }} {{ {} is mapping }} {{ 1 is iterable }} {{ 'a' is iterable }} {{ nope is defined }} {{ nope is undefined }} {{ 3 is odd }} {{ 4 is even }} {{ 6 is divisibleby 3 }} {{ 1 is sameas 1 }} {{ 'a' is in ['a'] }} {{ 'a' is lower }} {{ 'A' is upper }} {{ 1 is eq 1 }} {{ 2 is gt(1) }} {{ true is true }} {{ 1 is true }} {{ false is false }} {{ 'upper' is filter }} {{ 'nix' is filter }} {{ 'odd' is test }} {{ raise_exception is callable }} {{ [1]|map('string') is sequence }} {{ range(3) is sequence }} {{ nope is iterable }} {{ 1 is not string }}
{{ nope }}[{{ nope|default('d') }}{{ ''|default('e') }}{{ ''|default('f', true) }}{{ none|d('g') }}] {{ nope|length }} {{ nope ~ 'x' }} {{ nope == nope }} {% for x in nope %}x{% endfor %}{{ nope|list }} {{ nope|join }} {{ 'a' in nope }}
{{ messages[0].nope is defined }} {{ messages[0].nope }} {{ messages[9] is defined }} {{ messages[0]['nope'] is undefined }} {{ none.x is defined }}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, d) = [3, 4] %}{{ c }}{{ d }}{% for (x, y), z in [((1, 2), 3)] %}{{ x }}{{ y }}{{ z }}{% endfor %}
{{ range(5)|list }} {{ range(1, 10, 3)|list }} {{ range(5, 0, -2)|list }} {{ range(3)[1] }} {{ range(10)[2:5]|list }} {{ range(3)|length }}
{{ '<a>'|e }} {{ '<a>'|escape|safe }} {{ ('<b>'|safe) + '<c>' }} {{ '<c>' + ('<b>'|safe) }} {{ ('<b>'|safe) ~ '<c>' }} {{ ['<'|safe, '>']|join('&') }} {{ '"x"'|forceescape }} {{ '<x>'|safe|upper }} {{ ' <x>'|safe|trim is escaped }}
{{ 'foo bar baz qux'|truncate(9) }} {{ 'foo bar baz qux'|truncate(9, true) }} {{ 'foo bar baz qux'|truncate(11) }} {{ 'foo bar baz qux'|truncate(11, false, '...', 0) }} {{ 'a b  c'|wordcount }} {{ 'a b/c?ü'|urlencode }} {{ {'a': 'b c', 'd': 1}|urlencode }} {{ '%s-%s'|format(1, 2) }} {{ 'x'|center(5) }}|
{% set j = joiner('; ') %}{% for i in [1,2,3] %}{{ j() }}{{ i }}{% endfor %} {% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}
{{ strftime_now('%d %B %Y %H:%M %j %a %-d %b %%') }}
{% generation %}gen{% set z = 1 %}{% endgeneration %}{{ z is defined }}
{% for x in [1,[2,[3]]] recursive %}{{ x if x is number else loop(x) }}.{{ loop.depth }}{% endfor %}
{% set g = [1,2,3]|select('odd') %}{{ g|list }}{{ g|list }}
{% set g = [1,2,3]|map('string') %}{% for x in g %}{{ x }}{% break %}{% endfor %}{{ g|list }}
{{ loop is defined }}{% for x in [1] %}{% macro m() %}{{ loop is defined }}{{ x }}{% endmacro %}{{ m() }}{% endfor %}
{% print 1, 'a' %}{{ 1, 2 }}{{ [1, 2,] }}{{ {'a': 1,} }}{{ f(*[1], **{'a': 2}) if false }}
{{ messages|tojson|length }} {{ (messages|first).role }} {{ messages.0.role }} {{ 'x'.upper().lower() }} {{ -1|abs }} {{ not true is false }} {{ 1 if true else 2 if false else 3 }}
{% if 1 %}a{% elif x.y %}b{% else %}c{% endif %}{% if 0: %}d{% elif 1 %}e{% endif %}
{{ add_generation_prompt }} {{ bos_token }} {{ tools is none }} {{ documents is none }} {{ documents }}
{{ namespace(a=1).a }} {{ {'a': 1}['a'] }} {{ {'a': 1}.a }} {{ 'abc'.nope is defined }} {{ [1,2].index(2) }} {{ [1,1].count(1) }} {{ (1.5).is_integer() }} {{ [1].append is defined }}
{{ 1.0 }} {{ 100000000000000000000.0 }} {{ 1e-5 }} {{ 0.0001 }} {{ -0.0 }} {{ 1e300 * 1e10 }} {{ 3.0|int }} {{ 18446744073709551615 }} {{ 1/3 }}
{% set x = 'a' %}{% macro m(x) %}{% set x = x ~ 'b' %}{{ x }}{% endmacro %}{{ m('q') }}{{ x }}{{ m() }}
{{ messages|selectattr('n')|list|length }} {{ [[1,2],[3]]|map('join', '-')|list }} {{ ['1','x']|map('int', default=9)|list }} {{ [{'a':1},{}]|map(attribute='a')|list }} {{ [{'a':1},{}]|selectattr('a','undefined')|list }}
{{- 'x' -}}   
   {{- 'y' }}
z
{{ nope.x }}
{{ nope() }}
{{ nope + 1 }}
{{ none.x.y }}
{{ 1 + 'a' }}
{{ 'a' + 1 }}
{{ [1] + (2,) }}
{{ 1 < 'a' }}
{{ 1 / 0 }}
{{ none|length }}
{{ [1]|map('string')|length }}
{{ [1]|map('string')|tojson }}
{{ [1].append(2) }}
{{ ''.__class__.x }}
{{ raise_exception('boom ' ~ 1) }}
{{ 'abc'.index('z') }}
{{ 'x'|nofilter }}
{{ 'x' is notest }}
{% if false %}{{ 'x'|nofilter }}{% endif %}ok
{{ 'x'|nofilter if false else 'ok' }}
{% if true %}{% for a in [1] %}{{ 'x'|nofilter }}{% endfor %}{% endif %}
{% set loop = 1 %}{{ loop }}
{% for loop in [1] %}{% endfor %}
{% for a, b in [1] %}{% endfor %}
{% for a, b in [(1,2,3)] %}{% endfor %}
{% set x.y = 1 %}
{% set ns = namespace() %}{% set ns._x = 1 %}
{{ namespace(_a=1) }}
{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{% endmacro %}{{ m(b=2) }}
{% macro m(a) %}{{ a.b }}{% endmacro %}{{ m() }}
{{ range(1000000) }}
{{ {}['a'].b }}
{{ {[1]: 2} }}
{% if true %}
{% endfor %}
{% nope %}
{{ 1 2 }}
{{ (1 }}
{{ 'abc }}
{{ a b }}
{% for x in %}{% endfor %}
{{ }}
{# open
{% raw %} open
{{ 'a'.split('') }}
{{ '%d' % 'a' }}
{{ '%s %s' % 'a' }}
{{ '%s' % (1, 2) }}
{{ '{}'.format() }}
{{ '{x}'.format() }}
{{ 5|first }}
{{ 5.upper() }}
{{ messages|sort }}
{{ [1, 'a']|sort }}
{{ {'a': nope}|tojson }}
{{ 'a' is in 5 }}
{{ 'a' in 5 }}
{{ 5 in 'a' }}
{% break %}
{{ x is defined is string }}
{{ -'a' }}
{{ 'a'.upper(1) }}
{{ 'a'|upper(1) }}
{{ 'a'|replace('a') }}
{{ "a".join([1]) }}
{{ [1,2,3]|batch }}
"""

# Multi-line cases continue where the next line is indented or starts so.
CONTINUES = (" ", "z")


def cases():
    out = []
    lines = CASES.strip("\n").split("\n")
    for line in lines:
        if out and line.startswith(CONTINUES) and not line.startswith("   {%- raw"):
            out[-1] += "\n" + line
        else:
            out.append(line)
    return out + [
        "a\r\nb\rc\n", "x\n\n", "{% if true %}\r\nx\r\n{% endif %}\r\n",
        "  {{ 1 }}\n  {# c #}\n  {% set a = 1 %}\n{{ a }}",
        "{% for x in [1,2] %}\n  {{ x }}\n{% endfor %}\nend",
        "{% for x in [1,2] -%}\n  {{ x }}\n{%- endfor %}\nend",
        "a\n  {%- if true %}b{% endif %}\n  c", "a {%- set x = 1 +%}\n b",
        "\t {% if true %}\tx{% endif %}", "x {% if true %}y{% endif %}",
        "{{ 'a\nb' }}{{ 'tab\\\nc' }}", "{{ '}}' }}{{ {'a': {'b': 1}}}}",
        "{{ {'a':{'b':1}}['a'] }}", "{%if true%}x{%endif%}",
        "{%- macro f(x) -%}\n  {{ x }}\n{%- endmacro -%}\n{{ f(1) }}\n",
    ]


class Generation(jinja2.ext.Extension):
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_render")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _render(self, caller):
        return caller()


class Namespace(jinja2.utils.Namespace):
    def __init__(*args, **kwargs):
        for name in dict(*args[1:], **kwargs):
            Namespace.check(name)
        jinja2.utils.Namespace.__init__(args[0], dict(*args[1:], **kwargs))

    def __setitem__(self, name, value):
        Namespace.check(name)
        jinja2.utils.Namespace.__setitem__(self, name, value)

    @staticmethod
    def check(name):
        if name.startswith("_"):
            raise jinja2.exceptions.SecurityError(name)


def environment():
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True,
        extensions=[Generation, jinja2.ext.loopcontrols])

    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent,
                          separators=separators, sort_keys=sort_keys)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["namespace"] = Namespace
    env.globals["strftime_now"] = datetime.datetime(2025, 1, 15, 12).strftime
    return env


def main():
    out = []
    for template in cases():
        case = {"template": template}
        try:
            case["output"] = environment().from_string(template).render(
                messages=MESSAGES, tools=TOOLS, documents=None,
                add_generation_prompt=True, bos_token="<s>", eos_token="</s>")
        except Exception as error:  # whatever it is, we must refuse too
            case["error"] = str(error)
        out.append(case)
    json.dump({"messages": MESSAGES, "tools": TOOLS, "cases": out}, sys.stdout,
              ensure_ascii=False, indent=1)
    print()


main()
