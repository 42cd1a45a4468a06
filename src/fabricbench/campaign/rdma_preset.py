"""The campaign `rdma`: the table of the 2024 study of RoCE and InfiniBand, in one command.

Bandwidth by message size over 1, 4, 16 and 64 queue pairs, of one sender alone and of three to one receiver, and latency alone and
beside such an incast, through each door that the study has: send and receive, and RDMA write where the measurer has it. A latency
under many queue pairs is a ping-pong of one pair beside the queue pairs of others, for idle ones would load nothing. Sizes of which
too much would be under way for the slowest fabric are left out by the plan (`estimate.FLOOD_DRAIN_SECONDS`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fabricbench.campaign.pattern_presets import FLOWS, KIB, MIB, experiment, pingpongs
from fabricbench.campaign.specification import Campaign, Congestor, Experiment
from fabricbench.model import Layer, Pattern, RdmaDoor
from fabricbench.record.setup import Value

NAME = "rdma"

SIZES = (64, KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB)

LOADED_SIZES = (64, KIB, 4 * KIB)
"""Of a ping-pong beside 64 queue pairs, of which each has as much of the link as it: a large message would take seconds."""

LOAD_BYTES = 4 * KIB
"""Fills a link, and is a packet or four of it: what waits in a queue is the queue pairs' and not one message's."""

ALONE, INCAST = 2, 4
"""Ranks: a sender and a receiver, and three senders to one receiver as in the study."""

FEW_SECONDS, MANY_SECONDS = 0.2, 1.0
"""A message of each of many queue pairs takes its time; of few there are enough windows after a fifth of a second."""

LATENCY_SECONDS, LOADED_SECONDS = 0.1, 0.3

DOORS = (RdmaDoor.SEND, RdmaDoor.WRITE)


def rdma_campaign(doors: Iterable[str] = (RdmaDoor.SEND,)) -> Campaign:
    """Return the campaign for a measurer with these doors into layer rdma; sends are measured whichever it has."""
    there = {RdmaDoor.SEND.value, *doors}
    return Campaign(
        name=NAME,
        description="RDMA verbs: bandwidth and latency by size over 1 to 64 queue pairs, alone and three to one",
        blocks=6,
        unfit="leave out",
        experiments=tuple(each for door in DOORS if door in there for each in _through(door)),
    )


def _through(door: RdmaDoor) -> Iterator[Experiment]:
    # What is not asked for is a send: its cells read as those of any other layer.
    asked: dict[str, Value | tuple[Value, ...]] = {} if door is RdmaDoor.SEND else {"door": door.value}
    layers = (Layer.RDMA,)
    load = Congestor(
        pattern=Pattern.INCAST, message_bytes=(LOAD_BYTES,), ranks=INCAST - 1, parameters={"flows": FLOWS, **asked}
    )
    loaded = experiment(layers, Pattern.PINGPONG, LOADED_SIZES, LOADED_SECONDS, load)
    for each in (*pingpongs(layers, SIZES, LATENCY_SECONDS), loaded):
        yield each.model_copy(update={"parameters": asked})
    for ranks in (ALONE, INCAST):
        for flows, seconds in ((FLOWS[:2], FEW_SECONDS), (FLOWS[2:], MANY_SECONDS)):
            flood = experiment(layers, Pattern.INCAST, SIZES, seconds)
            yield flood.model_copy(update={"ranks": ranks, "parameters": {"flows": flows, **asked}})
