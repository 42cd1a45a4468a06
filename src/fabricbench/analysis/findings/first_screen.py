"""What the first screen of every report shows: the answer, what bears it out, what is in doubt, what to do next.

The same in the dossier, in the terminal and in Markdown: renderers set these words and numbers, and add none.
"""

from __future__ import annotations

from enum import StrEnum

from fabricbench.analysis.findings.cells import Verdict
from fabricbench.model import Layer, Metric, Model


class Grade(StrEnum):
    """How far the evidence behind an effect can be trusted."""

    CLEAR = "clear"
    """Decided, and nothing speaks against the instrument."""
    DOUBTFUL = "doubtful"
    """Decided by the numbers, while the instrument, the host or the survivors are in doubt: `doubts` says why."""
    OPEN = "open"
    """Not decided: grey wherever it is drawn."""
    VOID = "void"
    """The numbers cannot be right, or hardly any launch gave one."""


class Reading(Model):
    """What one fabric showed: the geometric mean over launches, of all fabrics the same blocks, with its interval.

    `launches` are the values of all of them (None: gave nothing).
    """

    fabric: str
    value: float | None
    low: float | None
    high: float | None
    launches: tuple[float | None, ...]
    is_impossible: bool = False
    """More than the wire can carry, or less time than light needs: struck where it stands."""
    is_beyond_wire: bool = False
    """A little more than the wire can carry, by what was in buffers: cautioned where it stands."""
    note: str = ""


class PairEffect(Model):
    """Two fabrics in one row. `times` is how many times better B is than A (above 1: B is), with its interval.

    The interval is simultaneous: all intervals of the first screen hold together with the report's confidence.
    """

    fabric_a: str
    fabric_b: str
    times: float
    low: float | None
    high: float | None
    verdict: Verdict
    """Corrected over the first screen's rows so that any wrong one has at most the report's chance (Holm)."""
    words: str
    """`half the time: 64 instead of 130 us`."""
    value_a: float | None = None
    """Geometric means over the very blocks of this pair: their ratio is `times`; means over other blocks need not agree with it."""
    value_b: float | None = None
    more_blocks_needed: int | None = None


class Effect(Model):
    """One row of the first screen. `what` reads `TCP round trip, 64 B`; `layer` is None for an application."""

    what: str
    layer: Layer | None
    metric: Metric
    is_typical: bool = True
    """False for a tail (p99, p99.9) of the samples."""
    readings: tuple[Reading, ...]
    """One for each fabric, in the order of `Findings.fabrics`."""
    pairs: tuple[PairEffect, ...]
    ranks: tuple[tuple[str, ...], ...] = ()
    """The fabrics from the best on; each two that cannot be told apart share a tier, and a fabric may stand in several."""
    grade: Grade
    doubts: tuple[str, ...] = ()


class Changes(Model):
    """Before and after, counted over all compared rows."""

    slower: int
    faster: int
    same: int
    unknown: int
    configuration: tuple[str, ...]
    """What differs between the two: `myrinet: switch latency 0.5 us became 5 us`."""


class Headline(Model):
    """The first screen: the answer in at most twenty words, exceptions, effects, doubts, the next step."""

    sentence: str
    exceptions: tuple[str, ...] = ()
    """`raw 64 B frames, 24 % slower (15 to 32 %)`: shown after "Except:"."""
    detail: str = ""
    """How far the answer reaches: which layers and sizes bear it out, which do not show it."""
    evidence: tuple[str, ...] = ()
    """What is clear and what is in doubt, the gravest first."""
    in_doubt: bool = False
    """Whether the instrument is in doubt for what the sentence says."""
    effects: tuple[Effect, ...] = ()
    more_effects: tuple[Effect, ...] = ()
    """Layers that explain and never lead, and further tails: folded away where there is a fold."""
    changes: Changes | None = None
    next_steps: tuple[str, ...] = ()
    reproduce: tuple[str, ...] = ()
    """The command, the seed, the version, the hash of the data."""
    conditions: str = ""
