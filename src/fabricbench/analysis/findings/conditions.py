"""What was found of conditions and of crossed factors: what each does by itself, and whether that is the same everywhere."""

from __future__ import annotations

from enum import StrEnum

from fabricbench.analysis.findings.cells import CellKey, Interval, Replication
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


class MainEffect(Model):
    """What the `level` of a factor does compared with the `first` one, in times better, on average over the other factors.

    `among` are the settings of the other factors that were measured with both levels, each of which counts alike. `launches` counts
    what is repeated. `doubt` says in words why there is no verdict.
    """

    key: CellKey
    factor: str
    first: str
    level: str
    among: tuple[str, ...]
    effect: Interval
    p_adjusted: float | None
    verdict: InteractionVerdict
    doubt: str = ""
    replication: Replication
    launches: int
