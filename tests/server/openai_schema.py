"""Compares answers with what OpenAI's published description says of them: tests/data/openai/answers.json, which says how to
read it."""

import json
from pathlib import Path

SHAPES = json.loads((Path(__file__).parents[1] / "data/openai/answers.json").read_text())
TYPES = {"string": (str,), "integer": (int,), "number": (int, float), "object": (dict,), "null": (type(None),)}


def faults(value, shape, place=""):
    """What is wrong with the value, each with its place; nothing: it is as it should be."""
    if isinstance(shape, str) and "|" in shape:
        tried = [faults(value, one.strip(), place) for one in shape.split("|")]
        return min(tried, key=len)
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [f"{place} is no list: {value!r}"]
        return [fault for i, item in enumerate(value) for fault in faults(item, shape[0], f"{place}[{i}]")]
    if isinstance(shape, dict):
        return faults_of_object(value, shape, place)
    if shape.startswith("'"):
        return [] if value == shape[1:-1] else [f"{place} is {value!r} and not {shape}"]
    if shape in TYPES:
        right = isinstance(value, TYPES[shape]) and not isinstance(value, bool)
        return [] if right else [f"{place} is {value!r} and no {shape}"]
    return faults(value, SHAPES[shape], place)


def faults_of_object(value, shape, place):
    if not isinstance(value, dict):
        return [f"{place} is no object: {value!r}"]
    if "*" in shape:
        return [fault for name, member in value.items() for fault in faults(member, shape["*"], f"{place}.{name}")]
    found = []
    for field, kind in shape.items():
        name = field.removesuffix("?")
        if name in value:
            found += faults(value[name], kind, f"{place}.{name}")
        elif name == field:
            found.append(f"{place}.{name} is missing")
    return found
