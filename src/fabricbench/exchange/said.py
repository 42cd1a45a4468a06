"""What whoever imports says of the texts: it stands where a text leaves something open, and never against one that tells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from fabricbench.errors import UsageError
from fabricbench.exchange.imported import ImportedCell
from fabricbench.exchange.sources import Source
from fabricbench.model import Layer, Pattern
from fabricbench.patterns import PATTERNS

Known = TypeVar("Known", Layer, int)


@dataclass(frozen=True)
class Said:
    """What the texts do not tell: who imports says it. `importer` None takes the one that knows the text."""

    importer: str | None = None
    layer: Layer | None = None
    ranks: int | None = None
    message_bytes: int | None = None


NOUNS = {"layer": "layer", "ranks": "number of ranks", "message_bytes": "message size"}
"""What is left open by texts, by its name in `Said`."""


def completed(source: Source, said: Said) -> Source:
    """Return a text with what it leaves open as it is said; UsageError where nobody says it."""
    imported = source.imported
    cells = tuple(_completed(source.path, cell, said) for cell in imported.cells)
    of_load = f"{source.path} does not tell the number of ranks of its {{}}"
    loads = tuple(
        replace(load, ranks=_known(load.ranks, said.ranks, of_load.format(load.workload), "--ranks 4"))
        for load in imported.loads
    )
    return replace(source, imported=replace(imported, cells=cells, loads=loads))


def _completed(path: Path, cell: ImportedCell, said: Said) -> ImportedCell:
    if None not in (cell.layer, cell.ranks, cell.message_bytes):
        return cell
    of = f"{path} does not tell the {{}} of its {cell.pattern}"
    return replace(
        cell,
        layer=_known(cell.layer, said.layer, of.format("layer"), "--layer tcp"),
        ranks=_known(cell.ranks, said.ranks, of.format("number of ranks"), "--ranks 4"),
        message_bytes=_known(cell.message_bytes, said.message_bytes, of.format("message size"), "--message-bytes 64"),
    )


def _known(told: Known | None, said: Known | None, otherwise: str, option: str) -> Known:
    value = said if told is None else told
    if value is None:
        raise UsageError(otherwise, hint=f"say it, {option} for instance")
    return value


@dataclass(frozen=True)
class _Answer:
    """What a text tells of one of its tests; `value` None where that is open. `is_choice`: others of the kind may differ."""

    path: Path
    test: str
    value: Layer | int | None
    is_choice: bool = True


def check_said(said: Said, sources: Sequence[Source]) -> list[str]:
    """Return in a sentence each where texts tell otherwise than is said of others; they stand.

    UsageError for what is said of nothing: no text leaves it open, and one tells otherwise or none tells of it.
    """
    warnings = []
    for name, noun in NOUNS.items():
        value = getattr(said, name)
        if value is None:
            continue
        option = f"--{name.replace('_', '-')} {value}"
        answers = list(_answers(name, sources))
        others = [one for one in answers if one.value not in (None, value)]
        if not any(one.value is None for one in answers):
            if others or not answers:
                _refuse(option, noun, others)
            continue
        chosen = [one for one in others if one.is_choice]
        if chosen:
            more = len({one.path for one in chosen}) - 1
            warnings.append(
                f"{option} stands for texts that leave the {noun} open: {_words(chosen[0])}, which stands"
                + (f"; so does what {more} more of the texts tell" if more else "")
            )
    return warnings


def _refuse(option: str, noun: str, others: Sequence[_Answer]) -> None:
    why = f"{_words(others[0])}, and no text leaves the {noun} open" if others else f"no text has a test with a {noun}"
    raise UsageError(f"{option}: {why}", hint=f"leave {option} out: it is for what a text does not tell")


def _words(answer: _Answer) -> str:
    return f"{answer.path} tells {answer.value} of its {answer.test}"


def _answers(name: str, sources: Iterable[Source]) -> Iterator[_Answer]:
    for source in sources:
        for cell in source.imported.cells:
            yield _Answer(source.path, cell.pattern.value, getattr(cell, name), _has_choice(name, cell.pattern))
        for load in source.imported.loads if name == "ranks" else ():
            yield _Answer(source.path, load.workload, load.ranks)


def _has_choice(name: str, pattern: Pattern) -> bool:
    """Whether tests of a pattern may differ in it: a ping-pong is of two ranks whatever is said of the collectives beside it."""
    return name != "ranks" or PATTERNS[pattern].most_ranks is None
