"""Texts of other programs that were damaged at random, and whether an import of one keeps to what it must: no silent wrong figure.

A mutant has one line changed: a letter lost, doubled, exchanged or put in, two lines run together, a line lost or there twice, the
rest cut off, a number replaced by what is none. Where a figure of it is not what it is of the whole text, something must be noted;
but not where the line is still one that the program might have printed, with other digits in the same places. What is lost with its
line is not wrong.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from fabricbench.errors import UsageError
from fabricbench.exchange.imported import Imported, ImportedCell
from fabricbench.exchange.importer import read_text

LETTERS = "0123456789.,-+eE %#:=/abcXYZ\t"
NOT_NUMBERS = ("nan", "inf", "-inf", "-1.00", "1,27", "1e999", "****", "")
NUMBER = re.compile(r"\d+(?:\.\d+)?")


@dataclass(frozen=True)
class Mutant:
    """A damaged text: what was done to which line, counted from 0, and whether all of it still looks as it was printed."""

    text: str
    what: str
    is_legal: bool


def mutant_of(text: str, draw: random.Random, *, has_decimals: bool = True) -> Mutant:
    """Return a text in which one thing is not as it was; `has_decimals`: its numbers have as many, whatever they are."""
    lines = text.split("\n")
    number = draw.randrange(len(lines))
    line = lines[number]
    place = draw.randrange(len(line) + 1)
    what = draw.choice(("lose", "double", "exchange", "insert", "join", "drop", "repeat", "cut", "number", "digit"))
    changed: list[str] | None = None
    match what:
        case "lose":
            changed = [line[:place] + line[place + 1 :]]
        case "double":
            changed = [line[:place] + line[place : place + 1] * 2 + line[place + 1 :]]
        case "exchange":
            changed = [line[:place] + draw.choice(LETTERS) + line[place + 1 :]]
        case "insert":
            changed = [line[:place] + draw.choice(LETTERS) + line[place:]]
        case "join":
            changed = [line + "".join(lines[number + 1 : number + 2])]
        case "drop":
            changed = []
        case "repeat":
            changed = [line, line]
        case "cut":
            return Mutant("\n".join([*lines[:number], line[:place]]), f"cut in line {number}", is_legal=False)
        case _:
            changed = [_other_number(line, draw, is_digit=what == "digit")]
    behind = lines[number + (2 if what == "join" else 1) :]
    is_legal = changed == [OTHER_TEST] or [_shape(one, has_decimals) for one in changed] == [_shape(line, has_decimals)]
    return Mutant("\n".join([*lines[:number], *changed, *behind]), f"{what} in line {number}: {changed}", is_legal)


def _other_number(line: str, draw: random.Random, *, is_digit: bool) -> str:
    numbers = list(NUMBER.finditer(line))
    if not numbers:
        return line
    one = draw.choice(numbers)
    if not is_digit:
        return line[: one.start()] + draw.choice(NOT_NUMBERS) + line[one.end() :]
    place = draw.randrange(one.start(), one.end())
    return line[:place] + draw.choice("0123456789") + line[place + 1 :] if line[place] != "." else line


def _shape(line: str, has_decimals: bool) -> str:
    """Return what a line looks like whatever its whole numbers are, and where they are as many their decimals."""
    shape = re.sub(r"\.\d+", lambda one: "." + "9" * (len(one[0]) - 1) if has_decimals else "", line)
    return " ".join(re.sub(r"\d+(?=\.|\D|$)", "9", shape).split())


OTHER_TEST = "ud_lat:"
"""What remains of qperf's `udp_lat:` without its p, and another test of its."""

OF_SET_DIGITS = {"qperf.txt", "hpcc.txt"}
"""Samples whose program prints a set number of digits, wherever the point is: without it, it is another number of theirs."""

Figures = dict[object, tuple[float, ...]]


def figures_of(imported: Imported, asked: frozenset[str] = frozenset()) -> Figures:
    """Return the values of every cell and load by what it is, but for cells of which more than `asked` is to be said."""
    found: Figures = {}
    for part, one in enumerate(imported.repetitions()):
        for cell in one.cells:
            if untold(cell) - asked:
                continue
            found[part, cell.pattern, cell.layer, cell.message_bytes, cell.ranks, cell.parameters] = cell.values
        for load in one.loads:
            found[part, load.workload, load.ranks, load.parameters] = (load.figure.value,)
    return found


def untold(cell: ImportedCell) -> frozenset[str]:
    """Return what a cell lacks, which whoever imports is asked for."""
    return frozenset(name for name in ("layer", "message_bytes", "ranks") if getattr(cell, name) is None)


def complaint(whole: Imported, mutant: Mutant) -> str | None:
    """Return what an import of a mutant does that it must not; None where it is refused in words, or keeps to its promise.

    Whatever is raised but UsageError is raised.
    """
    try:
        _, found = read_text(mutant.text, "a.txt")
    except UsageError:
        return None
    asked = frozenset(name for cell in whole.cells for name in untold(cell))
    before, after = figures_of(whole, asked), figures_of(found, asked)
    wrong = {key: (before.get(key), one) for key, one in after.items() if before.get(key) != one}
    if mutant.is_legal or not wrong or len(found.notes) > len(whole.notes):
        return None
    return f"{mutant.what}: {list(wrong.items())[:3]}"


def complaints(samples: Sequence[tuple[str, str]], count: int, seed: int) -> list[str]:
    """Return what is wrong with imports of so many mutants of texts, given their names; each text has as many, in turn."""
    draw = random.Random(seed)
    whole = {name: read_text(text, name)[1] for name, text in samples}
    found = []
    for number in range(count):
        name, text = samples[number % len(samples)]
        mutant = mutant_of(text, draw, has_decimals=name not in OF_SET_DIGITS)
        try:
            told = complaint(whole[name], mutant)
        except Exception as error:  # noqa: BLE001 - any of them is a finding
            told = f"{mutant.what}: {type(error).__name__}: {error}"
        if told is not None:
            found.append(f"{name}: {told}")
    return found
