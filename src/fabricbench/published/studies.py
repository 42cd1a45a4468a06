"""The five studies: who, when, on which cluster, and all that was taken from them."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from fabricbench.model import Model


class Study(Model):
    """One publication; `facts` is what `studies.json` has of it but for the surnames, with the units in the keys."""

    key: str
    title: str
    author: str
    surnames: tuple[str, ...]
    year: int
    facts: dict[str, Any]

    @property
    def citation(self) -> str:
        """Author, title and year, as a report names its source."""
        return f"{self.author}: {self.title}, {self.year}"

    @property
    def name(self) -> str:
        """`Salamon and Mink, 1999`: how a sentence or a plot names it."""
        whose = " and ".join(self.surnames) if len(self.surnames) < 3 else f"{self.surnames[0]} and others"
        return f"{whose}, {self.year}"

    def fact(self, *path: str | int) -> Any:
        """Return the value at `path` in the facts; KeyError or IndexError if there is none."""
        value: Any = self.facts
        for part in path:
            value = value[part]
        return value


@cache
def studies() -> tuple[Study, ...]:
    """Return the studies, oldest first."""
    text = files("fabricbench.published").joinpath("studies.json").read_text(encoding="utf-8")
    found = [
        Study(
            key=key,
            title=entry["title"],
            author=entry["author"],
            surnames=entry["surnames"],
            year=entry["year"],
            facts={name: fact for name, fact in entry.items() if name != "surnames"},
        )
        for key, entry in json.loads(text)["studies"].items()
    ]
    return tuple(sorted(found, key=lambda study: (study.year, study.key)))


def study(key: str) -> Study:
    """Return the study of that key; KeyError if there is none."""
    return {one.key: one for one in studies()}[key]
