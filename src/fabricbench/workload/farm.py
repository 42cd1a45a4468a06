"""A task farm as a workload: many independent jobs, each with an input that is sent over the fabric under test.

[[farm]]
name = "speech"
jobs = 200
input = "50MB"               # made up, another one for each job; or a file for all, or a folder with a file for each
command = ["recognise", "{input}", "-o", "{output}"]    # default: read the whole input and check it
at_once = 2                  # on a node; default 1
retries = 1                  # how often a job may fail and be tried again, on another node where there is one
job_seconds = "10min"        # a job that takes longer is killed, and that attempt has failed
output = "1MiB"              # that of a job may have, brought back into outputs.tar; default: none is brought back

Rank 0 gives out the jobs and sends the inputs, every other rank runs them. Placeholders of the command are {job} and {attempt},
from 0, {input}, {output} (what the job prints if it is not named) and {digest}, that of the input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import ceil
from pathlib import Path
from shlex import join
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from fabricbench.configuration import did_you_mean, expanded
from fabricbench.errors import UsageError
from fabricbench.model import Model
from fabricbench.native import native_file
from fabricbench.quantity import Bytes, count, format_bytes, parse_bytes, parse_seconds
from fabricbench.record.farm_jobs import MOST_NAMED
from fabricbench.record.farm_lines import (
    ATTEMPTS,
    DONE,
    INPUTS_FACT,
    JOBS,
    JOBS_DONE_FACT,
    LOST,
    MOST_AT_ONCE,
    MOST_JOBS,
    MOST_OUTPUT_BYTES,
    MOST_RETRIES,
    OUTPUTS_FACT,
    RETRIED,
    STAGED_BYTES,
    STAGING_SHARE,
    FarmPlan,
    FarmRecord,
    read_farm_record,
)
from fabricbench.record.launch_files import FARM_PLAN, FARM_RECORDS
from fabricbench.record.workload_cells import (
    LEADER_BYTES,
    MPI_FACT,
    OF_FIGURE,
    CheckFound,
    Failed,
    FigureFound,
    FigureOfMerit,
    RanksFound,
    WorkloadResult,
)
from fabricbench.workload.adapter import (
    Output,
    Parameters,
    Place,
    Ranks,
    RankSlots,
    Unseated,
    WorkloadKind,
    WorkloadStart,
    WorkloadTable,
    launch_name,
    named,
    seated,
)
from fabricbench.workload.application import PLACEHOLDER, Name, Text
from fabricbench.workload.pace import Pace

PROGRAM = "fabricbench-farm"

TIME = FigureOfMerit(name="time", unit="s", better="lower")
THROUGHPUT = FigureOfMerit(name="throughput", unit="jobs/h", better="higher")
SUCCESS = FigureOfMerit(name="success", unit="%", better="higher")
STAGING = FigureOfMerit(name="time lost to staging", unit="%", better="lower")
STAGED = FigureOfMerit(name="staged", unit="MB/s", better="higher")

PATIENCE_SECONDS = 60.0
"""A node says every two seconds that it lives."""

CHECKED_BYTE_S = 100e6
"""What a job that reads and checks its input makes of it at least, on a busy node."""
START_SECONDS = 0.05
SET_UP_SECONDS = 2.0
SLOWNESS = 2.0
"""Of a machine whose nodes share their processors."""

KNOWN = ("job", "attempt", "input", "output", "digest")

CHECK_INPUT = "read the input and check it"


def _read_input(value: Any, info: ValidationInfo) -> Any:
    """Return a number of bytes, or the path of a file or folder: relative ones are beside the campaign."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str) or not value:
        raise ValueError(f'found {value!r}, needed a size such as "1MiB", or the path of a file or folder')
    if "/" not in value and not value.startswith("."):
        try:
            return parse_bytes(value)
        except ValueError as error:
            raise ValueError(f"{error}; a path has a / in it: ./{value}") from None
    folder = (info.context or {}).get("folder")
    path = expanded(value)
    return str((Path(folder) / path if folder is not None else path).absolute())


def _read_output(value: Any) -> Any:
    return 0 if value in ("none", None) else parse_bytes(value)


def _located(command: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse a program that lies somewhere below where the job starts: that is a folder of its own on its node."""
    if command and "/" in command[0] and not command[0].startswith(("/", "{")):
        raise ValueError(
            f"found {command[0]!r}: a job starts in a folder of its own on its node; needed a whole path, or a program on PATH"
        )
    return command


def _bytes_of_an_input(path: Path, jobs: int) -> int | None:
    """Return how much a job is sent of a file, or on average of a folder's files; None where they cannot be seen from here."""
    try:
        if path.is_dir():
            return ceil(sum(one.stat().st_size for one in path.iterdir() if one.is_file()) / jobs)
        return path.stat().st_size
    except OSError:
        return None


class Farm(Model):
    """What a farm is, in whichever start of it. `input` is a number of bytes that are made up for each job, or a path."""

    name: Name
    jobs: int = Field(ge=1, le=MOST_JOBS)
    input: Annotated[int | str, BeforeValidator(_read_input)] = 0
    input_size: Annotated[Bytes | None, BeforeValidator(lambda one: None if one is None else parse_bytes(one))] = Field(
        default=None, ge=0
    )
    """Bytes of a path that a job is sent, on average; None: what is seen of it from here. For budgets and limits."""
    command: Annotated[tuple[Text, ...], AfterValidator(_located)] = ()
    at_once: int = Field(default=1, ge=1, le=MOST_AT_ONCE)
    retries: int = Field(default=1, ge=0, le=MOST_RETRIES)
    job_seconds: Annotated[float, BeforeValidator(parse_seconds)] = Field(default=60.0, gt=0, le=1e7)
    output: Annotated[Bytes, BeforeValidator(_read_output)] = Field(default=0, ge=0, le=MOST_OUTPUT_BYTES)
    expect_seconds: Annotated[
        float | None, BeforeValidator(lambda one: None if one is None else parse_seconds(one))
    ] = Field(default=None, gt=0, le=1e7)
    """How long a job computes, generously, without its input's way to it; None: as long as reading its input, or with a command
    of one's own its limit."""
    same_output: bool = True
    """Whether the jobs' outputs must be the same on all fabrics: what proves that the work was."""
    scratch: Annotated[str, Field(pattern=r"^/[^\x00]*$")] = "/tmp"  # noqa: S108 - its folder there is made by mkdtemp

    @property
    def input_bytes(self) -> int:
        """Of a job, where it is made up."""
        return self.input if isinstance(self.input, int) else 0

    @property
    def staged_bytes(self) -> int:
        """Of all jobs together, as far as it is known here."""
        return self.jobs * (self.input_bytes or self.input_size or 0)

    @property
    def definition(self) -> dict[str, str]:
        """What makes its time what it is, as it was written."""
        made_up = isinstance(self.input, int)
        return {
            "jobs": str(self.jobs),
            "input": f"{format_bytes(self.input_bytes)}, made up" if made_up else str(self.input),
            "command": join(self.command) if self.command else CHECK_INPUT,
            "jobs at once on a node": str(self.at_once),
            "retries": str(self.retries),
            "limit of a job": f"{self.job_seconds:g} s",
            "output brought back": f"at most {format_bytes(self.output)}" if self.output else "none",
        }

    @property
    def plan_text(self) -> str:
        """What fabricbench-farm reads."""
        plan = FarmPlan(
            name=self.name,
            jobs=self.jobs,
            input_bytes=self.input_bytes,
            input_path=self.input if isinstance(self.input, str) else None,
            command=self.command,
            at_once=self.at_once,
            retries=self.retries,
            job_seconds=self.job_seconds,
            output_bytes=self.output,
            scratch=self.scratch,
            patience_seconds=PATIENCE_SECONDS,
        )
        return plan.model_dump_json(by_alias=True, indent=1) + "\n"

    def expected_seconds(self, slots: int, line_rate_bit_s: float) -> float:
        """Return how long the farm takes at most where so many jobs run at once: sending all inputs, then computing."""
        job = self.expect_seconds
        if job is None:
            checking = self.staged_bytes / self.jobs / CHECKED_BYTE_S + START_SECONDS
            job = self.job_seconds if self.command else checking
        staging = self.staged_bytes * 8 / line_rate_bit_s
        return SET_UP_SECONDS + SLOWNESS * (staging + job * ceil(self.jobs / slots))


class FarmStart(WorkloadStart):
    """A farm on so many ranks, one of which gives out the jobs."""

    kind: Literal["farm"] = "farm"
    farm: Farm

    @property
    def name(self) -> str:
        """`speech.4`."""
        return launch_name(self.farm.name, {}, self.ranks)

    @property
    def title(self) -> str:
        """`farm speech`."""
        return f"farm {self.farm.name}"

    @property
    def parameters(self) -> Parameters:
        """Its name alone: what else it is stands in the definition."""
        return named(self.farm.name, self.figure, {})

    @property
    def definition(self) -> Mapping[str, str]:
        """The farm's."""
        return self.farm.definition

    @property
    def figure(self) -> FigureOfMerit:
        """The time from the first job given out to the last one's end."""
        return TIME

    def expected_seconds(self, pace: Pace) -> float:
        """Return how long all jobs take."""
        return self.farm.expected_seconds(self.farm.at_once * (self.ranks - 1), pace.line_rate_bit_s)

    @property
    def slowness(self) -> float:
        """1: what its jobs take is told generously, and counted twice."""
        return 1.0

    def tokens(self, place: Place) -> list[str]:
        """Return its tokens: the record goes into the launch's directory, where rank 0 finds what it is told."""
        return [
            str(native_file(PROGRAM, place.build)),
            "--output",
            str(place.directory / FARM_RECORDS),
            *place.interface_options,
            str(place.directory / FARM_PLAN),
        ]

    def files(self) -> Mapping[str, str]:
        """Return what it is told."""
        return {FARM_PLAN: self.farm.plan_text}

    def outputs(self, output: Output) -> tuple[Path, ...]:
        """Return its record, which grows with each job."""
        return (output.directory / FARM_RECORDS,)

    def parse(self, output: Output) -> WorkloadResult | None:
        """Return its record: how long it took, and what became of its jobs."""
        path = output.directory / FARM_RECORDS
        return _result(read_farm_record(path), self.farm) if path.exists() else None

    @property
    def native_programs(self) -> tuple[str, ...]:
        """The one that it is."""
        return (PROGRAM,)

    def external_commands(self) -> Iterator[str]:
        """Yield the command: any program at all."""
        if self.farm.command:
            yield f"{self.title}: {join(self.farm.command)}"
        if isinstance(self.farm.input, str):
            yield f"{self.title}: every job is sent what {self.farm.input} holds"


class FarmTable(WorkloadTable, Farm):
    """A farm, and on how many ranks."""

    kind: Literal["farm"] = "farm"
    ranks: Ranks = "all"

    @model_validator(mode="after")
    def _placeholders_are_known(self) -> FarmTable:
        for word in self.command:
            for name in PLACEHOLDER.findall(word):
                if name not in KNOWN:
                    raise ValueError(
                        f"command: {{{name}}} has no value{did_you_mean(name, list(KNOWN))}; there are {', '.join(KNOWN)}"
                    )
        if self.input_size is not None and isinstance(self.input, int):
            raise ValueError("input_size: that of a path; an input that is made up is as large as `input` says")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """The farm's."""
        return (self.name,)

    def plan(self, seats: RankSlots) -> Iterator[WorkloadStart | Unseated]:
        """Yield a start for each number of ranks, of which one gives out the jobs."""
        counts, left_out = seated(
            self.name, self.ranks, seats, lambda ranks: ranks > 1, "2 or more (one gives out the jobs)"
        )
        yield from left_out
        farm = Farm.model_validate({name: getattr(self, name) for name in Farm.model_fields} | self._seen())
        for ranks in counts:
            yield FarmStart(farm=farm, ranks=ranks)

    def _seen(self) -> dict[str, int]:
        """Return the size of an input that is a path: a limit without its way to the nodes would kill what works."""
        if isinstance(self.input, int) or self.input_size is not None:
            return {}
        size = _bytes_of_an_input(Path(self.input), self.jobs)
        if size is None:
            raise UsageError(
                f"farm {self.name}: {self.input} cannot be seen from here, so how long its inputs take to the nodes is not known",
                hint='correct `input`; or, where only the first node has it, add input_size = "50MB": bytes that a job is sent',
            )
        return {"input_size": size}


def _result(record: FarmRecord, farm: Farm) -> WorkloadResult:
    """Return what a farm's record tells. One of which no job is done has failed; one that is cut short says how many are."""
    header, footer = record.header, record.footer
    if header is None:
        return WorkloadResult(PROGRAM, has_started=False, damage=record.damage)
    is_whole = footer is not None and not record.damage
    figures = _figures(record) if is_whole and record.done else ()
    values = {f"{OF_FIGURE}{one.name}": one.value for one in figures[1:]}
    failed = None
    if footer is not None and not record.done and (record.reasons or is_whole):
        why = "".join(f"; {times} of {footer.attempts} attempts: {why}" for why, times in record.reasons[:1])
        failed = Failed(f"none of {count(header.jobs, 'job')} was done{why}", is_wrong=False)
    return WorkloadResult(
        program=f"{header.program} {header.program_version}",
        mpi_library=header.mpi_library,
        ranks=header.ranks,
        started_unix_ns=header.started_unix_ns,
        finished_unix_ns=footer.finished_unix_ns if footer is not None else None,
        seconds=(footer.seconds,) if is_whole and footer is not None else (),
        values=values | _counts(record),
        messages=footer.attempts if footer is not None else 0,
        failed=failed,
        damage=record.damage,
        interfaces=footer.interfaces if footer is not None else {},
        found=RanksFound(len(header.ranks), mpi_library=header.mpi_library),
        figures=figures,
        checks=tuple(_checks(record)),
        fixed=_fixed(record, farm),
        jobs=record.jobs,
    )


def _figures(record: FarmRecord) -> tuple[FigureFound, ...]:
    header, footer = record.header, record.footer
    if header is None or footer is None:
        return ()
    return (
        TIME.found(footer.seconds),
        THROUGHPUT.found(footer.done / footer.seconds * 3600),
        SUCCESS.found(100 * footer.done / header.jobs),
        STAGING.found(100 * record.staging_share),
        STAGED.found(footer.staged_bytes / footer.seconds / 1e6),
    )


def _counts(record: FarmRecord) -> dict[str, float]:
    header, footer = record.header, record.footer
    if header is None or footer is None:
        return {}
    counted = {
        JOBS: header.jobs,
        DONE: footer.done,
        LOST: footer.lost,
        RETRIED: footer.retried,
        ATTEMPTS: footer.attempts,
        STAGING_SHARE: record.staging_share,
        STAGED_BYTES: footer.staged_bytes,
        LEADER_BYTES: footer.staged_bytes,
    }
    return {name: float(number) for name, number in counted.items()}


def _checks(record: FarmRecord) -> Iterator[CheckFound]:
    """Yield whether every job was done, and whether every node ran jobs to the end and was left clean."""
    header, footer = record.header, record.footer
    if header is None or footer is None:
        return
    lost = "; ".join(f"job {one.job}: {one.reason}" for one in record.lost[:MOST_NAMED])
    found = record.jobs_done + (f": {lost}" if lost else "")
    yield CheckFound(name="every job done", holds=not footer.lost, found=found, needed=f"{header.jobs}")
    for one in footer.left_out:
        yield CheckFound(name=f"{one.node} ran jobs to the end", holds=False, found=one.reason, needed="no trouble")
    for text in footer.left_behind:
        yield CheckFound(name="nothing left behind", holds=False, found=text, needed="every folder removed")


def _fixed(record: FarmRecord, farm: Farm) -> dict[str, str]:
    """Return which jobs were done, and what must be the same wherever the same ones were: their inputs and outputs."""
    if record.header is None:
        return {}
    outputs = {OUTPUTS_FACT: record.digest_of_outputs()} if farm.same_output else {}
    inputs = {INPUTS_FACT: record.digest_of_inputs()}
    return {JOBS_DONE_FACT: record.jobs_done, MPI_FACT: record.header.mpi_library, **inputs, **outputs}


FARM = WorkloadKind(
    "farm",
    "many independent jobs whose inputs are sent over the fabric: throughput, success, time lost to staging",
    FarmTable,
    FarmStart,
)
