"""Findings of two networks in two conditions, from a run whose truth is known."""

from __future__ import annotations

from pathlib import Path

from fabricbench.analysis import analyse
from fabricbench.analysis.findings import Findings
from fabricbench.chapters import conditions
from fabricbench.model import Layer, Pattern
from support.synthetic_run import SyntheticCell, synthetic_testbed, write_synthetic_run

SIDES = ("eth-usual", "eth-jumbo", "myri-usual", "myri-jumbo")

OF_CONDITIONS = frozenset(conditions.CHAPTER.figures)
"""The figures that findings of fabrics in one condition hold nothing for."""


GAINS = {"eth-usual": 1e9, "eth-jumbo": 1e9, "myri-usual": 1e9, "myri-jumbo": 1.3e9}
"""Larger frames give the second network 30 % more throughput, and the first nothing."""


def findings_in_conditions(path: Path, medians: dict[str, float] = GAINS) -> Findings:
    """What a run finds whose sides have these rates, by default GAINS."""
    testbed = synthetic_testbed(dict.fromkeys(SIDES))
    fabrics = tuple(
        one.model_copy(update=dict(zip(("network", "condition"), one.name.split("-"), strict=True)))
        for one in testbed.fabrics
    )
    cell = SyntheticCell(Layer.TCP, Pattern.STREAM, 65536, medians)
    run = write_synthetic_run(path, cells=[cell], blocks=8, testbed=testbed.model_copy(update={"fabrics": fabrics}))
    return analyse([run])
