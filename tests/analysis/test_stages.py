"""The stages of messages whose truth is known: each is found, whatever the hosts' clocks are apart, and what is unseen merges."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.findings import Findings, Interval
from fabricbench.analysis.findings.stages import Direction, Stage, StagedCell, StageDifference, StageOnFabric
from fabricbench.chapters import stage_figures, stages
from fabricbench.chapters.chapter import rows_of
from fabricbench.model import Layer, Pattern, Receive
from fabricbench.record.launch import LaunchSummary
from fabricbench.report import markdown
from fabricbench.report.cause_words import stage_words
from fabricbench.report.html import render_html
from fabricbench.report.terminal import render_terminal
from support.stamps import HOURS_NS, Stamped
from support.synthetic_run import WAY, SyntheticCell, stamped_cells_run, stamped_run, write_synthetic_run

SLOWER = {**WAY, "wire": 30_000.0}
MESSAGES = 60


def run_of(path: Path, receive: Receive = Receive.BLOCKING, **stamped: Stamped) -> Findings:
    return analyse([stamped_run(path, stamped, receive, MESSAGES)])


def both_ways(findings: Findings, fabric: str) -> Mapping[tuple[Stage, ...], float]:
    rows = rows_of(findings, "stages", StageOnFabric)
    return {row.parts: row.median.value for row in rows if row.way is Direction.BOTH and row.fabric == fabric}


def test_every_stage_is_found_where_the_switch_tells_of_its_frames(tmp_path: Path):
    found = both_ways(run_of(tmp_path, net=Stamped(WAY, WAY, apart_ns=0)), "net")
    assert {stage_words(parts): round(value / 2) for parts, value in found.items()} == {
        "library and socket": pytest.approx(600, rel=0.02),
        "queueing discipline": pytest.approx(300, rel=0.02),
        "driver": pytest.approx(150, rel=0.02),
        "wire": pytest.approx(5_000, rel=0.02),
        "switch": pytest.approx(2_000, rel=0.02),
        "emulator": pytest.approx(120, rel=0.02),
        "softirq, protocol and wake-up": pytest.approx(3_000, rel=0.02),
        "scheduler": pytest.approx(4_000, rel=0.02),
        "return": pytest.approx(1_700, rel=0.02),
        "application": pytest.approx(150, rel=0.02),
        "outside the stamps": pytest.approx(25, rel=0.05),
    }


MPI_WAY = {**WAY, "library": 700.0, "queue": 900.0, "return": 1_100.0, "delivery": 500.0}


def of_mpi(path: Path, *, apart_ns: int = 0, **fabrics: Stamped) -> Findings:
    cell = SyntheticCell(Layer.MPI, Pattern.PINGPONG, 64, {}, receive=Receive.LIBRARY, samples=MESSAGES)
    stamped = {name: replace(one, of_library=True, apart_ns=apart_ns) for name, one in fabrics.items()}
    return analyse([stamped_cells_run(path, (cell, stamped))])


def test_of_messages_of_mpi_the_library_is_told_from_the_kernel_on_both_sides(tmp_path: Path):
    findings = of_mpi(tmp_path, net=Stamped(MPI_WAY, MPI_WAY))
    assert {stage_words(parts): round(value / 2) for parts, value in both_ways(findings, "net").items()} == {
        "library": pytest.approx(700, rel=0.02),
        "socket, queueing discipline and driver": pytest.approx(900 + 150, rel=0.02),
        "wire": pytest.approx(5_000, rel=0.02),
        "switch": pytest.approx(2_000, rel=0.02),
        "emulator": pytest.approx(120, rel=0.02),
        "softirq, protocol and wake-up": pytest.approx(3_000, rel=0.02),
        "scheduler": pytest.approx(4_000, rel=0.02),
        "return": pytest.approx(1_100, rel=0.02),
        "delivery": pytest.approx(500, rel=0.02),
        "application": pytest.approx(150, rel=0.02),
        "outside the stamps": pytest.approx(25, rel=0.05),
    }
    (cell,) = rows_of(findings, "stage-cells", StagedCell)
    assert (cell.has_switch, cell.within, cell.complete) == (True, 1.0, cell.messages)
    said = " ".join(stages.CHAPTER.lines(findings))
    assert "socket, queueing discipline and driver are one stage, as are softirq, protocol and wake-up. Of" in said


def test_between_hosts_with_clocks_of_their_own_messages_of_mpi_are_in_the_kernel_and_the_fabric_at_once(
    tmp_path: Path,
):
    found = both_ways(of_mpi(tmp_path, apart_ns=HOURS_NS, net=Stamped(MPI_WAY, MPI_WAY)), "net")
    between = 2 * (900 + 150 + 5_000 + 2_000 + 120)
    parts = (Stage.SOCKET, Stage.QUEUEING, Stage.DRIVER, Stage.WIRE, Stage.SWITCH)
    assert found[parts] == pytest.approx(between, rel=0.01)
    assert sum(found.values()) == pytest.approx(2 * sum(MPI_WAY.values()) + 350, rel=0.01)


def test_a_library_that_asks_the_peer_before_it_sends_has_a_stage_for_that(tmp_path: Path):
    """The frame of the question is no frame of the message, whose wire would have the handshake too."""
    asking = {**MPI_WAY, "handshake": 40_000.0}
    found = both_ways(of_mpi(tmp_path, net=Stamped(asking, asking)), "net")
    assert found[Stage.HANDSHAKE,] == pytest.approx(80_000, rel=0.02)
    assert found[Stage.LIBRARY,] == pytest.approx(1_400, rel=0.02)
    assert found[Stage.WIRE,] == pytest.approx(10_000, rel=0.02)


def test_a_library_that_spins_wakes_nobody(tmp_path: Path):
    spinning = {**MPI_WAY, "waiting": 0.0}
    found = both_ways(of_mpi(tmp_path, net=Stamped(spinning, spinning, spins=True)), "net")
    assert found[Stage.SOFTIRQ, Stage.PROTOCOL, Stage.RETURN] == pytest.approx(2 * (3_000 + 1_100), rel=0.02)
    assert found[Stage.DELIVERY,] == pytest.approx(1_000, rel=0.02)


def test_messages_of_mpi_that_do_not_go_through_sockets_are_one_stage_and_it_is_said_why(tmp_path: Path):
    refused = dict.fromkeys(("called", "arrived", "drained"), "MPI has no connection of TCP from ib0")
    findings = of_mpi(tmp_path, net=Stamped(MPI_WAY, MPI_WAY, refused=refused))
    names = [stage_words(parts) for parts in both_ways(findings, "net")]
    assert names[0].startswith("library, socket, queueing discipline, driver, wire")
    assert any(
        "MPI library called the kernel to send it (MPI has no" in line for line in stages.CHAPTER.lines(findings)
    )


def test_what_messages_of_mpi_do_not_show_is_no_fault_of_messages_of_udp_in_the_same_launch(tmp_path: Path):
    refused = dict.fromkeys(("called", "arrived", "drained"), "MPI has no connection of TCP from ib0")
    mpi = SyntheticCell(Layer.MPI, Pattern.PINGPONG, 64, {}, receive=Receive.LIBRARY, samples=MESSAGES)
    udp = SyntheticCell(Layer.UDP, Pattern.PINGPONG, 64, {}, samples=MESSAGES)
    of_mpi = {"net": Stamped(MPI_WAY, MPI_WAY, refused=refused, of_library=True, apart_ns=0)}
    findings = analyse([stamped_cells_run(tmp_path, (udp, {"net": Stamped(WAY, WAY, apart_ns=0)}), (mpi, of_mpi))])
    cells = {one.key.layer: one for one in rows_of(findings, "stage-cells", StagedCell)}
    assert set(cells[Layer.MPI].refused) >= {"called", "drained"}
    assert cells[Layer.UDP].refused == {}
    rows = rows_of(findings, "stages", StageOnFabric)
    assert (Stage.SCHEDULER,) in {row.parts for row in rows if row.key.layer is Layer.UDP}


def test_what_an_earlier_version_told_of_a_rank_is_of_any_cell():
    of_rank = {"0": {"arrived": "no stamps"}}
    told = {"launch_id": "b00-net", "fabric": "net", "complete": True, "cells": 2, "failed": 0, "samples": 1}
    summary = LaunchSummary.model_validate({**told, "header": None, "footer": None, "refused_stages": of_rank})
    assert list(summary.refused_in(1)) == [("arrived", "no stamps")]
    assert LaunchSummary.model_validate_json(summary.model_dump_json()) == summary


def test_clocks_that_are_hours_apart_change_nothing_but_that_the_fabric_is_one_stage(tmp_path: Path):
    findings = run_of(tmp_path, net=Stamped(WAY, {**WAY, "wire": 9_000.0}))
    found = both_ways(findings, "net")
    between = 2 * (150 + 2_000 + 120) + 5_000 + 9_000
    assert found[Stage.DRIVER, Stage.WIRE, Stage.SWITCH] == pytest.approx(between, rel=0.01)
    assert sum(found.values()) == pytest.approx(2 * sum(WAY.values()) + 4_000 + 350, rel=0.01)
    (cell,) = rows_of(findings, "stage-cells", StagedCell)
    assert (cell.has_switch, cell.within, cell.messages, cell.complete) == (False, 1.0, 8 * MESSAGES, 8 * MESSAGES)
    assert "only the emulated switch of a lab tells more of it" in " ".join(stages.CHAPTER.lines(findings))


def test_what_hosts_do_not_show_merges_stages_under_both_names_and_is_said(tmp_path: Path):
    refused = {"resumed": "perf_event_open: Permission denied", "scheduled": "no stamps"}
    findings = run_of(tmp_path, net=Stamped(WAY, WAY, refused=refused))
    names = [stage_words(parts) for parts in both_ways(findings, "net")]
    assert "library, socket and queueing discipline" in names
    assert "softirq, protocol, wake-up, scheduler and return" in names
    assert any(
        "thread was switched in (perf_event_open: Permission denied)" in line for line in stages.CHAPTER.lines(findings)
    )


def test_receivers_that_spin_are_woken_by_nobody(tmp_path: Path):
    names = map(stage_words, both_ways(run_of(tmp_path, Receive.POLLING, net=Stamped(WAY, WAY)), "net"))
    assert "softirq, protocol and return" in names


def test_a_receiver_that_spins_and_shares_its_processor_waits_for_it(tmp_path: Path):
    """Ranks that spin on one processor took 13 ms of `softirq, protocol and return`."""
    waiting = {**WAY, "waking": 0.0, "waiting": 5_000_000.0}
    findings = run_of(tmp_path, Receive.POLLING, net=Stamped(waiting, waiting, apart_ns=0))
    found = {stage_words(parts): value / 2 for parts, value in both_ways(findings, "net").items()}
    assert found["scheduler"] == pytest.approx(5_000_000, rel=0.02)
    assert found["softirq, protocol and return"] == pytest.approx(1_700, rel=0.05)
    assert sum(found.values()) == pytest.approx(sum(waiting.values()) + 175, rel=0.01)
    assert any("waits for a processor take" in line for line in stages.CHAPTER.lines(findings))


def test_messages_that_lack_a_boundary_are_counted_by_it_and_left_out(tmp_path: Path):
    findings = run_of(tmp_path, net=Stamped(WAY, WAY, unseen={"departed": 3}))
    (cell,) = rows_of(findings, "stage-cells", StagedCell)
    assert (cell.messages - cell.complete, cell.missing) == (8 * 3, {"departed": 8 * 3})
    assert any(
        "Of 24 messages nobody saw when the driver was given it" in line for line in stages.CHAPTER.lines(findings)
    )


def test_a_difference_between_fabrics_is_placed_where_it_is(tmp_path: Path):
    findings = run_of(tmp_path, fast=Stamped(WAY, WAY, apart_ns=0), slow=Stamped(SLOWER, SLOWER, apart_ns=0))
    rows = rows_of(findings, "stage-differences", StageDifference)
    wire = next(row for row in rows if row.parts == (Stage.WIRE,))
    sign = 1.0 if wire.fabric_b == "slow" else -1.0
    assert sign * wire.difference.value == pytest.approx(50_000, rel=0.02)
    assert all(abs(row.difference.value) < 400 for row in rows if row.parts and row.parts != (Stage.WIRE,))
    (sentence,) = [line for line in stages.CHAPTER.lines(findings) if "longer on slow than on fast" in line]
    assert "more between the hosts" in sentence
    assert "the stage that differs most is wire, by 50." in sentence
    assert findings.headline.where == sentence


@pytest.mark.slow
def test_where_fabrics_differ_stands_on_the_first_screen_of_every_format(tmp_path: Path):
    findings = run_of(tmp_path, fast=Stamped(WAY, WAY, apart_ns=0), slow=Stamped(SLOWER, SLOWER, apart_ns=0))
    clear = "the stage that differs most is wire"
    assert clear in findings.headline.where
    assert clear not in findings.headline.detail
    marks = {
        "- Where: ": markdown.render(findings).decode(),
        "WHERE ": render_terminal(findings, 200, color=False),
        "<dt>Where</dt>": render_html(findings),
    }
    for mark, text in marks.items():
        begin = text.index(mark)
        assert clear in " ".join(text[begin : begin + 600].split())


def test_between_hosts_with_clocks_of_their_own_it_is_said_as_well_how_much_passes_there(tmp_path: Path):
    findings = run_of(tmp_path, fast=Stamped(WAY, WAY), slow=Stamped(SLOWER, SLOWER))
    (sentence,) = [line for line in stages.CHAPTER.lines(findings) if "longer on slow than on fast" in line]
    assert "the stage that differs most is driver, wire and switch, by 50." in sentence


@pytest.mark.slow
def test_what_the_emulation_adds_to_a_difference_is_no_stage_of_a_fabric(tmp_path: Path):
    """Named was the stage that differed most, the emulator among them, as if a fabric or a host took that time."""
    late = {**WAY, "wire": 8_000.0, "emulator": 20_120.0}
    findings = run_of(tmp_path, fast=Stamped(WAY, WAY, apart_ns=0), slow=Stamped(late, late, apart_ns=0))
    (sentence,) = [line for line in stages.CHAPTER.lines(findings) if "longer on slow than on fast" in line]
    assert re.search(
        r"differs most is wire, by (5\.9|6\.0)\d µs; of the whole (39\.9|40\.\d) µs are the emulation's own", sentence
    )


def test_what_the_emulation_takes_off_a_difference_is_told_where_a_stage_differs_by_more_than_all(tmp_path: Path):
    """Round trips took 21 us longer, and 37 us of them on the wire."""
    early = {**WAY, "emulator": 15_120.0}
    findings = run_of(tmp_path, fast=Stamped(early, early, apart_ns=0), slow=Stamped(SLOWER, SLOWER, apart_ns=0))
    (sentence,) = [line for line in stages.CHAPTER.lines(findings) if "longer on slow than on fast" in line]
    assert re.search(r"most is wire, by (49|50)\.\d µs; the emulation itself takes (29\.9|30\.\d) µs less\.$", sentence)


def test_a_stage_is_named_for_a_difference_only_where_it_is_shown_to_differ(tmp_path: Path):
    findings = run_of(tmp_path, fast=Stamped(WAY, WAY, apart_ns=0), slow=Stamped(SLOWER, SLOWER, apart_ns=0))
    rows = rows_of(findings, "stage-differences", StageDifference)
    open_rows = [
        row.model_copy(update={"difference": row.difference.model_copy(update={"low": -9e9, "high": 9e9})})
        if row.parts
        else row
        for row in rows
    ]
    (whole,) = [row for row in open_rows if not row.parts and not row.is_between]
    sentence = stages.difference_sentence(whole, [row for row in open_rows if row is not whole])
    assert sentence is not None
    assert sentence.endswith("in them; no single stage is shown to differ that way.")


def test_the_longest_stage_of_messages_in_turn_is_named_of_one_fabric_as_well(tmp_path: Path):
    said = stages.CHAPTER.lines(run_of(tmp_path, net=Stamped(WAY, WAY, apart_ns=0)))
    (line,) = [one for one in said if "longest stage" in one]
    assert re.fullmatch(
        r"udp ping-pong, blocking, 64 B: the longest stage of a round trip is wire, (9\.9\d|10\.\d+) µs on net \(2\d\.\d %\)\.",
        line,
    )


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        (
            ((-4e3, -9e3, 2e3), (2e3, 1e3, 3e3)),
            "Stamping takes 2 µs of a median round trip, in the 1 of 2 tests that show that it",
        ),
        (((1e3, 0.5e3, 2e3), (2e3, 1e3, 3e3)), "Stamping takes 1 µs to 2 µs of a median round trip: stages"),
        (((-4e3, -9e3, 2e3), (2e3, -1e3, 3e3)), "No test shows that stamping takes time of a median round trip"),
        (
            ((2e3, None, None), (2e3, None, None)),
            "So few launches give what stamping takes of a median round trip no interval",
        ),
    ],
)
def test_stamping_is_said_to_take_time_only_where_that_is_shown(
    tmp_path: Path, costs: Sequence[tuple[float, float | None, float | None]], said: str
):
    """It "took" -4.08 us to 30.2 us of a round trip: the ends of what was not shown to be other than 0."""
    findings = run_of(tmp_path, fast=Stamped(WAY, WAY), slow=Stamped(WAY, WAY))
    cells = [
        row.model_copy(update={"cost": Interval(value=value, low=low, high=high)})
        for row, (value, low, high) in zip(rows_of(findings, "stage-cells", StagedCell), costs, strict=True)
    ]
    told = findings.model_copy(update={"chapters": {**findings.chapters, "stage-cells": tuple(cells)}})
    (line,) = [one for one in stages.CHAPTER.lines(told) if "tamping takes" in one]
    assert line.replace("1.00", "1").replace("2.00", "2").startswith(said)


def test_stamped_cells_enter_no_comparison_and_their_cost_is_told(tmp_path: Path):
    findings = run_of(tmp_path, fast=Stamped(WAY, WAY), slow=Stamped(SLOWER, SLOWER))
    assert [one.key.parameters for one in findings.cells] == [()]
    assert {one.key.parameters for one in findings.summaries} == {()}
    for cell in rows_of(findings, "stage-cells", StagedCell):
        assert cell.cost is not None
        assert cell.cost.value == pytest.approx(1_000, abs=300)


def test_names_beside_the_bars_have_room_on_a_phone(tmp_path: Path):
    """`softirq, protocol and wake-up` lost its first letters at 360 px, and the title of the axis its last ones at 1,280."""
    figure = stage_figures.waterfall(run_of(tmp_path, net=Stamped(WAY, WAY)))
    assert figure is not None
    labels = {bar["stage"] for panel in figure.panels for bar in panel.spec["data"]["values"]}
    assert {"library and socket", "driver to switch", "softirq to wake-up"} <= labels
    assert max(map(len, labels)) <= len("queueing discipline")


def test_a_run_without_stamps_has_no_chapter(tmp_path: Path):
    plain = SyntheticCell(Layer.UDP, Pattern.PINGPONG, 64, {"net": 9_000.0}, samples=20)
    findings = analyse([write_synthetic_run(tmp_path, cells=[plain], blocks=3)])
    assert not stages.CHAPTER.lines(findings)
    assert not stages.CHAPTER.tables_with_rows(findings)
    assert stage_figures.waterfall(findings) is None
