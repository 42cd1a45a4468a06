"""Measures the five studies again in the lab, and writes what came out beside what their authors found.

    python -m benchmarks.studies [--only korkhov-2000] [--runs runs/studies] [--write docs/studies.md]

Each study is its campaign in `examples/studies`, run once on its emulated fabrics (a run that was cut short goes on); its plots
are drawn by `fabricbench figure`. About half an hour on two idle processors. With `--write`, tables and pictures go into the page.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.page import show
from benchmarks.studies.five import STUDIES
from benchmarks.studies.found import Study

from fabricbench.analysis import analyse
from fabricbench.published.studies import study as published
from fabricbench.published.without_counterpart import WITHOUT_COUNTERPART
from fabricbench.record.store import Run

HERE = Path(__file__).parents[2]
WIDTH_MM = "120"


def fabricbench(*arguments: str) -> None:
    """Run a command of fabricbench; CalledProcessError where it fails."""
    subprocess.run([Path(sys.executable).with_name("fabricbench"), *arguments], check=True)


def measured(study: Study, runs: Path) -> Path:
    """Return the run of a study, measured to its end."""
    run = runs / study.key
    if run.exists():
        fabricbench("resume", str(run))
    else:
        campaign = HERE / "examples/studies" / f"{study.key}.toml"
        nodes = str(study.nodes)
        fabricbench("run", str(campaign), "--testbed", study.testbed, "--nodes", nodes, "-o", str(run))
    return run


def drawn(study: Study, run: Path, pictures: Path) -> Iterator[str]:
    """Draw its plots; yield a line of Markdown for each."""
    pictures.mkdir(parents=True, exist_ok=True)
    for plot in study.plots:
        name = f"{study.key}-{plot.name}.svg"
        fabricbench("figure", str(run), *plot.arguments, "--width", WIDTH_MM, "-o", str(pictures / name))
        (pictures / name).with_name(f"{study.key}-{plot.name}-data.csv").unlink(missing_ok=True)
        yield f"![{plot.caption}](images/studies/{name})"


def page_of(study: Study, run: Path, pictures: Path) -> Iterator[str]:
    """Yield the lines of a study: what it found and what was found here, then its plots."""
    findings = analyse([Run.open(run)])
    minutes = findings.seconds_measured / 60
    yield f"{findings.launches} launches in {findings.blocks} blocks, {minutes:.0f} min measured, emulated:"
    yield from ("", "| | published | here | as published? |", "| --- | --- | --- | --- |")
    for one in study.find(published(study.key), findings):
        yield f"| {one.what} | {one.published} | {one.here} | {one.agreement} |"
    for line in drawn(study, run, pictures):
        yield from ("", line)


def without_counterpart() -> Iterator[str]:
    """Yield a line for each published result that nothing measured here can stand beside."""
    for (key, path), reason in WITHOUT_COUNTERPART.items():
        yield f"* {published(key).author}, {', '.join(path)}: {reason}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=[study.key for study in STUDIES], action="append")
    parser.add_argument("--runs", type=Path, default=HERE / "runs/studies")
    parser.add_argument("--write", type=Path, metavar="PAGE")
    options = parser.parse_args()
    pictures = (options.write.parent if options.write else options.runs) / "images/studies"
    for study in STUDIES:
        if options.only is None or study.key in options.only:
            run = measured(study, options.runs)
            show(list(page_of(study, run, pictures)), study.key, options.write)
    show(list(without_counterpart()), "without-counterpart", options.write)


if __name__ == "__main__":
    main()
