"""What was found of conditions: whether one does the same on two networks."""

from __future__ import annotations

from enum import StrEnum

from fabricbench.analysis.findings.cells import CellKey, Interval
from fabricbench.model import Model


class InteractionVerdict(StrEnum):
    """What is shown of the ratio of two effects. `perhaps`: there is a difference, which may be smaller than the margin."""

    MORE = "more"
    PERHAPS_MORE = "perhaps more"
    LESS = "less"
    PERHAPS_LESS = "perhaps less"
    SAME = "same"
    OPEN = "open"


class Interaction(Model):
    """What `condition` does compared with `first`, on two networks, in times better (above 1: better, whatever the metric).

    `ratio` is `effect_b` over `effect_a`, which the verdict is about: does the condition do more for network B, or less?
    `doubt` says in words why there is no verdict.
    """

    key: CellKey
    network_a: str
    network_b: str
    first: str
    condition: str
    effect_a: Interval
    effect_b: Interval
    ratio: Interval
    p_adjusted: float | None
    verdict: InteractionVerdict
    doubt: str = ""
    blocks: int
