"""The base of every pydantic model of ours, and the vocabulary (layers, patterns, metrics) that they share."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema

from fabricbench.pattern_facts import Layer, Metric
from fabricbench.patterns import Pattern

__all__ = ["Layer", "Metric", "Model", "Pattern", "RdmaDoor", "RdmaEnd", "Receive"]


LARGEST_INTEGER = 2**63 - 1


def _bound_integers(schema: Any) -> None:
    """Bound every integer of a schema that has no bounds of its own, in place."""
    if isinstance(schema, dict):
        if schema.get("type") == "int":
            if "gt" not in schema:
                schema.setdefault("ge", -LARGEST_INTEGER - 1)
            if "lt" not in schema:
                schema.setdefault("le", LARGEST_INTEGER)
        for part in schema.values():
            _bound_integers(part)
    elif isinstance(schema, list | tuple):
        for part in schema:
            _bound_integers(part)


class Model(BaseModel):
    """A frozen value; an unknown key is an error, because a typo in a campaign must not be ignored.

    Validators are built when they are first used: a command uses few of those that it loads, and all would take 0.4 s.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants", defer_build=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return the schema, in which no integer is beyond 64 bits: tables and arrays hold none that is."""
        schema = handler(source)
        _bound_integers(schema)
        return schema


class RdmaEnd(Model):
    """Which port of which RDMA device a fabric is reached through, and by which of its addresses (GID); what is None is found."""

    device: str | None = Field(default=None, pattern=r"^[A-Za-z0-9_.-]{1,63}$")
    port: int | None = Field(default=None, ge=1, le=254)
    gid_index: int | None = Field(default=None, ge=0, le=1023)


LAST_GID_INDEX = 255
"""libibverbs has 8 bits for the index (`sgid_index`), also of a port whose table is longer; stored runs may name more."""


class RdmaDoor(StrEnum):
    """The ways into layer rdma that a cell asks for by its parameter `door`; the measurer knows which of them it has.

    send: send and receive, reliably connected. write: RDMA write with an immediate value, which completes at the receiver.
    write-poll: RDMA write, the receiver polls its memory. write-plain: RDMA write and nothing else, as perftest has it. read,
    atomic: what the other end takes no part in. datagram: send and receive without a connection.
    """

    SEND = "send"
    WRITE = "write"
    WRITE_POLL = "write-poll"
    WRITE_PLAIN = "write-plain"
    READ = "read"
    ATOMIC = "atomic"
    DATAGRAM = "datagram"


ONE_SIDED_DOORS = (RdmaDoor.READ, RdmaDoor.ATOMIC)
"""Those whose operations are one rank's alone: a round trip is one of them, with no answer of the other."""


class Receive(StrEnum):
    """How a receiver waits: asleep in the kernel, spinning on a non-blocking call, or as the MPI library does."""

    BLOCKING = "blocking"
    POLLING = "polling"
    LIBRARY = "library"
