"""The campaign of `fabricbench map`: every pair's latency and bandwidth, as short as a sound judgement allows. Pure."""

from __future__ import annotations

from fabricbench.campaign.specification import Campaign, Experiment
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Pattern

LATENCY_BYTES = 1024
"""Large enough that a slow link shows beside the cost of the hosts, small enough for one packet."""

STREAM_BYTES = 64 * 1024

SECONDS_A_PAIR = 0.05
SECONDS_A_STREAM = 0.25
"""Each way; a slow fabric's windows are 20 ms."""

LAYERS = (Layer.TCP, Layer.MPI)


def map_campaign(layer: str, blocks: int, hosts: int) -> Campaign:
    """Return the campaign for a testbed of so many hosts; UsageError where the layer has no byte stream."""
    if layer not in LAYERS:
        raise UsageError(
            f"--layer {layer} cannot be mapped", hint=f"choose one of {', '.join(LAYERS)}: both latency and bandwidth"
        )
    pairs = hosts * (hosts - 1) / 2
    return Campaign(
        name="map",
        description="every pair of nodes: latency and bandwidth",
        blocks=blocks,
        experiments=(
            _experiment(Layer(layer), Pattern.PAIRS, LATENCY_BYTES, pairs * SECONDS_A_PAIR),
            _experiment(Layer(layer), Pattern.PAIRS_STREAM, STREAM_BYTES, 2 * pairs * SECONDS_A_STREAM),
        ),
    )


def _experiment(layer: Layer, pattern: Pattern, message_bytes: int, seconds: float) -> Experiment:
    return Experiment(
        layers=(layer,),
        pattern=pattern,
        message_bytes=(message_bytes,),
        maximum_seconds=seconds,
        minimum_samples=5,
        warmup_samples=2,
        verify_messages=1,
    )
