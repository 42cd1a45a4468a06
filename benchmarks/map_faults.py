"""Does the map find what is slow, and nobody else? `fabricbench map` in labs with one slowed link, and in a healthy lab.

    python -m benchmarks.map_faults [--slowed 20] [--healthy 50] [--work build/map-faults] [--write docs/map-proof.md]

Each run is the command as a user gives it, in a lab of four nodes that stands for many runs: first the healthy ones, then those
with one node's link at 80 of 100 Mbit/s, each node in turn. A run is found where that node and nobody else is named; an accusation
is any name but it. What was done is kept in WORK/results.jsonl and not done again, so the benchmark may be
interrupted; runs that went wrong are kept beside it. 70 runs take about half an hour on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.page import show

from fabricbench.lab import Lab, parse_fabrics

NODES = 4
FABRIC = "fast-ethernet"
SLOWED_RATE = "80Mbit/s"
"""Of 100 Mbit/s: 20 % slower."""
TIME_LIMIT_S = 300
RESULTS = "results.jsonl"


@dataclass(frozen=True)
class Case:
    """One run: its number and the node whose link is slowed, None in a healthy lab."""

    index: int
    slowed: str | None

    @property
    def name(self) -> str:
        """What its run directory is called."""
        return f"{self.slowed or 'healthy'}-{self.index:02d}"


@dataclass(frozen=True)
class Outcome:
    """What a run named: (touch, hosts) of everything that was confirmed, over both of its maps."""

    case: str
    slowed: str | None
    named: tuple[tuple[str, tuple[str, ...]], ...]
    seconds: float
    was_measured_again: bool

    @property
    def accused(self) -> set[str]:
        """All hosts that were named as slow, and the pairs that were, but for the slowed node as a whole."""
        return {"-".join(hosts) for touch, hosts in self.named if not (touch == "member" and hosts == (self.slowed,))}

    @property
    def is_found(self) -> bool:
        """Whether the slowed node was named, and slow with all others."""
        return any(touch == "member" and hosts == (self.slowed,) for touch, hosts in self.named)


def cases(slowed: int, healthy: int) -> list[Case]:
    """Return all runs, those of one lab one after the other."""
    nodes = [f"n{index % NODES}" for index in range(slowed)]
    faulty = [Case(index, node) for index, node in enumerate(nodes)]
    return [Case(index, None) for index in range(healthy)] + sorted(faulty, key=lambda case: str(case.slowed))


@contextmanager
def standing_lab(slowed: str | None) -> Iterator[Lab]:
    """Build the lab in which a node's link is slowed, and take it down after its runs."""
    fault = f":{slowed}.rate={SLOWED_RATE}" if slowed else ""
    lab = Lab.up(f"faults-{os.getpid()}", NODES, parse_fabrics(f"{FABRIC}{fault}"), owned=True)
    try:
        yield lab
    finally:
        lab.down()


def run(case: Case, lab: Lab, work: Path) -> Outcome:
    """Map the lab once. The run directory stays only where the run is not what it should be."""
    directory = work / case.name
    shutil.rmtree(directory, ignore_errors=True)
    program = str(Path(sys.executable).with_name("fabricbench"))
    begin = time.monotonic()
    done = subprocess.run(
        [program, "map", str(directory), "--testbed", f"lab:{lab.name}", "--seed", str(case.index), "--format", "json"],
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{case.name} ended with {done.returncode}: {done.stderr[-2000:]}")
    named = {
        (slow["touch"], tuple(slow["hosts"]))
        for one in json.loads(done.stdout)
        for slow in one["slow"]
        if slow["is_confirmed"]
    }
    outcome = Outcome(
        case.name,
        case.slowed,
        tuple(sorted(named)),
        round(time.monotonic() - begin, 1),
        (directory / "confirmation").exists(),
    )
    if not outcome.accused and outcome.is_found == (case.slowed is not None):
        shutil.rmtree(directory)
    return outcome


def read_results(path: Path) -> dict[str, Outcome]:
    """Return what earlier runs of the benchmark found, by the name of the case."""
    if not path.exists():
        return {}
    found = {}
    for line in path.read_text().splitlines():
        value = json.loads(line)
        value["named"] = tuple((touch, tuple(hosts)) for touch, hosts in value["named"])
        found[value["case"]] = Outcome(**value)
    return found


def measure(wanted: Sequence[Case], work: Path) -> list[Outcome]:
    """Do what is not done yet, one lab after another, and return all outcomes."""
    work.mkdir(parents=True, exist_ok=True)
    results = read_results(work / RESULTS)
    missing = [case for case in wanted if case.name not in results]
    for slowed in dict.fromkeys(case.slowed for case in missing):
        with standing_lab(slowed) as lab:
            for case in missing:
                if case.slowed != slowed:
                    continue
                results[case.name] = outcome = run(case, lab, work)
                with (work / RESULTS).open("a") as file:
                    file.write(json.dumps(asdict(outcome)) + "\n")
                told = ", ".join(f"{touch} {'-'.join(hosts)}" for touch, hosts in outcome.named) or "nobody"
                sys.stderr.write(f"{case.name}: {told} ({outcome.seconds:.0f} s)\n")
    return [results[case.name] for case in wanted]


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """Return the counts as Markdown, and whom the wrong runs accused."""
    lines = [
        "| lab | runs | found | runs that accuse another | looked slow at first | median time |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    groups = {
        "healthy": [one for one in outcomes if one.slowed is None],
        f"one link at {SLOWED_RATE}": [one for one in outcomes if one.slowed is not None],
    }
    for name, group in groups.items():
        if not group:
            continue
        found = str(sum(one.is_found for one in group)) if group[0].slowed else ""
        lines.append(
            f"| {name} | {len(group)} | {found} | {sum(bool(one.accused) for one in group)} "
            f"| {sum(one.was_measured_again for one in group)} | {statistics.median(one.seconds for one in group):.0f} s |"
        )
    wrong = Counter(name for one in outcomes for name in one.accused)
    if wrong:
        lines += ["", "Accused: " + ", ".join(f"{name} ({count})" for name, count in wrong.most_common()) + "."]
    return lines


def main() -> None:
    """Run what is missing, print the table, write it into a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slowed", type=int, default=20, help="runs with a slowed link")
    parser.add_argument("--healthy", type=int, default=50, help="runs of a healthy lab")
    parser.add_argument("--work", type=Path, default=Path("build/map-faults"), help="results, and runs that went wrong")
    parser.add_argument("--write", type=Path, help="the page that holds the table")
    given = parser.parse_args()
    outcomes = measure(cases(given.slowed, given.healthy), given.work)
    text = [
        f"`fabricbench map` on {NODES} nodes of an emulated {FABRIC}; Linux {platform.release()}, {os.cpu_count()} processors.",
        "",
        *table(outcomes),
    ]
    show(text, "map-faults", given.write)


if __name__ == "__main__":
    main()
