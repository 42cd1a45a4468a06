"""What `fabricbench list` tells of the keys of a table of a campaign: which values each takes, from the model that reads it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from fabricbench.model import LARGEST_INTEGER

Schema = Mapping[str, Any]

TABLE = "a table"
NOT_TOLD = ("kind",)
DIGITS = ",.12g"
BOUNDS = {
    "minimum": "from",
    "ge": "from",
    "exclusiveMinimum": "more than",
    "gt": "more than",
    "maximum": "to",
    "le": "to",
}


def keys_of(table: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """Yield each key that people may write into a table, and in words what it is where that is told, its values, its default."""
    whole = table.model_json_schema()
    needed = whole.get("required", ())
    for name, one in whole["properties"].items():
        if name in NOT_TOLD:
            continue
        default = "must be there" if name in needed else _default(one.get("default"))
        values = f"{_values(one, whole.get('$defs', {}))}; {default}"
        yield name, f"{one['description']} ({values})" if "description" in one else values


def _default(value: Any) -> str:
    alone = value[0] if isinstance(value, list) and len(value) == 1 else value
    if alone in (None, "", [], {}):
        return "usually not there"
    if isinstance(alone, list):
        return f"default all of {', '.join(map(str, alone))}"
    if isinstance(alone, int | float) and not isinstance(alone, bool):
        return f"default {alone:{DIGITS}}"
    return f"default {alone if isinstance(alone, str) else json.dumps(alone)}"


def _values(one: Schema, others: Mapping[str, Schema]) -> str:
    """Return `a whole number from 1 to 4096, or a list of such`, `one of ring, long`, `text`."""
    match one:
        case {"$ref": where}:
            text = _values(others[where.rpartition("/")[2]], others)
        case {"anyOf": several}:
            each = (_values(other, others) for other in several if other.get("type") != "null")
            text = " or ".join(dict.fromkeys(each))
        case {"const": word}:
            text = f'"{word}"'
        case {"enum": words}:
            text = f"one of {', '.join(map(str, words))}"
        case {"type": "array", "prefixItems": numbers}:
            text = f"{len(numbers)} whole numbers"
        case {"type": "array"}:
            item = _values(one["items"], others)
            text = "a list of tables" if item == TABLE else f"{item}, or a list of such"
        case {"type": "integer" | "number" as kind}:
            told = {name: one[name] for name in BOUNDS if name in one and abs(one[name]) < LARGEST_INTEGER}
            limits = (f" {BOUNDS[name]} {bound:{DIGITS}}" for name, bound in told.items())
            text = f"{'a whole number' if kind == 'integer' else 'a number'}{''.join(limits)}"
        case _:
            text = {"boolean": "true or false", "object": TABLE}.get(one.get("type", ""), "text")
    return text
