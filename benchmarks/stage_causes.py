"""Are causes named that are there, and none that is not? Plants each in labs of its own and counts what `explain` names.

    python benchmarks/stage_causes.py [--trials 10] [--clean 20] [--blocks 3] [--only KIND ...] [--lab PREFIX]

A trial is a lab and a run of its own. Planted are interrupts every 125 us (the lab's `interrupt-period`), two small writes and a
read over TCP without TCP_NODELAY, a process of realtime priority that takes 1.5 of every 4 ms of the ranks' processor, and two of
these at once. docs/stages.md has what came out, and how.
"""

from __future__ import annotations

import argparse
import os
import platform
import secrets
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from fabricbench.analysis import analyse
from fabricbench.analysis.findings.stages import (
    HeldByAcknowledgement,
    InterruptGrid,
    ProcessorWait,
    StageCause,
)
from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.run import start_run
from fabricbench.campaign.specification import Campaign, Experiment
from fabricbench.campaign.venue import find_venue
from fabricbench.chapters.chapter import rows_of
from fabricbench.lab import Lab, parse_fabrics
from fabricbench.model import Layer, Pattern
from fabricbench.record.store import Run

FABRIC = "gigabit-ethernet:mtu=1500"
PERIOD = "125us"
BURNER = r"""
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>
// Takes 1.5 of every 4 ms, before any usual thread, until its input ends or for a minute.
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}
int main(void) {
  const struct sched_param first = {.sched_priority = 1};
  if (sched_setscheduler(0, SCHED_FIFO, &first) != 0) { perror("sched_setscheduler"); return 1; }
  for (const double begin = now(); now() < begin + 60;) {
    const double end = now() + 1.5e-3;
    while (now() < end) {}
    usleep(2500);
  }
  return 0;
}
"""


@dataclass(frozen=True)
class Plant:
    """What is planted in a trial, and the kinds of causes that must be named, the larger first where that is known."""

    name: str
    interrupts: bool = False
    nagle: bool = False
    burner: bool = False

    @property
    def kinds(self) -> list[type]:
        told = ((HeldByAcknowledgement, self.nagle), (ProcessorWait, self.burner), (InterruptGrid, self.interrupts))
        return [kind for kind, is_there in told if is_there]


PLANTS = (
    Plant("coalescing", interrupts=True),
    Plant("acknowledgement", nagle=True),
    Plant("processor", burner=True),
    Plant("acknowledgement and coalescing", interrupts=True, nagle=True),
    Plant("processor and coalescing", interrupts=True, burner=True),
    Plant("clean"),
)


def campaign(plant: Plant, blocks: int) -> Campaign:
    usual = {"stages": True, "message_bytes": (64,), "warmup_samples": 5}
    short = {"minimum_seconds": 0.15, "maximum_seconds": 0.15}
    return Campaign(
        name="causes",
        blocks=blocks,
        experiments=(
            Experiment(layers=(Layer.UDP, Layer.TCP), pattern=Pattern.PINGPONG, **short, **usual),
            Experiment(
                layers=(Layer.UDP,),
                pattern=Pattern.PACED,
                parameters={"intervals": "random"},
                minimum_seconds=0.3,
                maximum_seconds=0.3,
                **usual,
            ),
            Experiment(
                layers=(Layer.TCP,),
                pattern=Pattern.BURST,
                parameters={"messages": 2, "nodelay": "off" if plant.nagle else "on"},
                minimum_seconds=0.6 if plant.nagle else 0.15,
                maximum_seconds=0.6 if plant.nagle else 0.15,
                **usual,
            ),
        ),
    )


@contextmanager
def lab_with(plant: Plant, burner: Path, prefix: str) -> Iterator[str]:
    """Give the name of a lab in which that is planted."""
    fabric = f"{FABRIC},interrupt-period={PERIOD}" if plant.interrupts else FABRIC
    name = f"{prefix}-{secrets.token_hex(3)}"
    lab = Lab.up(name, 2, parse_fabrics(fabric), owned=False)
    beside = None
    try:
        if plant.burner:
            tokens = lab.command_in("n1", [str(burner)], working_directory=Path("/"), environment={})
            beside = subprocess.Popen(tokens, stdin=subprocess.DEVNULL)
        yield name
        if beside is not None and beside.poll() is not None:
            raise SystemExit(f"the process of realtime priority ended early: exit code {beside.returncode}")
    finally:
        if beside is not None:
            beside.kill()
            beside.wait()
        lab.down()


def causes_of_trial(plant: Plant, folder: Path, burner: Path, blocks: int, prefix: str) -> list[StageCause]:
    with lab_with(plant, burner, prefix) as name:
        venue = find_venue(f"lab:{name}")
        asked = campaign(plant, blocks)
        plan = plan_run(asked, venue.testbed(), seed=secrets.randbits(32))
        start_run(folder, asked, venue, plan, notify=lambda _: None)
    return list(rows_of(analyse([Run.open(folder)]), "stage-causes", StageCause))


def of_another_tenant(cause: StageCause) -> bool:
    return isinstance(cause.subject, ProcessorWait) and cause.subject.process is None


def numbers(cause: StageCause) -> str:
    match cause.subject:
        case InterruptGrid() as grid:
            return f"grid {grid.period_ns / 1e3:.2f} us, {grid.length:.2f}"
        case HeldByAcknowledgement() as held:
            return f"held {held.held_ns / 1e6:.1f} ms, {held.released_ns / 1e3:.0f} us after"
        case ProcessorWait() as wait:
            return (
                f"waits {wait.waited_ns / 1e6:.2f} ms in {100 * cause.share:.0f} %, {wait.process or 'another tenant'}"
            )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--trials", type=int, default=10)
    options.add_argument("--clean", type=int, default=20)
    options.add_argument("--blocks", type=int, default=3)
    options.add_argument("--lab", default="causes", help="what the names of the labs begin with")
    options.add_argument("--only", nargs="+", choices=[one.name for one in PLANTS])
    given = options.parse_args()
    print(f"{platform.release()}, {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}\n")
    print("| planted | trials | named, and nothing else | another tenant named as well | load | found |")
    print("| --- | --- | --- | --- | --- | --- |")
    holds = True
    with tempfile.TemporaryDirectory(prefix="fabricbench-causes-") as folder:
        burner = Path(folder) / "burner"
        (Path(folder) / "burner.c").write_text(BURNER)
        subprocess.run(["cc", "-O2", "-o", burner, Path(folder) / "burner.c"], check=True)
        for plant in (one for one in PLANTS if given.only is None or one.name in given.only):
            trials = given.trials if plant.kinds else given.clean
            right = tenants = 0
            told = []
            for number in range(trials):
                here = Path(folder) / f"{plant.name}-{number}"
                found = causes_of_trial(plant, here, burner, given.blocks, given.lab)
                own = [cause for cause in found if not of_another_tenant(cause)]
                right += [type(cause.subject) for cause in own] == plant.kinds
                tenants += len(own) < len(found)
                told.append("; ".join(map(numbers, found)) or "nothing")
            holds &= right >= 0.9 * trials
            print(
                f"| {plant.name} | {trials} | {right} | {tenants} | {os.getloadavg()[0]:.1f} | {' / '.join(told)} |",
                flush=True,
            )
    print(f"\n{'all holds' if holds else 'something does not hold'}")
    raise SystemExit(not holds)


if __name__ == "__main__":
    main()
