#!/usr/bin/env python3
"""Clients that do their worst: for every field that /openapi.json names, the largest and the oddest values, sent by some
that wait, some that leave and some that never finish their sentence.

  attacks.py PORT [--clients N] [--seconds S] [--seed K]     prints what came back, as JSON, at the end
"""

import argparse
import asyncio
import collections
import http.client
import json
import os
import random
import re
import time

LIMIT_S = 300  # for one request: some ask for all the context holds, and run beside a hundred others

# A request that would be answered, for each route; what is odd comes beside or instead.
PLAIN = {
    "/v1/chat/completions": {"messages": '[{"role":"user","content":"hi"}]', "max_tokens": "2"},
    "/v1/completions": {"prompt": '"hi"', "max_tokens": "2"},
    "/v1/embeddings": {"input": '"hi"'},
    "/tokenize": {"prompt": '"hi"'},
    "/detokenize": {"tokens": "[1,2]"},
}


def repeated(item, count):
    return "[" + ",".join([item] * count) + "]"


def nested(depth):
    return "[" * depth + "]" * depth


def of_type(kinds):
    """Values of these types, from small to far too large, as JSON text."""
    if "integer" in kinds or "number" in kinds:
        yield from ("0", "-1", "1", "63", "1024", "2147483647", "-2147483649", "9223372036854775808", "18446744073709551615",
                    "1e308", "-1e308", "1e-320", "5e400", "-0.0", "1.5")
    if "string" in kinds:
        yield from ('""', '"\\u0000"', '"\\u001b[2J"', '"\\ud800"', '"' + "a" * 4096 + '"', '"' + "a b" * 100_000 + '"',
                    '"' + "\U0001f600\u0301" * 20_000 + '"', '"' + " " * 300_000 + '"')
    if "boolean" in kinds:
        yield from ("true", "false")
    if "object" in kinds:
        yield "{}"
        yield "{" + ",".join(f'"name{i}":{i}' for i in range(100_000)) + "}"
        yield "{" + ",".join(f'"{i}":1' for i in range(264)) + "}"
        yield '{"a":' * 60 + "1" + "}" * 60
        yield '{"' + "k" * 300_000 + '":' + repeated("1", 1000) + "}"
    if "array" in kinds:
        yield "[]"
        yield nested(60)
        yield nested(4000)


def of_items(item):
    """Lists of what the items are said to be."""
    kinds = types_of(item)
    if "integer" in kinds:
        yield from (repeated("0", 500_000), "[" + ",".join(map(str, range(262))) + "]", repeated("264", 3))
    if "string" in kinds:
        yield from (repeated('"a"', 1024), repeated('"' + "a" * 4096 + '"', 100), repeated('"' + "ab" * 32 + 'c"', 1000),
                    "[" + ",".join(f'"{"a" * i}b"' for i in range(1, 1000)) + "]")
    if "array" in kinds:
        yield repeated(repeated("1", 100), 1000)
    if "object" in kinds:
        yield from (repeated("{}", 50_000), repeated('{"role":"user","content":"x"}', 20_000),
                    repeated('{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}', 5000),
                    '[{"role":"user","content":' + repeated('{"type":"text","text":"x"}', 20_000) + "}]",
                    '[{"role":"user","content":"hi",' + ",".join(f'"k{i}":1' for i in range(50_000)) + "}]")


def types_of(schema):
    kinds = schema.get("type", [])
    return {kinds} if isinstance(kinds, str) else set(kinds)


def values_of(schema, schemas):
    """Odd values for a field of this schema, as JSON text."""
    if "$ref" in schema:
        schema = schemas[schema["$ref"].rsplit("/", 1)[1]]
    for part in schema.get("anyOf", []):
        yield from values_of(part, schemas)
    kinds = types_of(schema)
    yield from of_type(kinds)
    for choice in [*schema.get("enum", []), *([schema["const"]] if "const" in schema else [])]:
        yield json.dumps(choice)
    for key in ("minimum", "maximum", "exclusiveMinimum"):
        if key in schema:
            yield from (json.dumps(schema[key]), json.dumps(schema[key] - 1), json.dumps(schema[key] + 1))
    if "items" in schema:
        item = schema["items"]
        yield from of_items(schemas[item["$ref"].rsplit("/", 1)[1]] if "$ref" in item else item)
        yield from (f"[{value}]" for value in values_of(item, schemas))


# What no schema tells of: several fields at once, and templates, which programs are.
LOOP = "{% for i in range(100000) %}"
TEMPLATES = (
    "{% set ns = namespace(t='a' * 100000) %}" + LOOP + "{% set ns.t = ns.t|replace('a', 'b')|replace('b', 'a') %}{% endfor %}",
    LOOP + "{% for j in range(100000) %}{% endfor %}{% endfor %}",
    LOOP + "{{ 'x' * 60000 }}{% endfor %}",
    "{% set ns = namespace(l=[]) %}" + LOOP + "{% set ns.l = ns.l + [i] %}{% endfor %}",
    LOOP + "{% set x = (range(1000)|list) == (range(1000)|list) %}{% endfor %}",
    LOOP + "{% set x = messages|tojson %}{% endfor %}",
    LOOP + "{% set x = messages[0].content.split('a') %}{% endfor %}",
    LOOP + "{% set x = messages[0].content.count('ab') + (messages[0].content|length) %}{% endfor %}",
)


def by_hand():
    chat, completions = "/v1/chat/completions", "/v1/completions"
    words = repeated('"' + "ab " * 21 + '"', 1024)
    long = '[{"role":"user","content":"' + "ab" * 20_000 + '"}]'
    yield "bad words", completions, PLAIN[completions] | {"bad_words": words, "n": "8"}
    yield "stops", completions, PLAIN[completions] | {"stop": repeated('"' + "z" * 2000 + 'y"', 64), "n": "8", "max_tokens": "40",
                                                      "allowed_token_ids": "[122]"}
    yield "lists", completions, PLAIN[completions] | {"stop_token_ids": repeated("7", 264), "n": "8",
                                                      "allowed_token_ids": repeated("8", 264)}
    yield "prompts", completions, PLAIN[completions] | {"prompt": repeated('"x"', 60), "stop": repeated('"' + "a" * 4000 + '"', 64)}
    yield "continued", chat, {"messages": '[{"role":"assistant","content":"' + " ".join(
        f"octavoFinalMessage{i}" for i in range(3000)) + '"}]', "continue_final_message": "true", "add_generation_prompt": "false",
        "max_tokens": "1"}
    for i, template in enumerate(TEMPLATES):
        yield f"template {i}", chat, {"messages": long, "chat_template": json.dumps(template), "max_tokens": "1"}


def cases(description):
    """Name, path and fields of every attack."""
    schemas = description["components"]["schemas"]
    for path, plain in PLAIN.items():
        reference = description["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        for field, schema in schemas[reference.rsplit("/", 1)[1]]["properties"].items():
            values = list(dict.fromkeys(["null", "[1]", "{}", '"x"', "-7", *values_of(schema, schemas)]))
            for value in values:
                shown = value if len(value) < 30 else f"{value[:20]}... ({len(value)} bytes)"
                yield f"{path} {field}={shown}", path, plain | {field: value}
    yield from by_hand()


def encoded(fields, dice):
    fields = dict(fields)
    if dice.random() < 0.3:
        fields.setdefault("stream", "true")
    return ("{" + ",".join(f'"{name}":{value}' for name, value in fields.items()) + "}").encode()


class Attack:
    def __init__(self, port, seed):
        self.port, self.dice = port, random.Random(seed)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT_S)
        connection.request("GET", "/openapi.json")
        self.cases = list(cases(json.load(connection.getresponse())))
        self.dice.shuffle(self.cases)
        self.next, self.statuses, self.failures, self.spans = 0, collections.Counter(), [], []

    async def one(self):
        name, path, fields = self.cases[self.next % len(self.cases)]
        self.next += 1
        body = encoded(fields, self.dice)
        start = time.monotonic()
        try:
            async with asyncio.timeout(LIMIT_S):
                status = await self.send(path, body)
        except TimeoutError:
            status = "no answer"
        except ConnectionError:
            status = "closed"
        self.statuses[status] += 1
        if status in ("no answer", "500"):
            self.failures.append(f"{status}: {name}")
        self.spans.append((start, time.monotonic(), name))

    async def send(self, path, body):
        manner = self.dice.random()
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write((f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n"
                          f"Content-Length: {len(body)}\r\n\r\n").encode())
            if manner < 0.05:
                writer.write(body[:len(body) // 2])
                return "left within its sentence"
            writer.write(body)
            await writer.drain()
            if manner < 0.2:
                await asyncio.sleep(self.dice.choice((0, 0.01, 0.1)))
                return "left"
            received = b""
            while part := await reader.read(1 << 16):
                received = received or part
            found = re.match(rb"HTTP/1\.1 (\d+)", received)
            return found.group(1).decode() if found else "closed"
        finally:
            writer.transport.abort()

    async def run(self, clients, seconds):
        end = time.monotonic() + seconds

        async def client():
            while time.monotonic() < end:
                await self.one()
        await asyncio.gather(*(client() for _ in range(clients)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    os.nice(10)  # the cores are the server's
    attack = Attack(options.port, options.seed)
    asyncio.run(attack.run(options.clients, options.seconds))
    print(json.dumps({"cases": len(attack.cases), "sent": attack.next, "statuses": attack.statuses, "failures": attack.failures,
                      "spans": attack.spans}))


if __name__ == "__main__":
    main()
