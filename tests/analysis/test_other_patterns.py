"""Other patterns beside ping-pong and stream: they are compared and named, and change nothing of the answer and the ladder."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.findings import CellKey
from fabricbench.analysis.wording import named_cell
from fabricbench.model import Layer, Metric, Pattern, Receive
from fabricbench.record.probe_plan import PlanCongestor
from fabricbench.report.terminal import render_terminal
from support.cell_keys import cell_key
from support.synthetic_run import SyntheticCell

from .conftest import MakeRun, scaled, two

ALL = (0, 1, 2, 3)
INCAST = PlanCongestor(layer=Layer.TCP, pattern=Pattern.INCAST, message_bytes=65536, ranks=(5, 2, 3))


def others() -> Sequence[SyntheticCell]:
    """Cells of other patterns in which the fabric that loses otherwise is twice as fast."""
    cells = [
        SyntheticCell(Layer.TCP, Pattern.RING, 65536, {"slow": 3.6e8}, ranks=ALL, samples=20, channels=4),
        SyntheticCell(Layer.TCP, Pattern.PAIRS, 64, {"slow": 9e4}, ranks=ALL),
        SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {"slow": 9e5}, congestor=INCAST),
        SyntheticCell(Layer.TCP, Pattern.PACED, 64, {"slow": 2e5}),
        SyntheticCell(
            Layer.UDP, Pattern.MESSAGE_RATE, 8, {"slow": 2e5}, ranks=ALL, samples=20, messages_per_sample=4000
        ),
        SyntheticCell(Layer.MPI, Pattern.BARRIER, 0, {"slow": 2e5}, receive=Receive.LIBRARY, ranks=ALL),
        SyntheticCell(Layer.MPI, Pattern.ALLREDUCE, 1024, {"slow": 4e5}, receive=Receive.LIBRARY, ranks=ALL, missed=3),
    ]
    return scaled(cells, {"one": lambda _: 1.0, "other": lambda _: 2.0})


@pytest.mark.slow
def test_the_answer_and_the_ladder_are_those_of_ping_pong_and_stream(make_run: MakeRun):
    basic = two(1 / 3.1, samples=40)
    alone = analyse([make_run(basic, "alone")])
    beside = analyse([make_run([*basic, *others()], "beside")])
    assert beside.headline.sentence.startswith("other is faster: small MPI messages 3.1 times quicker (")
    assert len(beside.headline.effects) == len(alone.headline.effects)
    assert [step.round_trip_message_bytes for step in beside.ladder] == [
        step.round_trip_message_bytes for step in alone.ladder
    ]
    for mine, theirs in zip(beside.ladder, alone.ladder, strict=True):
        assert (
            mine.round_trip is None
            or theirs.round_trip is None
            or mine.round_trip.value == pytest.approx(theirs.round_trip.value, rel=0.05)
        )


def test_every_pattern_is_compared_in_its_own_unit_and_named(make_run: MakeRun):
    findings = analyse([make_run(others())])
    assert {cell.verdict for cell in findings.cells} == {"A faster"}
    units = {(cell.pattern, cell.variant): cell.unit for cell in findings.cells}
    assert units == {
        ("ring", "4 ranks"): "bit/s",
        ("pairs", "4 ranks"): "ns",
        ("pingpong", "beside incast tcp 64 KiB of 3 ranks"): "ns",
        ("paced", ""): "ns",
        ("message-rate", "4 ranks"): "message/s",
        ("barrier", "4 ranks"): "ns",
        ("allreduce", "4 ranks"): "ns",
    }
    rate = next(one for one in findings.summaries if one.key.metric is Metric.MESSAGE_RATE and one.fabric == "one")
    assert rate.median.value == pytest.approx(2e5, rel=0.02)
    assert rate.mean == pytest.approx(2e5, rel=0.02)
    assert all(one.share_of_line_rate is None for one in findings.summaries)
    text = render_terminal(findings, 120, color=False)
    for words in ("tcp ring", "mpi allreduce", "udp message rate", "beside incast tcp 64 KiB"):
        assert words in text


CHAOS = PlanCongestor(layer=Layer.TCP, pattern=Pattern.CHAOS, message_bytes=1024, ranks=(2, 3, 4, 5))


@pytest.mark.parametrize(
    ("key", "words"),
    [
        (cell_key(Layer.MPI, Pattern.PINGPONG, 64), "mpi round trip of 64 B"),
        (
            cell_key(Layer.MPI, Pattern.PINGPONG, 64, congestor=CHAOS),
            "mpi (beside chaos tcp 1 KiB of 4 ranks) round trip of 64 B",
        ),
        (cell_key(Layer.MPI, Pattern.STREAM, 1024), "mpi throughput at 1 KiB"),
        (cell_key(Layer.MPI, Pattern.CHAOS, 1024, 4), "mpi (4 ranks) chaos throughput at 1 KiB"),
        (cell_key(Layer.MPI, Pattern.ALLREDUCE, 8, 4), "mpi (4 ranks) allreduce time of 8 B"),
        (cell_key(Layer.MPI, Pattern.BARRIER, 0, 4), "mpi (4 ranks) barrier time"),
        (cell_key(Layer.MPI, Pattern.MESSAGE_RATE, 8, 4), "mpi (4 ranks) message rate at 8 B"),
    ],
)
def test_a_sentence_names_the_pattern_unless_it_goes_without_saying(key: CellKey, words: str):
    assert named_cell(key, key.message_bytes) == words
