"""How long `fabricbench runs` takes over folders of runs, and how that grows: `python benchmarks/past_runs.py [RUNS ...]`.

Makes one small run (4 launches of 24 tests with their journal, or 12 with LAUNCHES=12 in the environment), copies it as often as
asked (1,000 and 10,000), lists each folder by the whole command, first without an index and then with the one that it wrote, and
prints the seconds that passed and those of the processor, and the exponent of growth beyond the start of the program.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.lost_runs import lost_run  # noqa: E402
from support.synthetic_run import ladder_cells  # noqa: E402

FABRICBENCH = Path(sys.executable).with_name("fabricbench")
LAUNCHES = int(os.environ.get("LAUNCHES", "4"))
WARM = 3
"""Listings with the index, of which the shortest is told."""


def listed(folder: Path, cache: Path) -> tuple[float, float]:
    """Return the seconds that listing a folder took: passed, and of the processor."""
    before, began = os.times(), time.monotonic()
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    subprocess.run([FABRICBENCH, "runs", folder], check=True, stdout=subprocess.DEVNULL, env=environment)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.monotonic() - began, used


def main(counts: list[int]) -> None:
    found: dict[int, tuple[tuple[float, float], tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as place:
        first = Path(place) / "first"
        cells = ladder_cells({"slow": 1e8, "fast": 1e9}, sizes=(64, 1024), samples=200)
        lost_run(first, cells=cells, blocks=LAUNCHES // 2)
        for count in (1, *counts):
            folder, cache = Path(place) / str(count), Path(place) / f"cache-{count}"
            for number in range(count):
                shutil.copytree(first, folder / f"run-{number}")
            time.sleep(3)  # what was written just now is not kept in the index
            cold = listed(folder, cache)
            found[count] = cold, min(listed(folder, cache) for _ in range(WARM))
            shutil.rmtree(folder)
    print(f"runs of {LAUNCHES} launches: seconds that passed, and of the processor")
    for count, both in found.items():
        (cold, cold_used), (warm, warm_used) = both
        print(
            f"{count:6d} runs: without an index {cold:6.2f} ({cold_used:6.2f}), with it {warm:5.2f} ({warm_used:5.2f})"
        )
    if len(counts) > 1:
        few, many = counts[0], counts[-1]
        for index, name in enumerate(("without an index", "with it")):
            start = found[1][index][1]
            ratio = (found[many][index][1] - start) / max(found[few][index][1] - start, 0.01)
            print(f"exponent {name}: {math.log(ratio) / math.log(many / few):.2f}")


if __name__ == "__main__":
    main([int(count) for count in sys.argv[1:]] or [1000, 10_000])
