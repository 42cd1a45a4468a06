"""Stages of a round trip: where its time passes, in the hosts and between them, and what of it differs between fabrics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from fabricbench.analysis.findings import CellKey, Findings, Interval
from fabricbench.analysis.findings.stages import (
    TOLERANCE,
    Direction,
    Parts,
    Stage,
    StageDifference,
    TrafficDifference,
)
from fabricbench.analysis.material import Material
from fabricbench.analysis.measured import in_order
from fabricbench.analysis.stage_causes import stage_causes
from fabricbench.analysis.stage_rows import stage_differences, stage_rows, staged_cell, traffic_differences
from fabricbench.chapters.chapter import Chapter, Found, OnPage
from fabricbench.chapters.stage_figures import waterfall
from fabricbench.chapters.stage_tables import (
    CAUSE_ROWS,
    CAUSES,
    CELL_ROWS,
    CELLS,
    DIFFERENCE_ROWS,
    DIFFERENCES,
    NAMES,
    STAGE_ROWS,
    STAGES,
    TRAFFIC_ROWS,
    TRAFFICS,
    tables,
)
from fabricbench.model import Layer, Pattern
from fabricbench.quantity import count, enumeration
from fabricbench.report.cause_words import TRIP, cause_words, stage_words
from fabricbench.report.words import (
    cell_words,
    share_words,
    value_words,
)

BOUNDARY_WORDS = {
    "before": "when the application called to send it",
    "called": "when the MPI library called the kernel to send it",
    "scheduled": "when it entered the queueing discipline",
    "departed": "when the driver was given it",
    "arrived": "when it came up from the driver",
    "resumed": "when the receiver's thread was switched in",
    "waited": "how long the receiver's thread waited for a processor",
    "drained": "when the MPI library had it from the kernel",
    "received": "when the application had it",
    "switch_first": "when the switch had its first frame",
    "switch_last": "when the switch had its last frame",
    "wire": "what its links take",
    "due": "when the switch was to release it",
}
"""What a boundary is, in sentences."""
METHOD = """
Stages are differences of time stamps on one clock: the application's around its calls, those of the calls by which an MPI
library reaches the kernel, the kernel's own (SO_TIMESTAMPING), and the scheduler's records of the rank's thread. Each host's
part of a round trip is by that host's clock; what is left of the round trip passes between the hosts, so that no clocks need to
agree. Of each launch the median over messages is taken, and of these the median over launches with its {level} interval, each
of its row alone. Medians of stages need not add up to that of the round trip; stages of each message do. Stamping takes time of
its own, which the same test without stamps in the same launch shows. A burst is told as one message, from the call that sends
its first to the arrival of its last. Causes are named by rules, each where it is met in more than half of the launches of a
test.
"""


def find(material: Material) -> Found:
    """Return the stages of each test that was stamped, and what differs between each two fabrics."""
    read = {side.name: (side, material.stages[side.name]) for side in material.sides if side.stamped}
    stages = [
        row
        for side, cells in read.values()
        for key in sorted(cells, key=in_order)
        for row in stage_rows(side, cells[key], material.confidence)
    ]
    told = [
        staged_cell(side, cells[key], material.confidence)
        for side, cells in read.values()
        for key in sorted(cells, key=in_order)
    ]
    differences = [
        row
        for pairing in material.pairings
        if pairing.is_paired and pairing.a.name in read and pairing.b.name in read
        for row in stage_differences(read[pairing.a.name], read[pairing.b.name], material.confidence)
    ]
    traffics = [row for one in read.values() for row in traffic_differences(one, material.confidence)]
    causes = [row for side, cells in read.values() for row in stage_causes(side.name, cells)]
    return {
        STAGES: tuple(stages),
        CELLS: tuple(told),
        DIFFERENCES: tuple(differences),
        TRAFFICS: tuple(traffics),
        CAUSES: tuple(causes),
    }


def lines(findings: Findings) -> Sequence[str]:
    """Say what delays messages, which stage is the longest, where fabrics and traffics differ, and what is not seen."""
    return [
        *_cause_lines(findings),
        *_largest_lines(findings),
        *_difference_lines(findings),
        *_traffic_lines(findings),
        *_cost_lines(findings),
        *_missing_lines(findings),
    ]


def _largest_lines(findings: Findings) -> Iterator[str]:
    """Yield which stage of messages in turn is the largest on each fabric."""
    rows = [row for row in STAGE_ROWS.of(findings) if row.way is Direction.BOTH]
    for key in dict.fromkeys(row.key for row in rows if row.key.pattern is Pattern.PINGPONG):
        largest: dict[Parts, list[str]] = {}
        for fabric in findings.fabrics:
            of_fabric = [row for row in rows if row.key == key and row.fabric == fabric.name]
            if of_fabric:
                most = max(of_fabric, key=lambda row: row.median.value)
                told = f"{value_words(TRIP, most.median.value)} on {most.fabric} ({share_words(most.share)})"
                largest.setdefault(most.parts, []).append(told)
        stages = "; ".join(f"{stage_words(parts)}, {enumeration(told)}" for parts, told in largest.items())
        yield f"{cell_words(key)}: the longest stage of a round trip is {stages}."


def leading_sentence(rows: Sequence[Mapping[str, Any]], keys: Iterable[CellKey | None]) -> str:
    """Return where fabrics differ in the first of some tests of which that was found, of the rows of DIFFERENCES; else nothing."""
    differences = [StageDifference.model_validate(row) for row in rows]
    wholes = {row.key: row for row in reversed(differences) if not row.parts and not row.is_between}
    for key in keys:
        whole = wholes.get(key) if key is not None else None
        sentence = difference_sentence(whole, [row for row in differences if _is_beside(row, whole)]) if whole else None
        if sentence is not None:
            return sentence
    return ""


def _difference_lines(findings: Findings) -> Iterator[str]:
    """Yield a sentence for each test that fabrics differ in by the corrected verdict on it without stamps."""
    rows = DIFFERENCE_ROWS.of(findings)
    led = {(one.fabric_a, one.fabric_b, one.key) for one in findings.cells if one.verdict.leader is not None}
    for whole in (row for row in rows if not row.parts and not row.is_between):
        if (whole.fabric_a, whole.fabric_b, whole.key) not in led:
            continue
        sentence = difference_sentence(whole, [row for row in rows if _is_beside(row, whole)])
        if sentence is not None:
            yield sentence


def _is_beside(row: StageDifference, whole: StageDifference) -> bool:
    return row is not whole and (row.fabric_a, row.fabric_b, row.key) == (whole.fabric_a, whole.fabric_b, whole.key)


def difference_sentence(whole: StageDifference, stages: Sequence[StageDifference]) -> str | None:
    """Return what of a difference between fabrics passes between the hosts; None where no difference is shown."""
    low, high = whole.difference.low, whole.difference.high
    between = next((row for row in stages if row.is_between), None)
    if low is None or high is None or low <= 0.0 <= high or between is None:
        return None
    slow, fast = (whole.fabric_b, whole.fabric_a) if whole.difference.value > 0 else (whole.fabric_a, whole.fabric_b)
    sign = 1.0 if whole.difference.value > 0 else -1.0
    total = value_words(TRIP, sign * whole.difference.value)
    outside = sign * between.difference.value
    inside = sign * whole.difference.value - outside
    return (
        f"{cell_words(whole.key)}: a stamped {_trip(whole.key)} takes {total} longer on {slow} than on {fast}: "
        f"{_more_words(outside)} between the hosts and {_more_words(inside)} in them; {_place_words(whole, stages)}."
    )


NOTEWORTHY = 0.1
"""Of a difference, from where on the emulation's own share in it is told."""


def _place_words(
    whole: StageDifference | TrafficDifference, stages: Iterable[StageDifference | TrafficDifference]
) -> str:
    """Return which stage differs most the way that the whole does, of those shown to, and what of it is the emulation's."""
    sign = 1.0 if whole.difference.value > 0 else -1.0
    shown = [row for row in stages if row.parts and _is_shown(row.difference, sign)]
    real = [row for row in shown if Stage.EMULATOR not in row.parts]
    words = "no single stage is shown to differ that way"
    if real:
        most = max(real, key=lambda row: sign * row.difference.value)
        words = f"the stage that differs most is {stage_words(most.parts)}, by {value_words(TRIP, abs(most.difference.value))}"
    emulated = sign * sum(
        row.difference.value
        for row in stages
        if Stage.EMULATOR in row.parts and (_is_shown(row.difference, 1.0) or _is_shown(row.difference, -1.0))
    )
    if abs(emulated) >= NOTEWORTHY * abs(whole.difference.value):
        told = value_words(TRIP, abs(emulated))
        words += (
            f"; of the whole {told} are the emulation's own"
            if emulated > 0
            else f"; the emulation itself takes {told} less"
        )
    return words


def _is_shown(difference: Interval, sign: float) -> bool:
    """Whether the interval leaves no doubt that a difference has this sign."""
    end = difference.low if sign > 0 else difference.high
    return end is not None and sign * end > 0.0


def _trip(key: CellKey) -> str:
    return "burst with its answer" if key.pattern is Pattern.BURST else "round trip"


def _more_words(grown_ns: float) -> str:
    return f"{value_words(TRIP, abs(grown_ns))} {'more' if grown_ns >= 0 else 'less'}"


def _cause_lines(findings: Findings) -> Iterator[str]:
    """Yield a sentence for each cause that was found, and one where the rules found none."""
    causes = CAUSE_ROWS.of(findings)
    for row in causes:
        yield f"{row.fabric}: {cause_words(row)}"
    if not causes and CELL_ROWS.of(findings):
        yield (
            "No delayed acknowledgement, no gathered interrupts and no long wait for a processor was found; the first shows in tcp "
            "alone, the second in lone messages alone."
        )


def _traffic_lines(findings: Findings) -> Iterator[str]:
    """Yield for messages in each other traffic where they differ most from those in turn, on the fabrics that show a difference."""
    rows = TRAFFIC_ROWS.of(findings)
    for key, other in dict.fromkeys((row.key, row.other) for row in rows):
        found = [row for row in rows if (row.key, row.other) == (key, other)]
        told = [
            f"{_more_words(whole.difference.value)} on {whole.fabric} ("
            f"{_place_words(whole, [row for row in found if row.fabric == whole.fabric])})"
            for whole in found
            if not whole.parts and any(_is_shown(whole.difference, sign) for sign in (1.0, -1.0))
        ]
        if told:
            yield f"{cell_words(other)} ({found[0].traffic}), against {cell_words(key)} (in turn): {'; '.join(told)}."


def _cost_lines(findings: Findings) -> Iterator[str]:
    costs = [row.cost for row in CELL_ROWS.of(findings) if row.cost is not None]
    told = [cost for cost in costs if cost.low is not None]
    shown = sorted(cost.value for cost in told if _is_shown(cost, 1.0))
    if shown:
        ends = " to ".join(dict.fromkeys(value_words(TRIP, end) for end in (shown[0], shown[-1])))
        where = (
            "" if len(shown) == len(told) else f", in the {len(shown)} of {len(told)} tests that show that it takes any"
        )
        yield f"Stamping takes {ends} of a median round trip{where}: stages are those of stamped messages."
    elif told:
        yield "No test shows that stamping takes time of a median round trip: stages are those of stamped messages."
    elif costs:
        yield "So few launches give what stamping takes of a median round trip no interval: stages are those of stamped messages."


def _missing_lines(findings: Findings) -> Iterator[str]:
    rows = CELL_ROWS.of(findings)
    if not rows:
        return
    messages, complete = sum(row.messages for row in rows), sum(row.complete for row in rows)
    within = sum(row.within * row.complete for row in rows) / max(complete, 1)
    of_mpi = [row.key.layer is Layer.MPI for row in rows]
    merged = "socket, queueing discipline and driver" if all(of_mpi) else "library and socket"
    aside = "; of mpi socket, queueing discipline and driver are one" if any(of_mpi) and not all(of_mpi) else ""
    yield (
        f"Measured by what any user may ask of the kernel: {merged} are one stage, as are softirq, protocol and wake-up{aside}. "
        f"Of {count(messages, 'message')} {complete:,} are complete; the stages of {100 * within:.2f} % of these add up to the "
        f"application's own time within {100 * TOLERANCE:g} %."
    )
    missing: dict[str, int] = {}
    for name, number in (item for row in rows for item in row.missing.items()):
        missing[name] = missing.get(name, 0) + number
    if missing:
        for name, number in sorted(missing.items()):
            yield f"Of {count(number, 'message')} nobody saw {BOUNDARY_WORDS.get(name, name)}: they are left out."
    refused = {boundary: reason for row in rows for boundary, reasons in row.refused.items() for reason in reasons}
    for boundary, reason in refused.items():
        yield f"Hosts do not show {BOUNDARY_WORDS.get(boundary, boundary)} ({reason}), so that the stages beside it are one."
    if not all(row.has_switch for row in rows):
        yield "What passes between the hosts is one stage: only the emulated switch of a lab tells more of it."


CHAPTER = Chapter(
    name=STAGES,
    title="Stages of a round trip",
    needs="ping-pongs, paced or in bursts too, over frame, ip, udp, tcp or mpi with `stages = true`: the campaign explain has them",
    find=find,
    method=METHOD,
    is_of_measuring=True,
    tables=tables,
    lines=lines,
    figures={"stages": waterfall},
    records=lambda findings: {name: findings.chapters.get(name, ()) for name in NAMES},
    on_page=OnPage(entry="Stages"),
)
