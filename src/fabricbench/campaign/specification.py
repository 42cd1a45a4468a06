"""A campaign: which experiments are to be run, and in how many blocks. Read from TOML that people write, or taken from `presets`.

    [campaign]
    name = "latency of two networks"
    blocks = 12

    [[experiment]]
    layers = ["udp", "tcp", "mpi"]
    pattern = "pingpong"
    message_bytes = ["8B", "64B", "1KiB"]

What a campaign does not say, `plan` decides; what a fabric cannot carry, `limits` knows.
"""

from __future__ import annotations

import difflib
import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from fabricbench.errors import UsageError
from fabricbench.model import Layer, Model, Pattern, Receive
from fabricbench.quantity import Bytes, Seconds, Share
from fabricbench.record.probe_plan import Stopping

FEWEST_BLOCKS = 2
"""One block has no replication: nothing can be said about how far a repetition would differ."""


class Experiment(Model):
    """A pattern over some layers at some message sizes, and how well each cell is to be measured.

    `receive` applies where a layer leaves a choice (the sockets); empty means the testbed's default. A cell ends once the
    interval of its median is within `relative_width` on either side, or after `maximum_seconds`.
    """

    layers: tuple[Layer, ...] = Field(min_length=1)
    pattern: Pattern
    message_bytes: tuple[Bytes, ...] = Field(min_length=1)
    receive: tuple[Receive, ...] = ()
    parameters: dict[str, str | int | float] = {}
    maximum_seconds: Seconds = Field(default=0.5, gt=0)
    relative_width: Share = Field(default=0.02, gt=0)
    minimum_samples: int = Field(default=20, ge=1)
    maximum_samples: int = Field(default=100_000, ge=1)
    warmup_samples: int = Field(default=10, ge=0)
    verify_messages: int = Field(default=2, ge=0)

    @model_validator(mode="after")
    def _samples_are_ordered(self) -> Experiment:
        if self.minimum_samples > self.maximum_samples:
            raise ValueError(f"minimum_samples {self.minimum_samples} is above maximum_samples {self.maximum_samples}")
        return self

    @property
    def stopping(self) -> Stopping:
        """The stopping rule of each cell."""
        return Stopping(
            minimum_samples=self.minimum_samples,
            maximum_samples=self.maximum_samples,
            maximum_seconds=self.maximum_seconds,
            relative_width=self.relative_width,
        )


class Campaign(Model):
    """Experiments and the number of blocks that each is repeated in.

    `unfit` says what happens to a layer or a size that a fabric of the testbed cannot carry: `refuse` it, or `leave out`, as the
    presets do because they are made for any fabric. `margin` is the smallest difference between fabrics that matters.
    """

    name: str = Field(min_length=1)
    description: str = ""
    blocks: int = Field(default=6, ge=FEWEST_BLOCKS)
    unfit: Literal["refuse", "leave out"] = "refuse"
    margin: Share = Field(default=0.02, gt=0)
    experiments: tuple[Experiment, ...] = Field(min_length=1)


def read_campaign(path: Path) -> Campaign:
    """Read a campaign file; UsageError names the file, the place and what is allowed there."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"campaign {path} cannot be read: {error}", hint="name a preset or a TOML file") from error
    return parse_campaign(text, str(path))


def parse_campaign(text: str, source: str) -> Campaign:
    """Return the campaign that TOML text describes; `source` names it in errors. Raises UsageError."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{source} is not TOML: {error}") from error
    strangers = sorted(set(data) - {"campaign", "experiment"})
    if strangers:
        raise UsageError(
            f"{source}: unknown table [{strangers[0]}]", hint="a campaign has one [campaign] and some [[experiment]]"
        )
    head = data.get("campaign", {})
    if not isinstance(head, dict):
        raise UsageError(f"{source}: campaign must be a table", hint="write [campaign] above its keys")
    try:
        return Campaign.model_validate({"name": Path(source).stem, **head, "experiments": data.get("experiment", [])})
    except ValidationError as error:
        lines = [_explain(details) for details in error.errors()]
        raise UsageError(
            f"{source}: " + "; ".join(lines), hint="docs/campaigns.md lists the keys; examples/ has files to copy"
        ) from error


def _explain(details: ErrorDetails) -> str:
    place, model = _place(details["loc"])
    key = str(details["loc"][-1]) if details["loc"] else ""
    if details["type"] == "extra_forbidden":
        known = [name for name in model.model_fields if name != "experiments"]
        near = difflib.get_close_matches(key, known, n=1)
        return f"{place}: unknown key {key!r}" + (
            f", did you mean {near[0]!r}?" if near else f"; known: {', '.join(known)}"
        )
    if details["type"] == "missing":
        return f"{place}: {key} is missing"
    if details["loc"] == ("experiments",):
        return "it has no [[experiment]]"
    message = details["msg"].removeprefix("Value error, ")
    names = [str(part) for part in details["loc"] if isinstance(part, str) and part != "experiments"]
    return f"{place}: {names[0]}: {message}" if names else f"{place}: {message}"


def _place(location: tuple[Any, ...]) -> tuple[str, type[Model]]:
    if location[:1] == ("experiments",) and len(location) > 1:
        return f"[[experiment]] number {location[1] + 1}", Experiment
    return "[campaign]", Campaign
