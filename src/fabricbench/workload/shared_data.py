"""Shared data as a workload: fabricbench-shared-data, blocks that one node has and the others read and write over the fabric.

It is judged by the rate of all clients together, in MB/s. Wrong bytes are no failed launch: it ran, and its cell says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from statistics import median
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from fabricbench.errors import EnvironmentLacks
from fabricbench.quantity import Bytes, format_bytes
from fabricbench.record.kernel_lines import KernelRun
from fabricbench.record.workload_cells import (
    COMMUNICATION_SHARE,
    LEADER_BYTES,
    FigureFound,
    FigureOfMerit,
    Measures,
    WorkloadResult,
)
from fabricbench.workload.adapter import Output, Place, RankSlots
from fabricbench.workload.kernel_program import KernelProgramStart
from fabricbench.workload.pace import Pace
from fabricbench.workload.parameters import Argument, InName, Instead, RankRule, declared

KIND = "shared-data"
RATE = FigureOfMerit(name="shared data", unit="MB/s", better="higher", measures=Measures.WORK_RATE)
SLOWEST_TIME = FigureOfMerit(name="time of the slowest client", unit="s", better="lower")
MEDIAN_TIME = FigureOfMerit(name="time of the median client", unit="s", better="lower")
SLOWEST_RATE = FigureOfMerit(name="the slowest client", unit="MB/s", better="higher")

MOST_BLOCK_BYTES, MOST_BLOCKS = 2**40, 1_000_000

MOVED_BYTES_S = 500e6
"""That a client or a server sends, takes and compares, on a processor of its own."""


def _on_every_node(path: str) -> str:
    if not path.startswith("/") or "\0" in path:
        raise ValueError(
            f"found {path!r}, needed the whole path of a folder that every node mounts: /nfs/{FABRIC}, say"
        )
    if unknown := re.search(r"\{[^{}]*\}", path.replace(FABRIC, "")):
        raise ValueError(
            f"found {unknown[0]} in {path!r}, which stands for nothing; there is {FABRIC}, the fabric's name"
        )
    return path


FABRIC = "{fabric}"
"""In a path: the name of the fabric under test, for a file system goes the way that it was mounted."""

Folder = Annotated[str, AfterValidator(_on_every_node)]

CACHE_FACT = "cache"
"""How the program calls what the memory of the nodes had to do with their files; nothing of what is no file."""
OF_CACHE = {"direct": "past the cache", "dropped": "after the cache was dropped", "kept": "perhaps from the cache"}


def _blocks_in(total: int, chosen: Mapping[str, Any]) -> int:
    block = chosen["block"]
    if total % block or total // block > MOST_BLOCKS:
        raise ValueError(
            f"total: found {format_bytes(total)}, needed a multiple of the block of {format_bytes(block)}, "
            f"at most {MOST_BLOCKS:,} of them"
        )
    return int(total // block)


TOTAL = Instead(
    "total",
    Annotated[Bytes, Field(ge=1, le=MOST_BLOCK_BYTES * MOST_BLOCKS)],
    "in place of blocks: bytes of each client in a pass",
    _blocks_in,
)


class SharedDataStart(KernelProgramStart):
    """One launch: so many clients, each with so many blocks."""

    program: ClassVar[str] = "fabricbench-shared-data"
    rate: ClassVar[FigureOfMerit] = RATE
    kind: Literal["shared-data"] = "shared-data"
    block: Annotated[
        Bytes, Field(ge=1, le=MOST_BLOCK_BYTES), Argument("what a client asks for at once, as NIST's inputs of speech")
    ] = 50_000_000
    blocks: Annotated[int, Field(ge=1, le=MOST_BLOCKS), Argument("of each client in a pass", instead=TOTAL)] = 1
    mode: Annotated[Literal["read", "write", "both"], Argument("both: one pass after the other")] = "read"
    path: Annotated[
        Folder | None,
        Argument(
            "a folder that all nodes mount, by each fabric: all ranks are clients",
            in_name=InName.UNUSUAL,
            is_listed=False,
        ),
    ] = None
    file_system: Annotated[
        Literal["network", "any"],
        Argument("network: a folder of one machine alone is refused", in_name=InName.NEVER, is_listed=False),
    ] = "network"
    ranks_follow: ClassVar[tuple[str, ...]] = ("path",)

    @model_validator(mode="after")
    def _file_system_is_of_a_path(self) -> SharedDataStart:
        if self.path is None and self.file_system != "network":
            raise ValueError("file_system: it is that of `path`, which is missing")
        return self

    @classmethod
    def rank_rule(cls, chosen: Mapping[str, Any], seats: RankSlots) -> RankRule:
        """Return the numbers of ranks of which no two are on a node, and one serves where there is no path."""
        least = 2 if chosen["path"] is None else 1
        words = f"numbers from {least} to {seats.number}"
        return RankRule(KIND, lambda ranks: least <= ranks <= seats.number, words)

    def options(self, place: Place) -> Mapping[str, object]:
        """Return its parameters; EnvironmentLacks where there is no interface whose address a server could have."""
        if self.path is not None:
            return {**super().options(place), "path": self.path.replace(FABRIC, place.fabric.name)}
        if not place.fabric.has_interface:
            raise EnvironmentLacks(
                f"fabric {place.fabric.name} has no interface, and {KIND} is to be served from an address there",
                hint="run it on fabrics with an interface or a subnet, or name a `path` of a file system",
            )
        return self.values

    def figures(self, runs: list[KernelRun]) -> Iterator[FigureFound]:
        """Yield the medians over its runs: the rate of all clients together, then those of its parts."""
        yield RATE.found(median(run.mops_total or 0.0 for run in runs))
        cache = OF_CACHE.get(runs[0].facts.get(CACHE_FACT, ""))
        where = f", {cache}" if cache is not None else ""
        reading = FigureOfMerit(name=f"reading{where}", unit="MB/s", better="higher")
        writing = FigureOfMerit(
            name="writing" if self.mode == "both" else f"writing{where}", unit="MB/s", better="higher"
        )
        for figure, name in (
            (reading, "read_mb_s"),
            (writing, "write_mb_s"),
            (SLOWEST_TIME, "slowest_client_seconds"),
            (MEDIAN_TIME, "median_client_seconds"),
            (SLOWEST_RATE, "slowest_client_mb_s"),
        ):
            if found := [value for run in runs if (value := run.values.get(name)) is not None]:
                yield figure.found(median(found))

    def facts(self, runs: list[KernelRun]) -> Iterator[tuple[str, float]]:
        """Yield what must have crossed the interface of rank 0's node: no MPI carried it."""
        yield LEADER_BYTES, sum(run.values.get(LEADER_BYTES) or 0.0 for run in runs)

    def parse(self, output: Output) -> WorkloadResult | None:
        """Return its record without what it cannot tell.

        That is a share of MPI's in its time, which moves none of its data, and what must have crossed an interface where files are
        those of one machine.
        """
        result = super().parse(output)
        if result is None:
            return None
        is_on_one_machine = len({info.host for info in result.ranks}) < 2
        unknown = {COMMUNICATION_SHARE, *((LEADER_BYTES,) if self.path is not None and is_on_one_machine else ())}
        values = {name: value for name, value in result.values.items() if name not in unknown}
        return replace(result, values=values, communication_share=None)

    @property
    def moved_bytes(self) -> int:
        """Of all clients together, in all passes."""
        clients = self.ranks - (self.path is None)
        return self.block * self.blocks * clients * (2 if self.mode == "both" else 1)

    def expected_seconds(self, pace: Pace) -> float:
        """Return how long all its repetitions take: all bytes through one link; files are made and compared as well."""
        times = 1 if self.path is None else 3
        moving = self.moved_bytes * (8 / pace.line_rate_bit_s + 1 / MOVED_BYTES_S)
        return self.repetitions * times * moving

    def external_commands(self) -> Iterator[str]:
        """Yield the folder that it writes into."""
        if self.path is not None:
            yield f"{self.title}: files are written and read in {self.path}"


SHARED_DATA = declared(
    SharedDataStart,
    "blocks that one node serves, or files of a network file system: read and written by all other nodes",
)
