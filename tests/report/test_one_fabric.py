"""The report of one fabric in every format: all sizes, half round trips, what ping-pongs carry, lone beside streamed messages."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import pytest

from fabricbench import cli
from fabricbench.analysis import analyse
from fabricbench.analysis.findings import Findings
from fabricbench.chapters import by_size, pacing
from fabricbench.chapters.chapter import rows_of
from fabricbench.cli.compare_text import render
from fabricbench.cli.output import OutputFormat
from fabricbench.model import Layer, Pattern, Receive
from fabricbench.record.store import Run
from fabricbench.report import latex, markdown
from fabricbench.report.figures import build
from fabricbench.report.html import render_html
from fabricbench.report.terminal import render_terminal
from support.example_one_fabric import FURTHER_NS, LAYERS, LONGER_NS, PACED_SIZES, SIZES, run_of_one_fabric
from support.synthetic_run import SyntheticCell, ladder_cells, write_synthetic_run
from support.workload_runs import run_of_workloads


@pytest.fixture(scope="module")
def run_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("one") / "run"
    run_of_one_fabric(path)
    return path


@pytest.fixture(scope="module")
def findings(run_directory: Path) -> Findings:
    return analyse([Run.open(run_directory)])


def call(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> str:
    monkeypatch.setattr(sys, "argv", ["fabricbench", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    streams = capsysbinary.readouterr()
    assert not end.value.code, streams.err.decode()
    return streams.out.decode()


def test_each_layer_and_size_has_half_its_round_trip_and_what_a_ping_pong_carries(findings: Findings):
    rows = {(one.layer, one.message_bytes): one for one in rows_of(findings, by_size.NAME, by_size.SizeOnFabric)}
    assert set(rows) == {
        (layer, size) for layer in LAYERS for size in SIZES if layer is not Layer.FRAME or size <= 1500
    }
    for (layer, size), one in rows.items():
        trip, half, carried = one.round_trip, one.half_round_trip, one.ping_pong_throughput
        assert trip is not None
        assert half is not None
        assert carried is not None
        assert one.stream_throughput is not None
        truth = 2 * (LAYERS[layer] + 1.1 * size * 8)
        assert trip.value == pytest.approx(truth, rel=0.03)
        assert half.value == pytest.approx(trip.value / 2)
        assert carried.value == pytest.approx(8 * size / (half.value * 1e-9)), "the message over half the round trip"
        assert trip.low is not None
        assert trip.high is not None
        assert carried.low is not None
        assert carried.high is not None
        assert carried.low == pytest.approx(16e9 * size / trip.high)
        assert carried.high == pytest.approx(16e9 * size / trip.low)
        assert one.stream_share_of_line_rate == pytest.approx(one.stream_throughput.value / 1e9)


def test_a_message_of_no_bytes_carries_nothing(tmp_path: Path):
    run = write_synthetic_run(
        tmp_path / "run", cells=[SyntheticCell(Layer.MPI, Pattern.PINGPONG, 0, {"a": 1e5}, receive=Receive.LIBRARY)]
    )
    (row,) = rows_of(analyse([run]), by_size.NAME, by_size.SizeOnFabric)
    assert row.round_trip is not None
    assert row.ping_pong_throughput is None


def formats_of(findings: Findings) -> dict[str, str]:
    return {
        "html": render_html(findings),
        "markdown": markdown.render(findings).decode(),
        "text": render_terminal(findings, 140, color=False),
        "compare as text": render(findings, OutputFormat.TEXT),
        "compare as Markdown": render(findings, OutputFormat.MARKDOWN),
    }


@pytest.mark.slow
def test_every_format_shows_all_sizes_and_what_single_messages_cost(findings: Findings):
    for name, text in formats_of(findings).items():
        for title in (by_size.CHAPTER.title, pacing.CHAPTER.title):
            assert title in text, name
        for words in ("Ping-pong carries", "Stream carries", "Half of it", "Lone over streamed"):
            assert all(word in text for word in words.split()), (name, words)
        for size in ("256 B", "16 KiB", "64 KiB"):
            assert size in text.replace("\N{NO-BREAK SPACE}", " "), name
        for pattern in ("burst", "paced"):
            assert pattern in text, name


@pytest.mark.slow
def test_no_format_speaks_of_a_comparison(findings: Findings):
    texts = formats_of(findings) | {"latex": latex.render(findings).decode()}
    page = texts["html"]  # whose style and script know all pages; what was published of other fabrics compares them
    texts["html"] = page[page.index("<body>") : page.index('<section class="folded" id="studies"')]
    for name, text in texts.items():
        for words in ("Best first", "nothing to compare", "Verdict", "faster", "How many times"):
            assert words not in text, (name, words)


def test_shares_of_the_line_rate_stand_beside_values(findings: Findings):
    for name, text in (formats_of(findings) | {"latex": latex.render(findings).decode()}).items():
        assert "% of its line rate" in text.replace("\\", "").replace("\N{NO-BREAK SPACE}", " "), name
    lines = markdown.render(findings).decode().splitlines()
    (row,) = [line for line in lines if line.startswith("| [MPI throughput")]
    assert row.count(" %") == 2, "a share and its interval"
    assert "](#what-it-carries-size-by-size)" in row


def test_single_messages_are_compared_with_others_within_launches(findings: Findings):
    rows = {(one.layer, one.message_bytes): one for one in rows_of(findings, pacing.NAME, pacing.MessagePacing)}
    for size in PACED_SIZES:
        one = rows[Layer.TCP, size]
        assert one.interval_us == 1000
        assert one.burst_messages == 8
        assert one.paced_over_lone is not None
        assert one.burst is not None
        assert one.lone_over_burst is not None
        low, high = one.paced_over_lone.low, one.paced_over_lone.high
        assert low is not None
        assert high is not None
        assert low <= one.paced_over_lone.value <= high
        assert one.paced_over_lone.value == pytest.approx(LONGER_NS, rel=0.25)
        assert one.burst.value == pytest.approx(FURTHER_NS, rel=0.25)
    one = rows[Layer.TCP, 64]
    assert one.streamed is not None
    assert one.lone_over_streamed is not None
    assert one.streamed.value == pytest.approx(8e9 * 64 / (0.92e9 * 64 / 264), rel=0.02), "from one to the next"
    assert one.lone_over_streamed.value == pytest.approx(one.lone.value - one.streamed.value, rel=0.02)
    assert rows[Layer.UDP, 64].paced_over_lone is None, "not measured there"


def test_the_sentence_claims_what_its_interval_shows(findings: Findings):
    lines = pacing.CHAPTER.lines(findings)
    (idle,) = [line for line in lines if "on a line that was idle" in line]
    assert idle.startswith("tcp, blocking, 64 B: messages on a line that was idle take 2")
    assert " longer than those of a ping-pong (half a round trip: one every 1.00 ms, " in idle
    assert idle.endswith("at 2 of 2 larger sizes, up to 16 KiB.")
    assert sum("longer than streamed ones" in line for line in lines) == len(LAYERS)


def line_of(tmp_path: Path, *, blocks: int, longer_ns: float) -> str:
    trips = {"a": 1e5}
    cells = [
        SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, trips),
        SyntheticCell(Layer.TCP, Pattern.PACED, 64, {"a": 1e5 + longer_ns}, parameters={"interval_us": 1000}),
    ]
    (line,) = pacing.CHAPTER.lines(analyse([write_synthetic_run(tmp_path / "run", cells=cells, blocks=blocks)]))
    return line


def test_a_difference_that_is_not_shown_is_not_claimed(tmp_path: Path):
    line = line_of(tmp_path, blocks=12, longer_ns=0.0)
    assert "that messages on a line that was idle take longer or less than those of a ping-pong is not shown" in line
    assert "the difference is \N{MINUS SIGN}" in line


def test_too_few_launches_claim_nothing_beyond_themselves(tmp_path: Path):
    line = line_of(tmp_path, blocks=3, longer_ns=2e4)
    assert "took " in line
    assert "in the median of 3 launches, too few for an interval" in line


def test_a_stream_of_another_kind_is_not_set_beside_a_ping_pong(tmp_path: Path):
    cells = [
        SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {"a": 1e5}),
        SyntheticCell(Layer.TCP, Pattern.STREAM, 64, {"a": 1e8}, parameters={"window": 64}, messages_per_sample=16),
    ]
    findings = analyse([write_synthetic_run(tmp_path / "run", cells=cells)])
    assert rows_of(findings, pacing.NAME, pacing.MessagePacing) == ()
    (row,) = rows_of(findings, by_size.NAME, by_size.SizeOnFabric)
    assert row.stream_throughput is None


def test_the_figure_has_a_panel_for_each_layer(findings: Findings):
    figure = build("carried", findings)
    assert figure is not None
    assert len(figure.panels) == len(LAYERS)
    rows = figure.panels[-1].spec["data"]["values"]
    assert {row["pattern"] for row in rows} == {"stream", "ping-pong"}
    assert sorted({row["size"] for row in rows}) == SIZES


def test_several_fabrics_have_none_of_this(tmp_path: Path):
    cells = ladder_cells({"slow": 1e8, "fast": 1e9}, sizes=(64, 1024), samples=20)
    findings = analyse([write_synthetic_run(tmp_path / "run", cells=cells, blocks=3)])
    assert not {by_size.NAME, pacing.NAME} & findings.chapters.keys()
    assert build("carried", findings) is None
    assert all(one.share_of_line_rate is None for effect in findings.headline.effects for one in effect.readings)


def test_compare_writes_the_sizes_for_programs(findings: Findings):
    rows = json.loads(render(findings, OutputFormat.JSON))
    table = list(csv.DictReader(io.StringIO(render(findings, OutputFormat.CSV))))
    assert len(rows) == len(table) == len(rows_of(findings, by_size.NAME, by_size.SizeOnFabric))
    assert {row["origin"] for row in (*rows, *table)} == {"emulated"}
    assert float(table[0]["ping_pong_throughput"]) == pytest.approx(rows[0]["ping_pong_throughput"]["value"], rel=1e-6)


@pytest.mark.slow
def test_loads_of_one_fabric_have_speed_up_and_efficiency(tmp_path: Path):
    findings = analyse([run_of_workloads(tmp_path / "run", fabrics="myrinet")])
    text = render_terminal(findings, 160, color=False)
    assert "Workloads: Over ranks and nodes" in text
    assert "Efficiency" in text
    (row,) = [line for line in text.splitlines() if line.startswith("FT.W on 4 ranks") and "strong" in line]
    assert " 44." in row, "0.4 s on one rank, 0.1 s and 8 x 20 MB over the wire on four"


@pytest.mark.slow
@pytest.mark.parametrize(("unit", "scale"), [("MB/s", 8e6), ("MiB/s", 8 * 2**20)])
def test_throughputs_are_written_in_the_units_that_were_asked_for(
    unit: str,
    scale: float,
    run_directory: Path,
    findings: Findings,
    capsysbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
):
    text = call(capsysbinary, monkeypatch, "report", run_directory, "--format", "text", "-o", "-", "--units", unit)
    row = next(one for one in findings.headline.effects if one.what == "MPI throughput, 1 MiB")
    assert f"gigabit carries {(row.readings[0].value or 0) / scale:.1f} {unit}" in text
    assert "bit/s" not in text.replace("bit/s, ", "")
    shown = call(capsysbinary, monkeypatch, "show", run_directory, "--format", "text", "--units", unit)
    assert unit in shown
    assert "bit/s" not in shown
    compared = call(capsysbinary, monkeypatch, "compare", run_directory, "--units", unit)
    assert unit in compared
    assert "Mbit/s" not in compared
    usual = call(capsysbinary, monkeypatch, "compare", run_directory)
    assert "Mbit/s" in usual, "the next command has its own"


def test_programs_get_bits_whatever_the_units(
    run_directory: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
):
    usual, other = (
        call(capsysbinary, monkeypatch, "compare", run_directory, "--format", "json", *units)
        for units in ((), ("--units", "MB/s"))
    )
    assert usual == other
