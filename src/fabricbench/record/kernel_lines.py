"""The record of a kernel's run (of NPB, or of any program on native/kernel/frame), one JSON object a line.

`schema/kernel_record.json` is made from this.

    kernel_header      once, first
    kernel_run         for each repetition
    kernel_footer      once, last; a file without it was cut short

Lines are flushed after each run. What programs of others print (the official NPB) is brought into the same lines; what
they do not tell is None.

Reading keeps every line that is whole, and says exactly what could not be used.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from fabricbench.model import Model
from fabricbench.record.integrity import read_lines
from fabricbench.record.lines import InterfaceBytes, RankInfo
from fabricbench.record.reading import Damage, take_lines


class KernelHeader(Model):
    """First line: which kernel, of which size, run by which program on which ranks.

    `problem` has the kernel's parameters by name, `class` is that of a kernel whose sizes come in classes; both are None or
    empty where they are not told. `ranks` is empty where the program does not tell where they ran; `rank_count` is known always.
    `processor_levels` are what the programs of the ranks were compiled for (`x86-64-v3`, `native`), in order.
    """

    type: Literal["kernel_header"] = "kernel_header"
    schema_name: Literal["fabricbench/kernel-record/1"] = Field(default="fabricbench/kernel-record/1", alias="schema")
    program: str
    program_version: str
    kernel: str
    problem_class: str | None = Field(default=None, alias="class")
    problem: dict[str, str | int | float] = {}
    rank_count: int = Field(ge=1)
    ranks: tuple[RankInfo, ...] = ()
    processor_levels: tuple[str, ...] = ()
    mpi_library: str | None = None
    clock_resolution_ns: float | None = None
    """The smallest difference between two times that the program can tell."""
    started_unix_ns: int | None = None

    model_config = {**Model.model_config, "populate_by_name": True}


class KernelCheck(Model):
    """One number that the specification knows, beside the one found.

    `tolerance` is relative, 0 asks for the same number. `found` is None where it was no finite number; such a check
    does not hold. Of a check that `is_limit` what was found must be less than `expected`.
    """

    name: str
    found: float | None
    expected: float
    tolerance: float
    holds: bool
    is_limit: bool = False

    @property
    def needed(self) -> str:
        """What `found` had to be, in words."""
        return f"less than {self.expected:g}" if self.is_limit else f"{self.expected} within {self.tolerance:g}"


class CallTotal(Model):
    """All calls of one MPI function in the timed section, summed over the ranks.

    `bytes` are those handed over for other ranks.
    """

    call: str
    number: int
    seconds: float
    bytes: int


class MessageSizes(Model):
    """How many messages of `from_bytes` to `to_bytes`, both included, all ranks sent in the timed section."""

    from_bytes: int
    to_bytes: int
    number: int


class KernelProfile(Model):
    """Where the time of the timed section went: for each rank in order, and sums over all.

    Computing is what a rank did not spend in MPI. A collective counts with the bytes that a rank hands over for others,
    each once. `interfaces` is what the network interfaces of rank 0's host carried meanwhile, `other_hosts` by host what those of
    the others did (empty of earlier versions).
    """

    compute_seconds: tuple[float, ...]
    mpi_seconds: tuple[float, ...]
    bytes_sent: tuple[int, ...]
    calls: tuple[CallTotal, ...]
    message_sizes: tuple[MessageSizes, ...]
    interfaces: dict[str, InterfaceBytes] = {}
    other_hosts: dict[str, dict[str, InterfaceBytes]] = {}

    @property
    def communication_share(self) -> float:
        """The share of the ranks' time that they spent in MPI."""
        mpi = sum(self.mpi_seconds)
        return mpi / max(mpi + sum(self.compute_seconds), 1e-12)


class KernelRun(Model):
    """One repetition. `seconds` is that of the slowest rank over the part that the specification times.

    `operations` is the official count of `operation_unit`; `mops_total` are millions of them in a second. `fingerprint`
    is of the bits of the result: the same program on as many ranks gives the same. `values` are further numbers of a kernel,
    `facts` in words what it computed with (the BLAS).
    """

    type: Literal["kernel_run"] = "kernel_run"
    repetition: int
    size: str
    iterations: int
    seconds: float
    operations: float | None = None
    operation_unit: str
    mops_total: float | None
    mops_per_process: float | None
    verified: bool
    checks: tuple[KernelCheck, ...] = ()
    fingerprint: str | None = None
    profile: KernelProfile | None = None
    values: dict[str, float | None] = {}
    facts: dict[str, str] = {}


class KernelFooter(Model):
    """Last line: the program came to its end, after so many runs, so many of them verified."""

    type: Literal["kernel_footer"] = "kernel_footer"
    finished_unix_ns: int | None = None
    runs: int
    verified: int


KernelLine = Annotated[KernelHeader | KernelRun | KernelFooter, Field(discriminator="type")]
KERNEL_LINE_ADAPTER: TypeAdapter[KernelHeader | KernelRun | KernelFooter] = TypeAdapter(KernelLine)


@dataclass
class KernelRecord:
    """Everything usable in one record, and what was not."""

    header: KernelHeader | None = None
    runs: list[KernelRun] = field(default_factory=list)
    footer: KernelFooter | None = None
    damage: list[Damage] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether the record has its beginning and its end and nothing in it is damaged."""
        return self.header is not None and self.footer is not None and not self.damage

    @property
    def is_verified(self) -> bool:
        """Whether there are runs, and the result of each was right."""
        return bool(self.runs) and all(run.verified for run in self.runs)


def read_kernel_record(path: Path) -> KernelRecord:
    """Read the record at `path`; damage is in the result, only an OSError is raised."""
    return parse_kernel_record(read_lines(path))


def parse_kernel_record(lines: Iterable[bytes]) -> KernelRecord:
    """Read a record from its lines; never raises on what they hold."""
    record = KernelRecord()
    record.damage, number = take_lines(lines, KERNEL_LINE_ADAPTER, "a kernel's record", partial(_take, record))
    if record.header is None:
        record.damage.append(Damage(line=1, reason="the record has no header"))
    if record.footer is None:
        record.damage.append(Damage(line=number, reason="the record has no footer: it was cut short"))
    elif record.footer.runs != len(record.runs):
        reason = f"the footer counts {record.footer.runs} runs, {len(record.runs)} were read"
        record.damage.append(Damage(line=number, reason=reason))
    return record


def _take(record: KernelRecord, line: KernelHeader | KernelRun | KernelFooter) -> str | None:
    match line:
        case KernelHeader():
            if record.header is not None:
                return "a second header"
            record.header = line
        case KernelRun():
            record.runs.append(line)
        case KernelFooter():
            record.footer = line
    return None
