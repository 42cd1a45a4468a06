"""Findings with stages of round trips: two fabrics that differ in the wire."""

from __future__ import annotations

from pathlib import Path

from fabricbench.analysis import analyse
from fabricbench.analysis.findings import Findings
from fabricbench.chapters import stages
from support.stamps import Stamped
from support.synthetic_run import WAY, stamped_run

OF_STAGES = frozenset(stages.CHAPTER.figures)


def findings_with_stages(path: Path) -> Findings:
    slower = {**WAY, "wire": 30_000.0}
    return analyse([stamped_run(path, {"fast": Stamped(WAY, WAY, apart_ns=0), "slow": Stamped(slower, slower)})])
