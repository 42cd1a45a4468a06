"""Whether switches are found as a lab was told them, and predictions hold: `python -m benchmarks.switches [what] [--fabrics ...]`.

`switches`: the campaign `switch` over every preset: line rate, forwarding and delay from measurements alone, beside what the switch
was told (the framing is the testbed's). `buffers`: bursts to a node whose link has a fifth of the rate, narrowed run by run as the
chapter says, until one frame more makes the loss. `predictions`: two fabrics of one lab that differ in rate, delay and forwarding:
round trips over each are predicted from the other alone. Prints the tables of docs/explain.md, with the load of the machine.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fabricbench.analysis import analyse
from fabricbench.analysis.findings import Findings, Interval
from fabricbench.analysis.findings.switches import Buffer, Change, FabricSwitch, Forwarding, WhatIf
from fabricbench.analysis.sides import read_sides
from fabricbench.analysis.switches import buffer_of, bursts_of, line_rate
from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.presets import preset
from fabricbench.campaign.run import start_run
from fabricbench.campaign.specification import Campaign, Experiment
from fabricbench.campaign.venue import OwnLab
from fabricbench.chapters import switches, what_if
from fabricbench.chapters.chapter import rows_of
from fabricbench.lab import parse_fabric
from fabricbench.lab.fabric import EmulatedFabric, Switching
from fabricbench.lab.presets import PRESETS
from fabricbench.model import Layer, Pattern
from fabricbench.quantity import format_bit_s
from fabricbench.record.store import Run
from fabricbench.testbed.wire import ETHERNET_HEADER_BYTES, IP_HEADER_BYTES, UDP_HEADER_BYTES

SLOWER = 5
"""Times is the receiver's link slower in the runs of bursts: what the ratio of both rates is off by counts little."""
MOST_MESSAGES = 4096
FIRST_BURSTS = tuple(sorted({round(16 * 1.5**step) for step in range(14)} | {MOST_MESSAGES}))
MOST_RUNS = 7
LEAST_BURSTS = 8
"""Of the longest length of which all came whole."""
SHORT_SECONDS, LONG_SECONDS = 0.5, 2.0
"""Of streams while bursts are narrowed down, and for the ratio of the links' rates in the end."""
CABLE_NS = 10e3
"""The delay of the cable that a switch is set beside: above what the emulation takes at least."""
HEADERS = UDP_HEADER_BYTES + IP_HEADER_BYTES + ETHERNET_HEADER_BYTES
PREDICTED = (
    "a=gigabit-ethernet:rate=1Gbit/s,delay=20us",
    "b=gigabit-ethernet:rate=300Mbit/s,delay=60us,switching=cut-through",
)


def measured(campaign: Campaign, fabrics: Sequence[str], nodes: int, output: Path) -> Findings:
    if (output / "manifest.json").exists():  # of a benchmark before, to be shown again
        return analyse([Run.open(output)])
    venue = OwnLab(nodes=nodes, fabrics=tuple(parse_fabric(one) for one in fabrics))
    plan = plan_run(campaign, venue.testbed(), seed=1)
    start_run(output, campaign, venue, plan, notify=lambda _: None)
    return analyse([Run.open(output)])


def off(value: float, told: float) -> str:
    return f"{100.0 * (value / told - 1.0):+.1f} %"


def with_ends(one: Interval, scale: float) -> str:
    ends = "" if one.low is None or one.high is None else f" ({one.low / scale:.2f} to {one.high / scale:.2f})"
    return f"{one.value / scale:.2f}{ends}"


def told_delay_ns(fabric: EmulatedFabric) -> float:
    """Return what a full frame takes beside being serialised once or twice, ns."""
    links = 2 if fabric.switching is Switching.STORE_AND_FORWARD else 1
    frame = fabric.mtu + ETHERNET_HEADER_BYTES
    return 1e9 * (fabric.added_delay_s(frame) - links * fabric.wire.serialisation_s(frame))


def cable_like(fabric: EmulatedFabric) -> str:
    """Return a cable of the same rate and framing: what the emulation adds is in both, and not in their difference."""
    cell = "none" if fabric.cell is None else f"{fabric.cell.payload_bytes}/{fabric.cell.cell_bytes}"
    return (
        f"cable=gigabit-crossover:rate={fabric.line_rate_bit_s / 1e6:g}Mbit/s,delay={CABLE_NS / 1e3:g}us,mtu={fabric.mtu},"
        f"overhead={fabric.overhead_bytes},minimum={fabric.minimum_bytes},cell={cell}"
    )


COLUMNS = (
    "fabric",
    "line rate, Mbit/s",
    "off",
    "serialised",
    "forwards",
    "as told",
    "beside, µs",
    "told",
    "off, µs",
    "less a cable's, µs",
    "told",
    "off, µs",
)


def show_switches(fabrics: Sequence[str], blocks: int, folder: Path) -> None:
    print(f"| {' | '.join(COLUMNS)} |\n|{' --- |' * len(COLUMNS)}")
    for name in fabrics:
        campaign = preset("switch").model_copy(update={"blocks": blocks})
        findings = measured(campaign, [name, cable_like(PRESETS[name])], 2, folder / f"switch-{name}")
        rows = {one.fabric: one for one in rows_of(findings, switches.NAME, FabricSwitch)}
        print(f"| {' | '.join(switch_row(PRESETS[name], rows[name], rows['cable']))} |", flush=True)


def switch_row(fabric: EmulatedFabric, found: FabricSwitch, cable: FabricSwitch) -> list[str]:
    is_stored = fabric.switching is Switching.STORE_AND_FORWARD
    wanted = Forwarding.STORED if is_stored else Forwarding.AT_ONCE
    rate, count, delay, told = found.line_rate_bit_s, found.serialisations, found.delay_ns, told_delay_ns(fabric)
    assert rate is not None
    assert count is not None
    row = [fabric.name, with_ends(rate, 1e6), off(rate.value, fabric.line_rate_bit_s), with_ends(count, 1.0)]
    row += (
        ["-", "**no**"]
        if found.forwarding is None
        else [found.forwarding, "yes" if found.forwarding is wanted else "**no**"]
    )
    if delay is None or cable.delay_ns is None:
        return [*row, *["-"] * 6]
    less, told_less = delay.value - cable.delay_ns.value, told - CABLE_NS
    return [
        *row,
        *(with_ends(delay, 1e3), f"{told / 1e3:.2f}", f"{(delay.value - told) / 1e3:+.2f}"),
        *(f"{less / 1e3:+.2f}", f"{told_less / 1e3:+.2f}", f"{(less - told_less) / 1e3:+.2f}"),
    ]


def bursts_campaign(messages: Sequence[int], message_bytes: int, blocks: int, stream_seconds: float) -> Campaign:
    full = (message_bytes,)
    return Campaign(
        name="bursts",
        blocks=blocks,
        experiments=(
            Experiment(
                layers=(Layer.UDP,),
                pattern=Pattern.BURST,
                message_bytes=full,
                parameters={"messages": tuple(messages)},
                maximum_seconds=0.5,
                warmup_samples=1,
            ),
            # TCP backs off where the slower link drops, and leaves some of its rate; datagrams fill it.
            Experiment(
                layers=(Layer.UDP,),
                pattern=Pattern.STREAM,
                message_bytes=full,
                ranks=(0, 1),
                maximum_seconds=stream_seconds,
                minimum_seconds=stream_seconds,
            ),
            Experiment(
                layers=(Layer.TCP,),
                pattern=Pattern.STREAM,
                message_bytes=(65536,),
                ranks=(0, 2),
                maximum_seconds=stream_seconds,
                minimum_seconds=stream_seconds,
            ),
        ),
    )


def narrowed(name: str, blocks: int, folder: Path) -> tuple[Buffer | None, int]:
    """Return the buffer that bursts tell in the end, and how many runs that took.

    What is known of each length of a burst is kept over all runs: a sender that others hold up leaves gaps, so that a burst may
    come whole that would not have, and none is lost that would have come.
    """
    fabric = PRESETS[name]
    slow = f"{name}:n1.rate={fabric.line_rate_bit_s / SLOWER / 1e6:g}Mbit/s"
    full = fabric.mtu - HEADERS + ETHERNET_HEADER_BYTES
    known: dict[int, tuple[int, int]] = {}

    def told(campaign: Campaign, number: int) -> tuple[Buffer | None, tuple[int, ...]]:
        measured(campaign, [slow], 3, folder / f"bursts-{name}-{number}")
        (side,) = read_sides([Run.open(folder / f"bursts-{name}-{number}")])
        ((key, group),) = bursts_of(side).items()
        for messages, (lost, bursts) in group.items():
            lost_before, bursts_before = known.get(messages, (0, 0))
            known[messages] = lost_before + lost, bursts_before + bursts
        buffer, to_measure, _ = buffer_of(side, line_rate(side), {key: known})
        return buffer, to_measure

    messages: Sequence[int] = FIRST_BURSTS
    buffer = None
    for number in range(MOST_RUNS):
        buffer, messages = told(bursts_campaign(messages, full, 1, SHORT_SECONDS), number)
        if buffer is not None and buffer.lossy - buffer.lossless == 1:
            if known[buffer.lossless][1] >= LEAST_BURSTS:
                break
            messages = (buffer.lossless, buffer.lossy)
        if not messages:
            return buffer, number + 1
    if buffer is None:
        return None, MOST_RUNS
    return told(bursts_campaign((buffer.lossless, buffer.lossy), full, blocks, LONG_SECONDS), number + 1)[0], number + 2


def show_buffers(fabrics: Sequence[str], blocks: int, folder: Path) -> None:
    print(
        "| fabric | whole | lost | rates, out/in | buffer found, B | told, B | frames found | told | within one frame | runs |"
    )
    print("| --- | --: | --: | --: | --: | --: | --: | --: | --- | --: |")
    for name in fabrics:
        fabric = PRESETS[name]
        if fabric.is_cable:
            continue
        one, runs = narrowed(name, blocks, folder)
        if one is None:
            print(f"| {name} | not found in {runs} runs |", flush=True)
            continue
        told = fabric.port_buffer_bytes
        is_within = "yes" if is_near(one, told) else "**no**"
        print(
            f"| {name} | {one.lossless} | {one.lossy} | {one.ratio:.4f} | {one.low_bytes:.0f} to {one.high_bytes:.0f} | {told} "
            f"| {one.frames_low} to {one.frames_high} | {told // one.frame_bytes} | {is_within} | {runs} |",
            flush=True,
        )


def is_near(one: Buffer, told_bytes: int) -> bool:
    """Whether the buffer is found within one frame."""
    return one.low_bytes - one.frame_bytes <= told_bytes <= one.high_bytes + one.frame_bytes


def show_predictions(blocks: int, folder: Path) -> None:
    more = Experiment(
        layers=(Layer.TCP,),
        pattern=Pattern.PINGPONG,
        message_bytes=(64, 1024, 8192, 32768),
        maximum_seconds=0.2,
        minimum_seconds=0.2,
    )
    usual = preset("switch")
    campaign = usual.model_copy(update={"blocks": blocks, "experiments": (*usual.experiments, more)})
    findings = measured(campaign, PREDICTED, 2, folder / "predictions")
    rows = [one for one in rows_of(findings, what_if.NAME, WhatIf) if one.change is Change.FABRIC]
    print("| from | over the links of | message | predicted, us | measured, us | off |")
    print("| --- | --- | --- | --: | --: | --: |")
    for one in rows:
        if one.measured is None or one.off is None:
            continue
        print(
            f"| {one.fabric} | {one.other} | {one.key.layer.value}, {one.key.message_bytes} B | {with_ends(one.predicted, 1e3)} "
            f"| {with_ends(one.measured, 1e3)} | {100 * one.off:+.1f} % |"
        )
    errors = np.abs([one.off for one in rows if one.off is not None])
    print(
        f"\n{len(errors)} predictions: off by {100 * np.median(errors):.1f} % in the median, {100 * errors.max():.1f} % at worst"
    )
    print(
        f"a: {PREDICTED[0]}, b: {PREDICTED[1]}; rates told {[format_bit_s(parse_fabric(one).line_rate_bit_s) for one in PREDICTED]}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="*", default=["switches", "buffers", "predictions"])
    parser.add_argument("--fabrics", nargs="+", default=list(PRESETS), choices=list(PRESETS))
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--burst-blocks", type=int, default=5)
    parser.add_argument("--output", type=Path, help="where runs are kept; those that are there are shown")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.output or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if "switches" in options.what:
            show_switches(options.fabrics, options.blocks, folder)
        if "buffers" in options.what:
            show_buffers(options.fabrics, options.burst_blocks, folder)
        if "predictions" in options.what:
            show_predictions(options.blocks, folder)
    print(f"\nload average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")


if __name__ == "__main__":
    main()
