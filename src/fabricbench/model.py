"""The base of every pydantic model of ours, and the vocabulary (layers, patterns, metrics) that they share."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict

from fabricbench.patterns import Layer, Metric, Pattern

__all__ = ["Layer", "Metric", "Model", "Pattern", "Receive"]


class Model(BaseModel):
    """A frozen value; an unknown key is an error, because a typo in a campaign must not be ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class Receive(StrEnum):
    """How a receiver waits: asleep in the kernel, spinning on a non-blocking call, or as the MPI library does."""

    BLOCKING = "blocking"
    POLLING = "polling"
    LIBRARY = "library"
