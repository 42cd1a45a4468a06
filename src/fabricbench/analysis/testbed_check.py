"""What a measured fabric of a testbed comes to: does every pair carry about what the testbed says, and by this fabric alone?

Nodes are held against one another where there are four or more, as the map of a network does (`network_map`: groups, culprits, a
second run before anybody is accused), and against what arithmetic gives for the line rate where the testbed tells one. Of two or
three nodes a pair is held against the best one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fabricbench.analysis.findings import NetworkMap, Slow
from fabricbench.analysis.findings.patterns import slowness_words
from fabricbench.analysis.instrument import NOMINAL
from fabricbench.analysis.network_map import ALONE, network_maps
from fabricbench.analysis.pair_looks import (
    ABOUT,
    ONE_STREAM_BIT_S,
    Pair,
    PairReference,
    best_rates,
    cause_of,
    hosts_to_look_at_again,
    pairs_below,
    reference_of,
    slow_in_all,
    slow_nodes,
)
from fabricbench.model import Layer, Metric, Model
from fabricbench.quantity import format_bit_s, format_bytes, without_numbers
from fabricbench.record.provenance import Proof
from fabricbench.record.store import Run
from fabricbench.testbed.model import Fabric
from fabricbench.testbed.preflight_result import Finding, FindingSeverity, folded

Floats = NDArray[np.float64]


MARGIN = 0.15
"""By so much a node or pair must be slower than the others before it is named: cables and places make a few per cent."""

BEYOND = 1.1
"""Nothing carries more than its line rate: a tenth more shows that the rate is written wrong."""


CABLE = "check the cable, transceiver and switch port of {node}; `ethtool INTERFACE` there shows the speed that was agreed on"


LINE_RATE = (
    "correct `line_rate` in the testbed; else `ethtool INTERFACE` on the nodes shows the speed that was agreed on, and "
    "`fabricbench doctor` there what slows it down"
)
TOO_MANY_NODES = (
    "give a lab on this machine's processors fewer nodes or slower links, `--fabric fast-ethernet` say, or end what else keeps "
    "them busy"
)


class FabricChecked(Model):
    """A fabric as it was measured: rates in bit/s of one TCP stream (MPI where there is no TCP) between each two `nodes`.

    Of pairs that were measured again the best counts. `expected_bit_s` is what the line rate leaves of payload, None where the
    testbed tells no rate. `lowest_pair` is by whom the lowest was measured. `round_trip_ns` is of datagrams of `datagram_bytes`,
    which fill the MTU. `unmeasured` says why there is nothing, `left_out` which nodes were not measured because something is wrong
    with them.
    """

    fabric: str
    nodes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    pairs: int = 0
    layer: Layer | None = None
    expected_bit_s: float | None = None
    lowest_bit_s: float | None = None
    median_bit_s: float | None = None
    highest_bit_s: float | None = None
    lowest_pair: Pair | None = None
    mpi_bit_s: float | None = None
    datagram_bytes: int | None = None
    round_trip_ns: float | None = None
    proof: Proof | None = None
    is_emulated: bool = False
    unmeasured: str = ""

    @property
    def is_beyond_wire(self) -> bool:
        """Whether some pair carries more than its line rate leaves of payload, by more than links differ from their rates."""
        if self.highest_bit_s is None or self.expected_bit_s is None:
            return False
        return self.highest_bit_s > (1.0 + NOMINAL) * self.expected_bit_s


def nodes_to_measure_again(fabric: Fabric, runs: Sequence[Run]) -> tuple[str, ...]:
    """Return whose pairs must be measured again before anything is said of them; none once that is clear."""
    looks = [found for one in runs if (found := _stream(_judged_maps(one, None))) is not None]
    return (
        hosts_to_look_at_again(looks, expected_bit_s(fabric, looks[0].layer, looks[0].message_bytes)) if looks else ()
    )


def check_fabric(
    fabric: Fabric, nodes: Sequence[str], run: Run, again: Sequence[Run] = ()
) -> tuple[FabricChecked, tuple[Finding, ...]]:
    """Return how a fabric was found that a run measured, and others again where something had looked wrong, and what is wrong."""
    maps = _judged_maps(run, again[0] if again else None)
    findings = [*_of_paths(run, fabric), *_of_failures(run, fabric, maps)]
    stream = _stream(maps)
    if stream is None:
        proof = _proof(run)
        why = "no stream of any pair was measured" if proof is not Proof.REFUTED else "its traffic went elsewhere"
        return FabricChecked(fabric=fabric.name, nodes=tuple(nodes), proof=proof, unmeasured=why), tuple(findings)
    expected = expected_bit_s(fabric, stream.layer, stream.message_bytes)
    further = [found for one in again if (found := _stream(_judged_maps(one, None))) is not None]
    findings += judge_rates(fabric, stream, further, expected)
    return _checked(fabric, nodes, run, maps, [stream, *further], expected), tuple(findings)


def expected_bit_s(fabric: Fabric, layer: Layer, message_bytes: int) -> float | None:
    """Return the payload that the fabric's line rate leaves; None where it has none."""
    return None if fabric.wire is None else fabric.wire.payload_rate_bit_s(layer, message_bytes, fabric.mtu)


def judge_rates(
    fabric: Fabric, stream: NetworkMap, further: Sequence[NetworkMap], expected: float | None
) -> Iterator[Finding]:
    """Yield what of the rates is wrong. `further` are later measurements of the pairs, or of some, which have to show it, too."""
    reference = reference_of(stream, expected)
    if expected is not None:
        whole = [one for one in (stream, *further) if set(one.hosts) == set(stream.hosts)]
        yield from _of_level(fabric, stream, [reference_of(one, expected).level_bit_s for one in whole], expected)
    for slow in stream.slow:
        yield _of_cause(fabric, stream, slow)
    looks = [stream, *further]
    below = slow_in_all(looks, expected)
    cleared = slow_in_all(looks[:2], expected).keys() - below.keys()
    if stream.schedule != ALONE and any(one.schedule == ALONE for one in further):
        at_once = pairs_below(stream, reference)
        yield from _of_sharing(fabric, stream, [value for pair, value in at_once.items() if pair not in below])
    unexplained = {(pair.source, pair.destination): pair.value for pair in stream.unexplained}
    below = {pair: value for pair, value in unexplained.items() if pair not in cleared} | below
    below = {pair: value for pair, value in below.items() if not any(slow.touches(*pair) for slow in stream.slow)}
    yield from _of_pairs(fabric, stream, below, reference)
    if stream.groups_words:
        yield Finding(
            severity=FindingSeverity.WARNING,
            fabric=fabric.name,
            subject="groups",
            found=f"that {stream.groups_words}",
            needed="to be known: comparisons of few nodes depend on which these are",
            action="if that is not how the switches are cabled, look at the links between them",
        )
    elif stream.apart:
        yield Finding(
            severity=FindingSeverity.WARNING,
            fabric=fabric.name,
            subject="groups",
            found=f"that {stream.apart_words}",
            needed="to be known: which of the two, whoever knows the cables knows",
            action="look at their links",
        )


def _of_level(fabric: Fabric, stream: NetworkMap, levels: Sequence[float], expected: float) -> Iterator[Finding]:
    level, line_rate = max(levels), fabric.wire.line_rate_bit_s if fabric.wire is not None else expected
    told = f"about {format_bit_s(expected)} of the line rate of {format_bit_s(line_rate)}"
    if level < ABOUT * expected:
        is_sure = line_rate <= ONE_STREAM_BIT_S
        most = "the nodes of three quarters of all pairs" if stream.is_judged else "any two nodes"
        one_stream = "" if is_sure else ", unless one stream is more than a processor can move here"
        yield Finding(
            severity=FindingSeverity.ERROR if is_sure else FindingSeverity.WARNING,
            fabric=fabric.name,
            subject="rate",
            found=f"at most {format_bit_s(level)} between {most}",
            needed=told + one_stream,
            action=TOO_MANY_NODES if fabric.is_emulated else LINE_RATE,
        )
    elif min(levels) > BEYOND * expected:
        yield Finding(
            fabric=fabric.name,
            subject="rate",
            found=f"{format_bit_s(level)} between nodes",
            needed=f"{told}: nothing carries more",
            action="correct `line_rate` in the testbed",
        )


def _of_sharing(fabric: Fabric, stream: NetworkMap, shared: Sequence[float]) -> Iterator[Finding]:
    """Yield that pairs are slow only while others carry as well, at these rates."""
    if shared:
        yield Finding(
            severity=FindingSeverity.WARNING,
            fabric=fabric.name,
            subject="sharing",
            found=f"{format_bit_s(float(np.median(shared)))} at the median in {len(shared)} of {_directions(stream)} directions of "
            "pairs while all nodes carried at once, and what the others carry while each was alone",
            needed="to be known: what is measured at many nodes at once is measured so",
            action=TOO_MANY_NODES
            if fabric.is_emulated
            else "if that is not how the switches are cabled, look at the links between them",
        )


def _directions(stream: NetworkMap) -> int:
    return sum(value is not None for row in stream.matrix for value in row)


def _of_cause(fabric: Fabric, stream: NetworkMap, slow: Slow) -> Finding:
    touched, others = _split(stream, slow)
    rates = f": {format_bit_s(float(np.median(touched)))}" if touched.size else ""
    needed = (
        f"about {format_bit_s(float(np.median(others)))}, as between the others" if others.size else "as the others"
    )
    sure = "" if slow.is_confirmed else " (seen once, not measured again)"
    return Finding(
        node=slow.hosts[0],
        fabric=fabric.name,
        subject="rate",
        found=f"that {slow.words}{rates}, {slowness_words(slow.slower)} slower{sure}",
        needed=needed,
        action=CABLE.format(node=" and ".join(dict.fromkeys(slow.hosts))),
    )


def _split(stream: NetworkMap, slow: Slow) -> tuple[Floats, Floats]:
    touched: list[float] = []
    others: list[float] = []
    for one, row in zip(stream.hosts, stream.matrix, strict=True):
        for other, value in zip(stream.hosts, row, strict=True):
            if value is not None:
                (touched if slow.touches(one, other) else others).append(value)
    return np.array(touched, dtype=np.float64), np.array(others, dtype=np.float64)


def _of_pairs(
    fabric: Fabric, stream: NetworkMap, below: dict[Pair, float], reference: PairReference
) -> Iterator[Finding]:
    """Yield the pairs that are slow, by the node that explains them where one does."""
    if not below:
        return
    typical = format_bit_s(float(np.median(list(below.values()))))
    source = "the line rate leaves" if reference.is_expected else "others carry"
    needed = f"about {format_bit_s(reference.bit_s)}, which {source}"
    cause = cause_of(below, stream.hosts)
    causes = (
        [cause]
        if cause is not None
        else [(node, "is slow with all others") for node in slow_nodes(below, stream.hosts)]
    )
    for node, what in causes:
        yield Finding(
            node=node,
            fabric=fabric.name,
            subject="rate",
            found=f"that {node} {what}: {typical}",
            needed=needed,
            action=CABLE.format(node=node),
        )
    if causes:
        return
    left = dict(below)
    while left:
        one = next(iter(left))[0]
        to = [other for source_, other in left if source_ == one]
        rate = float(np.median([left[one, other] for other in to]))
        yield Finding(
            node=one,
            fabric=fabric.name,
            subject="rate",
            found=f"{format_bit_s(rate)} from {one} to {folded(to)}",
            needed=needed,
            action=CABLE.format(node=f"{one} and {folded(to)}"),
        )
        left = {pair: value for pair, value in left.items() if pair[0] != one}


def _judged_maps(run: Run, again: Run | None) -> tuple[NetworkMap, ...]:
    return network_maps(run, margin=MARGIN, confirmation=again)


def _stream(maps: Sequence[NetworkMap]) -> NetworkMap | None:
    """Return the matrix of rates that pairs are judged by: TCP shows the network, MPI its library as well."""
    found = {one.layer: one for one in maps if one.metric is Metric.THROUGHPUT}
    return found.get(Layer.TCP) or found.get(Layer.MPI)


def _of_paths(run: Run, fabric: Fabric) -> Iterator[Finding]:
    """Yield what the path proof says of the launches, each kind of trouble once."""
    seen: set[str] = set()
    for launch in run.launches:
        proof = launch.proof
        if proof is Proof.PROVEN:
            continue
        facts = launch.summary.facts
        unknown = [str(cell["unknown"]) for cell in facts.path_proof.get("cells", ()) if cell.get("unknown")]
        is_elsewhere = proof is Proof.REFUTED
        for reason in (facts.invalid_because if is_elsewhere else unknown)[:1]:
            if without_numbers(reason) in seen:
                continue
            seen.add(without_numbers(reason))
            yield Finding(
                severity=FindingSeverity.ERROR if is_elsewhere else FindingSeverity.WARNING,
                fabric=fabric.name,
                subject="leak" if is_elsewhere else "proof",
                found=f"traffic of {fabric.name} that {'went elsewhere' if is_elsewhere else 'nobody can prove'}: {reason}",
                needed=f"all of it on {fabric.name} and nowhere else",
                action="look at routes, at `mpi_environment` and `mpi_arguments` of the fabric, and at what else moves on the nodes"
                if is_elsewhere
                else "measure when nothing else moves on the nodes; docs/starting.md says which counters are read",
            )


def _of_failures(run: Run, fabric: Fabric, maps: Sequence[NetworkMap]) -> Iterator[Finding]:
    """Yield the pairs and tests that could not be measured."""
    for one in maps:
        for pair in one.failed:
            yield Finding(
                node=pair.source,
                fabric=fabric.name,
                subject="link",
                found=f"no {one.layer} {one.pattern} of {format_bytes(one.message_bytes)} between {pair.source} and "
                f"{pair.destination}: {pair.reason}",
                needed="every pair can be measured",
                action=CABLE.format(node=f"{pair.source} and {pair.destination}"),
            )
    failed = run.cells().filter(pl.col("status").cast(pl.String) == "failed").select("layer", "pattern", "reason")
    for layer, pattern, reason in dict.fromkeys(failed.iter_rows()):
        yield Finding(
            fabric=fabric.name,
            subject="launch",
            found=f"that {layer} {pattern} cannot be measured: {reason}",
            needed="what the testbed says the fabric carries (`layers`)",
            action="mend that, or take the layer out of the fabric's `layers`",
        )


def _checked(
    fabric: Fabric,
    nodes: Sequence[str],
    run: Run,
    maps: Sequence[NetworkMap],
    looks: Sequence[NetworkMap],
    expected: float | None,
) -> FabricChecked:
    rates = best_rates(looks)
    lowest = min(rates, key=lambda pair: rates[pair])
    mpi = next((one for one in maps if one.layer is Layer.MPI and one.metric is Metric.THROUGHPUT), None)
    datagrams = next((one for one in maps if one.layer is Layer.UDP), None)
    return FabricChecked(
        fabric=fabric.name,
        nodes=tuple(nodes),
        pairs=len(rates),
        layer=looks[0].layer,
        expected_bit_s=expected,
        lowest_bit_s=rates[lowest],
        median_bit_s=float(np.median(list(rates.values()))),
        highest_bit_s=max(rates.values()),
        lowest_pair=lowest,
        mpi_bit_s=_median(mpi),
        datagram_bytes=None if datagrams is None else datagrams.message_bytes,
        round_trip_ns=_median(datagrams),
        proof=_proof(run),
        is_emulated=fabric.is_emulated,
    )


def _median(one: NetworkMap | None) -> float | None:
    values = [value for row in one.matrix for value in row if value is not None] if one is not None else []
    return float(np.median(values)) if values else None


def _proof(run: Run) -> Proof | None:
    """Return the worst of what is known of the launches' paths."""
    found = {launch.proof for launch in run.launches}
    return next((one for one in (Proof.REFUTED, Proof.UNKNOWN, Proof.PROVEN) if one in found), None)
