"""What each layer and metric comes to once its curve and its single sizes are taken together: the ground of every claim."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from fabricbench.analysis.findings import Comparison, Crossover, Verdict
from fabricbench.model import Layer, Metric


class Outcome(Enum):
    """What a curve with its cells comes to."""

    A = "a"
    B = "b"
    MIXED = "mixed"
    EQUIVALENT = "equivalent"
    OPEN = "open"


def outcomes_of(cells: Sequence[Comparison], curves: Sequence[Comparison]) -> dict[tuple[Layer, Metric], Outcome]:
    """Return what each layer and metric comes to, over all ways of receiving and variants."""
    groups: dict[tuple[Layer, Metric], list[Outcome]] = defaultdict(list)
    by_curve = {_curve_name(one): one for one in curves}
    members: dict[tuple[object, ...], list[Comparison]] = defaultdict(list)
    for cell in cells:
        members[_curve_name(cell)].append(cell)
    for name, of_curve in members.items():
        whole = by_curve.get(name, of_curve[0])
        groups[whole.layer, whole.metric].append(_outcome(whole.verdict, {one.verdict for one in of_curve}))
    return {key: _merged(found) for key, found in sorted(groups.items(), key=lambda item: _place(item[0]))}


def _place(key: tuple[Layer, Metric]) -> tuple[int, int]:
    return list(Metric).index(key[1]), list(Layer).index(key[0])


def _curve_name(one: Comparison) -> tuple[object, ...]:
    return one.layer, one.pattern, one.receive, one.variant, one.metric


def _outcome(whole: Verdict, of_cells: set[Verdict]) -> Outcome:
    seen = of_cells | {whole}
    if {Verdict.A_FASTER, Verdict.B_FASTER} <= seen:
        return Outcome.MIXED
    if whole is Verdict.A_FASTER:
        return Outcome.A
    if whole is Verdict.B_FASTER:
        return Outcome.B
    if whole is Verdict.EQUIVALENT and not seen & {Verdict.A_FASTER, Verdict.B_FASTER}:
        return Outcome.EQUIVALENT
    return Outcome.OPEN


def _merged(outcomes: Sequence[Outcome]) -> Outcome:
    seen = set(outcomes)
    if len(seen) == 1:
        return outcomes[0]
    return Outcome.MIXED if Outcome.MIXED in seen or {Outcome.A, Outcome.B} <= seen else Outcome.OPEN


@dataclass(frozen=True)
class Match:
    """Two fabrics with all that was compared of them over the network's layers. Memory is no network layer."""

    a: str
    b: str
    cells: tuple[Comparison, ...]
    key_cells: tuple[Comparison, ...]
    """One for each layer and metric: those that the ladder shows."""
    crossovers: tuple[Crossover, ...]
    outcomes: Mapping[tuple[Layer, Metric], Outcome]

    @property
    def seen(self) -> set[Outcome]:
        """Return the outcomes that occur."""
        return set(self.outcomes.values())

    @property
    def winner(self) -> str | None:
        """Return the fabric that every layer and metric is decided for."""
        return {Outcome.A: self.a, Outcome.B: self.b}.get(next(iter(self.seen))) if len(self.seen) == 1 else None

    def layers(self, metric: Metric, outcome: Outcome | None = None) -> list[str]:
        """Return the layers where a metric was compared, or those where it came to the outcome."""
        return [
            layer.value
            for (layer, of), found in self.outcomes.items()
            if of is metric and (outcome is None or found is outcome)
        ]
