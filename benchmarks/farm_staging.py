"""Does staging take as long as arithmetic says? A task farm whose jobs do nothing, on two emulated fabrics.

    python -m benchmarks.farm_staging [--jobs 120] [--blocks 5] [--fabrics fast-ethernet,myrinet]

Rank 0's link is the bottleneck: it carries every input, in full segments of TCP (docs/workloads.md). Inputs are
kept in memory, and a node runs one job at once, for the nodes share a disk and processors here that are not to be measured. A busy
machine cannot emulate the faster fabric; then the fastest launches tell more than the medians.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.run import start_run
from fabricbench.campaign.specification import campaign_of
from fabricbench.campaign.venue import OwnLab
from fabricbench.lab import parse_fabrics
from fabricbench.model import Layer
from fabricbench.record.farm_lines import read_farm_record
from fabricbench.record.launch_files import FARM_RECORDS
from fabricbench.record.store import Run
from fabricbench.testbed.model import Fabric

INPUT_BYTES = 10**6
AT_ONCE = 1


def predicted_seconds(fabric: Fabric, jobs: int) -> float:
    """Return how long rank 0's link needs for the inputs of so many jobs."""
    rate = None if fabric.wire is None else fabric.wire.payload_rate_bit_s(Layer.MPI, INPUT_BYTES, fabric.mtu)
    if rate is None:
        raise ValueError(f"nothing is known of the wire of {fabric.name}")
    return jobs * INPUT_BYTES * 8 / rate


def measured_seconds(
    fabrics: str, jobs: int, blocks: int, folder: Path
) -> tuple[Sequence[Fabric], dict[str, list[float]]]:
    """Return the fabrics, and what each of the launches on each took."""
    farm = {
        "name": "staging",
        "jobs": jobs,
        "input": INPUT_BYTES,
        "command": ["true"],
        "at_once": AT_ONCE,
        "expect_seconds": "20ms",
        "scratch": "/dev/shm",
    }
    asked = campaign_of({"campaign": {"blocks": blocks}, "farm": [farm]}, "staging.toml")
    venue = OwnLab(nodes=4, fabrics=tuple(parse_fabrics(fabrics)))
    start_run(folder, asked, venue, plan_run(asked, venue.testbed(), seed=1), notify=lambda _: None)
    found: dict[str, list[float]] = {fabric.name: [] for fabric in venue.testbed().fabrics}
    for launch in Run.open(folder).launches:
        record = read_farm_record(folder / "launches" / launch.launch_id / FARM_RECORDS)
        if record.footer is not None:
            found[launch.fabric].append(record.footer.seconds)
    return venue.testbed().fabrics, found


def main() -> None:
    """Measure, and print each fabric beside arithmetic, then the ratio of the first to each other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=120)
    parser.add_argument("--blocks", type=int, default=5)
    parser.add_argument("--fabrics", default="fast-ethernet,myrinet")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        fabrics, found = measured_seconds(given.fabrics, given.jobs, given.blocks, Path(folder) / "run")
    predicted = {fabric.name: predicted_seconds(fabric, given.jobs) for fabric in fabrics}
    for name, seconds in found.items():
        middle = statistics.median(seconds)
        print(
            f"{name}: median {middle:.3f} s, {min(seconds):.3f} to {max(seconds):.3f} s over {len(seconds)} launches; "
            f"arithmetic {predicted[name]:.3f} s, {middle / predicted[name] - 1:+.1%}"
        )
    first = fabrics[0].name
    for other in [fabric.name for fabric in fabrics[1:]]:
        ratio = statistics.median(found[first]) / statistics.median(found[other])
        expected = predicted[first] / predicted[other]
        best = min(found[first]) / min(found[other])
        print(
            f"{first} / {other}: {ratio:.2f} ({best:.2f} of the fastest), arithmetic {expected:.2f}, {ratio / expected - 1:+.1%}"
        )


if __name__ == "__main__":
    main()
