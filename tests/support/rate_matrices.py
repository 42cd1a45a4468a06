"""Matrices of rates between hosts, as a map of streams has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fabricbench.analysis.findings import NetworkMap, Slow
from fabricbench.model import Layer, Metric, Pattern

GOOD = 940e6
FOUR = ("n1", "n2", "n3", "n4")


def matrix(
    hosts: Sequence[str] = FOUR,
    rates: Mapping[tuple[str, str], float] | None = None,
    usual: float = GOOD,
    slow: Sequence[Slow] = (),
) -> NetworkMap:
    """A matrix in which all directions carry the usual rate but for some."""
    rows = tuple(
        tuple(None if one == other else (rates or {}).get((one, other), usual) for other in hosts) for one in hosts
    )
    return NetworkMap(
        fabric="eth",
        layer=Layer.TCP,
        pattern=Pattern.PAIRS_STREAM,
        schedule="alone",
        message_bytes=65536,
        metric=Metric.THROUGHPUT,
        launches=2,
        hosts=tuple(hosts),
        matrix=rows,
        slow=tuple(slow),
        is_judged=len(hosts) > 3,
    )


def sends_slowly(host: str, hosts: Sequence[str], rate: float = GOOD / 2) -> dict[tuple[str, str], float]:
    return {(host, other): rate for other in hosts if other != host}
