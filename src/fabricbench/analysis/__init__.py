"""From stored samples to findings: comparisons, crossovers, the ladder, warnings, the sentence. Prints nothing, writes nothing.

findings/      the values that reports show
measured.py    reads runs into sides (a fabric of a run) and cells
channels.py    what the logical channels of a cell did; arithmetic.py: what a link could carry
comparing.py   sides against each other; crossovers.py, ladder.py, summary.py: the rest of the numbers
material.py    all of this together: what `fabricbench.chapters` are found from, and `caution/` (warnings)
answer.py      the sentence, phrases.py its parts
single_sizes.py  whether a curve bears out its row; lost_launches.py: whether starts that died do
headline.py, wording.py, method.py: words
analysing.py   `analyse`: calls the parts and every chapter, returns `Findings`
gate.py        `check_regressions`; selfcheck.py: `analyse_selfcheck`
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fabricbench.analysis.findings import Findings

if TYPE_CHECKING:
    from fabricbench.analysis.analysing import analyse

__all__ = ["Findings", "analyse"]


def __getattr__(name: str) -> Any:
    """Import `analyse` when it is first asked for: it stands above the chapters, and they above the other parts."""
    if name != "analyse":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from fabricbench.analysis.analysing import analyse  # noqa: PLC0415

    return analyse
