"""What real programs printed: beside this file, as they printed it but for paths and names of machines."""

from __future__ import annotations

from pathlib import Path

from fabricbench.exchange.imported import Imported
from fabricbench.exchange.importer import read_text
from fabricbench.record.import_notes import ImportNoteKind

OUTPUTS = Path(__file__).parent / "outputs"

Figures = list[tuple[str, int, float]]


def sample(name: str) -> str:
    """Return the text of one."""
    return (OUTPUTS / name).read_text()


def read(text: str, importer: str | None = None) -> Imported:
    """Return what an importer reads, found by the text itself where none is named."""
    return read_text(text, "a.txt", importer)[1]


def figures(text: str) -> Figures:
    """Return what a text has: pattern, size and value of each cell."""
    return [(one.pattern.value, one.message_bytes, round(one.values[0], 6)) for one in read(text).cells]


def noted(text: str) -> list[tuple[ImportNoteKind, int | None]]:
    """Return what was noted of a text, and of which lines."""
    return [(note.kind, note.line) for note in read(text).notes]


SAMPLES = [(path.name, path.read_text()) for path in sorted(OUTPUTS.iterdir())]
"""Every real output, with its name."""
