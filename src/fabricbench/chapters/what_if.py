"""What round trips would take if something were another: predicted from stages and from what the links were found to be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fabricbench.analysis.findings import Findings
from fabricbench.analysis.findings.switches import Change, Forwarding, PredictionAssumption, WhatIf
from fabricbench.analysis.material import Material
from fabricbench.analysis.what_if import of_all
from fabricbench.chapters.chapter import Chapter, Found, NamedTables, OnPage, Rows
from fabricbench.model import Metric
from fabricbench.quantity import enumeration
from fabricbench.report.words import NOTHING, cell_words, interval_words, share_words, value_words
from fabricbench.table import Table, table

NAME = "what-if"
ROWS = Rows(NAME, WhatIf)
TIME, RATE = Metric.ROUND_TRIP_TIME, Metric.THROUGHPUT
METHOD = """
What if: round trips without stamps, launch by launch, less the medians of the stages that would be gone; or less what their frames
take on links and switch there and back, 2 (8 b / R + D) with b serialised bytes, line rate R and delay D as found of the
switch, and more by the same of the other link. All of these numbers are PREDICTED, not measured. Medians over launches with their
{level} intervals, which hold what launches differ by and nothing of what is assumed.
"""
ASSUMPTION_WORDS = {
    PredictionAssumption.MERGED: "softirq and protocol, which stamps do not tell from the wake-up, would be gone with it",
    PredictionAssumption.OWN_PROCESSOR: "each rank has a processor of its own",
    PredictionAssumption.STAGES_STAY: "the other stages take what they took, though hosts that do not sleep may be quicker in them",
    PredictionAssumption.HOSTS_STAY: "hosts take what they took",
    PredictionAssumption.NOTHING_INSTEAD: "what is done in the kernel's place takes nothing",
    PredictionAssumption.DELAY_STAYS: "propagation and latency stay, and a switch that forwards at once reads 64 B before",
    PredictionAssumption.IDLE_LINKS: "nothing else is on the links",
}
MOST_ROWS = 40


def find(material: Material) -> Found:
    """Return the predictions of every fabric whose messages were stamped."""
    sides = {side.name: (side, material.stages[side.name]) for side in material.sides if side.name in material.stages}
    return {NAME: tuple(of_all(sides, material.confidence))}


def _shown(findings: Findings) -> list[WhatIf]:
    """Return the rows of tables: of each fabric, change and layer the smallest message and the largest."""
    groups: dict[tuple[object, ...], list[WhatIf]] = {}
    for one in ROWS.of(findings):
        groups.setdefault((one.fabric, one.change, one.other, one.key.curve), []).append(one)
    ends = [(min(group, key=_size), max(group, key=_size)) for group in groups.values()]
    return [one for pair in ends for one in dict.fromkeys(pair)]


def _size(one: WhatIf) -> int:
    return one.key.message_bytes


def change_words(one: WhatIf) -> str:
    """Return `a line of 10 Gbit/s`."""
    match one.change:
        case Change.FORWARDING:
            return "a store-and-forward switch" if one.forwarding is Forwarding.STORED else "a cut-through switch"
        case Change.LINE_RATE:
            return f"a line of {value_words(RATE, one.line_rate_bit_s)}"
        case Change.FABRIC:
            return f"the links of {one.other}"
        case _:
            return one.change.value


def tables(findings: Findings) -> NamedTables:
    """Return the predictions beside what was measured."""
    rows = _shown(findings)
    title = "Round trips, predicted" + (f", the first {MOST_ROWS} of {len(rows)}" if len(rows) > MOST_ROWS else "")
    return [(title, _table(rows[:MOST_ROWS]))]


def _table(rows: Sequence[WhatIf]) -> Table:
    made = [
        (
            one.fabric,
            cell_words(one.key),
            change_words(one),
            interval_words(TIME, one.now),
            _predicted(one),
            interval_words(TIME, one.measured),
            NOTHING if one.off is None or one.is_bound else _off_words(one.off),
        )
        for one in rows
    ]
    columns = ("Fabric", "Test", "With", "Measured now", "Predicted", "Measured so", "Predicted is off by")
    shown = table(columns, made, (3, 4, 5, 6), spare=("Measured now",), result="Predicted")
    return shown if any(one.measured is not None for one in rows) else shown.only(range(5))


def _off_words(off: float) -> str:
    """Return `3.6 % too short`."""
    return f"{share_words(abs(off))} too {'long' if off > 0 else 'short'}"


def _predicted(one: WhatIf) -> str:
    told = interval_words(TIME, one.predicted)
    return f"at least {told}" if one.is_bound else told


def lines(findings: Findings) -> Sequence[str]:
    """Say that these are predictions, what each kind of them assumes, and how far those are off that were measured as well."""
    rows = ROWS.of(findings)
    if not rows:
        return ()
    return [
        "All of these are PREDICTED by a model, not measured; where the run measured the same, that stands beside.",
        *_assumption_lines(rows),
        *_held_lines(rows),
    ]


def _assumption_lines(rows: Sequence[WhatIf]) -> Iterator[str]:
    for change in Change:
        of_change = [one for one in rows if one.change is change]
        if of_change:
            assumed = enumeration([ASSUMPTION_WORDS[one] for one in of_change[0].assumptions])
            gone = enumeration([stage.value for stage in of_change[0].gone])
            yield f"{change.value.capitalize()}: {f'without {gone}; ' if gone else ''}assumed: {assumed}."


def _held_lines(rows: Sequence[WhatIf]) -> Iterator[str]:
    held = sorted(abs(one.off) for one in rows if one.off is not None and not one.is_bound)
    if held:
        middle, worst = held[len(held) // 2], held[-1]
        yield (
            f"Of {len(held)} predictions that were measured too half are off by {share_words(middle)} or less, the worst by "
            f"{share_words(worst)}."
        )


CHAPTER = Chapter(
    name=NAME,
    title="What if: another receiver, switch, line or fabric (predicted)",
    needs="ping-pongs with stages: the campaigns switch and explain have them",
    find=find,
    method=METHOD,
    is_of_measuring=True,
    tables=tables,
    lines=lines,
    on_page=OnPage(entry="What if", is_open=False),
)
