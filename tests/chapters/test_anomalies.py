"""The chapter of anomalies: what is named of a run, what lies there, and that it is not there where nothing is odd."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.findings import Findings
from fabricbench.analysis.findings.stages import Stage
from fabricbench.analysis.findings.thresholds import ThresholdKind
from fabricbench.chapters import anomalies
from fabricbench.chapters.anomalies import AnomalyKind, CurveAnomaly
from fabricbench.chapters.chapter import rows_of
from fabricbench.model import Layer, Pattern
from fabricbench.report import markdown
from fabricbench.report.figures import build
from fabricbench.report.html import render_html
from fabricbench.report.terminal import render_terminal
from support.example_curves import findings_of, odd_findings
from support.stamps import Stamped
from support.synthetic_run import WAY, Noise, SyntheticCell, write_synthetic_run


@pytest.mark.slow
def test_slow_sizes_and_a_jump_are_named_with_what_lies_there(tmp_path: Path):
    findings = odd_findings(tmp_path / "run")
    found = {(one.key.layer, one.kind): one for one in rows_of(findings, anomalies.NAME, CurveAnomaly)}
    assert found.keys() == {(Layer.TCP, AnomalyKind.SLOW), (Layer.MPI, AnomalyKind.JUMP)}
    slow, jump = found[Layer.TCP, AnomalyKind.SLOW], found[Layer.MPI, AnomalyKind.JUMP]
    assert (slow.above_bytes, slow.first_bytes, slow.last_bytes, slow.below_bytes) == (4096, 8192, 16384, 32768)
    assert slow.excess.value == pytest.approx(0.2, abs=0.02)
    assert slow.excess.low is not None
    assert slow.value is not None
    assert slow.value.value == pytest.approx(2 * 1.2 * (40e3 + 8.8 * 16384), rel=0.03)
    assert [(one.kind, one.bytes) for one in slow.coincides] == [
        (ThresholdKind.INITIAL_WINDOW, 14480),
        (ThresholdKind.PAGE, 4096),
    ]
    assert (jump.first_bytes, jump.last_bytes) == (32768, 65536)

    texts = {
        "text": render_terminal(findings, 120, color=False),
        "markdown": markdown.render(findings).decode(),
        "html": render_html(findings),
    }
    for name, text in texts.items():
        assert anomalies.CHAPTER.title in text, name
        told = " ".join(text.replace("\N{NO-BREAK SPACE}", " ").split())
        assert "8 KiB to 16 KiB take " in told, name
        assert "between 32 KiB and 64 KiB time jumps up by " in told, name
    assert (slow.to_measure, jump.to_measure) == ((5792, 23168), (46336,))
    *_, last = anomalies.CHAPTER.lines(findings)
    assert last == "Sizes in between would show where, in a campaign file: message_bytes = [5792, 23168, 46336]."
    assert len(anomalies.CHAPTER.lines(findings)) == 3
    step = "sizes around the anomaly at 32 KiB to 64 KiB (mpi ping-pong), in a campaign file: message_bytes = [46336]"
    assert step in findings.headline.next_steps
    figure = build(anomalies.NAME, findings)
    assert figure is not None
    assert len(figure.panels) == 2
    assert not {one.key.pattern for one in rows_of(findings, anomalies.NAME, CurveAnomaly)} & {Pattern.STREAM}


def test_a_run_of_clean_curves_has_no_such_chapter(tmp_path: Path):
    findings = findings_of(tmp_path / "run", lambda *_: 1.0)
    assert anomalies.NAME not in findings.chapters
    assert anomalies.CHAPTER.title not in render_terminal(findings, 120, color=False)


def test_many_anomalies_are_a_few_lines(tmp_path: Path):
    odd = {(layer, size): 1.3 for layer in (Layer.TCP, Layer.MPI) for size in (256, 8192, 65536)}
    findings = findings_of(tmp_path / "run", lambda layer, size: odd.get((layer, size), 1.0))
    assert len(rows_of(findings, anomalies.NAME, CurveAnomaly)) > anomalies.MOST_LINES
    assert len(anomalies.CHAPTER.lines(findings)) == anomalies.MOST_LINES + 2


HELD_NS = 200_000.0


def stamped_curve(path: Path, held_stage: str, *, is_one_clock: bool = True) -> Findings:
    """Ping-pongs with stages over sizes of which one takes longer in a stage, each way."""
    cells = []
    for size in (4096, 8192, 16384, 31744, 49152, 65536):
        way = {**WAY, "wire": 8.5 * size}
        way[held_stage] += HELD_NS if size == 31744 else 0.0
        trip = {"net": 2.0 * sum(way.values())}
        cells.append(SyntheticCell(Layer.TCP, Pattern.PINGPONG, size, trip, samples=40))
        stamped = {"net": Stamped(way, way, apart_ns=0) if is_one_clock else Stamped(way, way)}
        parameters: dict[str, str | int | float] = {"stages": "user"}
        cells.append(
            SyntheticCell(Layer.TCP, Pattern.PINGPONG, size, trip, parameters=parameters, stamped=stamped, samples=40)
        )
    return analyse([write_synthetic_run(path, cells=cells, blocks=8, noise=Noise(0.002, 0.01))])


@pytest.mark.slow
def test_a_hold_by_the_switch_is_named_as_a_delay_of_the_last_segment(tmp_path: Path):
    findings = stamped_curve(tmp_path / "run", "switch")
    (found,) = rows_of(findings, anomalies.NAME, CurveAnomaly)
    assert (found.first_bytes, found.last_bytes, found.stage) == (31744, 31744, (Stage.SWITCH,))
    assert found.stage_excess is not None
    assert found.stage_excess.value == pytest.approx(2.0 * HELD_NS, rel=0.02)
    line = anomalies.CHAPTER.lines(findings)[0]
    assert "400 µs of it in switch: delay of the last segment" in line.replace("\N{NO-BREAK SPACE}", " ")
    assert "Stage" in anomalies.CHAPTER.tables_with_rows(findings)[0][1].columns


@pytest.mark.slow
def test_what_takes_longer_elsewhere_is_placed_there(tmp_path: Path):
    (found,) = rows_of(stamped_curve(tmp_path / "run", "return"), anomalies.NAME, CurveAnomaly)
    assert found.stage == (Stage.RETURN,)


@pytest.mark.slow
def test_between_hosts_with_clocks_of_their_own_it_is_all_of_the_fabric(tmp_path: Path):
    findings = stamped_curve(tmp_path / "run", "switch", is_one_clock=False)
    (found,) = rows_of(findings, anomalies.NAME, CurveAnomaly)
    assert found.stage == (Stage.DRIVER, Stage.WIRE, Stage.SWITCH)
    assert "last segment" not in anomalies.CHAPTER.lines(findings)[0]
