"""LogGOPS of a run whose truth is known: parameters, misfits, penalties, and the file that others read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.findings import Findings
from fabricbench.analysis.findings.loggops import CurveFit, FitOf, LogGops, Penalty
from fabricbench.chapters import loggops
from fabricbench.chapters.chapter import rows_of
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Pattern, Receive
from fabricbench.record.store import Run
from fabricbench.report import markdown
from fabricbench.report.comma_separated import findings_csv
from fabricbench.report.formats import FORMATS, Format
from fabricbench.report.terminal import render_terminal
from support.synthetic_run import Noise, SyntheticCell, synthetic_testbed, write_synthetic_run

SIZES = tuple(64 * 2**power for power in range(12))
EMPTY_NS, PER_BYTE_NS, GAP_NS, STREAMED_NS, JUMP_NS = 40e3, 9.0, 2e3, 8.5, 60e3


def one_way(layer: Layer, size: int) -> float:
    """What a lone message takes: over MPI a protocol with another start-up carries those above 8 KiB."""
    return EMPTY_NS + PER_BYTE_NS * size + (JUMP_NS if layer is Layer.MPI and size > 8192 else 0.0)


def run_of(path: Path, sizes: tuple[int, ...] = SIZES) -> Run:
    cells = []
    for layer, receive in ((Layer.TCP, Receive.BLOCKING), (Layer.MPI, Receive.LIBRARY)):
        for size in sizes:
            trip = {"net": 2 * one_way(layer, size)}
            cells.append(SyntheticCell(layer, Pattern.PINGPONG, size, trip, receive=receive, samples=30, warmup=2))
    for size in sizes:
        rate = 8e9 * size / max(GAP_NS, STREAMED_NS * size)
        stream = {"net": rate}
        cells.append(SyntheticCell(Layer.TCP, Pattern.STREAM, size, stream, samples=8, messages_per_sample=16))
        turn = {"net": EMPTY_NS + 2 * PER_BYTE_NS * size}
        cells.append(SyntheticCell(Layer.TCP, Pattern.EXCHANGE, size, turn, ranks=(0, 1, 2, 3), samples=30, warmup=2))
        incast = {"net": rate / 1.5}
        ranks = (0, 1, 2, 3)
        cells.append(
            SyntheticCell(Layer.TCP, Pattern.INCAST, size, incast, ranks=ranks, samples=8, messages_per_sample=16)
        )
    testbed = synthetic_testbed({"net": 1e9}, nodes=4)
    return write_synthetic_run(path, cells=cells, blocks=8, noise=Noise(launch=0.01, sample=0.01), testbed=testbed)


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    return analyse([run_of(tmp_path_factory.mktemp("run") / "run")])


def test_parameters_of_each_layer_are_those_that_were_put_in(findings: Findings):
    found = {one.key.layer: one for one in rows_of(findings, loggops.NAME, LogGops)}
    assert found.keys() == {Layer.TCP, Layer.MPI}
    tcp, mpi = found[Layer.TCP], found[Layer.MPI]
    assert tcp.latency_and_overheads.value == pytest.approx(EMPTY_NS, rel=0.02)
    assert tcp.latency_lower is not None
    assert 0.95 * EMPTY_NS < tcp.latency_lower.value < tcp.latency_and_overheads.value
    assert tcp.per_byte_lone.value == pytest.approx(PER_BYTE_NS, rel=0.03)
    assert tcp.gap is not None
    assert (tcp.gap_bytes, tcp.gap.value) == (64, pytest.approx(GAP_NS, rel=0.02))
    assert tcp.overhead_most == tcp.gap.high
    assert tcp.per_byte is not None
    assert tcp.per_byte.value == pytest.approx(STREAMED_NS, rel=0.02)
    assert tcp.worst_misfit is not None
    assert tcp.worst_misfit < 0.05
    assert tcp.switches == ()
    assert mpi.gap is None
    assert mpi.per_byte is None
    assert mpi.overhead_most is None
    assert [(one.first_bytes, one.last_bytes) for one in mpi.switches] == [(8192, 16384)]


def test_curves_are_lines_in_pieces_that_end_at_a_switch(findings: Findings):
    fits = {(one.key.layer, one.of): one for one in rows_of(findings, loggops.FITS, CurveFit)}
    assert fits.keys() == {
        (Layer.TCP, FitOf.LONE),
        (Layer.TCP, FitOf.STREAMED),
        (Layer.TCP, FitOf.TURN),
        (Layer.MPI, FitOf.LONE),
    }
    below, above = fits[Layer.MPI, FitOf.LONE].pieces
    assert (below.last_bytes, above.first_bytes) == (8192, 16384)
    assert above.start_up.value - below.start_up.value == pytest.approx(JUMP_NS, rel=0.1)
    (turn,) = fits[Layer.TCP, FitOf.TURN].pieces
    assert turn.per_byte.value == pytest.approx(2 * PER_BYTE_NS, rel=0.03)
    for one in fits.values():
        for piece in one.pieces:
            for value in (piece.start_up, piece.per_byte):
                assert value.low is not None
                assert value.high is not None
                assert 0 <= value.low <= value.value <= value.high


def test_messages_in_company_take_so_many_times_as_long(findings: Findings):
    found = {(one.key.pattern, one.key.message_bytes): one for one in rows_of(findings, loggops.PENALTIES, Penalty)}
    for size in SIZES:
        truth = (EMPTY_NS + 2 * PER_BYTE_NS * size) / one_way(Layer.TCP, size)
        assert found[Pattern.EXCHANGE, size].factor.value == pytest.approx(truth, rel=0.03)
        assert found[Pattern.INCAST, size].factor.value == pytest.approx(1.5, rel=0.03)
    assert found[Pattern.INCAST, 64].alone is Pattern.STREAM


def test_every_format_shows_them_and_what_may_be_0_is_told_as_at_most(findings: Findings):
    for name, text in {
        "text": render_terminal(findings, 160, color=False),
        "markdown": markdown.render(findings).decode(),
    }.items():
        told = " ".join(text.replace("\N{NO-BREAK SPACE}", " ").split())
        assert loggops.CHAPTER.title in told, name
        assert "L + 2o" in told, name
        assert "a lone message takes" in told, name
    written = findings_csv(findings)
    assert {loggops.NAME, loggops.FITS, loggops.PENALTIES} <= written.keys()
    assert not any("{" in written[name] for name in (loggops.NAME, loggops.FITS)), "no row holds an object"
    pieces = sum(len(one.pieces) for one in rows_of(findings, loggops.FITS, CurveFit))
    assert len(written[loggops.FITS].splitlines()) == 1 + pieces


def test_the_file_has_parameters_units_intervals_and_where_numbers_come_from(findings: Findings):
    written = FORMATS["loggops"]
    assert isinstance(written, Format)
    told = json.loads(written.render(findings))
    assert told["format"] == "fabricbench-loggops"
    assert told["runs"] == list(findings.run_directories)
    assert told["data_sha256"] == list(findings.headline.data_sha256)
    assert len(told["data_sha256"][0]) == 64
    assert told["units"]["per_byte"] == "ns/B"
    (fabric,) = told["fabrics"]
    assert fabric["numbers"] == "emulated"
    assert fabric["path"] == "proven"
    assert {LogGops.model_validate(one) for one in fabric["parameters"]} == {*rows_of(findings, loggops.NAME, LogGops)}
    assert len(fabric["curves"]) == 4
    assert len(fabric["penalties"]) == 2 * len(SIZES)
    assert np.isfinite(fabric["parameters"][0]["latency_and_overheads"]["low"])


def test_of_few_sizes_there_is_no_chapter_and_no_file(tmp_path: Path):
    few = analyse([run_of(tmp_path / "run", SIZES[:3])])
    assert not {loggops.NAME, loggops.FITS} & few.chapters.keys()
    with pytest.raises(UsageError, match="hold no LogGOPS parameters"):
        loggops.as_json(few)


def test_a_fit_that_no_wire_could_be_is_told_as_such_and_columns_that_tell_nothing_are_left_out(tmp_path: Path):
    cells = [
        SyntheticCell(Layer.TCP, Pattern.PINGPONG, size, {"net": 2 * one_way(Layer.TCP, size)}, samples=30, warmup=2)
        for size in SIZES
    ]
    testbed = synthetic_testbed({"net": 0.8e9})  # 9 ns for each byte are 889 Mbit/s
    run = write_synthetic_run(tmp_path, cells=cells, blocks=8, noise=Noise(launch=0.01, sample=0.01), testbed=testbed)
    ((_, made), *_) = loggops.CHAPTER.tables_with_rows(analyse([run]))
    assert "1/G, streamed" not in made.columns
    (lone,) = (row[made.columns.index("1/G, lone")] for row in made.rows)
    assert ", beyond the wire (" in lone
