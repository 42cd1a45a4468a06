"""The options of an import: they complete texts that leave something open, and never override one that tells it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from fabricbench.errors import UsageError
from fabricbench.exchange.imported import ImportedCell
from fabricbench.exchange.sources import ImportedText
from fabricbench.model import Layer, Pattern
from fabricbench.patterns import PATTERNS

Known = TypeVar("Known", Layer, int)


@dataclass(frozen=True)
class ImportOptions:
    """What the user gives for texts that do not tell it. `importer` None takes the one that recognises the text."""

    importer: str | None = None
    layer: Layer | None = None
    ranks: int | None = None
    message_bytes: int | None = None


NOUNS = {"layer": "layer", "ranks": "number of ranks", "message_bytes": "message size"}
"""What is left open by texts, by its name in `ImportOptions`."""


def completed(source: ImportedText, options: ImportOptions) -> ImportedText:
    """Return a text completed by the options; UsageError where it leaves something open that no option gives."""
    imported = source.imported
    cells = tuple(_completed(source.path, cell, options) for cell in imported.cells)
    of_load = f"{source.path} does not tell the number of ranks of its {{}}"
    loads = tuple(
        replace(load, ranks=_known(load.ranks, options.ranks, of_load.format(load.workload), "--ranks 4"))
        for load in imported.loads
    )
    return replace(source, imported=replace(imported, cells=cells, loads=loads))


def _completed(path: Path, cell: ImportedCell, options: ImportOptions) -> ImportedCell:
    if None not in (cell.layer, cell.ranks, cell.message_bytes):
        return cell
    of = f"{path} does not tell the {{}} of its {cell.pattern}"
    return replace(
        cell,
        layer=_known(cell.layer, options.layer, of.format("layer"), "--layer tcp"),
        ranks=_known(cell.ranks, options.ranks, of.format("number of ranks"), "--ranks 4"),
        message_bytes=_known(
            cell.message_bytes, options.message_bytes, of.format("message size"), "--message-bytes 64"
        ),
    )


def _known(told: Known | None, given: Known | None, otherwise: str, option: str) -> Known:
    value = given if told is None else told
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


def check_options(options: ImportOptions, sources: Sequence[ImportedText]) -> list[str]:
    """Return a warning for each option that contradicts some of the texts and completes others; the texts win.

    UsageError for an option that completes no text and contradicts one, or that no text has a use for.
    """
    warnings = []
    for name, noun in NOUNS.items():
        value = getattr(options, name)
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


def _answers(name: str, sources: Iterable[ImportedText]) -> Iterator[_Answer]:
    for source in sources:
        for cell in source.imported.cells:
            yield _Answer(source.path, cell.pattern.value, getattr(cell, name), _has_choice(name, cell.pattern))
        for load in source.imported.loads if name == "ranks" else ():
            yield _Answer(source.path, load.workload, load.ranks)


def _has_choice(name: str, pattern: Pattern) -> bool:
    """Whether tests of a pattern may differ in it: a ping-pong is of two ranks whatever the collectives beside it have."""
    return name != "ranks" or PATTERNS[pattern].most_ranks is None
