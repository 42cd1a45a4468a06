"""What an importer is, and which there are: it reads the text that one program prints, into cells of our own definitions.

An importer is a module beside this one with the names of `Importer`, and one line in `IMPORTERS`. It turns every number into what
our records mean by it: a ping-pong's time is the whole round trip, a throughput is in bit/s of payload, one MB of the program's may
be 10^6 or 2^20 bytes. What the text does not tell (the fabric, often the layer and the ranks) it leaves open: who imports says it.
"""

from __future__ import annotations

from typing import Protocol

from fabricbench.errors import UsageError
from fabricbench.exchange import osu
from fabricbench.exchange.imported import Imported


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
IMPORTERS: tuple[Importer, ...] = (osu,)


def read_text(text: str, where: str, name: str | None = None) -> tuple[str, Imported]:
    """Return the name of the importer and what it read: the importer of that name, or the one that knows the text.

    `where` names the text in errors. UsageError where no importer knows the text, or more than one does.
    """
    known = ", ".join(each.NAME for each in IMPORTERS)
    if name is not None:
        chosen = [each for each in IMPORTERS if name == each.NAME]
        if not chosen:
            raise UsageError(f"there is no importer {name!r}", hint=f"there are {known}")
    else:
        chosen = [each for each in IMPORTERS if each.is_it(text)]
        if len(chosen) != 1:
            found = f"{' and '.join(each.NAME for each in chosen)} both know it" if chosen else "no importer knows it"
            raise UsageError(f"{where}: {found}", hint=f"name the program that wrote it: --from one of {known}")
    try:
        found_in_it = chosen[0].read(text)
    except ValueError as error:
        raise UsageError(
            f"{where}: {error}", hint=f"is it what {chosen[0].TITLE} printed, whole and unchanged?"
        ) from error
    if not found_in_it.cells:
        raise UsageError(f"{where}: no result is in it", hint="did the program come to its first result?")
    return chosen[0].NAME, found_in_it
