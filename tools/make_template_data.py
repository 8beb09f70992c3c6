#!/usr/bin/env python3
"""Writes tests/data/chat_templates/snippets.jsonl: what jinja2 makes of small templates.

    python3 -m venv venv && venv/bin/pip install jinja2==3.1.6 && venv/bin/python tools/make_template_data.py

jinja2 is set up as Hugging Face Transformers does for chat templates. A line has the template, the variables it was
rendered with, and its text, or `error: true` where jinja2 refuses. The variables messages, tools, bos_token, eos_token
and add_generation_prompt are fields of ChatTemplate::Input, all others belong in its `extra`.
"""

import datetime
import json
from pathlib import Path

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

OUT = Path(__file__).resolve().parent.parent / "tests/data/chat_templates/snippets.jsonl"
NOW = 1700000000  # 2023-11-14 22:13:20


class Generation(jinja2.ext.Extension):
    """{% generation %}: Transformers records where answers lie; the text is that of the body."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_support")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _support(self, caller):
        return caller()


def environment():
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def strftime_now(fmt):
        return datetime.datetime.fromtimestamp(NOW, datetime.timezone.utc).strftime(fmt)

    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = strftime_now
    return env


CHAT = {
    "messages": [
        {"role": "system", "content": "Be brief.\n"},
        {"role": "user", "content": "  Hi <|im_end|> there "},
        {"role": "assistant", "content": "Hello!"},
        {"role": "user", "content": "Ünïcödé 日本 🙂"},
    ],
    "add_generation_prompt": True,
    "bos_token": "<s>",
    "eos_token": "</s>",
}
TOOLS = {
    "tools": [
        {
            "type": "function",
            "function": {
                "name": "get_weather",
                "description": "It's \"fine\" <b>\n",
                "parameters": {
                    "type": "object",
                    "properties": {
                        "city": {"type": "string", "enum": ["Zürich", "Bern"]},
                        "days": {"type": "integer", "default": 3, "items": None},
                        "ratio": {"type": "number", "default": 1.5},
                    },
                    "required": ["city"],
                },
            },
        }
    ],
    "messages": [{"role": "user", "content": "x"}],
    "add_generation_prompt": False,
}
DATA = {
    "xs": [3, 1, 2],
    "names": ["bob", "Alice", "carol", "alice"],
    "word": "Hello World",
    "uni": "straße ΑΣ ǆ 日本",
    "rows": [{"n": "a", "v": 2, "ok": True}, {"n": "b", "v": 1, "ok": False}, {"n": "c", "v": 3}],
    "d": {"b": 1, "a": {"k": [1, 2]}, "items": "shadowed"},
    "text": " \t one two\nthree  \n",
    "empty": "",
    "nothing": None,
    "yes": True,
    "f": 2.5,
    "spaces": "\u00a0\u2003x\u3000",
}

# (name, template, variables)
SNIPPETS = []


def add(name, template, variables=None):
    SNIPPETS.append((name, template, variables if variables is not None else DATA))


# White space: trim_blocks, lstrip_blocks, signs, the last newline.
add("ws/newline after block", "{% if true %}\na\n{% endif %}\nb\n")
add("ws/two trailing newlines", "a\n\n")
add("ws/three trailing newlines", "a\n\n\n")
add("ws/crlf", "{% if true %}\r\na\r\n{% endif %}\r\nb\rc\r\n")
add("ws/indented tags", "  {% if true %}\n    a\n  {% endif %}\n  b {% if true %}c{% endif %}\n")
add("ws/indented after print", "{{ word }}   {% if true %}\n x\n {% endif %}\n")
add("ws/tabs", "\t{% set a = 1 %}\t\n\t{{ a }}\t\n")
add("ws/print keeps newline", "{{ 1 }}\n{{ 2 }}\n\n{{ 3 }}\n")
add("ws/plus sign", "  {%+ if true %}\n a\n  {%+ endif %}\nb{% if true +%}\nc{% endif %}")
add("ws/minus signs", "a  \n {%- if true -%} \n b \n {%- endif -%} \n c {{- 1 -}} d \n {#- x -#} \n e")
add("ws/comments", "a\n  {# one\n two #}\nb {# c #} d\n{#- x #}\n{# y -#}\n  z {#+ k +#}\nw")
add("ws/comment with minus inside", "a {#-#} b {# - #} c {#--#} d")
add("ws/raw", "a {% raw %} {{ x }} {% if %} {% endraw %} b\n  {%- raw -%}\n {# r #} \n{%- endraw -%}\n c")
add("ws/raw newline", "{% raw %}\nx\n{% endraw %}\ny")
add("ws/minus is not a number", "{{-1}} {{ -1 }} {{- -1 -}} x")
add("ws/nested loop lines", "{% for x in xs %}\n  {% for y in xs %}\n    {{ y }}\n  {% endfor %}\n{% endfor %}\n")
add("ws/unicode space", "a\u00a0{%- if true -%}\u2003b{% endif %}")
add("ws/strip eats lines then block", "x\n\n   {%- set a = 1 %}\n\n   {% set b = 2 -%}\n\n  y")
add("ws/line start after minus", "{% set a = 1 -%}\n  {% set b = 2 %}\nx")
add("ws/braces in text", "a { b } {c} {{ '{' }} }} %} #} {")

# Literals and strings.
add("lit/numbers", "{{ 1_000 }} {{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 1.5 }} {{ 1e3 }} {{ 2.5E-3 }} {{ 1_0.2_5 }}")
add("lit/float print", "{{ 1e16 }} {{ 1e15 }} {{ 0.0001 }} {{ 0.00001 }} {{ 1/3 }} {{ 1e100 }} {{ -0.0 }} {{ 100.0 }}")
add("lit/escapes", r"""{{ 'a\nb\t\'q\' "d" \\ \x41 \u00e9 \U0001F642 \101 \q' }}|{{ "it's \"x\"" }}""")
add("lit/adjacent strings", "{{ 'a' 'b' \"c\" }}{{ 'x'\n 'y' }}")
add("lit/newline in string", "{{ 'a\n\nb' }}")
add("lit/braces in string", "{{ '}} %}' }}{{ {'a': {'b': 1}} }}{{ {'a':{'b':1}}['a']['b'] }}")
add("lit/containers", "{{ [1, 'a', none, true, 1.0] }}{{ (1,) }}{{ () }}{{ (1, 2) }}{{ {} }}{{ {1: 'x', 'k': [()]} }}")
add("lit/repr quotes", "{{ [\"it's\", 'say \"x\"', 'both \\' and \"', 'a\\nb\\t\\\\', 'é日🙂', '\\x00\\x7f\\u200b'] }}")
add("lit/none true", "{{ none }} {{ None }} {{ true }} {{ False }}")
add("lit/undefined prints empty", "[{{ missing }}][{{ d.missing }}][{{ xs[9] }}]")
add("lit/tuple print", "{{ 1, 2 }} {{ 'a', }}")

# Operators.
add("op/arithmetic", "{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 6 / 2 }}")
add("op/float arithmetic", "{{ 7.5 // 2 }} {{ -7.5 % 2 }} {{ 1.5 * 2 }} {{ 0.1 + 0.2 }} {{ 2.0 ** 0.5 }} {{ 7 // 2.0 }}")
add("op/precedence", "{{ 1 + 2 * 3 }} {{ (1 + 2) * 3 }} {{ -2 ** 2 }} {{ 2 ** 3 ** 2 }} {{ 'a' ~ 2 * 3 + '!' }} {{ 10 - 2 - 3 }}")
add("op/strings", "{{ 'a' + 'b' }} {{ 'ab' * 3 }} {{ 2 * 'x' }} {{ 'a' * -1 }} {{ 'a' ~ 1 ~ none ~ 2.0 ~ missing ~ [1] }}")
add("op/lists", "{{ [1] + [2, 3] }} {{ [0] * 2 }} {{ (1,) + (2,) }}")
add("op/compare chain", "{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 1 == 1.0 }} {{ true == 1 }} {{ 'a' < 'b' }} {{ [1, 2] < [1, 3] }}")
add("op/compare mixed", "{{ 1 == '1' }} {{ none == false }} {{ [1] == (1,) }} {{ {'a': 1} == {'a': 1.0} }} {{ missing == missing2 }}")
add("op/in", "{{ 1 in xs }} {{ 9 not in xs }} {{ 'ell' in word }} {{ 'b' in d }} {{ '' in '' }} {{ 'x' in missing }} {{ not 1 in xs }}")
add("op/logic values", "{{ 0 or 'x' }} {{ '' and 'y' }}| {{ 1 and 2 }} {{ none or missing or [] }} {{ not '' }} {{ not not 3 }}")
add("op/conditional", "{{ 'a' if yes else 'b' }} {{ 'a' if not yes }}| {{ 1 if empty else 2 if nothing else 3 }} {{ ('x' if yes) ~ 'y' }}")
add("op/string compare", "{{ 'Z' < 'a' }} {{ 'é' > 'z' }} {{ 'ab' <= 'ab' }} {{ '' < 'a' }}")
add("op/bool arithmetic", "{{ true + true }} {{ -true }} {{ +true }} {{ xs[true] }}")
add("op/unary filter", "{{ -1|abs }} {{ (-1)|abs }} {{ -xs[0] }} {{ -2.5|int }}")

# Access.
add("get/attr and item", "{{ d.b }} {{ d['b'] }} {{ d.a.k[1] }} {{ d['a'].k.0 }} {{ d.get('zz', 5) }} {{ d.get('zz') }} {{ xs.0 }}")
add("get/negative", "{{ xs[-1] }} {{ word[-1] }} {{ word[0] }} {{ uni[4] }} {{ uni[-1] }}")
add("get/slices", "{{ xs[1:] }} {{ xs[:-1] }} {{ xs[::-1] }} {{ word[2:5] }} {{ word[::2] }} {{ word[-3:] }} {{ word[10:2:-3] }}")
add("get/slices of unicode", "{{ uni[1:6] }}|{{ uni[::-1] }}|{{ uni[-2:] }}|{{ uni[::3] }}")
add("get/slices beyond", "{{ xs[5:] }} {{ xs[-9:2] }} {{ word[99:] }}| {{ word[:99] }} {{ (1, 2, 3)[1:] }} {{ xs[2:0] }} {{ xs[:0:-1] }}")
add("get/items method shadows key", "{{ d['items'] }} {{ d.items is defined }} {% for k, v in d.items() %}{{ k }};{% endfor %}")
add("get/string key falls to method", "{{ word['upper']() }} {{ d['get']('b') }}")
add("get/attr of undefined fails", "{{ missing.x }}")
add("get/item of undefined fails", "{{ missing['x'] }}")
add("get/attr of attr undefined fails", "{{ d.zz.y }}")
add("get/attr of none", "{{ nothing.x }}|{{ nothing['x'] }}|{{ nothing.x is defined }}|{{ xs.foo is defined }}")
add("get/slice of none fails", "{{ nothing[1:] }}")
add("get/private", "[{{ word.__class__ }}][{{ d.__x }}]")
add("get/private use fails", "{{ word.__class__.mro }}")
add("get/mutation fails", "{{ xs.append(4) }}")
add("get/mutation in set fails", "{% set _ = d.update({'x': 1}) %}")

# Statements.
add("if/elif else", "{% for x in xs %}{% if x == 1 %}one{% elif x == 2 %}two{% else %}other{% endif %},{% endfor %}")
add("for/loop variables", "{% for x in names %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }} {% endfor %}")
add("for/neighbours", "{% for x in xs %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}{% for x in xs %}{{ loop.previtem is defined }}{% endfor %}")
add("for/else", "{% for x in [] %}a{% else %}b{% endfor %}{% for x in xs %}a{% else %}b{% endfor %}{% for x in missing %}{% else %}u{% endfor %}")
add("for/filter", "{% for x in xs if x > 1 %}{{ x }}{{ loop.index }}{{ loop.length }} {% else %}none{% endfor %}{% for x in xs if x > 9 %}{% else %}E{% endfor %}")
add("for/unpack", "{% for a, b in [(1, 2), [3, 4]] %}{{ a }}{{ b }};{% endfor %}{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}")
add("for/nested unpack", "{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}")
add("for/over dict and string", "{% for k in d %}{{ k }},{% endfor %}{% for c in 'añ日' %}[{{ c }}]{% endfor %}")
add("for/break continue", "{% for x in range(10) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}!")
add("for/nested loop", "{% for x in [1, 2] %}{% for y in [1, 2] %}{{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}")
add("for/cycle", "{% for x in range(5) %}{{ loop.cycle('a', 'b', 'c') }}{% endfor %}")
add("for/tuple without brackets", "{% for x in 1, 2, 3 %}{{ x }}{% endfor %}")
add("for/over none fails", "{% for x in nothing %}{% endfor %}")
add("for/over number fails", "{% for x in 5 %}{% endfor %}")
add("for/unpack mismatch fails", "{% for a, b in [(1, 2, 3)] %}{% endfor %}")
add("scope/set in loop does not leak", "{% set x = 0 %}{% for i in [1, 2] %}{{ x }}{% set x = x + 1 %}{{ x }} {% endfor %}{{ x }}")
add("scope/set in if leaks", "{% if true %}{% set x = 5 %}{% endif %}{{ x }}{% if false %}{% set y = 5 %}{% endif %}[{{ y }}]")
add("scope/loop variable ends", "{% for i in [1] %}{% endfor %}[{{ i }}][{{ loop }}]")
add("scope/loop variable shadows", "{% set i = 'o' %}{% for i in [1, 2] %}{{ i }}{% endfor %}{{ i }}")
add("scope/namespace", "{% set ns = namespace(n=0, found=false) %}{% for x in xs %}{% set ns.n = ns.n + x %}{% if x == 1 %}{% set ns.found = true %}{% endif %}{% endfor %}{{ ns.n }} {{ ns.found }} [{{ ns.zz }}]")
add("scope/set attribute of non-namespace fails", "{% set x = {} %}{% set x.a = 1 %}")
add("scope/set tuple", "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set c = 1, 2 %}{{ c }}{% set (e, g) = [3, 4] %}{{ e }}{{ g }}")
add("scope/set block", "{% set x %}a{{ 1 }}\nb{% endset %}[{{ x }}]{% set y | upper | trim %} q {% set inner = 1 %}{% endset %}[{{ y }}][{{ inner }}]")
add("scope/with", "{% with a = 1, b = xs %}{{ a }}{{ b }}{% set c = 3 %}{% endwith %}[{{ a }}{{ c }}]")
add("scope/set before use in loop of outer", "{% for i in xs %}{% if i == 1 %}{% set seen = true %}{% endif %}[{{ seen }}]{% endfor %}")
add("macro/defaults", "{% macro m(a, b='B', c=none) %}{{ a }}-{{ b }}-{{ c }};{% endmacro %}{{ m(1) }}{{ m(1, 2) }}{{ m(c=3, a=0) }}{{ m() }}")
add("macro/default sees earlier", "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}")
add("macro/outer variables", "{% set x = 1 %}{% macro m() %}{{ x }}{{ y }}{% endmacro %}{{ m() }}{% set x = 2 %}{% set y = 3 %}{{ m() }}")
add("macro/recursive", "{% macro r(n) %}{{ n }}{% if n > 0 %}{{ r(n - 1) }}{% endif %}{% endmacro %}{{ r(3) }}")
add("macro/varargs kwargs", "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, k=4) }}")
add("macro/too many fails", "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}")
add("macro/unknown keyword fails", "{% macro m(a) %}{% endmacro %}{{ m(b=2) }}")
add("macro/result is a string", "{% macro m() %} x {% endmacro %}{{ m()|trim|upper }}{{ m() ~ 'y' }}{{ m()|length }}{% if m() %}t{% endif %}")
add("macro/call block", "{% macro m(t) %}<{{ t }}>{{ caller('z') }}</{{ t }}>{% endmacro %}{% call(v) m('b') %}in{{ v }}{% endcall %}")
add("macro/in loop", "{% for x in xs %}{% macro m() %}{{ x }}{% endmacro %}{{ m() }}{% endfor %}")
add("block/filter", "{% filter upper|trim %}  abc {{ word }}  {% endfilter %}!")
add("block/generation", "a{% generation %}\n  b{{ word }}\n{% set inner = 1 %}{% endgeneration %}\nc[{{ inner }}]")

# Tests.
add("is/types", "{% for v in [1, 1.0, true, none, 'x', [], {}, (), missing] %}{{ v is string }}{{ v is number }}{{ v is integer }}{{ v is float }}{{ v is boolean }}{{ v is mapping }}{{ v is sequence }}{{ v is iterable }}{{ v is none }}{{ v is defined }}{{ v is true }}{{ v is false }} {% endfor %}")
add("is/arguments", "{{ 3 is odd }} {{ 4 is even }} {{ -3 is odd }} {{ 9 is divisibleby 3 }} {{ 9 is divisibleby(2) }} {{ 1 is eq 1 }} {{ 1 is equalto(2) }} {{ 2 is gt 1 }} {{ 1 is in [1] }} {{ 'a' is ne 'b' }}")
add("is/not and logic", "{{ missing is not defined and yes is defined }} {{ not missing is defined }} {{ 1 is number or 2 }} {{ 'x' if word is string else 'y' }}")
add("is/case", "{{ 'abc' is lower }} {{ 'ABC' is upper }} {{ 'aB' is lower }} {{ '1' is lower }}")
add("is/callable sameas", "{{ range is callable }} {{ none is sameas none }} {{ true is sameas true }} {{ 1 is sameas true }}")
add("is/generator", "{% set g = xs|select('odd') %}{{ g is iterable }} {{ g is sequence }} {{ 't' if g else 'f' }}")
add("is/test of undefined attribute fails", "{{ missing.x is defined }}")

# Filters.
add("filter/case", "{{ word|upper }} {{ word|lower }} {{ 'hello wORLD-foo (bar'|title }} {{ 'hELLO wORLD'|capitalize }} {{ uni|upper }} {{ uni|lower }} {{ uni|title }} {{ uni|capitalize }}")
add("filter/trim", "[{{ text|trim }}][{{ 'xxaxx'|trim('x') }}][{{ spaces|trim }}][{{ missing|trim }}][{{ 5|trim }}]")
add("filter/length", "{{ xs|length }} {{ word|count }} {{ uni|length }} {{ d|length }} {{ missing|length }} {{ ''|length }}")
add("filter/length of none fails", "{{ nothing|length }}")
add("filter/join", "{{ xs|join }} {{ xs|join(', ') }} {{ rows|join('-', attribute='n') }} {{ [1, none, 'x', missing]|join('|') }} {{ 'abc'|join('.') }}")
add("filter/first last", "{{ xs|first }} {{ xs|last }} {{ 'añ'|last }} [{{ []|first }}] {{ d|first }}")
add("filter/default", "{{ missing|default('x') }} {{ nothing|default('x') }} {{ ''|default('x') }}| {{ ''|d('x', true) }} {{ nothing|default('y', boolean=true) }} {{ missing|d }}| {{ d.zz|default([]) }}")
add("filter/replace", "{{ word|replace('o', '0') }} {{ 'aaaa'|replace('a', 'b', 2) }} {{ 'ab'|replace('', '-') }} {{ 123|replace(2, 'x') }} {{ 'é日'|replace('', '.') }}")
add("filter/list", "{{ 'añ'|list }} {{ d|list }} {{ range(3)|list }} {{ (1, 2)|list }} {{ d.keys()|list }} {{ d.values()|list|length }}")
add("filter/items", "{% for k, v in d|items %}{{ k }}{% endfor %}{% for k, v in missing|items %}{% endfor %}")
add("filter/map", "{{ names|map('upper')|list }} {{ rows|map(attribute='v')|join(',') }} {{ rows|map(attribute='ok', default='?')|list }} {{ xs|map('string')|join }} {{ names|map('replace', 'a', 'A')|list }}")
add("filter/select", "{{ xs|select('odd')|list }} {{ xs|reject('gt', 2)|list }} {{ [0, 1, '', 'x']|select|list }} {{ xs|select('in', [1, 2])|list }} {{ xs|reject('==', 1)|list }}")
add("filter/selectattr", "{{ rows|selectattr('ok')|map(attribute='n')|list }} {{ rows|rejectattr('ok', 'defined')|map(attribute='n')|list }} {{ rows|selectattr('v', 'ge', 2)|map(attribute='n')|list }} {{ rows|selectattr('n', 'equalto', 'b')|list }}")
add("filter/string int float", "{{ 1|string ~ 2 }} {{ '42'|int }} {{ ' 7 '|int }} {{ '4.9'|int }} {{ 'x'|int }} {{ 'x'|int(5) }} {{ 3.9|int }} {{ -3.9|int }} {{ '1.5'|float }} {{ 'x'|float }} {{ '1_000'|int }} {{ true|int }} {{ nothing|int }} {{ '1e3'|float }} {{ '+5'|int }}")
add("filter/round abs", "{{ 2.5|round }} {{ 3.5|round }} {{ 2.675|round(2) }} {{ 2.1|round(0, 'ceil') }} {{ 2.19|round(1, 'floor') }} {{ 5|round }} {{ -3|abs }} {{ -2.5|abs }}")
add("filter/sort", "{{ xs|sort }} {{ names|sort }} {{ names|sort(case_sensitive=true) }} {{ xs|sort(reverse=true) }} {{ rows|sort(attribute='v')|map(attribute='n')|join }} {{ rows|sort(true, false, 'n')|map(attribute='n')|join }}")
add("filter/dictsort", "{{ {'b': 1, 'A': 3, 'c': 2}|dictsort }} {{ {'b': 1, 'A': 3}|dictsort(true) }} {{ {'b': 1, 'A': 3}|dictsort(false, 'value') }} {{ {'b': 1, 'A': 3}|dictsort(reverse=true) }}")
add("filter/unique min max sum", "{{ names|unique|list }} {{ names|unique(true)|list }} {{ xs|min }} {{ xs|max }} {{ xs|sum }} {{ rows|sum(attribute='v') }} {{ names|min }} {{ [1, 1.0, true]|unique|list }} [{{ []|max }}]")
add("filter/reverse", "{{ xs|reverse|list }} {{ word|reverse }} {{ 'añ日'|reverse }}")
add("filter/indent", "{{ 'a\nb\n\nc'|indent }}|{{ 'a\nb\n'|indent(2, true) }}|{{ 'a\n\nb'|indent('> ', first=true, blank=true) }}|{{ ''|indent }}|{{ 'x\r\ny'|indent(1) }}")
add("filter/safe", "{{ '<b>'|safe }} {{ (1|safe) ~ '<' }}")
add("filter/chain", "{{ text|trim|upper|replace('\n', ' ')|length }} {{ (xs|sort)[0] }} {{ xs|sort|first }}")
add("filter/tojson plain", "{{ d|tojson }} {{ 'é\"\\\n\t\\x7f<>&\\''|tojson }} {{ [1, 1.0, none, true, 1e20, (1, 2)]|tojson }} {{ {}|tojson }}{{ []|tojson }} {{ {1: 2, none: 3, true: 4, 1.5: 5}|tojson }}")
add("filter/tojson options", "{{ 'é日🙂\\x7f'|tojson(ensure_ascii=true) }} {{ d|tojson(indent=2) }} {{ d|tojson(separators=(',', ':')) }} {{ {'b': 1, 'a': 2}|tojson(sort_keys=true) }} {{ [[], {}]|tojson(indent=1) }} {{ [1, [2]]|tojson(indent='--') }}")
add("filter/tojson of undefined fails", "{{ missing|tojson }}")
add("filter/tools", "{{ tools|tojson }}\n{{ tools|tojson(indent=4) }}{% for t in tools %}{{ t.function.name }}{{ t['function']['parameters'].properties|list }}{% for k, v in t.function.parameters.properties.items() %}{{ k }}:{{ v.type }}{{ v }}{% endfor %}{% endfor %}", TOOLS)
add("filter/undefined to int fails", "{{ missing|int }}")
add("filter/sort mixed fails", "{{ [1, 'a']|sort }}")
add("filter/arguments missing fails", "{{ word|replace('a') }}")

# Methods.
add("method/split", "{{ 'a,b,,c'.split(',') }} {{ ' a  b '.split() }} {{ 'a b c'.split(' ', 1) }} {{ 'a b c'.rsplit(' ', 1) }} {{ 'a  b c'.rsplit(none, 1) }} {{ ''.split() }} {{ ''.split(',') }} {{ 'a b  c '.split(none, 1) }} {{ 'x</think>y'.split('</think>')[-1] }}")
add("method/strip", "[{{ text.strip() }}][{{ text.lstrip() }}][{{ text.rstrip() }}][{{ '--a-'.strip('-') }}][{{ 'xyaxy'.lstrip('yx') }}][{{ 'a\n'.rstrip('\n') }}][{{ 'éaé'.strip('é') }}]")
add("method/affixes", "{{ word.startswith('He') }} {{ word.endswith('ld') }} {{ word.startswith(('x', 'H')) }} {{ 'abc'.removeprefix('a') }} {{ 'abc'.removesuffix('c') }} {{ word.startswith('') }}")
add("method/case", "{{ word.upper() }} {{ word.lower() }} {{ 'hello wORLD they\\'re'.title() }} {{ 'hELLO'.capitalize() }} {{ 'x'.isupper() }} {{ 'AB1'.isupper() }} {{ '12'.isdigit() }} {{ 'ab'.isalpha() }} {{ ''.isalnum() }} {{ ' \n'.isspace() }}")
add("method/find", "{{ word.find('o') }} {{ word.rfind('o') }} {{ word.find('zz') }} {{ uni.find('日') }} {{ 'aaa'.count('a') }} {{ 'aaa'.count('aa') }} {{ word.index('W') }}")
add("method/replace join", "{{ word.replace('l', 'L') }} {{ word.replace('l', 'L', 1) }} {{ ', '.join(['a', 'b']) }} {{ ''.join(names) }} {{ '-'.join('abc') }}")
add("method/splitlines", "{{ 'a\nb\r\nc\rd\n'.splitlines() }} {{ 'a\nb'.splitlines(true) }} {{ ''.splitlines() }}")
add("method/join of numbers fails", "{{ ','.join([1]) }}")
add("method/dict", "{{ d.keys()|list }} {{ d.values()|first }} {% for k in d.keys() %}{{ k }}{% endfor %} {{ 'b' in d.keys() }} {{ d.items()|list|length }}")
add("method/unknown is undefined", "[{{ word.nope }}][{{ xs.nope }}][{{ d.nope }}]")
add("method/call of unknown fails", "{{ word.nope() }}")

# Globals.
add("global/range", "{{ range(3)|list }} {{ range(1, 4)|list }} {{ range(5, 0, -2)|list }} {{ range(0)|list }} {{ range(9)[2] }} {{ range(4)|length }} {% for i in range(3) %}{{ i }}{% endfor %} {{ 2 in range(3) }}")
add("global/range too long fails", "{{ range(1000000)|length }}")
add("global/dict", "{{ dict(a=1, b='x') }} {{ dict() }}")
add("global/strftime", "{{ strftime_now('%Y-%m-%d %H:%M:%S %d %b %Y %B %A %a %j %y %I %p %%') }}")
add("global/raise fails", "{{ raise_exception('no: ' ~ word) }}")
add("global/raise in branch not taken", "{% if false %}{{ raise_exception('no') }}{% endif %}ok")
add("global/division by zero fails", "{{ 1 // 0 }}")
add("global/call of none fails", "{{ nothing() }}")

# What came to be known later.
add("format/percent", "{{ '%s is %d, %5.2f%% of %r' % (word, 3, 2.5, names[0]) }}|{{ '%05d|%-5d|%+d|% d|%x|%#X|%o' % (42, 42, 42, 42, 255, 255, 8) }}|{{ '%(a)s %(b)03d' % {'a': 1, 'b': 2} }}|{{ '%s' % word }}|{{ '%.3s|%8s|%-8s|' % ('abcdef', 'é日', 'x') }}|{{ '%c%c' % (65, 'é') }}|{{ '%d' % 3.9 }}|{{ '%e %g %G' % (12345.678, 1e-7, 1e20) }}|{{ '%s' % [[1]] }}|{{ '%s' % (none,) }}|{{ '%i' % true }}|{{ '%.3d' % 7 }}")
add("format/percent filter", "{{ '%s-%s'|format('a', 1) }} {{ '%(x)s'|format(x='y') }} {{ 'plain'|format }} {{ '%s' % missing }}|")
for i, bad in enumerate(["'%s %s' % 'a'", "'%s' % (1, 2)", "'%d' % 'x'", "'%q' % 1", "'%' % 1", "'%(a)s' % 1", "'x'|format(1)", "'%s'|format(1, a=2)"]):
    add(f"format/percent fails {i}", "{{ " + bad + " }}")
add("format/braces", "{{ '{} {}'.format(1, 'a') }} {{ '{1}{0}{1}'.format('x', 'y') }} {{ '{n}/{d[b]}/{d[a][k][1]}/{0.v}'.format(rows[0], n=word, d=d) }} {{ '{{}} {{{}}}'.format(7) }} {{ '{!r} {!s}'.format('q', 'q') }} {{ '{:>6}|{:<6}|{:^7}|{:*^7}|{:é>4}'.format('ab', 'ab', 'ab', 'ab', 'ab') }} {{ '{:5}|{:05d}|{:+}|{:,}|{:x}|{:#b}|{:_}|{:=+6}'.format(42, 42, 42, 1234567, 255, 5, 1234567, 42) }} {{ '{:.2f}|{:8.3f}|{:e}|{:.1%}|{:g}|{}|{:>6}'.format(3.14159, 2.5, 12345.6, 0.256, 1e-9, 1.0, 2.5) }} {{ '{:.3}|{:{}}|{:{w}}'.format('abcdef', 'a', 4, 'b', w=3) }} {{ '{}'.format(none) }} {{ '{}'.format([1, 'a']) }} {{ '{:5}|{}'.format(true, true) }} {{ '{:c}'.format(233) }} {{ '{a}'.format_map({'a': 1}) }} {{ 'none'.format(1) }}")
for i, bad in enumerate(["'{} {}'.format(1)", "'{a}'.format(1)", "'{'.format(1)", "'}'.format(1)", "'{0}{}'.format(1, 2)", "'{:d}'.format('a')", "'{:q}'.format(1)", "'{:5}'.format(none)", "'{:+}'.format('a')", "'{!x}'.format(1)", "'{:.2}'.format(1)", "'{:s}'.format(1)", "'{:5.}'.format(1.5)"]):
    add(f"format/braces fails {i}", "{{ " + bad + " }}")
add("loop/recursive", "{% for r in [[1, [2, [3]]], 4] recursive %}{{ loop.depth }}:{{ loop.depth0 }}{% if r is iterable %}({{ loop(r) }}){% else %}{{ r }}{% endif %}{{ ',' if not loop.last }}{% endfor %}")
add("loop/recursive with else and filter", "{% for r in [1, [], [2, none]] if r != none recursive %}{% if r is sequence %}[{{ loop(r) }}]{% else %}{{ r }}{% endif %}{% else %}empty{% endfor %}")
add("loop/recursive scope", "{% set x = 'o' %}{% for r in [[1], 2] recursive %}{{ x }}{% set x = 'i' %}{{ x }}{{ loop(r) if r is sequence }}{% endfor %}{{ x }}")
add("loop/call of plain loop fails", "{% for r in [1] %}{{ loop([2]) }}{% endfor %}")
add("loop/recursive without arguments fails", "{% for r in [1] recursive %}{{ loop() }}{% endfor %}")
add("loop/in the filter fails", "{% for x in xs if loop.first %}{{ x }}{% endfor %}")
add("loop/outer in the filter", "{% for y in xs %}{% for x in xs if loop.index %}{{ x }}{% endfor %}{% endfor %}")
add("loop/changed", "{% for x in [1, 1, 2, 2, 1] %}{{ x if loop.changed(x) }}{{ '.' if loop.changed(x, 1) }}{% endfor %}")
add("global/cycler", "{% set c = cycler('a', 'b', 'c') %}{{ c.current }}{{ c.next() }}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.next() }}{{ c.reset() }}{{ c.current }}")
add("global/joiner", "{% set j = joiner() %}{% set k = joiner('|') %}{% for x in xs %}{{ j() }}{{ k() }}{{ x }}{% endfor %}")
add("global/cycler of nothing fails", "{{ cycler() }}")
add("global/dict of", "{{ dict({'a': 1}, b=2) }} {{ dict([('x', 1), ['y', 2]]) }}{% set n = namespace({'q': 5}, r=6) %}{{ n.q + n.r }}")
add("call/unpacking", "{% macro m(a, b='B', c='C') %}{{ a }}{{ b }}{{ c }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(*[1, 2]) }} {{ m(1, **{'c': 3}) }} {{ m(*[1, 2, 3, 4], **{'z': 5}) }} {{ m(1, *[2], c=9) }} {{ 'a-b'.split(*['-']) }} {{ dict(**{'k': 1}) }} {{ [1, 2]|join(*['+']) }}")
for i, bad in enumerate(["f(*a, *b)", "f(**a, b)", "f(*a, b)", "range(*3)", "dict(**[1])", "dict(a=1, **{'a': 2})", "dict(**{1: 2})"]):
    add(f"call/unpacking fails {i}", "{{ " + bad + " }}")
add("print/tag", "{% print word %}{% print 1 + 1 %}{%- print xs -%}")
add("filter/groupby", "{% for g, items in names|map('lower')|map('list')|groupby(0) %}{{ g }}={{ items|length }};{% endfor %}{% for g in [{'k': 'B', 'v': 1}, {'k': 'a', 'v': 2}, {'k': 'b', 'v': 3}]|groupby('k') %}{{ g.grouper }}{{ g.list|map(attribute='v')|list }}{{ g[0] }}{% endfor %}{{ [{'k': 'B'}, {'k': 'a'}, {'k': 'b'}]|groupby('k', case_sensitive=true) }}{{ [{'k': 1}, {}]|groupby('k', 0)|list }}")
add("filter/groupby mixed fails", "{{ [{'k': 1}, {'k': 'a'}]|groupby('k') }}")
add("filter/batch slice", "{{ range(7)|batch(3)|list }} {{ range(7)|batch(3, 'x')|list }} {{ []|batch(2)|list }} {{ range(7)|slice(3)|list }} {{ range(7)|slice(3, 'x')|list }} {{ range(6)|slice(3, 'x')|list }} {{ [1]|slice(3)|list }}")
add("filter/truncate wordcount center", "{{ 'foo bar baz qux'|truncate(9) }}|{{ 'foo bar baz qux'|truncate(9, true) }}|{{ 'foo bar baz qux'|truncate(11) }}|{{ 'foo bar baz qux'|truncate(9, leeway=0) }}|{{ 'éééééééééé'|truncate(5, true, '…', 0) }}|{{ 'nospaces at all'|truncate(6, leeway=0) }}|{{ text|wordcount }} {{ uni|wordcount }} {{ 'a_b c-d'|wordcount }}|{{ 'ab'|center(7) }}|{{ 'abc'|center(6) }}|{{ 'ab'|center(5) }}|")
add("filter/truncate fails", "{{ 'abc'|truncate(2) }}")
add("method/partition", "{{ 'a=b=c'.partition('=') }} {{ 'a=b=c'.rpartition('=') }} {{ 'abc'.partition('=') }} {{ 'abc'.rpartition('=') }}")
add("method/partition of nothing fails", "{{ 'a'.partition('') }}")
add("method/justify", "{{ 'ab'.center(7) }}|{{ 'ab'.center(5, '*') }}|{{ 'abc'.center(6, '*') }}|{{ 'ab'.ljust(4) }}|{{ 'ab'.rjust(4, '日') }}|{{ '7'.zfill(3) }}|{{ '-7'.zfill(4) }}|{{ 'abc'.zfill(2) }}|")
add("method/find within", "{{ word.find('o', 5) }} {{ word.find('o', -4, -1) }} {{ word.rfind('l', 0, 5) }} {{ word.count('l', 3) }} {{ word.find('', 20) }} {{ word.find('', 11) }} {{ word.rindex('o') }} {{ uni.find('日', 3) }} {{ word.index('o', 5) }}")
add("method/index within fails", "{{ word.index('H', 1) }}")
add("method/lists", "{{ xs.index(1) }} {{ xs.count(3) }} {{ xs.copy() }} {{ (1, 2, 1).count(1) }} {{ (1, 2).index(2) }} {{ d.copy() == d }} {{ 'abc'.isascii() }} {{ 'é'.isascii() }} {{ ''.isprintable() }} {{ 'a\n'.isprintable() }}")
add("method/list index fails", "{{ xs.index(99) }}")
add("test/names and identity", "{{ 'upper' is filter }} {{ 'nope' is filter }} {{ 'odd' is test }} {{ 'nope' is test }} {{ rows[0] is sameas rows[0] }} {{ rows[0] is sameas rows[1] }} {{ d is sameas none }} {{ d is sameas xs }} {{ range is callable }} {{ missing is callable }} {{ word is callable }}")
add("test/undefined access", "{{ missing is defined }} {{ d.zz is defined }} {{ (d.zz or {}).yy is defined }}")
add("test/undefined access fails", "{{ d.zz.yy is defined }}")

# Mistakes found when the template is read.
for broken in ["{% if x %}", "{{ x", "{% endif %}", "{{ 1 + }}", "{% for x %}{% endfor %}", "{# a", "{{ 'a }}", "{{ (1 }}",
               "{% set 1 = 2 %}", "{{ x | nosuchfilter }}", "{{ x is nosuchtest }}", "{% nosuchtag %}", "{{ a b }}",
               "{{ f(a=1, 2) }}", "{% break %}", "{% raw %}x", "{{ }}", "{% macro m(a=1, b) %}{% endmacro %}", "{{ [1, }}",
               "{% set true = 1 %}", "{% for x in y %}{% else %}{% else %}{% endfor %}", "{{ x[1 }}", "{{ 007 }}"]:
    add("broken/" + broken, broken)

# Of what is false map, select and their kin make nothing; the rest refuses what is no list.
for thing in ["none", "missing", "0", "''", "false", "{}", "0.0"]:
    add(f"falsy/{thing}", "".join("{{ %s|%s|list|length }} " % (thing, pick) for pick in [
        "selectattr('a')", "rejectattr('a')", "selectattr('a', 'equalto', 1)", "select", "reject", "select('odd')",
        "map('upper')", "map(attribute='a')", "map(attribute='a', default=1)"]))
for thing in ["none", "true", "5"]:
    for pick in ["list", "join", "first", "unique|list", "sort", "sum", "groupby('a')", "batch(2)|list"]:
        add(f"falsy/{thing} {pick} fails", "{{ %s|%s }}" % (thing, pick))
add("falsy/true is no list", "{{ true|select|list }}")
add("falsy/first of picked", "{{ messages|selectattr('role', 'equalto', 'tool')|first is defined }} {{ (none|selectattr('a')|list) or 'none' }} {{ xs|select('equalto', 9)|list|length == 0 }}")
add("falsy/loop", "{% for x in none|selectattr('a') %}{{ x }}{% else %}nothing{% endfor %}{% for x in missing|default(none)|map('upper') %}{{ x }}{% endfor %}")

# Unknown names: in the branches of a condition an error only once they are reached, elsewhere at once.
for i, (text, place) in enumerate([
        ("{% if false %}{{ word|nofilter }}{% endif %}ok", "an if"),
        ("{% if true %}a{% else %}{{ word|nofilter(1, x=2)|upper }}{% endif %}", "an else"),
        ("{% if yes or word|nofilter %}a{% endif %}", "a condition"),
        ("{% if yes %}a{% elif word is notest(3) %}b{% endif %}", "an elif"),
        ("{{ word|nofilter if empty else 'b' }}", "a conditional"),
        ("{{ 'a' if yes else word is not notest }}", "a conditional's else"),
        ("{% if empty %}{% set x = word|nofilter %}{% for y in word|nofilter %}{% endfor %}{% endif %}ok", "what an if sets"),
        ("{% for x in xs %}{% if x > 9 %}{{ x|nofilter }}{% endif %}{{ x }}{% endfor %}", "an if in a loop"),
        ("{% macro m(x) %}{% if x %}{{ x|nofilter }}{% endif %}m{% endmacro %}{{ m(0) }}", "an if in a macro"),
        ("{{ [1, word|nofilter if empty else 2] }}", "a list"),
        ("{% if empty %}{% if yes %}{{ word|nofilter }}{% endif %}{% endif %}ok", "an if in an if"),
        ("{% if empty %}{{ word|map('nofilter')|list }}{{ xs|select('notest')|list }}{% endif %}ok", "names that are texts")]):
    add(f"unknown/not reached in {place}", text)
for i, text in enumerate([
        "{% if true %}{{ word|nofilter }}{% endif %}", "{{ 'a' if word is notest else 'b' }}", "{{ word|nofilter if yes }}",
        "{% for x in [] %}{{ x|nofilter }}{% endfor %}", "{% if false %}{% for x in xs %}{{ x|nofilter }}{% endfor %}{% endif %}",
        "{% macro m() %}{{ 1|nofilter }}{% endmacro %}ok", "{% if false %}{% macro m() %}{{ 1|nofilter }}{% endmacro %}{% endif %}ok",
        "{% set x %}{{ word|nofilter }}{% endset %}", "{% if false %}{% set x %}{{ word|nofilter }}{% endset %}{% endif %}ok",
        "{% if false %}{% set x|nofilter %}a{% endset %}{% endif %}ok", "{% if false %}{% filter nofilter %}a{% endfilter %}{% endif %}ok",
        "{% if false %}{% with a = 1 %}{{ a|nofilter }}{% endwith %}{% endif %}ok", "{{ yes and word|nofilter }}", "{{ yes or word|nofilter }}",
        "{% if false %}{% for x in xs if x is notest %}{% endfor %}{% endif %}ok", "{% if false %}{% generation %}{{ 1|nofilter }}{% endgeneration %}{% endif %}ok",
        "{{ xs|map('nofilter')|list }}", "{{ xs|select('notest')|list }}"]):
    add(f"unknown/reached or refused {i} fails", text)
add("unknown/scopes within a condition", "{% if false %}{% with a = word|nofilter %}{% endwith %}{% endif %}ok")

# HTML: templates are rendered without escaping, but `safe` and `escape` make texts that escape what joins them.
HTML = {**DATA, "tag": "<b>\"x\" & 'y'</b>", "messages": [{"role": "user", "content": "<tool>"}]}
for i, text in enumerate([
        "{{ tag|e }} {{ tag|escape }} {{ tag|forceescape }} {{ tag|safe }} {{ tag|escape|escape }} {{ tag|escape|forceescape }}",
        "{{ (tag|safe) + '<i>' }} {{ '<i>' + (tag|safe) }} {{ (tag|safe) + (tag|safe) }} {{ (tag|escape) + tag }}",
        "{{ (tag|safe) ~ '<i>' }} {{ [tag|safe, '<i>']|join('&') }} {{ (tag|safe)|string + '&' }}",
        "{{ ('<a>'|safe) * 2 + '<' }} {{ 2 * ('<a>'|safe) + '<' }}",
        "{{ ('<p>%s</p>'|safe) % tag }} {{ ('%s %d %5.2f'|safe) % ('<', 3, 2.5) }} {{ ('%(a)s'|safe) % {'a': '<'} }} {{ '<p>%s</p>' % (tag|safe) }}",
        "{{ ('<p>{}</p>'|safe).format(tag) }} {{ ('{a}|{b}'|safe).format(a='<', b=7) }} {{ '<{}>'.format(tag|safe) }}",
        "{{ ('<p>%s</p>'|safe)|format(tag) }} {{ '%s'|format(tag) }}",
        "{{ (('a<'|safe)|upper) + '<' }} {{ (('a<'|safe)|lower) + '<' }} {{ (('a<'|safe)|trim) + '<' }} {{ (('a<'|safe)|title) + '<' }} {{ (('a<'|safe)|capitalize) + '<' }}",
        "{{ ('a<b<c'|safe).split('<')|map('string')|list }} {{ ('a<b'|safe).split('<')[1] + '<' }} {{ ('a<'|safe)[0:1] + '<' }} {{ ('a<'|safe)[1] + '<' }} {{ ('ab'|safe)[::-1] + '<' }}",
        "{{ (('a-b'|safe)|replace('-', '<')) + '<' }} {{ ('a-b'|safe).replace('-', '<') + '<' }} {{ ('&'|safe).join(['<', 'x'|safe]) }} {{ ('a'|safe).upper() + '<' }} {{ (' a '|safe).strip() + '<' }}",
        "{{ (tag|safe) == tag }} {{ tag|safe is string }} {{ tag|safe is escaped }} {{ tag is escaped }} {{ (tag|safe)|length }} {{ {'k': 1}['k'|safe] }} {{ 'b' in (tag|safe) }}",
        "{{ (('a\n<b'|safe)|indent(2)) + '<' }} {{ (('a'|safe)|center(3)) + '<' }} {{ ('a b c d e f g h'|safe)|truncate(6, end='<', leeway=0) }} {{ (('ab'|safe)|reverse) + '<' }}",
        "{{ ('<a'|safe)|first + '<' }} {{ ('<a'|safe)|last + '<' }} {{ ('<a'|safe)|list|join('<') }} {% for c in '<a'|safe %}{{ c + '<' }}{% endfor %}",
        "{{ tag|tojson|safe }} {{ (tag|safe)|tojson }} {{ {'a': tag|safe}|tojson }} {{ 5|e }} {{ none|safe }} {{ [1, '<']|escape }} {{ true|safe }} {{ 2.5|e }}",
        "{% set x = tag|safe %}{{ x + '<' }}{% set y %}{{ tag|safe }}{% endset %}{{ y + '<' }}{% macro m(t) %}{{ t }}{% endmacro %}{{ m(tag|safe) + '<' }}",
        "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content|safe }}{% endfor %}"]):
    add(f"markup/{i}", text, HTML)
add("markup/of a number fails", "{{ ('a'|safe) + 1 }}", HTML)

add("filter/attr", "{{ d|attr('items') is defined }} {{ d|attr('b') is defined }} {{ (word|attr('upper'))() }} {{ xs|attr('nope') is defined }}{% set n = namespace(a=3) %}{{ n|attr('a') }}")
add("filter/names of all", "{% for f in ['attr', 'e', 'escape', 'forceescape', 'pprint', 'random', 'striptags', 'urlencode', 'urlize', 'wordwrap', 'xmlattr', 'filesizeformat', 'safe'] %}{{ f is filter }}{% endfor %}{{ 'escaped' is test }}")

# Whole templates in the manner of published ones.
add("chat/chatml", "{% for message in messages %}\n{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] | trim + '<|im_end|>' + '\\n' }}\n{% endfor %}\n{% if add_generation_prompt %}\n{{ '<|im_start|>assistant\\n' }}\n{% endif %}\n", CHAT)
add("chat/llama2", "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'].strip() %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}{% for message in loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('alternate') }}{% endif %}{% if loop.index0 == 0 and system_message != false %}{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}{% else %}{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ ' ' + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}", CHAT)
add("chat/phi3", "{% for message in messages %}{{ '<|' + message['role'] + '|>' + '\\n' + message['content'] + '<|end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}", CHAT)
add("chat/llama3 date", "{{- bos_token }}\n{%- if not date_string is defined %}\n    {%- if strftime_now is defined %}\n        {%- set date_string = strftime_now(\"%d %b %Y\") %}\n    {%- else %}\n        {%- set date_string = \"26 Jul 2024\" %}\n    {%- endif %}\n{%- endif %}\n{%- if not tools is defined %}\n    {%- set tools = none %}\n{%- endif %}\n{{- \"Today Date: \" + date_string + \"\\n\\n\" }}\n{%- if tools is not none %}\n    {{- \"tools\" }}\n{%- endif %}\n{%- for message in messages %}\n    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}\n        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}\n    {%- endif %}\n{%- endfor %}\n", CHAT)
add("chat/tools in system", "{%- if tools %}\n    {{- '<|im_start|>system\\n' }}\n    {%- if messages[0].role == 'system' %}\n        {{- messages[0].content + '\\n\\n' }}\n    {%- endif %}\n    {{- \"# Tools\\n<tools>\" }}\n    {%- for tool in tools %}\n        {{- \"\\n\" }}\n        {{- tool | tojson }}\n    {%- endfor %}\n    {{- \"\\n</tools>\\n\" }}\n{%- endif %}\n{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}\n{%- for message in messages[::-1] %}\n    {%- set index = (messages|length - 1) - loop.index0 %}\n    {%- if ns.multi_step_tool and message.role == \"user\" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}\n        {%- set ns.multi_step_tool = false %}\n        {%- set ns.last_query_index = index %}\n    {%- endif %}\n{%- endfor %}\n{{ ns.last_query_index }}{{ ns.multi_step_tool }}\n", TOOLS)
add("chat/parts", "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{% if p.type == 'text' %}{{ p.text }}{% endif %}{% endfor %}{% endif %};{% endfor %}", {"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}]}, {"role": "assistant", "content": "c"}], "add_generation_prompt": False})
add("chat/schema macro", "{%- macro render(name, schema, depth=0) -%}\n{{ '  ' * depth }}{{ name }}: {{ schema.type | default('any') }}\n{%- if schema.type == 'object' %}\n{%- for key, value in schema.properties.items() %}\n\n{{ render(key, value, depth + 1) }}\n{%- endfor %}\n{%- endif %}\n{%- endmacro -%}\n{{ render('root', tools[0].function.parameters) }}\n", TOOLS)
add("chat/missing tools are none", "{{ tools is none }} {{ tools is defined }} {{ documents is none }} {{ bos_token is defined }}", {"messages": [], "add_generation_prompt": False})


def render(env, template, variables):
    defaults = {"tools": None, "documents": None, "messages": [], "add_generation_prompt": True}
    try:
        return {"text": env.from_string(template).render(**{**defaults, **variables})}
    except Exception:  # whatever Python raises, the template does not render
        return {"error": True}


def main():
    env = environment()
    with OUT.open("w", encoding="utf-8") as out:
        for name, template, variables in SNIPPETS:
            line = {"name": name, "template": template, "input": variables, **render(env, template, variables)}
            out.write(json.dumps(line, ensure_ascii=False) + "\n")
    print(f"{len(SNIPPETS)} lines in {OUT}")


if __name__ == "__main__":
    main()
