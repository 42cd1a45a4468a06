"""What a planned campaign will find, in words: a small table for `plan`, one line for `run`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING

from fabricbench.model import Layer
from fabricbench.table import as_text, table

if TYPE_CHECKING:
    from fabricbench.campaign.power import GateNeed, Power

WIDTH = 110

MET = (Layer.TCP, Layer.MPI)
"""Layers that users meet, which the one line of `run` is about."""

UNKNOWN = "floods, what a congestor disturbs, matrices, kernels, layers that were not measured"

NEVER = "no"
"""For a difference that so few blocks cannot find, however useful it were."""

NOTHING_USEFUL = "not even an elevenfold difference"
"""Beyond `power.USEFUL` none is told."""


def power_lines(power: Power) -> Iterator[str]:
    """Yield the table of what is found, and what it rests on; nothing where fabrics are not compared."""
    if not power.found:
        if power.left_out:
            yield f"what it will find cannot be said: nothing is known of the noise of its tests ({UNKNOWN})"
        return
    yield ""
    title = f"what {power.blocks} blocks find with 80 %, a difference of at least (in brackets: if all tests differ):"
    rows = [
        (
            f"{found.kind} over {_listed(found.layers)}",
            _pair(found.faster, found.faster_among_all),
            _pair(found.ahead, found.ahead_among_all),
            _blocks(found.equivalent_blocks),
        )
        for found in power.found
    ]
    columns = ("", "called faster", "named ahead", f"equal within {_percent(power.margin)}")
    yield from as_text(table(columns, rows, title=title)).splitlines()
    if any(NEVER in row[1:3] for row in rows):
        yield from _wrapped(f"{NEVER}: {NOTHING_USEFUL} is found by so few blocks of this noise.")
    yield from _left_out(power.left_out)
    yield from _wrapped(
        f"{power.tests} comparisons are corrected together. Planned with the noise of {power.noise}: {power.source}."
    )


def gate_lines(gate: GateNeed, power: Power) -> Iterator[str]:
    """Yield how many blocks a gate needs, by kind of test and in all."""
    yield ""
    if not gate.by_kind:
        yield f"what a gate needs cannot be said: nothing is known of the noise of the tests ({UNKNOWN})"
        return
    rows = [(f"{kind} over {_listed(layers)}", _blocks(blocks)) for kind, layers, blocks in gate.by_kind]
    title = f"blocks that each run needs for a gate of {_percent(gate.allowed)} to pass an unchanged system with 80 %:"
    columns = ("", "blocks")
    rows.append(("all of them at once", _blocks(gate.all_cells)))
    yield from as_text(table(columns, rows, title=title)).splitlines()
    yield from _left_out(gate.left_out)
    yield from _wrapped(
        f"Planned with the noise of {power.noise}, and as if two runs differed by nothing but their launches."
    )


def found_note(power: Power) -> list[str]:
    """Return what is found over the layers that users meet, in one line; nothing where fabrics are not compared."""
    ranges = []
    of_met = [one for one in power.found if set(one.layers) & set(MET)]
    if of_met and all(one.faster is None for one in of_met):
        least = "no difference that is useful to know, not even elevenfold"
        return [f"{power.blocks} blocks find {least}; noise of {power.noise}, more by `plan`"]
    for layer in MET:
        found = sorted((one.faster, one.kind) for one in power.found if layer in one.layers and one.faster is not None)
        if found:
            (low, finest), (high, coarsest) = found[0], found[-1]
            least = f"{_percent(low)} ({finest})" if len(found) > 1 else f"{_percent(low)}"
            ranges.append(f"over {layer} from {least}" + (f" to {_percent(high)} ({coarsest})" if high > low else ""))
    if not ranges:
        return []
    return [f"with 80 % a difference is called faster {', '.join(ranges)}; noise of {power.noise}, more by `plan`"]


def _left_out(cells: int) -> list[str]:
    if not cells:
        return []
    what, whose = ("1 test is", "its") if cells == 1 else (f"{cells} tests are", "their")
    return _wrapped(f"{what} not in the table: nothing is known of {whose} noise ({UNKNOWN}).")


def _wrapped(text: str) -> list[str]:
    return wrap(text, WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)


def _listed(layers: Sequence[Layer]) -> str:
    return ", ".join(layers)


def _pair(alone: float | None, among_all: float | None) -> str:
    if alone is None:
        return NEVER
    return _percent(alone) if among_all is None else f"{_percent(alone)} ({_percent(among_all)})"


def _blocks(blocks: int | None) -> str:
    return "over 1000 blocks" if blocks is None else f"{blocks} blocks"


def _percent(share: float) -> str:
    """Return a share in percent with two digits: `7.3 %`, `19 %`."""
    percent = 100.0 * share
    return f"{percent:.0f} %" if percent >= 10 or percent == round(percent) else f"{percent:.1f} %"
