"""Whether two sides did the same work: times and rates of other work compare with nothing.

Of sides of the same runs every fact of a workload must be one: its program and MPI (where the fabrics ask for the same), its files,
its threads, the verified numbers of its result, what was asked for; and of each block where its ranks are. What differs between a
run before and another after is told as the change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256

from fabricbench.analysis.findings import CellKey, WorkloadName
from fabricbench.analysis.measured import FactKey, PlaceKey, Side, workload_of
from fabricbench.quantity import enumeration
from fabricbench.record.farm_lines import INPUTS_FACT, JOBS_DONE_FACT, OUTPUTS_FACT
from fabricbench.record.lines import RankInfo
from fabricbench.record.workload_cells import MPI_FACT, PROGRAM_FACT

PLACEMENT = "placement"

MOST_NAMED = 8
"""Ranks whose nodes are named one by one."""


@dataclass(frozen=True)
class WorkDifference:
    """A fact of a workload that is not the same in all launches: what it is on which sides."""

    workload: WorkloadName
    name: str
    what: str
    sides: dict[str, frozenset[str]]

    def __str__(self) -> str:
        """Return `program sha256 is not the same in all launches (a1 on A; b2 on B)`."""
        told = "; ".join(f"{fact} on {enumeration(sorted(sides))}" for fact, sides in self.sides.items())
        return f"{self.what} is not the same in all launches ({told})"


def differences(sides: Sequence[Side]) -> Iterator[WorkDifference]:
    """Yield the facts that differ between launches of sides of the same runs.

    Which jobs of a farm were done is no such fact: what failed is counted (`lost_launches.survivors`). What jobs read and wrote is
    compared between launches that did the same ones.
    """
    facts: dict[FactKey, dict[str, set[str]]] = {}
    for side in sides:
        for key, noted in _facts(side).items():
            for fact in noted:
                facts.setdefault(key, {}).setdefault(fact, set()).add(side.name)
    for (_, workload, name, _, what, *_), found in facts.items():
        if len(found) > 1:
            yield WorkDifference(workload, name, what, {fact: frozenset(names) for fact, names in found.items()})
    yield from _other_places(sides)


def _facts(side: Side) -> dict[FactKey, dict[str, None]]:
    """Return what the launches of a side note of their work; they are gone through once."""
    if side.facts_of_work:
        return side.facts_of_work
    runs = tuple(str(run.path) for run in side.runs)
    for part in filter(None, (launch.summary.workload for launch in side.launches)):
        for is_asked, noted in ((False, part.fixed), (True, part.definition)):
            for what, fact in noted.items():
                if what == JOBS_DONE_FACT:
                    continue
                jobs = part.fixed.get(JOBS_DONE_FACT, "") if what in (INPUTS_FACT, OUTPUTS_FACT) else ""
                # Sides that name another MPI are to have it, and programs that are built with it.
                asked_for = side.fabric.mpi if what in (MPI_FACT, PROGRAM_FACT) else None
                key = (runs, workload_of(part), part.name, is_asked, what, asked_for, jobs)
                side.facts_of_work.setdefault(key, {})[fact] = None
    return side.facts_of_work


def _other_places(sides: Sequence[Side]) -> Iterator[WorkDifference]:
    """Yield a difference for each workload whose ranks are on other nodes, or have other processors, on one side of a block.

    From block to block they may be elsewhere: a run goes on without nodes that fail. Of fabrics that join different nodes, which is
    told of the whole run, it is asked how the ranks are shared out among the nodes of each.
    """
    found: dict[PlaceKey, dict[str, set[str]]] = {}
    for side in sides:
        for key, places in _places(side).items():
            for place in places:
                found.setdefault(key, {}).setdefault(place, set()).add(side.name)
    told: set[WorkloadName] = set()
    for (_, workload, name, _), places_of_block in found.items():
        if len(places_of_block) > 1 and workload not in told:
            told.add(workload)
            differing = {place: frozenset(names) for place, names in places_of_block.items()}
            yield WorkDifference(workload, name, PLACEMENT, differing)


def _places(side: Side) -> dict[PlaceKey, dict[str, None]]:
    """Return where the ranks of a side's launches were in each block."""
    if side.places_of_work:
        return side.places_of_work
    runs, are_apart = tuple(str(run.path) for run in side.runs), _are_apart(side)
    for launch in side.launches:
        part, header = launch.summary.workload, launch.summary.header
        if part is not None and header is not None and header.ranks:
            key = (runs, workload_of(part), part.name, launch.block)
            side.places_of_work.setdefault(key, {})[_placed(header.ranks, are_apart=are_apart)] = None
    return side.places_of_work


def _are_apart(side: Side) -> bool:
    """Whether the fabrics of a side's run were measured over different nodes."""
    return bool(side.run.manifest) and len(side.run.manifest.testbed.node_sets) > 1


def _placed(ranks: Sequence[RankInfo], *, are_apart: bool) -> str:
    """Return where ranks are in words: `n0 n1, 2 processors each`. Which processors they are is another thing in each launch.

    Of nodes that are to be others on each fabric only their numbers: `#1 #2`.
    """
    hosts = [rank.host for rank in ranks]
    if are_apart:
        numbers = {host: number for number, host in enumerate(dict.fromkeys(hosts), 1)}
        hosts = [f"#{numbers[host]}" for host in hosts]
    if len(hosts) > MOST_NAMED:
        mark = sha256(" ".join(hosts).encode()).hexdigest()[:6]
        hosts = [*hosts[:MOST_NAMED], f"and {len(hosts) - MOST_NAMED} more ({mark})"]
    processors = sorted({len(rank.cpus) for rank in ranks})
    return f"{' '.join(hosts)}, {' or '.join(map(str, processors))} processor{'' if processors == [1] else 's'} each"


def unequal_work(sides: Sequence[Side], keys: Sequence[CellKey]) -> tuple[str, ...]:
    """Return in words what makes the work of these cells another one on one side than on another; nothing where it is the same."""
    wanted = {key.workload for key in keys if key.workload is not None}
    if not wanted:
        return ()
    told = [f"its {one}" for one in differences(sides) if one.workload in wanted]
    return tuple(f"{one}: more differs than the network, so nothing is compared" for one in told)
