"""First screens to render, written by hand: two fabrics, three with ties, a change, a busy machine, kernels.

Values and verdicts are those of the example's cells; nothing here was measured.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from typing import Any

from fabricbench.analysis.evidence import bounded, evidence_of
from fabricbench.analysis.findings import (
    Changes,
    Comparison,
    Doubt,
    Effect,
    Evidence,
    Findings,
    Grade,
    Headline,
    Number,
    PairEffect,
    Reading,
    Replication,
    Verdict,
)
from fabricbench.analysis.findings.doubts import percentage, scaled_number, whole
from fabricbench.analysis.headline import next_steps
from fabricbench.chapters.workload_tables import LOADS, RATIOS
from fabricbench.model import Layer, Metric, Receive
from fabricbench.quantity import scale_seconds
from fabricbench.record.provenance import Origin

LAUNCHES = 10
WIDER = 1.4
"""Of an interval that holds together with those of the other rows."""
ROUND_TRIP, RATE = Metric.ROUND_TRIP_TIME, Metric.THROUGHPUT
LEADING = (
    ("MPI round trip, 64 B", Layer.MPI, ROUND_TRIP, 64),
    ("MPI throughput, 64 KiB", Layer.MPI, RATE, 65536),
    ("TCP round trip, 64 B", Layer.TCP, ROUND_TRIP, 64),
    ("TCP throughput, 1 KiB", Layer.TCP, RATE, 1024),
    ("TCP throughput, 256 KiB", Layer.TCP, RATE, 262144),
)
FOLDED = (
    ("UDP round trip, 64 B", Layer.UDP, ROUND_TRIP, 64),
    ("UDP throughput, 1472 B", Layer.UDP, RATE, 1472),
    ("Raw frame round trip, 64 B", Layer.FRAME, ROUND_TRIP, 64),
    ("Raw frame throughput, 1472 B", Layer.FRAME, RATE, 1472),
)
REPRODUCE = (
    "fabricbench run standard --testbed lab:demo --seed 20260314",
    "fabricbench 0.1.0 · seed 20260314 · data sha256 3f9a41c07be2",
)
LATE = Doubt.of(
    "switch late by ",
    scaled_number(3.1e6, scale_seconds(3.1e-3)),
    ", about ",
    Number(value=67, written="67"),
    " times a round trip",
)


def effects(
    cells: Sequence[Comparison], rows: Iterable[tuple[str, Layer, Metric, int]] = LEADING
) -> tuple[Effect, ...]:
    """Rows of the first screen from the example's cells, every pair of fabrics in each."""
    found = []
    for what, layer, metric, size in rows:
        mine = [cell for cell in cells if _is_of(cell, layer, metric, size)]
        if mine:
            found.append(_effect(what, layer, metric, mine))
    return tuple(found)


def _is_of(cell: Comparison, layer: Layer, metric: Metric, size: int) -> bool:
    return (cell.layer, cell.metric, cell.message_bytes) == (
        layer,
        metric,
        size,
    ) and cell.receive is not Receive.POLLING


def _effect(what: str, layer: Layer, metric: Metric, cells: Sequence[Comparison]) -> Effect:
    medians = {cell.fabric_a: (cell.value_a, cell.low_a, cell.high_a) for cell in cells}
    medians |= {cell.fabric_b: (cell.value_b, cell.low_b, cell.high_b) for cell in cells}
    noise = random.Random(what)
    is_open = all(cell.verdict is Verdict.NOT_ENOUGH_DATA for cell in cells)
    return Effect(
        what=what,
        layer=layer,
        metric=metric,
        readings=tuple(_reading(name, noise, *ends) for name, ends in medians.items() if ends[0] is not None),
        pairs=tuple(map(_pair, cells)),
        ranks=_ranks(cells) if len(cells) > 1 else (),
        grade=Grade.OPEN if is_open else Grade.CLEAR,
    )


def _reading(name: str, noise: random.Random, value: float | None, low: float | None, high: float | None) -> Reading:
    assert value is not None
    spread = 0.02 if low is None else max(abs(math.log(value / low)), 0.002) * 1.5
    launches = tuple(value * math.exp(noise.gauss(0, spread)) for _ in range(3 if low is None else LAUNCHES))
    return Reading(fabric=name, value=value, low=low, high=high, launches=launches)


def _pair(cell: Comparison) -> PairEffect:
    flip = cell.metric.is_lower_better
    times = 1 / cell.ratio if flip else cell.ratio
    half = 0.01 if cell.ratio_low is None else abs(math.log(cell.ratio / cell.ratio_low)) * WIDER
    return PairEffect(
        fabric_a=cell.fabric_a,
        fabric_b=cell.fabric_b,
        times=times,
        low=None if cell.ratio_low is None else times * math.exp(-half),
        high=None if cell.ratio_low is None else times * math.exp(half),
        verdict=cell.verdict,
        words=f"{cell.fabric_b} {times:.2f} times as good as {cell.fabric_a}",
        more_blocks_needed=cell.more_blocks_needed,
    )


def _ranks(cells: Sequence[Comparison]) -> tuple[tuple[str, ...], ...]:
    """The fabrics by how many others they beat; those of one number share a place."""
    names = dict.fromkeys(name for cell in cells for name in (cell.fabric_a, cell.fabric_b))
    beaten = {name: sum(cell.leader == name for cell in cells) for name in names}
    return tuple(
        tuple(name for name in names if beaten[name] == number) for number in sorted(set(beaten.values()), reverse=True)
    )


def tail(what: str, metric: Metric, values: dict[str, float], grade: Grade = Grade.OPEN) -> Effect:
    """A tail of the samples, which scatters from launch to launch and is not decided."""
    (a, first), (b, second) = list(values.items())[:2]
    noise = random.Random(what)
    return Effect(
        what=what,
        layer=Layer.TCP,
        metric=metric,
        is_typical=False,
        readings=tuple(
            Reading(
                fabric=name,
                value=value,
                low=value * 0.7,
                high=value * 1.6,
                launches=tuple(value * math.exp(noise.gauss(0, 0.25)) for _ in range(LAUNCHES)),
            )
            for name, value in values.items()
        ),
        pairs=(
            PairEffect(
                fabric_a=a,
                fabric_b=b,
                times=first / second,
                low=first / second * 0.6,
                high=first / second * 1.7,
                verdict=Verdict.NOT_ENOUGH_DATA,
                words="",
                more_blocks_needed=14,
            ),
        )
        if len(values) == 2
        else (),
        ranks=(tuple(values),) if len(values) > 2 else (),
        grade=grade,
    )


def evidence(rows: Sequence[Effect], *, is_busy: bool = False) -> tuple[Evidence, ...]:
    """What the analysis makes of the rows, all fabrics emulated."""
    names = list(dict.fromkeys(one.fabric for row in rows for one in row.readings))
    return bounded(evidence_of(rows), {Origin.EMULATED: names}, len(names), is_busy=is_busy)


def two_fabrics(cells: Sequence[Comparison]) -> Headline:
    """A quiet lab: one leads in bulk, the other for small messages."""
    rows = (
        *effects(cells),
        tail("TCP round trip, 64 B, p99", ROUND_TRIP, {"fast-ethernet": 190e3, "myrinet": 171e3}),
    )
    return Headline(
        sentence="myrinet is faster: small TCP messages 21 % less time (59 instead of 75 us), streams 13.5 times the rate.",
        exceptions=("MPI messages of 256 B and 1 KiB, not decided",),
        detail="Borne out over tcp at every size, over mpi at 8 of 10 sizes; udp, ip and raw frames agree.",
        evidence=evidence(rows),
        effects=rows,
        more_effects=effects(cells, FOLDED),
        next_steps=_next_steps(cells),
        reproduce=REPRODUCE,
        system="4 nodes, a processor of the example, 2 processors, Debian GNU/Linux 12",
        conditions="Four nodes, two at a time, 10 blocks in random order. Intervals hold together at 95 %; a difference below 2 % "
        "does not matter here.",
    )


def _next_steps(cells: Sequence[Comparison], **known: Any) -> tuple[str, ...]:
    """What the analysis recommends of such a run."""
    options = {"run_directory": "runs/demo", "blocks": LAUNCHES, "has_workload": True, "has_prices": False} | known
    return next_steps(cells, (), (), 0.02, **options)


def busy_machine(cells: Sequence[Comparison]) -> Headline:
    """The same on a host that is too busy: sizes in doubt, a launch that gave nothing, rates that cannot be."""
    small, bulk, *rest = effects(cells)
    first, second = bulk.readings
    silent = first.model_copy(update={"launches": (*first.launches[:7], None, None, None)})
    rate = 12.15e9
    impossible = second.model_copy(
        update={
            "value": rate,
            "low": rate * 0.9,
            "high": rate * 1.1,
            "launches": tuple(rate * (0.9 + 0.02 * index) for index in range(LAUNCHES)),
            "is_impossible": True,
            "note": "949 % of the line rate",
        }
    )
    doubtful = {"grade": Grade.DOUBTFUL, "doubts": (LATE,)}
    rows = (
        small.model_copy(update=doubtful),
        bulk.model_copy(
            update={
                "readings": (silent, impossible),
                "grade": Grade.VOID,
                "doubts": (
                    Doubt.of(percentage(9.49), " of the line rate", subject=second.fabric, is_void=True),
                    Doubt.of(whole(3), " of ", whole(10), " launches on fast-ethernet gave nothing"),
                ),
            }
        ),
        rest[0].model_copy(
            update={
                "grade": Grade.DOUBTFUL,
                "doubts": (LATE, Doubt.of(whole(2), " hosts without an idle processor")),
            }
        ),
        *rest[1:],
        tail(
            "TCP round trip, 64 B, p99", ROUND_TRIP, {"fast-ethernet": 3.4e6, "myrinet": 3.15e6}, Grade.VOID
        ).model_copy(update={"doubts": (LATE,)}),
    )
    return two_fabrics(cells).model_copy(
        update={
            "sentence": "myrinet seems faster: small TCP messages 21 % less time (59 instead of 75 us), "
            "streams 13.5 times the rate.",
            "exceptions": (),
            "evidence": evidence(rows, is_busy=True),
            "in_doubt": True,
            "effects": rows,
            "next_steps": _next_steps(cells, not_quiet="load 3.9 on 2 processors"),
        }
    )


def three_fabrics(cells: Sequence[Comparison]) -> Headline:
    """Three fabrics, ranked in every row."""
    values = {"fast-ethernet": 190e3, "myrinet": 171e3, "atm-oc3": 215e3}
    rows = (*effects(cells), tail("TCP round trip, 64 B, p99", ROUND_TRIP, values))
    return two_fabrics(cells).model_copy(
        update={
            "sentence": "myrinet is fastest of 3, against the next best: small TCP messages 22 % less time (59 instead of 75 us), "
            "streams 8.6 times the rate.",
            "exceptions": ("bulk data: atm-oc3 is second, 1.55 times fast-ethernet",),
            "evidence": evidence(rows),
            "effects": rows,
        }
    )


def change(cells: Sequence[Comparison]) -> Headline:
    """One fabric before and after a new driver."""
    return two_fabrics(cells).model_copy(
        update={
            "sentence": "After the change small TCP messages take 4.5 % less time (49.6 instead of 51.9 us); bulk rates hold.",
            "exceptions": (),
            "detail": "One run a side: what differs from session to session cannot be told from the change.",
            "evidence": evidence_of(effects(cells)),
            "effects": effects(cells),
            "changes": Changes(
                slower=3,
                faster=18,
                same=71,
                unknown=8,
                configuration=(
                    "driver: 6.1 became 6.2 on node[01-04]",
                    "gigabit: interrupt coalescing 100 us became 20 us",
                ),
            ),
            "next_steps": _next_steps(
                [one.model_copy(update={"replication": Replication.LAUNCHES}) for one in cells], has_prices=True
            ),
            "conditions": "Two nodes at a time of four. Intervals hold together at 95 %; below 2 % counts as the same.",
        }
    )


def applications(cells: Sequence[Comparison], whole: Findings) -> Headline:
    """The same led by kernels, which users meet before any layer."""
    rows = []
    for one in RATIOS.of(whole):
        if one.workload.name:
            continue
        times = {item.fabric: item.level for item in LOADS.of(whole) if item.load == one.load}
        noise = random.Random(one.load)
        rows.append(
            Effect(
                what=f"NPB {one.load}",
                layer=None,
                metric=Metric.OPERATION_TIME,
                readings=tuple(
                    Reading(
                        fabric=fabric,
                        value=seconds.value * 1e9,
                        low=None if seconds.low is None else seconds.low * 1e9,
                        high=None if seconds.high is None else seconds.high * 1e9,
                        launches=tuple(seconds.value * 1e9 * math.exp(noise.gauss(0, 0.01)) for _ in range(3)),
                    )
                    for fabric, seconds in times.items()
                ),
                pairs=(
                    PairEffect(
                        fabric_a=one.slower,
                        fabric_b=one.faster,
                        times=one.ratio,
                        low=None if one.low is None else one.low * 0.99,
                        high=None if one.high is None else one.high * 1.01,
                        verdict=one.verdict,
                        words="",
                    ),
                ),
                grade=Grade.CLEAR,
            )
        )
    return two_fabrics(cells).model_copy(
        update={
            "sentence": "myrinet runs IS 4.8 and CG 1.6 times as fast; EP takes the same time on both.",
            "exceptions": ("MPI messages of 256 B and 1 KiB, not decided",),
            "effects": (*rows, *effects(cells)[:4]),
        }
    )
