"""A rich, realistic `Findings` to render: emulated fabrics, six layers, ping-pong and stream, every verdict, a pinned clock.

Nothing here was measured. The numbers follow a simple model (a fixed cost per layer, then the wire) with seeded noise, so that the
renderers meet what a real run gives them: curves that cross, cells that are equivalent, cells with too few launches.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from fabricbench.analysis.findings import (
    Caution,
    CellKey,
    CellSummary,
    Changes,
    Comparison,
    Distribution,
    Doubt,
    Evidence,
    FabricFacts,
    Findings,
    Headline,
    Interval,
    LadderStep,
    Severity,
)
from fabricbench.model import Layer, Metric, Pattern, Receive
from fabricbench.pattern_facts import USUAL_LAYERS
from fabricbench.testbed.wire import Wire
from support.cell_keys import cell_key
from support.chapter_rows import with_rows
from support.example_comparisons import MARGIN, compared, crossovers_of, curves_of
from support.example_headlines import applications, busy_machine, change, three_fabrics, two_fabrics
from support.example_loads import example_loads, few_samples
from support.example_patterns import other_patterns, small_patterns
from support.example_texts import BUSY_WARNINGS, INVENTORY, METHOD, WARNINGS

STARTED = "2026-03-14T15:09:26+00:00"
SIZES = (8, 64, 256, 1024, 1472, 4096, 16384, 65536, 262144, 1048576)
DATAGRAM_SIZES = (8, 64, 256, 1024, 1472)
BLOCKS = 10
RECEIVES = {
    Layer.MEMORY: (Receive.LIBRARY,),
    Layer.MPI: (Receive.LIBRARY,),
}
SOFTWARE_NS = {Layer.MEMORY: 40.0, Layer.FRAME: 26_000.0, Layer.IP: 31_000.0, Layer.UDP: 32_500.0, Layer.TCP: 38_000.0}
SOFTWARE_NS |= {Layer.MPI: 61_000.0}


@dataclass(frozen=True)
class ExampleFabric:
    """What the model needs of a fabric: the wire, the delay of a path one way, and a factor on the software's cost."""

    name: str
    description: str
    wire: Wire
    delay_ns: float
    mtu: int = 1500
    software: float = 1.0
    stream_software_bit_s: float = 6e9


FAST_ETHERNET = ExampleFabric(
    "fast-ethernet", "100 Mbit/s, store-and-forward switch", Wire(line_rate_bit_s=100e6), delay_ns=8_000.0
)
MYRINET = ExampleFabric(
    "myrinet",
    "1.28 Gbit/s, cut-through switch, MTU 9000",
    Wire(line_rate_bit_s=1.28e9),
    delay_ns=4_000.0,
    mtu=9000,
    software=1.3,
)
ATM = ExampleFabric("atm-oc3", "155 Mbit/s, 53-byte cells", Wire(line_rate_bit_s=155.52e6), delay_ns=22_000.0)


def example_findings() -> Findings:
    """Two emulated fabrics over six layers: the usual dossier."""
    return _findings((FAST_ETHERNET, MYRINET), title="fast-ethernet and myrinet on lab demo", runs=("runs/demo",))


def three_fabric_findings() -> Findings:
    """Three emulated fabrics, every pair of them compared."""
    return _findings((FAST_ETHERNET, MYRINET, ATM), title="Three fabrics on lab demo", runs=("runs/three",))


def busy_findings() -> Findings:
    """The usual dossier from a machine that was too busy: doubts, impossible rates, many warnings."""
    whole = example_findings()
    summaries = tuple(
        one.model_copy(update={"share_of_line_rate": 9.495})
        if (one.fabric, one.key.layer, one.key.message_bytes) == ("myrinet", Layer.MPI, 65536)
        and one.share_of_line_rate
        else one
        for one in whole.summaries
    )
    ladder = tuple(
        step.model_copy(update={"share_of_line_rate": 9.495, "share_of_payload_rate": 9.7})
        if (step.fabric, step.layer) == ("myrinet", Layer.MPI)
        else step
        for step in whole.ladder
    )
    update = {
        "summaries": summaries,
        "ladder": ladder,
        "headline": busy_machine(whole.cells),
        "warnings": BUSY_WARNINGS,
    }
    return whole.model_copy(update=update)


def kernel_findings() -> Findings:
    """The usual dossier led by kernels."""
    whole = example_findings()
    return whole.model_copy(update={"headline": applications(whole.cells, whole)})


def before_after_findings() -> Findings:
    """One fabric, not emulated, in two runs: what did a new driver change?"""
    before = ExampleFabric("gigabit (before)", "driver 6.1", Wire(line_rate_bit_s=1e9), delay_ns=6_000.0)
    after = ExampleFabric("gigabit (after)", "driver 6.2", Wire(line_rate_bit_s=1e9), delay_ns=6_000.0, software=0.93)
    return _findings(
        (before, after),
        title="gigabit before and after",
        runs=("runs/2026-02", "runs/2026-03"),
        is_emulated=False,
        is_paired=False,
    )


def small_findings() -> Findings:
    """The usual dossier cut down to three layers and two sizes, small enough to be read as golden files."""
    return _cut_down(example_findings())


def small_before_after_findings() -> Findings:
    """The dossier of a change, cut down alike."""
    return _cut_down(before_after_findings())


def _cut_down(whole: Findings) -> Findings:
    layers, sizes = (Layer.IP, Layer.TCP, Layer.MPI), (8, 1024)

    def is_kept(key: CellKey | Comparison) -> bool:
        return key.layer in layers and (key.message_bytes in sizes or key.message_bytes is None)

    summaries = tuple(item for item in whole.summaries if is_kept(item.key))
    small = whole.model_copy(
        update={
            "summaries": summaries,
            "samples": sum(item.samples for item in summaries),
            "cells": tuple(item for item in whole.cells if is_kept(item)),
            "curves": tuple(item for item in whole.curves if is_kept(item)),
            "ladder": tuple(step for step in whole.ladder if step.layer in layers),
            "distributions": tuple(item for item in whole.distributions if is_kept(item.key))[:2],
        }
    )
    return with_rows(small, **small_patterns(whole))


def hostile_findings() -> Findings:
    """The usual dossier with names that try to be markup wherever a user can write one."""
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>&\"'|`*"
    text = small_findings().model_dump_json()
    whole = Findings.model_validate_json(text.replace('"myrinet"', json.dumps(f"my{evil}")))
    warning = Caution(severity=Severity.INVALID, subject=evil, text=evil)
    return whole.model_copy(
        update={
            "title": evil,
            "testbed": evil,
            "campaign": evil,
            "headline": _hostile_headline(whole.headline, evil),
            "warnings": (warning,),
            "method": (evil,),
            "inventory": {evil: {evil: evil}},
            "run_directories": (evil,),
        }
    )


def _hostile_headline(headline: Headline, evil: str) -> Headline:
    """Every text of the first screen tries to be markup."""
    first, *rest = headline.effects
    readings = tuple(one.model_copy(update={"note": evil, "is_impossible": True}) for one in first.readings)
    words = tuple(one.model_copy(update={"words": evil}) for one in first.pairs)
    effect = first.model_copy(update={"what": evil, "readings": readings, "pairs": words, "doubts": (Doubt.of(evil),)})
    several: dict[str, Any] = dict.fromkeys(("exceptions", "next_steps", "reproduce"), (evil,))
    several["evidence"] = (Evidence(words=evil),)
    single = dict.fromkeys(("sentence", "detail", "conditions", "system"), evil)
    counts = Changes(slower=1, faster=2, same=3, unknown=4, configuration=(evil,))
    return headline.model_copy(update={**several, **single, "effects": (effect, *rest), "changes": counts})


def _findings(
    fabrics: Sequence[ExampleFabric],
    *,
    title: str,
    runs: tuple[str, ...],
    is_emulated: bool = True,
    is_paired: bool = True,
) -> Findings:
    noise = random.Random(20260314)
    summaries = tuple(_summaries(fabrics, noise))
    pairs = [(a.name, b.name) for a, b in combinations(fabrics, 2)]
    cells = tuple(
        comparison for pair in pairs for comparison in compared(_keys(), summaries, pair, is_paired=is_paired)
    )
    return Findings(
        title=title,
        run_directories=runs,
        campaign="standard",
        testbed="lab demo: 4 nodes (n0 to n3)" if is_emulated else "cluster.toml: node[01-04]",
        started=STARTED,
        seconds_measured=1412.6,
        blocks=BLOCKS,
        launches=BLOCKS * len(fabrics),
        launches_invalid=1,
        samples=sum(summary.samples for summary in summaries),
        confidence=0.95,
        margin=MARGIN,
        is_emulated=is_emulated,
        fabrics=tuple(_facts(fabric, index, is_emulated) for index, fabric in enumerate(fabrics)),
        headline=(change if not is_emulated else three_fabrics if len(fabrics) > 2 else two_fabrics)(cells),
        summaries=summaries,
        cells=cells,
        curves=tuple(curves_of(cells)),
        crossovers=tuple(crossovers_of(cells)),
        ladder=tuple(_ladder(fabrics, summaries)),
        distributions=(*_distributions(summaries, noise), *few_samples([fabric.name for fabric in fabrics])),
        chapters=example_loads([fabric.name for fabric in fabrics]) | other_patterns(fabrics),
        warnings=WARNINGS,
        method=METHOD,
        inventory={f"n{node}": INVENTORY | {"hostname": f"n{node}"} for node in range(4)},
    )


def _facts(fabric: ExampleFabric, index: int, is_emulated: bool) -> FabricFacts:
    return FabricFacts(
        name=fabric.name,
        letter="ABCDEFGH"[index],
        description=fabric.description,
        line_rate_bit_s=fabric.wire.line_rate_bit_s,
        mtu=fabric.mtu,
        is_emulated=is_emulated,
        layers=USUAL_LAYERS,
        price_per_node=None if is_emulated else 180.0,
        currency="EUR",
    )


def _keys() -> Iterable[CellKey]:
    for layer in USUAL_LAYERS:
        sizes = DATAGRAM_SIZES if layer in (Layer.FRAME, Layer.IP, Layer.UDP) else SIZES
        for receive in RECEIVES.get(layer, (Receive.BLOCKING, Receive.POLLING)):
            for pattern in (Pattern.PINGPONG, Pattern.STREAM):
                for size in sizes:
                    yield cell_key(layer, pattern, size, receive=receive)


def _model_value(fabric: ExampleFabric, key: CellKey) -> float:
    """Return nanoseconds or bit/s that the model gives the cell."""
    software = SOFTWARE_NS[key.layer] * fabric.software * (0.45 if key.receive is Receive.POLLING else 1.0)
    if key.layer is Layer.MEMORY:
        copy_ns = 40.0 + key.message_bytes / 9.0
        return copy_ns if key.metric is Metric.ROUND_TRIP_TIME else key.message_bytes * 8e9 / copy_ns
    possible = fabric.wire.payload_rate_bit_s(key.layer, key.message_bytes, fabric.mtu)
    assert possible is not None
    if key.metric is Metric.ROUND_TRIP_TIME:
        switched_ns = fabric.delay_ns * 2 + 2 * min(key.message_bytes, fabric.mtu) * 8e9 / fabric.wire.line_rate_bit_s
        return software + switched_ns + 2 * key.message_bytes * 8e9 / possible
    each_ns = 900.0 + software / 25
    return 1.0 / (1.0 / possible + each_ns / 1e9 / (key.message_bytes * 8))


def _summaries(fabrics: Sequence[ExampleFabric], noise: random.Random) -> Iterable[CellSummary]:
    for key in _keys():
        for fabric in fabrics:
            value = _model_value(fabric, key) * math.exp(noise.gauss(0, 0.002))
            width = value * (0.004 + 0.02 * noise.random() ** 4)
            is_cut_short = key.layer is Layer.IP and key.receive is Receive.POLLING and key.message_bytes >= 1024
            launches = 3 if is_cut_short else BLOCKS
            tail = 1.0 if key.metric is Metric.ROUND_TRIP_TIME else -0.4
            is_lossy = key.layer is Layer.UDP and key.metric is Metric.THROUGHPUT and fabric.name == "fast-ethernet"
            possible = fabric.wire.payload_rate_bit_s(key.layer, key.message_bytes, fabric.mtu)
            rate = value if key.metric is Metric.THROUGHPUT and possible else None
            yield CellSummary(
                fabric=fabric.name,
                key=key,
                launches=launches,
                samples=launches * 800,
                warmup_samples=launches * 10,
                median=Interval(
                    value=value,
                    low=None if is_cut_short else value - width,
                    high=None if is_cut_short else value + width * 1.2,
                ),
                mean=value * (1 + 0.03 * tail),
                minimum=value * 0.93,
                maximum=value * (9.0 if tail > 0 else 1.03),
                quantiles={
                    name: value * math.exp(tail * spread)
                    for name, spread in (
                        ("0.01", -0.05),
                        ("0.05", -0.03),
                        ("0.25", -0.01),
                        ("0.5", 0.0),
                        ("0.75", 0.02),
                        ("0.95", 0.12),
                        ("0.99", 0.35),
                        ("0.999", 0.9),
                    )
                },
                lost=412 if is_lossy else 0,
                sent=launches * 800 * 64,
                reordered=0,
                duplicated=0,
                corrupted=0,
                verified=0 if key.layer is Layer.MEMORY else launches * 16,
                share_of_line_rate=rate / fabric.wire.line_rate_bit_s if rate else None,
                share_of_payload_rate=min(rate / possible, 1.0) if rate and possible else None,
            )


def _ladder(fabrics: Sequence[ExampleFabric], summaries: Sequence[CellSummary]) -> Iterable[LadderStep]:
    for fabric in fabrics:
        below_ns, below_share = 0.0, 1.0
        for layer in USUAL_LAYERS:
            mine = [
                summary
                for summary in summaries
                if summary.fabric == fabric.name and summary.key.layer is layer and summary.key.receive != "polling"
            ]
            first = next(summary for summary in mine if summary.key.metric is Metric.ROUND_TRIP_TIME)
            best = max(
                (summary for summary in mine if summary.key.metric is Metric.THROUGHPUT),
                key=lambda summary: summary.median.value,
            )
            added = first.median.value - below_ns
            share = best.share_of_line_rate
            yield LadderStep(
                fabric=fabric.name,
                layer=layer,
                receive=first.key.receive,
                round_trip_message_bytes=8,
                round_trip=first.median,
                added_round_trip=None
                if layer in (Layer.MEMORY, Layer.FRAME)
                else Interval(value=added, low=added - 300.0, high=added + 340.0),
                throughput_message_bytes=best.key.message_bytes,
                throughput=best.median,
                share_of_line_rate=share,
                share_of_payload_rate=best.share_of_payload_rate,
                lost_share_of_line_rate=None if share is None else below_share - share,
            )
            below_ns = first.median.value
            below_share = below_share if share is None else share


def _distributions(summaries: Sequence[CellSummary], noise: random.Random) -> Iterable[Distribution]:
    for summary in summaries:
        if summary.key.message_bytes not in (8, 1024, 65536):
            continue
        bins = 40
        sign = 1.0 if summary.key.metric is Metric.ROUND_TRIP_TIME else -0.3
        edges = sorted(summary.median.value * math.exp(sign * (index / bins * 0.6 - 0.08)) for index in range(bins + 1))
        counts = [
            int(summary.samples * 0.12 * math.exp(-(((index - 6) / 3.2) ** 2)))
            + int(summary.samples * 0.03 * math.exp(-(((index - 21) / 2.5) ** 2)))
            + int(noise.random() * 3)
            for index in range(bins)
        ]
        ordered = counts if sign > 0 else counts[::-1]
        yield Distribution(fabric=summary.fabric, key=summary.key, edges=tuple(edges), counts=tuple(ordered))
