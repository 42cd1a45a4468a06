"""The plan: what one launch of the measurer is told to do. Python writes it, C++ reads it; `schema/plan.json` is made from it."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from ipaddress import IPv4Network
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from fabricbench.model import Layer, Model, Pattern, RdmaEnd, Receive
from fabricbench.pattern_facts import STAGES, STAGES_BY_USER
from fabricbench.private import FILE
from fabricbench.record.atomic import MODE, replace_text
from fabricbench.record.integrity import read_file
from fabricbench.record.launch_files import PLAN_FILE

NO_SECRET = "0" * 32
"""Stands for the secret of a launch that has ended, and of one that an earlier version started."""


class PlanFabric(Model):
    """The fabric under test as a rank finds it: by interface name or by subnet; neither for shared memory.

    `rdma` names the port that its RDMA traffic takes where that is not to be found from the interface.
    """

    name: str
    interface: str | None = None
    subnet: IPv4Network | None = None
    mtu: int = Field(default=1500, ge=68)
    rdma: RdmaEnd | None = None


class Stopping(Model):
    """When a cell has been measured well enough.

    It ends once `minimum_samples` and `minimum_seconds` are there and the nonparametric interval of the median (order statistics,
    at `confidence`, widened by what the samples' dependence on one another adds) is no wider than `relative_width` of it on either
    side, or at `maximum_samples`, or after `maximum_seconds`, whichever is first. A minimum time beyond the maximum is the maximum.
    """

    minimum_samples: int = Field(default=20, ge=1)
    maximum_samples: int = Field(default=100_000, ge=1)
    minimum_seconds: float = Field(default=0.0, ge=0)
    maximum_seconds: float = Field(default=0.5, gt=0)
    relative_width: float = Field(default=0.02, gt=0)
    confidence: float = Field(default=0.95, gt=0, lt=1)


class PlanCongestor(Model):
    """What other ranks do meanwhile: a flood pattern among `ranks`, from before the cell's first sample to after its last.

    One that `is_idle` is there and sends nothing: the control that shows what the method itself adds.
    """

    layer: Layer
    pattern: Pattern
    message_bytes: int = Field(ge=0)
    ranks: tuple[int, ...]
    parameters: dict[str, str | int | float] = {}
    is_idle: bool = False


class PlanProbe(Model):
    """One cell: a layer in a pattern at one message size (`fabricbench.patterns` has all patterns), or an MPI operation.

    `ranks` take part (ranks[0] keeps the time of a ping-pong; a stream flows from ranks[0] to ranks[1] and ranks[1] keeps the
    time; of a star or an incast ranks[0] is the centre); `congestor` has ranks of its own; all others sleep. `message_bytes` is the
    payload that the layer's user sees, the 8-byte token and sequence number of the unreliable layers included. A sample is one
    round trip, a window of `messages_per_sample` messages of a stream, one turn of a lockstep pattern, a window of time of a
    flood, one call of an operation.
    `warmup_samples` are taken and kept apart. `verify_messages` messages with a known payload are sent and checked, untimed,
    before the timing. On unreliable layers a reply that takes longer than `reply_timeout_seconds` is lost.
    `parameters` are the pattern's or layer's own, `{"kernel": "triad"}` for streams over memory, say.
    """

    id: int = Field(ge=0)
    layer: Layer
    pattern: Pattern
    message_bytes: int = Field(ge=0)
    receive: Receive = Receive.BLOCKING
    ranks: tuple[int, ...] = (0, 1)
    messages_per_sample: int = Field(default=1, ge=1)
    warmup_samples: int = Field(default=10, ge=0)
    verify_messages: int = Field(default=0, ge=0)
    reply_timeout_seconds: float = Field(default=0.25, gt=0)
    stopping: Stopping = Stopping()
    parameters: dict[str, str | int | float] = {}
    congestor: PlanCongestor | None = None

    @property
    def is_stamped(self) -> bool:
        """Whether its messages are stamped on their way, which takes time of its own: no comparison of fabrics has it."""
        return self.parameters.get(STAGES) == STAGES_BY_USER


def options_of(probes: Iterable[PlanProbe]) -> list[str]:
    """Return the options that the measurer needs for cells: what MPI must be asked for before anybody has read the plan."""
    return ["--threads"] if any(probe.pattern is Pattern.THREADED for probe in probes) else []


class ProbePlan(Model):
    """Everything that one launch measures. The records go to `output`, beside the plan on the node of rank 0, line by line."""

    schema_name: Literal["fabricbench/plan/1"] = Field(default="fabricbench/plan/1", alias="schema")
    launch_id: str
    token: int = Field(
        ge=0,
        lt=2**32,
        description="goes with the secret into what each path's messages carry: strangers are refused",
    )
    secret: str = Field(
        default=NO_SECRET,
        pattern="^[0-9a-f]{32}$",
        description="128 random bits that the launch's ranks alone know: what connections prove their right by, and the token "
        "of each datagram, are made of it; zero once the launch has ended",
    )
    fabric: PlanFabric
    output: str
    probes: tuple[PlanProbe, ...] = Field(min_length=1)
    patience_seconds: float | None = Field(
        default=None,
        gt=0,
        description="a rank that others wait for within a cell and that is silent for so long hangs, and ends the launch",
    )
    hardware_counters: bool = Field(
        default=False,
        description="whether ranks keep their processors' counters open, which slows each switch of their threads",
    )

    model_config = {**Model.model_config, "populate_by_name": True}


def plan_beside(directory: Path) -> ProbePlan | None:
    """Return what the measurer of a launch was told; None where its plan is gone, was never written, or is none."""
    try:
        return ProbePlan.model_validate_json(read_file(directory / PLAN_FILE))
    except (OSError, ValidationError):
        return None


def write_secret_plan(directory: Path, plan: ProbePlan) -> None:
    """Write what a launch is told, with a secret of its own, where only this user may read it."""
    _write(directory, plan.model_copy(update={"secret": secrets.token_hex(16)}), FILE)


def forget_secret(directory: Path) -> ProbePlan | None:
    """Write a launch's plan again without its secret, for whoever may read the run, and return it, if there is one."""
    plan = plan_beside(directory)
    if plan is not None and plan.secret != NO_SECRET:
        plan = plan.model_copy(update={"secret": NO_SECRET})
        _write(directory, plan, MODE)
    return plan


def _write(directory: Path, plan: ProbePlan, mode: int) -> None:
    replace_text(directory / PLAN_FILE, plan.model_dump_json(by_alias=True, indent=1) + "\n", mode)
