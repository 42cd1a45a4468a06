"""What an importer is, and which there are: it reads the text that one program prints, into cells of our own definitions.

An importer is a module beside this one with the names of `Importer`, and one line in `IMPORTERS`. It turns every number into what
our records mean by it: a ping-pong's time is the whole round trip, a throughput is in bit/s of payload, one MB of the program's may
be 10^6 or 2^20 bytes. What the text does not tell (the fabric, often the layer and the ranks) it leaves open: who imports says it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from fabricbench.errors import UsageError
from fabricbench.exchange import (
    gpcnet,
    hpcc,
    hpcg,
    hpl,
    imb,
    iperf3,
    linktest,
    mpigraph,
    nccl,
    netperf,
    netpipe,
    npb,
    osu,
    perftest,
    qperf,
    reframe,
    sockperf,
)
from fabricbench.exchange.imported import Imported
from fabricbench.exchange.rows import fewer
from fabricbench.exchange.tags import Untagged, without_tags
from fabricbench.printable import printable
from fabricbench.record.import_notes import ImportNote, ImportNoteKind

MOST_SHOWN = 60
"""Of a line that is shown, letters."""


OF_RESULTS = (ImportNoteKind.DAMAGED, ImportNoteKind.BELOW_LAST_DIGIT, ImportNoteKind.UNKNOWN_TEST)
"""What is noted of results that are left out for a reason."""


ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, moves of the cursor
    r"|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # titles of windows, links
    r"|\x1b[ -/]+[0-~]"  # sets of characters
    r"|\x1b[0-~]?"
    r"|[\x0e\x0f]"
)
"""What steers a terminal (ECMA-48) and is no part of what was printed; `tput sgr0` sends three of them."""

DECIMAL_COMMA = re.compile(r"\s\d+,\d+(?:\s|$)")


class Importer(Protocol):
    """How the text of one program is read. A module with these names is one."""

    NAME: str
    """What `--from` calls it."""
    TITLE: str
    """The program, in words."""

    def is_it(self, text: str) -> bool:
        """Tell whether this program wrote the text, which may be any text: all importers are asked of each."""

    def read(self, text: str) -> Imported:
        """Return what the text says; ValueError names the line that cannot be read (`read_text` says of which text)."""


# One line for each.
IMPORTERS: tuple[Importer, ...] = (
    gpcnet,
    hpcc,
    hpcg,
    hpl,
    imb,
    iperf3,
    linktest,
    mpigraph,
    nccl,
    netperf,
    netpipe,
    npb,
    osu,
    perftest,
    qperf,
    reframe,
    sockperf,
)


def read_text(text: str, where: str, name: str | None = None) -> tuple[str, Imported]:
    """Return the name of the importer and what it read: the importer of that name, or the one that knows the text.

    What steers a terminal is taken off first. A text that none knows as it stands is looked at without the tags that a launcher
    may have put before its lines. `where` names the text in errors. UsageError where no importer knows it, or more than one does.
    """
    if name is not None and name not in [each.NAME for each in IMPORTERS]:
        known = ", ".join(each.NAME for each in IMPORTERS)
        raise UsageError(f"there is no importer {name!r}", hint=f"there are {known}")
    text = ESCAPES.sub("", text)
    of_name = [each for each in IMPORTERS if name in (None, each.NAME)]
    chosen, text, tag = _chosen(of_name, text, where)
    try:
        found_in_it = chosen.read(text)
    except ValueError as error:
        raise UsageError(
            f"{where}: {error}", hint=f"is it what {chosen.TITLE} printed, whole and unchanged?"
        ) from error
    if not (found_in_it.cells or found_in_it.loads):
        left_out = "".join(f"; {one.words}" for one in fewer(found_in_it.notes))
        has_reason = any(one.kind in OF_RESULTS for one in found_in_it.notes)
        raise UsageError(
            f"{where}: no result is in it{left_out}",
            hint=None if has_reason else "did the program come to its first result?",
        )
    tagged = (ImportNote(kind=ImportNoteKind.TAGGED, text=tag),) if tag else ()
    return chosen.NAME, replace(found_in_it, notes=(*tagged, *fewer(found_in_it.notes)))


def _chosen(importers: Sequence[Importer], text: str, where: str) -> tuple[Importer, str, str]:
    """Return the one importer that knows a text, the text as it knows it, and the tag that was taken off, if any."""
    for one in (Untagged(text, ""), *without_tags(text)):
        chosen = [each for each in importers if each.is_it(one.text)]
        if len(chosen) == 1:
            return chosen[0], one.text, one.tag
        if chosen:
            names = " and ".join(each.NAME for each in chosen)
            raise UsageError(
                f"{where}: {names} both know it", hint=f"name the program that wrote it: --from one of {names}"
            )
    begins = next((line.strip() for line in text.split("\n") if line.strip()), "")
    names = ", ".join(each.TITLE for each in importers)
    raise UsageError(
        f"{where} is not the output of {names if len(importers) == 1 else f'any of {names}'}: no line in it begins a test of "
        f"theirs; it begins with {printable(begins)[:MOST_SHOWN]!r}",
        hint="let the program print decimal points (LC_ALL=C): that line has a decimal comma"
        if DECIMAL_COMMA.search(begins)
        else "give what the program printed, with its head (the lines that begin with #); tags of mpirun or srun are taken off",
    )
