"""From stored samples to findings: comparisons, crossovers, the ladder, warnings, the sentence. Prints nothing, writes nothing.

findings/      the values that reports show
analysing.py   `analyse`: calls the parts, returns `Findings`
measured.py    reads runs into sides (a fabric of a run) and cells
channels.py    what the logical channels of a cell did; arithmetic.py: what a link could carry
topologies.py  patterns of many ranks; congestion.py, operations.py, one_way.py, network_map.py: what each is about
comparing.py   sides against each other; crossovers.py, ladder.py, summary.py: the rest of the numbers
caution.py     warnings; headline.py, wording.py, method.py: words
gate.py        `check_regressions`; selfcheck.py: `analyse_selfcheck`
"""

from __future__ import annotations

from fabricbench.analysis.analysing import analyse
from fabricbench.analysis.findings import Findings

__all__ = ["Findings", "analyse"]
