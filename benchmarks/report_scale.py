"""How `fabricbench report` grows with fabrics, tests, launches and nodes: `python benchmarks/report_scale.py [CASE ...]`.

Writes each run into a temporary folder (or into FOLDER with `--keep FOLDER`, where it is found again), reports it as HTML by the
whole command in a process of its own, and prints the seconds that passed, those of the processors, peak memory, the bytes of the
page and, from one size to the next of a kind, the exponents. Of launches it also looks which are finished, as `resume` does first.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from fabricbench.model import Layer, Pattern  # noqa: E402
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
    *(launches_case(launches) for launches in (360, 3600)),
    *(map_case(nodes) for nodes in (64, 256, 1024)),
)


def cost_of(command: Sequence[str | Path]) -> Cost:
    """Run a command and return what it took. Raises RuntimeError where it fails."""
    began = time.monotonic()
    silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    child = os.posix_spawn(command[0], list(map(str, command)), os.environ, file_actions=silent)
    _, status, used = os.wait4(child, 0)
    if status:
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {os.waitstatus_to_exitcode(status)}")
    return Cost(time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20)


def reported(run: Path, page: Path) -> Cost:
    """Return what the dossier of a run takes, and remove it."""
    cost = cost_of([Path(sys.executable).with_name("fabricbench"), "report", run, "-o", page])
    size = page.stat().st_size
    page.unlink()
    return Cost(cost.seconds, cost.used_seconds, cost.peak_gib, size)


def line(name: str, cost: Cost) -> str:
    return (
        f"{name:22} {cost.seconds:7.1f} s {cost.used_seconds:7.1f} s of processors {cost.peak_gib:6.2f} GiB "
        f"{cost.page_bytes / 1e6:7.1f} MB"
    )


def growth(earlier: tuple[int, Cost], later: tuple[int, Cost]) -> str:
    (few, small), (many, large) = earlier, later

    def exponent(less: float, more: float) -> str:
        return f"{math.log(max(more, 1e-9) / max(less, 1e-9)) / math.log(many / few):.2f}"

    time_of = exponent(small.used_seconds, large.used_seconds)
    return f"{'':22} exponents: processors {time_of}, memory {exponent(small.peak_gib, large.peak_gib)}" + (
        f", page {exponent(small.page_bytes, large.page_bytes)}" if large.page_bytes else ""
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "cases", nargs="*", help=f"of {', '.join(case.name for case in CASES)}, or a kind (default: all)"
    )
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where runs stay, and are taken from")
    options = parser.parse_args()
    last: dict[str, tuple[int, Cost]] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = options.keep or Path(place)
        for case in CASES:
            if options.cases and not {case.name, case.kind} & set(options.cases):
                continue
            run = folder / case.name
            if not run.exists():
                half = folder / f"{case.name}.half"
                case.write(half)
                half.rename(run)
            found = {case.kind: reported(run, Path(place) / "page.html")}
            if case.kind == "launches":
                found["resume"] = cost_of([sys.executable, "-c", RESUMED, run])
            for kind, cost in found.items():
                print(line(f"{kind}-{case.size}", cost), flush=True)
                if kind in last:
                    print(growth(last[kind], (case.size, cost)), flush=True)
                last[kind] = case.size, cost


if __name__ == "__main__":
    main()
