"""What a workload is: two models and the few things that a campaign, a launch and a report ask of them.

A *table* is what people write, `[[workload]] kind = "NAME"` of a campaign. Its `plan` turns it into *starts*: one for each cell,
that is each combination of parameters and ranks. A start is all that a launch needs, and what `plan.json` keeps: so it holds
everything that the program must be told, and nothing that has to be read elsewhere. It says

    name, title, parameters, figure     what it is called, what tells its cells apart, what it is judged by
    tokens, files, environment          what every rank runs, what must lie in the launch's directory, which variables are set
    expected_seconds, slowness          how long it takes, and times as long on a slow machine: budgets and limits follow
    is_success, outputs, parse             how it ends, what grows while it runs, and what it told when it was over

`parse` returns figures of merit, checks that must hold, the share of communication where the program tells, and what must be
the same on all fabrics. Where ranks run, how MPI is told to use a fabric, blocks, pairing, intervals and verdicts are none of a
workload's business.

To add one: a file with both models and a `Workload`, and one line in `registry`.
"""

from __future__ import annotations

import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Protocol

from pydantic import BeforeValidator, Field

from fabricbench.model import Model, Pattern
from fabricbench.record.integrity import opened_file
from fabricbench.record.lines import InterfaceBytes, RankInfo
from fabricbench.record.reading import Damage
from fabricbench.record.workload_cells import Failed, FigureOfMerit, Measures, RanksFound, WorkloadResult
from fabricbench.testbed.model import Fabric
from fabricbench.workload.counted import AROUND, BEGUN, MPI_LINE, RANK_LINE, TRAFFIC_LINE, read_around
from fabricbench.workload.pace import SLOWNESS, Pace

Parameters = dict[str, str | int | float]

MOST_OUTPUT_BYTES = 64 * 1024 * 1024
"""Of a file that is searched: what is beyond it, in the middle, is not read."""

TAG = r"(?:^(?:\[[^\]\n]*\](?:<\w+>)?:? ?| *\d+: ))?"
"""What a starter that is told to puts before each line (hydra `[0] `, prterun `[1,0]<stdout>: `, srun ` 0: `); goes with it."""

OF_RANK = re.compile(rf"{TAG}{RANK_LINE}(\{{[^{{}}\n]*\}})[^\S\n]*\n?", re.MULTILINE)
OF_TRAFFIC = re.compile(rf"{TAG}{TRAFFIC_LINE}(\{{\"host\".*?(?:\}}\}}\}}|\{{\}}\}}))[^\S\n]*\n?", re.MULTILINE)
OF_MPI = re.compile(rf"{TAG}{MPI_LINE}(.*)\n?", re.MULTILINE)
"""Lines of `counted`, wherever they begin: another rank may have written half a line before."""

BROKEN = re.compile(rf"^{TAG}(?:{RANK_LINE}|{TRAFFIC_LINE}).*\n?", re.MULTILINE)

MOST_OF_A_NAME = 100
"""Letters of a start's name: it is part of the name of a launch's directory."""


class RankSlots(Protocol):
    """The places of a testbed: rank i is on node i modulo the nodes, which fill up in turn."""

    number: int
    """Nodes, or on one machine the ranks that it seats."""
    of_workload: int
    of_workload_in_words: str
    """`one on a node, and it has 4 nodes`."""


@dataclass(frozen=True)
class Unseated:
    """What was asked for and cannot be run here, and why. `is_all`: nothing of it is left."""

    what: str
    why: str
    is_all: bool


NODE_OF_RANK_0 = "NODE_OF_RANK_0"
"""Stands for where it is found before a launch takes place anywhere."""


@dataclass(frozen=True)
class Place:
    """Where a launch takes place: its directory, and the fabric that its MPI is told to use.

    `build` is the folder of our programs that were built with that MPI, None: the package's own were. `first` is where rank 0 is
    found on that fabric, its address or its node's name.
    """

    directory: Path
    fabric: Fabric
    build: Path | None = None
    first: str = NODE_OF_RANK_0

    @property
    def interface_options(self) -> list[str]:
        """Where a program of ours finds the fabric's interface, as its options."""
        fabric = self.fabric
        interface = ["--interface", fabric.interface] if fabric.interface is not None else []
        return [*interface, *(["--subnet", str(fabric.subnet)] if fabric.subnet is not None else [])]


@dataclass(frozen=True)
class Output:
    """Where a launch has left what it wrote: its directory, and the logs in it."""

    directory: Path
    stdout: Path
    stderr: Path


class WorkloadStart(Model, ABC):
    """What one launch starts: a program on so many ranks, on the first of the nodes and around again where they are more."""

    has_kinds: ClassVar[bool] = True
    pattern: ClassVar[Pattern] = Pattern.WORKLOAD
    starts_others: ClassVar[bool] = False
    """Whether its program may start further ones: each rank is then guarded on its node, so that none of them stays behind."""
    kind: str
    ranks: int = Field(ge=1)
    repetitions: int = Field(default=1, ge=1)

    @property
    @abstractmethod
    def name(self) -> str:
        """Its name within a block, as names of launches have it: letters, digits, `.`, `_` and `-`."""

    @property
    def title(self) -> str:
        """The workload in messages."""
        return f"workload {self.name}"

    @property
    @abstractmethod
    def parameters(self) -> Parameters:
        """What tells its cell apart, besides the ranks: columns of every table, `workload` first. See `named`."""

    @property
    def definition(self) -> Mapping[str, str]:
        """What else makes it this test, as people wrote it and before a fabric's values are filled in: what -> text.

        Runs of which it differs are compared by a report, which tells of it, and not by a gate.
        """
        return {}

    @property
    @abstractmethod
    def figure(self) -> FigureOfMerit:
        """The primary figure of merit: what fabrics are compared by."""

    @abstractmethod
    def expected_seconds(self, pace: Pace) -> float:
        """Return how long all that it does takes at that pace, its start left out."""

    @property
    def slowness(self) -> float:
        """Times as long as expected it may take on a slower or busier machine: limits are so much wider."""
        return SLOWNESS

    @property
    def memory_bytes(self) -> float:
        """What all its ranks together need at least for their data; 0 where nobody knows."""
        return 0.0

    @property
    def threads_told(self) -> Mapping[str, int]:
        """How many threads each rank is told to start: variable -> number; nothing where nobody says."""
        return {}

    @abstractmethod
    def tokens(self, place: Place) -> list[str]:
        """Return the tokens that each rank runs; EnvironmentLacks where there is no such program."""

    def canonical_form(self, place: Place) -> object:
        """Return what is run in the end, in one form: of one table, starts of which that is equal are one, by whichever options."""
        del place
        return self.model_dump_json()

    def told_on_nodes(self) -> Mapping[str, str]:
        """Return the variables of which each node knows the value: name -> template of `{interface}` and `{address}`."""
        return {}

    def files(self) -> Mapping[str, str]:
        """Return the texts to be written into the launch's directory, by their names, before it starts."""
        return {}

    def environment(self, place: Place) -> Mapping[str, str]:
        """Return the variables that `tokens` set for every rank, besides those of the fabric: each launch records them."""
        del place
        return {}

    def is_success(self, exit_code: int | None) -> bool:
        """Tell whether an exit code means that the program came to its end, whatever its result."""
        return exit_code == 0

    def outputs(self, output: Output) -> tuple[Path, ...]:
        """Return the files that grow while it runs: what tells a slow run from a hung one."""
        return (output.stdout,)

    @abstractmethod
    def parse(self, output: Output) -> WorkloadResult | None:
        """Return what the program told; None where it told nothing. Whatever it raises makes a failed cell."""

    @property
    def native_programs(self) -> tuple[str, ...]:
        """The programs of this installation that it starts, by name: every node must have the same build, at all levels of it."""
        return ()

    def external_commands(self) -> Iterator[str]:
        """Yield in words what it starts that this installation would not by itself: what a stranger's plan must be trusted for."""
        yield from ()


class WorkloadTable(Model, ABC):
    """`[[workload]]` of a campaign: what is to be run, each combination a launch of its own in every block on every fabric."""

    has_kinds: ClassVar[bool] = True
    kind: str

    @abstractmethod
    def plan(self, seats: RankSlots) -> Iterator[WorkloadStart | Unseated]:
        """Yield what is to be started, one for each cell, and what the testbed cannot seat."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names that its cells have as `workload`: what a decision may weigh."""
        return (self.kind,)


class Workload(Protocol):
    """A kind of workload: its two models under its name."""

    @property
    def name(self) -> str:
        """The `kind` in campaigns."""

    @property
    def summary(self) -> str:
        """What it is, in one line: `fabricbench list workloads` shows it."""

    @property
    def table(self) -> type[WorkloadTable]:
        """What people write."""

    @property
    def start(self) -> type[WorkloadStart]:
        """What a launch starts."""


@dataclass(frozen=True)
class WorkloadKind:
    """A `Workload` as a value."""

    name: str
    summary: str
    table: type[WorkloadTable]
    start: type[WorkloadStart]


def _read_ranks(value: Any) -> Any:
    numbers = (value,) if isinstance(value, int) else value
    if numbers == "all" or (
        isinstance(numbers, list | tuple) and numbers and all(type(one) is int and one >= 1 for one in numbers)
    ):
        return numbers if numbers == "all" else tuple(dict.fromkeys(numbers))
    raise ValueError(f'found {value!r}, needed "all", or numbers of ranks such as [1, 4]')


Ranks = Annotated[Literal["all"] | tuple[int, ...], BeforeValidator(_read_ranks)]
"""What people write for ranks: numbers, or the most that there is room for."""


def seated(
    what: str, ranks: Literal["all"] | tuple[int, ...], seats: RankSlots, takes: Callable[[int], bool], rule: str
) -> tuple[list[int], list[Unseated]]:
    """Return the numbers of ranks to run on, those asked for that the program `takes` and the testbed seats, and what is left out.

    `rule` says in words which numbers it takes: `powers of two`.
    """
    possible = [count for count in range(1, seats.of_workload + 1) if takes(count)]
    if ranks == "all":  # of which one alone would use no network
        counts = possible[-1:] if seats.of_workload == 1 or possible[-1:] != [1] else []
        refused = [] if counts else [seats.of_workload]
    else:
        refused, counts = [count for count in ranks if count not in possible], [one for one in ranks if one in possible]
    if not refused:
        return counts, []
    why = f"{what} takes {rule} of ranks, {seats.of_workload_in_words}"
    return counts, [Unseated(f"{what} on {', '.join(map(str, refused))} ranks", why, is_all=not counts)]


def named(workload: str, figure: FigureOfMerit, parameters: Mapping[str, str | int | float]) -> Parameters:
    """Return the parameters of a cell: the workload's name, its own, and of no plain time what is measured in which unit."""
    is_told = figure.better == "higher" or figure.kind is Measures.WORK_TIME
    of_figure = {"figure": figure.name, "unit": figure.told_in or figure.unit} if is_told else {}
    return {"workload": workload, **parameters, **of_figure}


def launch_name(name: str, parameters: Mapping[str, str | int | float], ranks: int) -> str:
    """Return `hpl-n800.4`: the name of a start, short and of letters that a directory may have, different for different cells."""
    whole = "-".join([name, *(f"{key}{value}" for key, value in parameters.items())])
    plain = re.sub(r"[^A-Za-z0-9._-]|[.]{2,}", "-", whole)
    # `-n` in a value reads like the beginning of another parameter.
    is_ambiguous = any(f"-{key}" in str(value) for key in parameters for value in parameters.values())
    if plain != whole or is_ambiguous or len(plain) > MOST_OF_A_NAME:
        mark = sha256(repr((name, *parameters.items())).encode()).hexdigest()[:6]
        plain = f"{plain[:MOST_OF_A_NAME]}-{mark}"
    return f"{plain}.{ranks}"


def read_output(path: Path) -> str:
    """Return what a program wrote into a file, of a long one its first and its last lines; empty where there is none."""
    half = MOST_OUTPUT_BYTES // 2
    try:
        with opened_file(path, sys.maxsize) as file:  # no pipe, which whoever sent the run may have put there
            data = file.read(half)
            if path.stat().st_size > MOST_OUTPUT_BYTES:
                data = data[: data.rfind(b"\n") + 1]
                file.seek(-half, 2)
                file.readline()
            return (data + file.read(half)).decode(errors="replace").replace("\r\n", "\n")
    except OSError:
        return ""


def result_of_external(
    program: str,
    ranks: int,
    output: Output,
    figure: FigureOfMerit,
    value: float | None,
    *,
    printed_step: float | None = None,
    failed: Failed | None = None,
    values: Mapping[str, float] | None = None,
    is_over_mpi: bool = True,
    about: ToldAround | None = None,
) -> WorkloadResult:
    """Return what is known of a program that was `counted.wrapped` and whose primary figure is `value` (a time in seconds).

    `printed_step` is what the last digit that was printed of it counts; None where nobody knows.

    None, or a reason in `failed`, makes a failed cell; a program that nobody saw come to its end makes no whole record. Whether the
    processes were its ranks, each once, is asked where the launch is stored; `is_over_mpi` says that they talk over the MPI.
    `about` is what its stdout holds, where that has been read.
    """
    around = read_around(output.directory / AROUND)
    about = about or split_counted_output(read_output(output.stdout))
    begin, end = around.started_unix_ns, around.finished_unix_ns
    lasted = max((end or 0) - (begin or 0), 1) * 1e-9
    is_time = figure.metric.is_time
    is_at_end = around.exit_code is not None
    why = f"it told no {figure.name}" if value is None else figure.why_not(value)
    if why is not None:
        failed, value = failed or Failed(why, is_wrong=False), None
    return WorkloadResult(
        program=program,
        mpi_library=about.mpi_library,
        ranks=about.all_of(ranks),
        started_unix_ns=begin,
        finished_unix_ns=end,
        has_started=is_at_end or (output.directory / BEGUN).exists() or bool(program_lines(about.own)),
        seconds=(value if figure.kind is Measures.RUN_TIME and value is not None else lasted,),
        rate=None if is_time else value,
        printed_seconds=value if is_time else None,
        printed_step=printed_step,
        metric=figure.metric,
        values=values or {},
        failed=failed,
        damage=() if is_at_end else (Damage(line=1, reason="nobody saw the program come to its end"),),
        interfaces={name: InterfaceBytes(**each) for name, each in around.interfaces.items()},
        other_hosts=about.other_hosts,
        found=replace(about.found(is_cut=is_cut(output.stdout)), is_over_mpi=is_over_mpi),
    )


def is_cut(path: Path) -> bool:
    """Tell whether `read_output` leaves out the middle of a file."""
    return path.exists() and path.stat().st_size > MOST_OUTPUT_BYTES


def program_lines(own: str) -> list[str]:
    """Return the lines of what a program itself wrote, without the empty ones."""
    return [one for line in own.splitlines() if (one := line.strip())]


class HostCounters(Model):
    """A line of `counted`: what a host's interfaces carried around the program of its ranks."""

    host: str
    interfaces: dict[str, InterfaceBytes]


@dataclass(frozen=True)
class ToldAround:
    """What `counted` wrote around a program of its ranks, as often as they are told, and its MPI library; `own` is the program's.

    `is_whole`: no line of a rank was one that others were written into. `other_hosts` is what hosts other than rank 0's counted.
    """

    ranks: tuple[RankInfo, ...]
    mpi_library: str | None
    own: str
    is_whole: bool = True
    other_hosts: Mapping[str, Mapping[str, InterfaceBytes]] = field(default_factory=dict)

    def all_of(self, number: int) -> tuple[RankInfo, ...]:
        """Return the ranks where so many are told, each once; else nothing: who is missing may be anywhere."""
        return self.ranks if [rank.rank for rank in self.ranks] == list(range(number)) else ()

    def found(self, *, is_cut: bool = False) -> RanksFound:
        """Return which ranks these are. Of an output that `is_cut`, and where lines were broken, some may lack."""
        return RanksFound(
            numbers=tuple(one.rank for one in self.ranks),
            sizes=tuple(one.of_ranks for one in self.ranks if one.of_ranks is not None),
            may_lack=is_cut or not self.is_whole,
            mpi_library=self.mpi_library,
        )


def split_counted_output(stdout: str) -> ToldAround:
    """Part what `counted` wrote to stdout from what the program did."""
    ranks: list[RankInfo] = []
    hosts: dict[str, Mapping[str, InterfaceBytes]] = {}

    def read_traffic(found: re.Match[str]) -> str:
        try:
            one = HostCounters.model_validate_json(found[1])
        except ValueError:
            return found[0]
        hosts[one.host] = one.interfaces
        return ""

    def read(found: re.Match[str]) -> str:
        try:
            ranks.append(RankInfo.model_validate_json(found[1]))
        except ValueError:
            return found[0]
        return ""

    own, before = stdout, ""
    while before != own:  # a line within another one leaves that one whole
        before, own = own, OF_RANK.sub(read, OF_TRAFFIC.sub(read_traffic, own))
    is_whole = RANK_LINE.strip() not in own
    libraries = [found[1].strip() for found in OF_MPI.finditer(own)]
    own = OF_MPI.sub("", BROKEN.sub("", own))
    hosts.pop(
        next((one.host for one in ranks if one.rank == 0), ""), None
    )  # which rank 0 counts, to the end of its program
    return ToldAround(
        tuple(sorted(ranks, key=lambda one: one.rank)), next(filter(None, libraries), None), own, is_whole, hosts
    )
