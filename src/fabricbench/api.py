"""What `import fabricbench` offers in a notebook: plan, run, load a run, get its frames, compare.

The analysis is imported when it is first asked for: SciPy alone takes longer to import than a run takes to open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabricbench.analysis.findings import DEFAULT_CONFIDENCE, Findings
from fabricbench.campaign.plan import RunPlan
from fabricbench.campaign.preparing import prepare
from fabricbench.record.store import Run

if TYPE_CHECKING:
    import polars as pl

    from fabricbench.analysis.measured import Configuration
    from fabricbench.model import Model
    from fabricbench.record.verification import Verification


def load(path: Path | str) -> Run:
    """Open a run directory, finished or not; UsageError says why a folder is none."""
    return Run.open(path)


def verify(path: Path | str) -> Verification:
    """Say whether a run directory is whole and unaltered, and which files are not."""
    from fabricbench.record.verification import verify as verify_run  # noqa: PLC0415

    return verify_run(path)


def plan(
    campaign: Path | str,
    testbed: Path | str,
    *,
    nodes: int | None = None,
    budget: str | None = None,
    blocks: int | None = None,
    seed: int | None = None,
) -> RunPlan:
    """Return what `run` would start with the same arguments, which are those of `fabricbench run`; starts nothing."""
    return prepare(str(campaign), str(testbed), nodes, budget, blocks, seed).plan


def run(
    campaign: Path | str,
    testbed: Path | str,
    output: Path | str,
    *,
    nodes: int | None = None,
    budget: str | None = None,
    blocks: int | None = None,
    seed: int | None = None,
) -> Run:
    """Measure a campaign into a new run directory and return it; what fails raises a FabricbenchError, as the command line ends.

    `testbed` is a file, `lab:FABRIC,FABRIC`, `lab:NAME` or `local`; `budget` a time, `5min` say.
    """
    from fabricbench.campaign.run import start_run  # noqa: PLC0415

    prepared = prepare(str(campaign), str(testbed), nodes, budget, blocks, seed)
    start_run(Path(output), prepared.campaign, prepared.venue, prepared.plan, notify=lambda _: None)
    return load(output)


def frame(found: Sequence[Model | Mapping[str, Any]]) -> pl.DataFrame:
    """Return findings of one kind (`findings.cells`, `findings.chapters["NAME"]`, ...) as a table, a row for each."""
    import polars as pl  # noqa: PLC0415

    rows = [one if isinstance(one, Mapping) else one.model_dump(mode="json") for one in found]
    return pl.DataFrame(rows, infer_schema_length=None)


def compare(
    *runs: Run | Path | str,
    before: Sequence[Run | Path | str] = (),
    after: Sequence[Run | Path | str] = (),
    named: Mapping[str, Sequence[Run | Path | str]] | None = None,
    baseline: str | None = None,
    margin: float | None = None,
    confidence: float = DEFAULT_CONFIDENCE,
) -> Findings:
    """Compare the fabrics of a run, runs before and after a change, or configurations, and return everything that was found.

    Every two fabrics are compared; `baseline` names the one that comes first. Two runs are one before and one after; several of
    each go into `before` and `after`. Three runs or more are those of configurations, told apart by what is known of them; `named`
    has the runs of each by the names that you give. `margin` is the smallest difference that matters, as a share
    (default: that of the first run's campaign).
    """
    from fabricbench.analysis import analyse  # noqa: PLC0415
    from fabricbench.analysis.configurations import configurations_named, configurations_of  # noqa: PLC0415

    def opened(some: Sequence[Run | Path | str]) -> list[Run]:
        return [run if isinstance(run, Run) else load(run) for run in some]

    configurations: Sequence[Configuration] = ()
    if named:
        configurations = configurations_named({name: opened(some) for name, some in named.items()})
    elif len(runs) > 2:
        configurations = configurations_of(opened(runs))
    return analyse(
        () if configurations else opened(runs),
        configurations=configurations,
        before=opened(before),
        after=opened(after),
        baseline=baseline,
        margin=margin,
        confidence=confidence,
    )
