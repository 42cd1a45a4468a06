"""How `fabricbench report` grows with fabrics, tests, samples, launches and nodes, and `runs` with runs:
`python benchmarks/report_scale.py [CASE ...]`.

Writes each run into a temporary folder (or into FOLDER with `--keep FOLDER`, where it is found again), reports it as HTML by the
whole command in a process of its own, and prints the seconds that passed, those of the processors, peak memory, the bytes of the
page and, from one size to the next of a kind, the exponents, each with what is asked of it. Of launches it also looks which are
finished, as `resume` does first; of runs it lists their folder without an index and with the one that the first listing wrote.
`--browser` opens each page in Chromium, 1,280 pixels wide, and prints the pixels beyond its edge and the seconds from where the
browser begins to load it until it is loaded and laid out: the page's own clock, which leaves out the browser's start.

Exponents are of the processors' time beyond that of the smallest run of all, which is measured first: every report loads the same
libraries and joins the same scripts.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from fabricbench.model import Layer, Pattern  # noqa: E402
from support.browser import Browser, find_browser  # noqa: E402
from support.lost_runs import lost_run  # noqa: E402
from support.synthetic_run import (  # noqa: E402
    SyntheticCell,
    ladder_cells,
    synthetic_testbed,
    write_synthetic_run,
)

RESUMED = """
from pathlib import Path; import sys; from types import SimpleNamespace
from fabricbench.campaign.run_directory import RunDirectory
run = RunDirectory(Path(sys.argv[1]))
for _ in range(2):  # whether any is left, and then which
    assert all(run.finished(SimpleNamespace(launch_id=name)) is not None for name in run.launch_names)
"""


ASKED = {
    "tests-400": "15 s, 10 MB, opened in 3 s",
    "fabrics-20": "20 s, 15 MB, opened in 5 s",
    "launches-3600": "60 s, 2 GiB",
    "resume-3600": "5 s",
    "map-1024": "20 s, 1 GiB, 15 MB, opened in 5 s",
    "runs-1000": "3 s",
}
"""On two idle cores."""
MOST = {"tests": 1.2, "samples": 1.2, "fabrics": 2.0, "launches": 1.2, "resume": 1.2, "map": 2.0, "runs": 1.2}
"""Exponents that are asked for at most, by what grows."""
WIDTH_PIXELS = 1280


@dataclass(frozen=True)
class Case:
    """A run: what grows in it, how large that is, and what writes it."""

    kind: str
    size: int
    write: Callable[[Path], object]

    @property
    def name(self) -> str:
        """What it is called here, and its folder."""
        return f"{self.kind}-{self.size}"


@dataclass(frozen=True)
class Cost:
    """What a command took, and how large the page is that it wrote."""

    seconds: float
    used_seconds: float
    peak_gib: float
    page_bytes: int = 0
    opened: str = ""
    """How its page opened, in words."""


def cells_of(fabrics: int, tests: int, samples: int = 100) -> list[SyntheticCell]:
    """Return so many tests on so many fabrics, each of another rate."""
    rates = {f"net-{number:02d}": 1e8 * 1.3**number for number in range(fabrics)}
    sizes = sorted({round(64 * 1.13**step) for step in range(-(-tests // 10))} | {64})
    return ladder_cells(rates, sizes=sizes, samples=samples)[:tests]


def fabrics_case(kind: str, size: int, fabrics: int, tests: int) -> Case:
    return Case(kind, size, lambda path: write_synthetic_run(path, cells=cells_of(fabrics, tests), blocks=12))


def launches_case(launches: int) -> Case:
    def write(path: Path) -> None:
        with mock.patch("os.fsync"), mock.patch("os.fdatasync"):
            lost_run(path, cells=cells_of(2, 40, samples=50), blocks=launches // 2)

    return Case("launches", launches, write)


def samples_case(samples: int) -> Case:
    return Case("samples", samples, lambda path: write_synthetic_run(path, cells=cells_of(2, 40, samples), blocks=12))


def runs_case(runs: int) -> Case:
    """A folder of small runs: 4 launches of 24 tests each."""

    def write(path: Path) -> None:
        path.mkdir()
        cells = ladder_cells({"slow": 1e8, "fast": 1e9}, sizes=(64, 1024), samples=200)
        lost_run(path / "run-0", cells=cells, blocks=2)
        for number in range(1, runs):
            shutil.copytree(path / "run-0", path / f"run-{number}")
        time.sleep(3)  # what was written just now is not kept in the index

    return Case("runs", runs, write)


def map_case(nodes: int) -> Case:
    """A matrix of every pair, healthy but for one slow node."""

    def write(path: Path) -> None:
        random = np.random.default_rng(1)
        pairs = {
            (one, other): 1e5 * float(np.exp(random.normal(0, 0.01))) * (1.25 if 3 in (one, other) else 1.0)
            for one in range(nodes)
            for other in range(one + 1, nodes)
        }
        cell = SyntheticCell(
            Layer.TCP, Pattern.PAIRS, 1024, {"net": 1e5}, samples=8, ranks=tuple(range(nodes)), pair_medians=pairs
        )
        bed = synthetic_testbed({"net": 1e8}, nodes=nodes)
        write_synthetic_run(path, cells=[cell], blocks=1, testbed=bed)

    return Case("map", nodes, write)


CASES = (
    *(fabrics_case("tests", tests, 8, tests) for tests in (100, 400)),
    *(fabrics_case("fabrics", fabrics, fabrics, 40) for fabrics in (5, 10, 20)),
    *(samples_case(samples) for samples in (1_000, 10_000)),
    *(launches_case(launches) for launches in (360, 3600)),
    *(map_case(nodes) for nodes in (256, 512, 1024)),
    *(runs_case(runs) for runs in (100, 1000)),
)


SMALLEST = {"runs": runs_case(1), "map": map_case(8)}
"""What the smallest of a kind is, where it is not this one."""
SMALLEST_RUN = fabrics_case("smallest", 1, fabrics=2, tests=10)


def cost_of(command: Sequence[str | Path], **environment: str) -> Cost:
    """Run a command and return what it took. Raises RuntimeError where it fails."""
    began = time.monotonic()
    silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    child = os.posix_spawn(command[0], list(map(str, command)), os.environ | environment, file_actions=silent)
    _, status, used = os.wait4(child, 0)
    if status:
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {os.waitstatus_to_exitcode(status)}")
    return Cost(time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20)


STOPWATCH = """<script>addEventListener("load", () => {
  document.body.getBoundingClientRect();
  document.documentElement.dataset.taken = performance.now();
})</script>"""
"""Behind a page: what it took to load and to lay out, in ms."""

FABRICBENCH = Path(sys.executable).with_name("fabricbench")


def reported(run: Path, page: Path, browser: Browser | None) -> Cost:
    """Return what the dossier of a run takes, and remove it."""
    cost = cost_of([FABRICBENCH, "report", run, "-o", page])
    size, opened = page.stat().st_size, ""
    if browser is not None:
        overflow = browser.open(page, width=WIDTH_PIXELS).attribute("overflow")
        with page.open("a") as file:
            file.write(STOPWATCH)
        taken_ms = [float(browser.open(page, width=WIDTH_PIXELS, virtual_ms=None).attribute("taken")) for _ in range(3)]
        opened = f", opened in {statistics.median(taken_ms) / 1e3:.1f} s, {overflow} pixels beyond"
    page.unlink()
    return replace(cost, page_bytes=size, opened=opened)


def measured(case: Case, run: Path, place: Path, browser: Browser | None) -> dict[str, Cost]:
    """Return what there is to measure of a case, by what it is called."""
    if case.kind == "runs":
        cache = str(place / f"cache-{case.size}")
        return {name: cost_of([FABRICBENCH, "runs", run], XDG_CACHE_HOME=cache) for name in ("runs", "runs-again")}
    found = {case.kind: reported(run, place / "page.html", browser)}
    if case.kind == "launches":
        found["resume"] = cost_of([sys.executable, "-c", RESUMED, run])
    return found


def line(name: str, cost: Cost) -> str:
    """Return what something took, with what is asked of it."""
    asked = f" (asked: {ASKED[name]})" if name in ASKED else ""
    return (
        f"{name:22} {cost.seconds:7.1f} s {cost.used_seconds:7.1f} s of processors {cost.peak_gib:6.2f} GiB "
        f"{cost.page_bytes / 1e6:7.1f} MB{cost.opened}{asked}"
    )


def growth(kind: str, start: float, earlier: tuple[int, Cost], later: tuple[int, Cost]) -> str:
    """Return the exponents from one size to the next; `start` are the seconds of processors that the smallest takes."""
    (few, small), (many, large) = earlier, later

    def exponent(less: float, more: float) -> str:
        return f"{math.log(max(more, 1e-9) / max(less, 1e-9)) / math.log(many / few):.2f}"

    beyond = [max(cost.used_seconds - start, LEAST_SECONDS) for cost in (small, large)]
    asked = f" (asked: at most {MOST[kind]})" if kind in MOST else ""
    return (
        f"{'':22} exponents: processors {exponent(*beyond)}{asked}, memory {exponent(small.peak_gib, large.peak_gib)}"
        + (f", page {exponent(small.page_bytes, large.page_bytes)}" if large.page_bytes else "")
    )


LEAST_SECONDS = 0.1
"""Of processors that are told from those of the smallest: what a command takes varies by as much."""


def main() -> None:
    """Measure each case, print what it took, and how that grew."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "cases", nargs="*", help=f"of {', '.join(case.name for case in CASES)}, or a kind (default: all)"
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where runs stay, and are taken from")
    parser.add_argument("--browser", action="store_true", help="open each page in Chromium")
    options = parser.parse_args()
    chosen = [case for case in CASES if not options.cases or {case.name, case.kind} & set(options.cases)]
    last: dict[str, tuple[int, Cost]] = {}
    start: dict[str, float] = {"resume": 0.0}
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        browser = find_browser(place / "profile") if options.browser else None
        smallest = dict.fromkeys(SMALLEST.get(one.kind, SMALLEST_RUN) for one in chosen)
        for case in (*smallest, *chosen):
            for kind, cost in measured(case, written(case, options.keep or place), place, browser).items():
                print(line(f"{kind}-{case.size}", cost), flush=True)
                if kind in last:
                    own = start.get(kind, start.get(SMALLEST_RUN.kind, 0.0))
                    print(growth(kind, own, last[kind], (case.size, cost)), flush=True)
                if case in smallest:
                    start[kind] = cost.used_seconds
                else:
                    last[kind] = case.size, cost


def written(case: Case, folder: Path) -> Path:
    """Return where the run of a case is, once it is written: by a child, for a command's peak memory is at least its parent's."""
    run = folder / case.name
    if not run.exists():
        half = folder / f"{case.name}.half"
        child = multiprocessing.get_context("fork").Process(target=case.write, args=(half,))
        child.start()
        child.join()
        if child.exitcode:
            raise RuntimeError(f"{case.name} could not be written")
        half.rename(run)
    return run


if __name__ == "__main__":
    main()
