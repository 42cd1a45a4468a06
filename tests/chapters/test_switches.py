"""Switches whose truth is known: line rate, forwarding, delay and buffer are found, and what data do not tell is not said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.findings import Findings, Interval
from fabricbench.analysis.findings.switches import (
    Change,
    FabricSwitch,
    Forwarding,
    FrameDifference,
    Seen,
    SwitchUnknown,
    WhatIf,
)
from fabricbench.chapters import switches, what_if
from fabricbench.chapters.chapter import rows_of
from fabricbench.lab import parse_fabric
from fabricbench.model import Layer, Pattern
from fabricbench.report import markdown
from fabricbench.report.comma_separated import findings_csv
from fabricbench.report.terminal import render_terminal
from fabricbench.testbed.wire import datagram_frames
from support.stamps import Stamped
from support.synthetic_run import WAY, Noise, SyntheticCell, stamped_run, synthetic_testbed, write_synthetic_run

SIZES = (64, 256, 512, 1024, 1472)
HOST_NS = sum(length for stage, length in WAY.items() if stage not in ("wire", "switch", "driver", "emulator"))
FABRICS = {
    "stored": parse_fabric("gigabit-ethernet:delay=2us"),
    "at-once": parse_fabric("gigabit-ethernet:delay=2us,switching=cut-through"),
    "cable": parse_fabric("gigabit-ethernet:delay=2us,switching=none,latency=0s"),
}
IP_AND_UDP = 28 + 14


def wire_ns(fabric: str, message_bytes: int) -> float:
    """What a message takes between the hosts, ns, by the lab's own arithmetic."""
    *_, largest = frames = sorted(datagram_frames(Layer.UDP, message_bytes, 1500))
    link = FABRICS[fabric]
    behind = sum(link.wire.serialisation_s(one) for one in frames) - link.wire.serialisation_s(largest)
    return 1e9 * (link.added_delay_s(largest) + behind)


def rate_of(fabric: str) -> float:
    """What datagrams of one full frame carry, bit/s."""
    return FABRICS[fabric].wire.payload_rate_bit_s(Layer.UDP, 1472, 1500) or 0.0


def way(fabric: str, message_bytes: int) -> dict[str, float]:
    return {**WAY, "driver": 0.0, "emulator": 0.0, "switch": 0.0, "wire": wire_ns(fabric, message_bytes)}


def cells(
    fabrics: tuple[str, ...], sizes: tuple[int, ...], *, has_stages: bool, streamed: float = 1.0
) -> Iterator[SyntheticCell]:
    for size in sizes:
        trip = {name: 2.0 * (HOST_NS + wire_ns(name, size)) + 350.0 for name in fabrics}
        yield SyntheticCell(Layer.UDP, Pattern.PINGPONG, size, trip, samples=60)
        if has_stages:
            stamped = {name: Stamped(way(name, size), way(name, size)) for name in fabrics}
            parameters: dict[str, str | int | float] = {"stages": "user"}
            yield SyntheticCell(
                Layer.UDP, Pattern.PINGPONG, size, trip, parameters=parameters, stamped=stamped, samples=60
            )
    rates = {name: streamed * rate_of(name) for name in fabrics}
    yield SyntheticCell(Layer.UDP, Pattern.STREAM, 1472, rates, samples=8, messages_per_sample=64)


def findings_of(
    path: Path,
    *fabrics: str,
    sizes: tuple[int, ...] = SIZES,
    has_stages: bool = True,
    more: tuple[SyntheticCell, ...] = (),
) -> Findings:
    testbed = synthetic_testbed(dict.fromkeys(fabrics, 1e9))
    made = [*cells(fabrics, sizes, has_stages=has_stages), *more]
    noise = Noise(launch=0.001, sample=0.005)
    return analyse([write_synthetic_run(path, cells=made, blocks=8, noise=noise, testbed=testbed)])


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    return findings_of(tmp_path_factory.mktemp("run") / "run", *FABRICS)


def switch_of(findings: Findings, fabric: str) -> FabricSwitch:
    return next(one for one in rows_of(findings, switches.NAME, FabricSwitch) if one.fabric == fabric)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fabric", "forwarding", "count", "delay_ns"),
    [
        ("stored", Forwarding.STORED, 2.0, 7_000.0),
        ("at-once", Forwarding.AT_ONCE, 1.0, 7_000.0 + 64 * 8),
        ("cable", Forwarding.AT_ONCE, 1.0, 2_000.0),
    ],
)
def test_rate_forwarding_and_delay_are_those_that_were_put_in(
    findings: Findings, fabric: str, forwarding: Forwarding, count: float, delay_ns: float
):
    found = switch_of(findings, fabric)
    assert found.seen is Seen.BETWEEN_HOSTS
    assert found.sizes == SIZES
    assert found.forwarding is forwarding
    assert found.serialisations is not None
    assert found.serialisations.value == pytest.approx(count, rel=0.05)
    assert found.line_rate_bit_s is not None
    assert found.line_rate_bit_s.value == pytest.approx(1e9, rel=0.01)
    assert found.delay_ns is not None
    assert found.delay_ns.value == pytest.approx(delay_ns, rel=0.05)
    assert found.delay_ns.low is not None
    assert 0.0 <= found.delay_ns.low <= found.delay_ns.value


def test_what_a_switch_adds_to_a_cable_of_the_same_rate_is_told_of_the_smallest_and_the_largest_frame(
    findings: Findings,
):
    found = {
        one.key.message_bytes: one
        for one in rows_of(findings, switches.DIFFERENCES, FrameDifference)
        if {one.fabric_a, one.fabric_b} == {"stored", "cable"}
    }
    assert found.keys() == {64, 1472}
    for size, one in found.items():
        assert abs(one.difference.value) == pytest.approx(wire_ns("stored", size) - wire_ns("cable", size), rel=0.02)


def test_a_cable_whose_delay_comes_out_below_0_takes_nothing_that_is_told(findings: Findings):
    cable = switch_of(findings, "cable").model_copy(update={"delay_ns": Interval(value=0.0, low=0.0, high=0.0)})
    told = findings.model_copy(update={"chapters": {switches.NAME: (cable,)}})
    assert any(
        line.endswith("and takes nothing that these times tell beside.") for line in switches.CHAPTER.lines(told)
    )


def test_every_format_shows_them_and_marks_what_is_predicted(findings: Findings):
    for name, text in {
        "text": render_terminal(findings, 160, color=False),
        "markdown": markdown.render(findings).decode(),
    }.items():
        told = " ".join(text.replace("\N{NO-BREAK SPACE}", " ").split())
        assert switches.CHAPTER.title in told, name
        assert "store-and-forward: a frame is serialised " in told, name
        assert what_if.CHAPTER.title in told, name
        assert "PREDICTED by a model, not measured" in told, name
    written = findings_csv(findings)
    assert {switches.NAME, switches.DIFFERENCES, what_if.NAME} <= written.keys()
    assert not any("{" in written[name] for name in (switches.NAME, what_if.NAME)), "no row holds an object"
    assert all("predicted" in line for line in written[what_if.NAME].splitlines()[1:])


def test_round_trips_over_another_fabric_are_predicted_from_the_first_alone(findings: Findings):
    rows = [one for one in rows_of(findings, what_if.NAME, WhatIf) if one.change is Change.FABRIC]
    assert {(one.fabric, one.other) for one in rows} == {(a, b) for a in FABRICS for b in FABRICS if a != b}
    for one in rows:
        assert one.measured is not None
        assert one.off is not None
        assert abs(one.off) < 0.02


def test_another_forwarding_and_rate_are_predicted_by_arithmetic(findings: Findings):
    rows = {
        one.change: one
        for one in rows_of(findings, what_if.NAME, WhatIf)
        if one.fabric == "stored" and one.key.message_bytes == 1472
    }
    at_once = 2.0 * (HOST_NS + wire_ns("at-once", 1472)) + 350.0
    assert rows[Change.FORWARDING].predicted.value == pytest.approx(at_once, rel=0.02)
    faster = 1e9 * FABRICS["stored"].model_copy(update={"line_rate_bit_s": 1e10}).added_delay_s(1472 + IP_AND_UDP)
    assert rows[Change.LINE_RATE].predicted.value == pytest.approx(2.0 * (HOST_NS + faster) + 350.0, rel=0.02)
    trip = 2.0 * (HOST_NS + wire_ns("stored", 1472)) + 350.0
    spinning = trip - 2.0 * (WAY["waking"] + WAY["waiting"])
    assert rows[Change.NO_WAKING].predicted.value == pytest.approx(spinning, rel=0.02)
    assert rows[Change.NO_WAKING].is_bound
    assert rows[Change.BYPASS].predicted.value < rows[Change.NO_WAKING].predicted.value


def test_where_hosts_bound_streams_messages_of_several_frames_tell_the_rate(tmp_path: Path):
    made = list(cells(("stored",), (*SIZES, 4000, 16384), has_stages=True, streamed=0.6))
    testbed = synthetic_testbed({"stored": 1e9})
    found = analyse(
        [write_synthetic_run(tmp_path / "run", cells=made, blocks=8, noise=Noise(0.001, 0.005), testbed=testbed)]
    )
    one = switch_of(found, "stored")
    assert one.rate_key is not None
    assert one.rate_key.pattern is Pattern.PINGPONG
    assert one.line_rate_bit_s is not None
    assert one.line_rate_bit_s.value == pytest.approx(1e9, rel=0.03)
    assert (one.forwarding, one.sizes) == (Forwarding.STORED, SIZES)


def test_without_stamps_the_delay_is_at_most_what_hosts_are_part_of(tmp_path: Path):
    found = findings_of(tmp_path / "run", "stored", has_stages=False)
    one = switch_of(found, "stored")
    assert (one.seen, one.forwarding) == (Seen.ROUND_TRIPS, Forwarding.STORED)
    assert "hosts included" in " ".join(switches.CHAPTER.lines(found))
    assert what_if.NAME not in found.chapters


def test_no_host_makes_a_round_trip_shorter_than_its_links(tmp_path: Path):
    """A bypass over a cable was predicted to take 0.9 us of the 2.1 that its frames take: the emulation calls a little early."""
    early = {**WAY, "emulator": -3_000.0}
    found = analyse([stamped_run(tmp_path, {"net": Stamped(early, early, apart_ns=0)})])
    links = 2.0 * (WAY["wire"] + WAY["switch"])
    (bypass,) = [one for one in rows_of(found, what_if.NAME, WhatIf) if one.change is Change.BYPASS]
    assert bypass.predicted.value == pytest.approx(links, rel=0.01)


def test_few_sizes_without_stamps_are_no_chapter(tmp_path: Path):
    found = findings_of(tmp_path / "run", "stored", sizes=SIZES[:3], has_stages=False)
    assert switches.NAME not in found.chapters


def test_without_a_stream_it_is_said_what_to_measure(tmp_path: Path):
    made = [one for one in cells(("stored",), SIZES, has_stages=True) if one.pattern is not Pattern.STREAM]
    testbed = synthetic_testbed({"stored": 1e9})
    found = analyse([write_synthetic_run(tmp_path / "run", cells=made, blocks=8, testbed=testbed)])
    one = switch_of(found, "stored")
    assert one.forwarding is None
    assert one.lacking["forwarding"] is SwitchUnknown.RATE
    assert any("cannot say the line rate or forwarding: no stream" in line for line in switches.CHAPTER.lines(found))


@pytest.mark.slow
def test_what_cannot_be_said_of_any_fabric_is_one_sentence_and_no_table_of_dashes(tmp_path: Path):
    made = [one for one in cells(("stored", "at-once"), SIZES, has_stages=True) if one.pattern is not Pattern.STREAM]
    testbed = synthetic_testbed({"stored": 1e9, "at-once": 1e9})
    found = analyse([write_synthetic_run(tmp_path / "run", cells=made, blocks=8, testbed=testbed)])
    (line,) = switches.CHAPTER.lines(found)
    assert line.startswith("stored and at-once: cannot say the line rate or forwarding: no stream was measured")
    assert not switches.CHAPTER.tables_with_rows(found)


SLOW, FAST = 0.2, 1.0
BUFFER_BYTES = 64 * 1024


def bursts(lossless: int, *lossy: int) -> tuple[SyntheticCell, ...]:
    """Bursts over a path whose receiver has a slower link, the stream to it, and one of the sender to another node."""
    rate = rate_of("stored")
    streams = [
        SyntheticCell(Layer.UDP, Pattern.STREAM, 1472, {"stored": share * rate}, ranks=ranks, samples=8)
        for share, ranks in ((SLOW, (0, 1)), (FAST, (0, 2)))
    ]
    made = [
        SyntheticCell(
            Layer.UDP,
            Pattern.BURST,
            1472,
            {"stored": 1e6},
            parameters={"messages": messages},
            messages_per_sample=messages,
            samples=4,
            lost=lost,
        )
        for messages, lost in ((lossless, 0), *((messages, 1) for messages in lossy))
    ]
    return (*streams, *made)


def buffer_findings(path: Path, made: tuple[SyntheticCell, ...]) -> Findings:
    testbed = synthetic_testbed({"stored": 1e9}, nodes=3)
    run = write_synthetic_run(path, cells=list(made), blocks=6, noise=Noise(0.0, 0.0), testbed=testbed)
    return analyse([run])


def test_the_buffer_is_told_by_the_first_burst_that_loses(tmp_path: Path):
    frame = 1472 + IP_AND_UDP + 24
    first_lost = next(k for k in range(1, 1000) if frame * (1.0 + (k - 1) * (FAST - SLOW)) > BUFFER_BYTES)
    found = buffer_findings(tmp_path / "run", bursts(first_lost - 1, first_lost, 2 * first_lost))
    buffer = switch_of(found, "stored").buffer
    assert buffer is not None
    assert (buffer.lossless, buffer.lossy, buffer.frame_bytes) == (first_lost - 1, first_lost, frame)
    assert buffer.low_bytes <= BUFFER_BYTES <= buffer.high_bytes
    assert buffer.high_bytes - buffer.low_bytes < frame
    assert buffer.frames_low <= BUFFER_BYTES // frame <= buffer.frames_high
    assert f"one of {first_lost} does not" in " ".join(switches.CHAPTER.lines(found))


def test_bursts_between_are_told_as_the_next_to_measure(tmp_path: Path):
    found = buffer_findings(tmp_path / "run", bursts(16, 128))
    one = switch_of(found, "stored")
    assert all(16 < messages < 128 for messages in one.to_measure)
    assert any(f"messages = [{one.to_measure[0]}," in line for line in switches.CHAPTER.lines(found))


def test_bursts_over_links_of_one_rate_tell_no_buffer(tmp_path: Path):
    made = tuple(one for one in bursts(16, 128) if one.ranks != (0, 2))
    one = switch_of(buffer_findings(tmp_path / "run", made), "stored")
    assert one.buffer is None
    assert one.lacking["buffer"] is SwitchUnknown.FASTER_SENDER


def test_bursts_of_which_none_lost_or_all_did_say_which_to_measure(tmp_path: Path):
    one = switch_of(buffer_findings(tmp_path / "none", bursts(16)), "stored")
    assert (one.lacking["buffer"], one.to_measure) == (SwitchUnknown.NO_LOSS, (32,))
    made = tuple(cell for cell in bursts(1, 16) if cell.parameters.get("messages") != 1)
    one = switch_of(buffer_findings(tmp_path / "all", made), "stored")
    assert (one.lacking["buffer"], one.to_measure) == (SwitchUnknown.ALL_LOST, (8,))
