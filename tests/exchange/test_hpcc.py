"""HPC Challenge: halves of round trips, decimal GB, rings that stand for themselves, nothing of a text without its summary."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.exchange.samples import noted, read, sample

from fabricbench.analysis import analyse
from fabricbench.errors import UsageError
from fabricbench.exchange.storing import import_run
from fabricbench.record.import_notes import ImportNoteKind
from fabricbench.record.store import Run
from fabricbench.report.terminal import render_terminal

HPCC = sample("hpcc.txt")


def test_the_mean_ping_pong_of_all_pairs_is_doubled():
    (one,) = read(HPCC).cells
    assert (one.pattern.value, one.message_bytes, one.ranks) == ("pairs", 8, 4)
    assert one.values == (pytest.approx(97_502.8),)
    assert one.printed_step == pytest.approx(0.2)
    assert (read(HPCC).version, read(HPCC).notes) == ("1.5.0", ())


def test_its_programs_are_workloads_and_its_rings_tests_of_the_network():
    found = {one.workload: (one.figure.value, one.figure.unit, one.figure.kind.value) for one in read(HPCC).loads}
    assert found == {
        "hpl": (pytest.approx(0.650959), "Gflop/s", "rate of work"),
        "ptrans": (0.272199, "GB/s", "rate of work"),
        "mpi fft": (0.122603, "Gflop/s", "rate of work"),
        "mpi random access": (2.73021e-05, "GUP/s", "rate of work"),
        "natural ring latency": (pytest.approx(61.1615e-6), "s", "network test"),
        "random ring latency": (pytest.approx(64.2433e-6), "s", "network test"),
        "natural ring bandwidth": (0.0801993, "GB/s", "network test"),
        "random ring bandwidth": (0.0876696, "GB/s", "network test"),
    }
    hpl = next(one for one in read(HPCC).loads if one.workload == "hpl")
    assert (hpl.ranks, dict(hpl.parameters)) == (4, {"n": 448, "nb": 64, "grid": "2x2", "by": "hpcc"})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (HPCC[: HPCC.index("FFTEnblk")], "it has no whole summary"),
        (HPCC.replace("Success=1", "Success=0"), "not all of its tests succeeded"),
    ],
    ids=["cut", "failed"],
)
def test_a_text_that_was_cut_or_failed_is_no_result(text: str, why: str):
    with pytest.raises(UsageError, match=re.escape(why)):
        read(text)


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        ("HPL_Tflops=0.000650959", "HPL_Tflops=0.00650959", "hpl"),
        ("PTRANS_GBs=0.272199", "PTRANS_GBs=nan", "ptrans"),
        ("MPIFFT_Gflops=", "MPIFFT_", "mpi fft"),
    ],
)
def test_a_figure_that_is_damaged_is_named_and_the_others_are_read(old: str, new: str, lost: str):
    text = HPCC.replace(old, new)
    names = {one.workload for one in read(text).loads}
    assert (lost in names, len(names)) == (False, 7)
    assert [kind for kind, _ in noted(text)] == [ImportNoteKind.DAMAGED]


def test_a_run_of_it_is_shown(tmp_path: Path):
    for name, factor in (("ib", 1.0), ("eth", 2.0)):
        text = HPCC.replace("AvgPingPongLatency_usec=48.7514", f"AvgPingPongLatency_usec={48.7514 + factor:.4f}")
        (tmp_path / f"{name}.txt").write_text(
            text.replace("PTRANS_GBs=0.272199", f"PTRANS_GBs={0.272199 / factor:.6f}")
        )
    command = {name: [tmp_path / f"{name}.txt"] for name in ("ib", "eth")}
    import_run(tmp_path / "run", command)
    run = Run.open(tmp_path / "run")
    assert len(run.launches) == 2 * 9
    assert render_terminal(analyse([run]), 120, color=False)
