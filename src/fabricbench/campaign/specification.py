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

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from fabricbench.configuration import read_table, validated
from fabricbench.model import Layer, Model, Pattern, Receive
from fabricbench.quantity import Bytes, Seconds, Share
from fabricbench.record.probe_plan import Stopping

FEWEST_BLOCKS = 2
"""One block has no replication: nothing can be said about how far a repetition would differ."""

MOST_BLOCKS = 10_000
"""More is a slip of the hand: a run of that many blocks takes weeks."""

MEMORY_KERNELS = ("copy", "scale", "add", "triad")
"""What layer memory does with its arrays, as STREAM calls it; the measurer knows them by these names."""


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
    relative_width: Share = Field(default=0.02, gt=0, lt=1)
    minimum_samples: int = Field(default=20, ge=1)
    maximum_samples: int = Field(default=100_000, ge=1)
    warmup_samples: int = Field(default=10, ge=0)
    verify_messages: int = Field(default=2, ge=0)

    @model_validator(mode="after")
    def _samples_are_ordered(self) -> Experiment:
        if self.minimum_samples > self.maximum_samples:
            raise ValueError(f"minimum_samples {self.minimum_samples} is above maximum_samples {self.maximum_samples}")
        return self

    @model_validator(mode="after")
    def _parameters_are_of_the_layers(self) -> Experiment:
        for name, value in self.parameters.items():
            if name != "kernel" or set(self.layers) != {Layer.MEMORY}:
                raise ValueError(f"parameters: {name} is none of {', '.join(self.layers)}; there is kernel, of memory")
            if value not in MEMORY_KERNELS:
                raise ValueError(f"parameters.kernel: found {value!r}, needed one of {', '.join(MEMORY_KERNELS)}")
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


class CampaignTable(Model):
    """What a campaign says beside its experiments.

    `unfit` says what happens to a layer or a size that a fabric of the testbed cannot carry: `refuse` it, or `leave out`, as the
    presets do because they are made for any fabric. `margin` is the smallest difference between fabrics that matters.
    """

    name: str = Field(min_length=1)
    description: str = ""
    blocks: int = Field(default=6, ge=FEWEST_BLOCKS, le=MOST_BLOCKS)
    unfit: Literal["refuse", "leave out"] = "refuse"
    margin: Share = Field(default=0.02, gt=0, lt=1)


class Campaign(CampaignTable):
    """Experiments, and the number of blocks that each is repeated in."""

    experiments: tuple[Experiment, ...] = Field(min_length=1)


class CampaignFile(Model):
    """A campaign file: one `[campaign]` and an `[[experiment]]` for each experiment."""

    campaign: CampaignTable
    experiment: tuple[Experiment, ...] = Field(min_length=1)


def read_campaign(path: Path) -> Campaign:
    """Read a campaign file; UsageError lists what is wrong with it. Without a name it is called after its file."""
    return campaign_of(read_table(path), str(path))


def campaign_of(data: dict[str, Any], source: str) -> Campaign:
    """Return the campaign that a file's content describes; UsageError lists what is wrong, `source` says where."""
    table = data.get("campaign", {})
    if isinstance(table, dict):
        data = {**data, "campaign": {"name": Path(source).stem, **table}}
    file = validated(data, CampaignFile, source)
    return Campaign(**file.campaign.model_dump(), experiments=file.experiment)
