"""What a farm is told, and its record, one JSON object a line: the contract with fabricbench-farm.

`schema/farm_plan.json` and `schema/farm_record.json` are made from this.

    farm_header      once, first
    farm_attempt     when an attempt of a job has ended, in the order of their ends
    farm_footer      once, last; a file without it was cut short

Each attempt's line is flushed at once, so that what was done is told also by a farm that died. Times are seconds since the farm
began, by rank 0's clock.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from fabricbench.model import Model
from fabricbench.quantity import count
from fabricbench.record.farm_jobs import MOST_NAMED, FarmJobs, JobEnd, JobTrouble, LeftOutNode, alike
from fabricbench.record.integrity import read_lines
from fabricbench.record.lines import InterfaceBytes, RankInfo
from fabricbench.record.reading import Damage, take_lines

MOST_JOBS = 1_000_000
MOST_AT_ONCE = 4096
MOST_RETRIES = 1000
MOST_OUTPUT_BYTES = 64 * 2**20
"""As native/farm/plan.cpp has them."""

JOBS, DONE, LOST, RETRIED, ATTEMPTS, STAGING_SHARE, STAGED_BYTES = (
    f"farm.{name}" for name in ("jobs", "done", "lost", "retried", "attempts", "staging_share", "staged_bytes")
)
"""How the values of a cell name what became of its jobs."""

JOBS_DONE_FACT = "jobs done"
INPUTS_FACT, OUTPUTS_FACT = "inputs of the jobs", "outputs of the jobs"
"""How `WorkloadPart.fixed` calls which jobs were done, and the digests of what they read and wrote."""


class FarmPlan(Model):
    """What fabricbench-farm is told. A job gets `input_path` (or a file of that folder), else `input_bytes` that are made up.

    An empty `command` reads its input and checks it. `output_bytes` of 0 brings no output back.
    """

    schema_name: Literal["fabricbench/farm-plan/1"] = Field(default="fabricbench/farm-plan/1", alias="schema")
    name: str
    jobs: int = Field(ge=1, le=MOST_JOBS)
    input_bytes: int = Field(default=0, ge=0)
    input_path: str | None = None
    command: tuple[str, ...] = ()
    at_once: int = Field(ge=1, le=MOST_AT_ONCE)
    retries: int = Field(ge=0, le=MOST_RETRIES)
    job_seconds: float = Field(gt=0)
    output_bytes: int = Field(ge=0, le=MOST_OUTPUT_BYTES)
    scratch: str
    patience_seconds: float = Field(gt=0)
    """How long a node may tell nothing before the launch counts as hung."""

    model_config = {**Model.model_config, "populate_by_name": True}


class FarmHeader(Model):
    """First line: what is to be done, and where. `workers` are the ranks that run jobs, each so many `at_once`."""

    type: Literal["farm_header"] = "farm_header"
    schema_name: Literal["fabricbench/farm-record/1"] = Field(default="fabricbench/farm-record/1", alias="schema")
    program: str
    program_version: str
    name: str
    jobs: int = Field(ge=1)
    at_once: int = Field(ge=1)
    retries: int = Field(ge=0)
    workers: tuple[int, ...]
    rank_count: int = Field(ge=1)
    ranks: tuple[RankInfo, ...]
    mpi_library: str
    started_unix_ns: int

    model_config = {**Model.model_config, "populate_by_name": True}

    @property
    def slots(self) -> int:
        """How many jobs can run at once."""
        return self.at_once * len(self.workers)


class FarmAttempt(Model):
    """One attempt of a job; both count from 0. `is_last`: the job has ended with it, well or for good.

    `counts`: it is among those that a job may fail. `given_s` is when rank 0 gave it out, `staged_s` when its input was there (None
    if it never was), `ended_s` when rank 0 heard its end; it ran for `run_seconds` before that. An attempt that could be given to
    nobody has no node.
    """

    type: Literal["farm_attempt"] = "farm_attempt"
    job: int = Field(ge=0)
    attempt: int = Field(ge=0)
    node: str
    rank: int = Field(ge=0)
    ended: JobEnd
    exit_code: int | None
    signal: int | None
    reason: str
    is_last: bool
    counts: bool
    given_s: float = Field(ge=0, allow_inf_nan=False)
    staged_s: float | None = Field(ge=0, allow_inf_nan=False)
    run_seconds: float = Field(ge=0, allow_inf_nan=False)
    ended_s: float = Field(ge=0, allow_inf_nan=False)
    input_bytes: int = Field(ge=0)
    input_digest: str
    output_bytes: int = Field(ge=0)
    output_digest: str

    @property
    def is_done(self) -> bool:
        """Whether the job is done by it."""
        return self.ended is JobEnd.DONE

    @property
    def span_s(self) -> tuple[float, float]:
        """When it ran."""
        return max(self.given_s, self.ended_s - self.run_seconds), self.ended_s


class FarmFooter(Model):
    """Last line. `retried` are jobs of which more than one attempt was begun, `lost` those that failed for good."""

    type: Literal["farm_footer"] = "farm_footer"
    finished_unix_ns: int
    seconds: float = Field(gt=0, allow_inf_nan=False)
    attempts: int = Field(ge=0)
    done: int = Field(ge=0)
    lost: int = Field(ge=0)
    retried: int = Field(ge=0)
    staged_bytes: int = Field(ge=0)
    left_out: tuple[LeftOutNode, ...] = ()
    left_behind: tuple[str, ...] = ()
    """What could not be removed from a node."""
    interfaces: dict[str, InterfaceBytes] = {}
    """What the network interfaces of rank 0's host carried meanwhile."""


FarmLine = Annotated[FarmHeader | FarmAttempt | FarmFooter, Field(discriminator="type")]
FARM_LINE_ADAPTER: TypeAdapter[FarmHeader | FarmAttempt | FarmFooter] = TypeAdapter(FarmLine)


@dataclass
class FarmRecord:
    """Everything usable in one record, and what was not."""

    header: FarmHeader | None = None
    attempts: list[FarmAttempt] = field(default_factory=list)
    footer: FarmFooter | None = None
    damage: list[Damage] = field(default_factory=list)

    @property
    def done(self) -> list[FarmAttempt]:
        """The attempt by which each job that is done was done, in the jobs' order."""
        return sorted((one for one in self.attempts if one.is_done), key=lambda one: one.job)

    @property
    def lost(self) -> list[FarmAttempt]:
        """The last attempt of each job that failed for good, in the jobs' order."""
        return sorted((one for one in self.attempts if one.is_last and not one.is_done), key=lambda one: one.job)

    @property
    def jobs_done(self) -> str:
        """`198 of 200 (not 5, 17)`."""
        done = {one.job for one in self.done}
        missing = [str(job) for job in range(self._jobs) if job not in done]
        named = ", ".join(missing[:MOST_NAMED])
        more = f", ... {_mark(' '.join(missing))}" if len(missing) > MOST_NAMED else ""
        return self.number_done + (f" (not {named}{more})" if missing else "")

    @property
    def number_done(self) -> str:
        """`198 of 200`."""
        return f"{len({one.job for one in self.done})} of {self._jobs}"

    @property
    def _jobs(self) -> int:
        return self.header.jobs if self.header is not None else 0

    @property
    def reasons(self) -> list[tuple[str, int]]:
        """Why attempts failed, each reason with how often it was told, the most frequent first."""
        return Counter(one.reason for one in self.attempts if not one.is_done).most_common()

    @property
    def jobs(self) -> FarmJobs | None:
        """What became of the jobs; None of a record that does not tell all."""
        if self.header is None or self.footer is None:
            return None
        failed = (one for one in self.attempts if not one.is_done)
        return FarmJobs(
            jobs=self.header.jobs,
            done=self.footer.done,
            lost=self.footer.lost,
            retried=self.footer.retried,
            left_out=self.footer.left_out,
            troubles=alike(
                JobTrouble(
                    node=one.node,
                    ended=one.ended,
                    exit_code=one.exit_code,
                    signal=one.signal,
                    reason=one.reason,
                    attempts=1,
                    lost_jobs=int(one.is_last),
                    jobs=(one.job,),
                )
                for one in failed
            ),
            done_on=dict(Counter(one.node for one in self.done)),
        )

    def digest_of_inputs(self) -> str:
        """Return what tells the inputs of all jobs from others, of those that failed as well where they were sent their input."""
        told = {one.job: one.input_digest for one in self.attempts if one.input_digest}
        return _mark(" ".join(f"{job} {told[job]}" for job in sorted(told)))

    def digest_of_outputs(self) -> str:
        """Return what tells the outputs of all jobs that are done from others."""
        return _mark(" ".join(f"{one.job} {one.output_digest}" for one in self.done))

    @property
    def staging_share(self) -> float:
        """The share of the slots' time in which a job could have run and waited for its input.

        A slot is a place for a job: `at_once` on each worker. At every moment as many are lost as are free, but no more than there
        are jobs that neither run nor have ended: at the farm's end slots are free because no job is left, and that is not staging.
        A worker has slots until it is left out.
        """
        if self.header is None or self.footer is None:
            return 0.0
        left = self._left_s
        lost = _lost_slot_seconds(self.attempts, self.header, left, self.footer.seconds)
        gone = self.header.at_once * sum(max(0.0, self.footer.seconds - at) for at in left.values())
        had = self.header.slots * self.footer.seconds - gone
        return lost / had if had > 0 else 0.0

    @property
    def _left_s(self) -> dict[int, float]:
        """When each worker that was left out had failed, by its rank: from then on it is given nothing more."""
        found: dict[int, float] = {}
        for one in self.attempts:
            if one.ended is JobEnd.NODE and one.node:
                found[one.rank] = min(one.ended_s, found.get(one.rank, one.ended_s))
        return found


def read_farm_record(path: Path) -> FarmRecord:
    """Read the record at `path`; damage is in the result, only an OSError is raised."""
    return parse_farm_record(read_lines(path))


def parse_farm_record(lines: Iterable[bytes]) -> FarmRecord:
    """Read a record from its lines; never raises on what they hold."""
    record = FarmRecord()
    record.damage, number = take_lines(lines, FARM_LINE_ADAPTER, "a farm's record", partial(_take, record))
    if record.header is None:
        record.damage.insert(0, Damage(line=1, reason="the record has no header"))
    elif record.footer is None:
        reason = f"the farm was cut short: {record.number_done} jobs were done"
        record.damage.insert(0, Damage(line=number, reason=reason))
    else:
        record.damage += [Damage(line=number, reason=reason) for reason in _contradictions(record)]
    return record


def _take(record: FarmRecord, line: FarmHeader | FarmAttempt | FarmFooter) -> str | None:
    match line:
        case FarmHeader():
            if record.header is not None:
                return "a second header"
            record.header = line
        case FarmAttempt():
            record.attempts.append(line)
        case FarmFooter():
            record.footer = line
    return None


def _contradictions(record: FarmRecord) -> Iterator[str]:
    """Yield where what was read is not what the footer counts: each job must have ended, once."""
    header, footer = record.header, record.footer
    if header is None or footer is None:
        return
    if footer.attempts != len(record.attempts):
        yield f"the footer counts {footer.attempts} attempts, {len(record.attempts)} were read"
    ends = Counter(one.job for one in record.attempts if one.is_last)
    twice = next((job for job, times in ends.items() if times > 1), None)
    if twice is not None:
        yield f"job {twice} ends {ends[twice]} times"
    missing = [job for job in range(header.jobs) if job not in ends]
    if missing:
        yield f"job {missing[0]} has no end, as {count(len(missing), 'job')} in all"
    if (len(record.done), len(record.lost)) != (footer.done, footer.lost):
        yield (
            f"the footer counts {footer.done} jobs done and {footer.lost} lost, {len(record.done)} and {len(record.lost)} "
            "were read"
        )


def _lost_slot_seconds(
    attempts: Sequence[FarmAttempt], header: FarmHeader, left_s: Mapping[int, float], seconds: float
) -> float:
    """Return for how long slots were free while jobs waited, summed over the slots of workers that had not failed."""
    changes: list[tuple[float, int, int, int]] = [(at, -header.at_once, 0, 0) for at in left_s.values()]
    for one in attempts:
        begin, end = one.span_s
        changes += [(begin, -1, 1, 0), (end, 1, -1, int(one.is_last))]
        left = left_s.get(one.rank, math.inf)
        if left < end:  # what runs on there takes no slot of the others
            changes += [(max(begin, left), 1, 0, 0), (end, -1, 0, 0)]
    lost = before = 0.0
    free, running, ended = header.slots, 0, 0
    for at, frees, runs, ends in sorted(changes):
        now = min(at, seconds)
        lost += (now - before) * max(0, min(free, header.jobs - ended - running))
        before, free, running, ended = now, free + frees, running + runs, ended + ends
    return lost if math.isfinite(lost) else 0.0


def _mark(text: str) -> str:
    return f"sha256 {sha256(text.encode()).hexdigest()[:12]}"
