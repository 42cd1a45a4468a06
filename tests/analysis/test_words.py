"""The sentence, the effects and the warnings: what they say, and what they must not say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from fabricbench.analysis import Findings, analyse
from fabricbench.analysis.findings import Severity, Verdict
from fabricbench.analysis.wording import how_much
from fabricbench.model import Layer, Metric, Pattern
from fabricbench.record.lines import CellFailed, FailureCode
from fabricbench.record.manifest import PlannedLaunch
from fabricbench.record.reading import Record
from support.synthetic_run import Noise, SyntheticCell, ladder_cells

from .conftest import MakeRun, two

Cells = Sequence[SyntheticCell]


def texts(findings: Findings, severity: Severity | None = None) -> str:
    return "\n".join(f"{one.subject}: {one.text}" for one in findings.warnings if severity in (None, one.severity))


def test_a_fabric_that_wins_everywhere_is_said_to_and_by_how_much(make_run: MakeRun):
    findings = analyse([make_run(two(1 / 3.1))])
    headline = findings.headline
    assert headline.sentence == (
        "other is faster than one at every network layer: tcp round trip 3.1 times shorter, throughput 3.1 times higher."
    )
    assert "tcp round trip of 64 B is 3.1" in headline.detail
    assert "times shorter (3." in headline.detail
    assert "tcp throughput at 16 KiB is 3." in headline.detail
    assert "of frame, ip, udp, tcp and mpi agrees." in headline.detail
    assert [effect.split(" ")[0] for effect in headline.effects] == [
        layer for layer in ("tcp", "mpi", "udp", "ip", "frame") for _ in range(2)
    ]


def test_small_differences_read_as_percentages(make_run: MakeRun):
    headline = analyse([make_run(two(1.10))]).headline
    assert "tcp round trip 8.9 % shorter, throughput 9.5 % higher" in headline.sentence
    assert "% shorter (" in headline.detail
    assert "% higher (" in headline.detail
    assert "times" not in headline.sentence + headline.detail


def test_one_layer_that_does_not_agree_forbids_the_large_claim(make_run: MakeRun):
    run = make_run(two(lambda cell: 1.0 if cell.layer is Layer.UDP else 1.2))
    headline = analyse([run]).headline
    assert "every network layer" not in headline.sentence
    assert headline.sentence.startswith(
        "one is faster than other in round trip at 4 of 5 layers and throughput at 4 of 5 layers, "
    )
    assert "one is faster than other in round trip at frame, ip, tcp and mpi" in headline.detail
    assert "equivalent" in headline.detail or "do not settle" in headline.detail


def test_latency_against_throughput_depends(make_run: MakeRun):
    run = make_run(two(lambda cell: 0.8 if cell.metric is Metric.THROUGHPUT else 1.25))
    headline = analyse([run]).headline
    assert headline.sentence == (
        "It depends: one is faster in round trip at every layer, other is faster in throughput at every layer."
    )
    assert "one is faster than other in round trip at every network layer" in headline.detail
    assert "other is faster than one in throughput at every network layer" in headline.detail


def test_a_crossing_is_named_with_its_size(make_run: MakeRun):
    sizes = (64, 256, 1024, 4096, 16384)
    run = make_run(two(lambda cell: 0.8 if cell.message_bytes < 2000 else 1.3, sizes=sizes))
    headline = analyse([run]).headline
    assert headline.sentence.startswith(
        "It depends on the message size: in tcp round trip, other is faster below about "
    )
    assert headline.sentence.endswith("KiB, one above.")
    assert "one overtakes other at about" in headline.detail


def test_equal_fabrics_on_a_quiet_machine_are_equivalent(make_run: MakeRun):
    findings = analyse([make_run(two(1.0), noise=Noise(launch=0.002, sample=0.01))])
    assert findings.headline.sentence == "other and one are equivalent within 2 % at every network layer."
    assert "frame, ip, udp, tcp and mpi" in findings.headline.detail
    assert all("equivalent within 2 %" in effect for effect in findings.headline.effects)


def test_noise_is_called_not_enough_data_with_the_blocks_it_would_take(make_run: MakeRun):
    findings = analyse([make_run(two(1.0), noise=Noise(launch=0.05, sample=0.05), blocks=6)])
    assert findings.headline.sentence == "Not enough data to say whether other or one is faster."
    assert "more blocks would settle" in findings.headline.detail
    assert any("more block" in effect for effect in findings.headline.effects)


def test_two_launches_are_never_enough(make_run: MakeRun):
    findings = analyse([make_run(two(3.0), blocks=2)])
    assert findings.headline.sentence.endswith("it takes 3 blocks at least.")
    assert "too few" in texts(findings, Severity.WARNING)


def test_fabrics_that_fare_alike_share_a_sentence(make_run: MakeRun):
    third = [
        replace(
            cell,
            medians={**cell.medians, "third": cell.medians["one"] * (2.0 if cell.pattern is Pattern.STREAM else 0.5)},
        )
        for cell in two(1 / 3.1)
    ]
    headline = analyse([make_run(third)]).headline
    assert headline.sentence == "other and third are faster than one at every network layer."
    assert headline.detail.startswith("other: tcp round trip of 64 B 3.")
    assert "third: tcp round trip of 64 B 1.9" in headline.detail


def test_the_headline_is_a_sentence_that_is_read_at_a_glance(make_run: MakeRun):
    runs = [make_run(two(factor), f"run{number}") for number, factor in enumerate((1 / 3.1, 1.0, 1.1))]
    assert max(len(analyse([run]).headline.sentence.split()) for run in runs) <= 22


def test_what_is_decided_comes_before_what_is_not(make_run: MakeRun):
    run = make_run(two(lambda cell: 1.0 if cell.layer is Layer.TCP else 1.5))
    effects = analyse([run]).headline.effects
    assert [effect.startswith("tcp ") for effect in effects] == [False] * 8 + [True] * 2


@pytest.mark.parametrize(
    ("ratio", "low", "high", "words"),
    [
        (1 / 3.1, 1 / 3.14, 1 / 3.05, "3.10 times shorter (3.05 to 3.14)"),
        (1 / 114, 1 / 1091, 1 / 12, "114 times shorter (12.0 to 1091)"),
        (1 / 12.61, 1 / 12.62, 1 / 12.60, "12.61 times shorter (12.60 to 12.62)"),
        (1 / 1.403, 1 / 1.4032, 1 / 1.4028, "28.72 % shorter (28.71 to 28.73)"),
        (0.9, None, None, "10.0 % shorter"),
    ],
)
def test_an_interval_keeps_the_digits_that_tell_its_ends_apart(
    make_run: MakeRun, ratio: float, low: float | None, high: float | None, words: str
):
    cell = next(one for one in analyse([make_run(two(1 / 3.1))]).cells if one.metric is Metric.ROUND_TRIP_TIME)
    bounds = {"ratio": ratio, "ratio_low": low, "ratio_high": high, "verdict": Verdict.B_FASTER}
    assert how_much(cell.model_copy(update=bounds)) == words


def test_memory_never_makes_a_headline_but_warns_when_it_differs(make_run: MakeRun):
    cells = [
        replace(
            cell,
            medians={
                "one": cell.medians["one"],
                "other": cell.medians["one"] * (1.2 if cell.layer is Layer.MEMORY else 1.0),
            },
        )
        for cell in two(1.0)
    ]
    findings = analyse([make_run(cells)])
    assert " is faster than " not in findings.headline.sentence
    assert "memory control: memory, which no fabric changes, differs" in texts(findings, Severity.WARNING)
    assert "memory control differs" in findings.headline.conditions


def test_conditions_say_how_much_was_measured_and_that_it_is_emulated(make_run: MakeRun):
    conditions = analyse([make_run(two(1.1), invalid=["b00-one"])]).headline.conditions
    assert "8 blocks, 15 valid launches" in conditions
    assert "all fabrics emulated on one machine" in conditions
    assert "1 invalid launch left out" in conditions


def test_invalid_failed_missing_and_lossy_are_told(make_run: MakeRun):
    refused = CellFailed(
        cell=99,
        layer=Layer.FRAME,
        pattern=Pattern.PINGPONG,
        message_bytes=64,
        code=FailureCode.PERMISSION,
        reason="raw frames need CAP_NET_RAW",
    )
    cells = [
        replace(cell, lost=40 if cell.layer is Layer.UDP and cell.pattern is Pattern.STREAM else 0) for cell in two(1.1)
    ]
    findings = analyse([make_run(cells, invalid=["b03-other"], missing=["b06-one"], failed=[refused])])
    assert "launch b03-other: left out of everything here: the traffic went another way" in texts(
        findings, Severity.INVALID
    )
    warnings = texts(findings, Severity.WARNING)
    assert "1 planned launch without data (b06-one)" in warnings
    assert "frame pingpong of 64 B could not be measured: raw frames need CAP_NET_RAW" in warnings
    assert "messages were lost in 3 stream cells" in warnings
    assert "from seed 1" in texts(findings, Severity.NOTE)
    assert findings.warnings[0].severity is Severity.INVALID


def test_a_drift_over_blocks_is_told(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch):
    findings = analyse([make_run(two(1.0), noise=Noise(launch=0.002, sample=0.01), blocks=10)])
    assert "drift" not in texts(findings)
    import support.synthetic_run as synthetic

    plain = synthetic.synthetic_record

    def slower_each_block(launch: PlannedLaunch, cells: Cells, *rest: Any, **options: Any) -> Record:
        factor = 1.0 + 0.01 * launch.block
        drifted = [
            replace(
                c,
                medians={
                    n: m * factor if c.metric is Metric.ROUND_TRIP_TIME else m / factor for n, m in c.medians.items()
                },
            )
            for c in cells
        ]
        return plain(launch, drifted, *rest, **options)

    monkeypatch.setattr(synthetic, "synthetic_record", slower_each_block)
    drifting = analyse([make_run(two(1.0), "drifting", noise=Noise(launch=0.002, sample=0.01), blocks=10)])
    assert "one, tcp: a drift of +9." in texts(drifting, Severity.WARNING)
    assert "the two fabrics did not drift alike" not in texts(drifting)
    assert " is faster than " not in drifting.headline.sentence


def test_a_disturbed_launch_is_named_and_kept(make_run: MakeRun, monkeypatch: pytest.MonkeyPatch):
    import support.synthetic_run as synthetic

    plain = synthetic.synthetic_record

    def one_disturbed(launch: PlannedLaunch, cells: Cells, *rest: Any, **options: Any) -> Record:
        factor = 1.3 if launch.launch_id == "b04-other" else 1.0
        return plain(
            launch,
            [
                replace(c, medians={n: m * factor for n, m in c.medians.items()})
                for c in cells
                if c.metric is Metric.ROUND_TRIP_TIME
            ],
            *rest,
            **options,
        )

    monkeypatch.setattr(synthetic, "synthetic_record", one_disturbed)
    findings = analyse([make_run(two(1.0))])
    assert "launch b04-other: its cells are +3" in texts(findings, Severity.WARNING)
    assert {one.launches for one in findings.cells} == {8}


def test_a_ladder_out_of_order_is_told(make_run: MakeRun):
    cells = [
        SyntheticCell(layer, Pattern.PINGPONG, 64, {"one": trip})
        for layer, trip in ((Layer.UDP, 60e3), (Layer.TCP, 40e3))
    ]
    assert "the tcp round trip is shorter than udp's below it, by 2" in texts(
        analyse([make_run(cells)]), Severity.WARNING
    )


def test_a_rate_that_the_wire_cannot_carry_is_told(make_run: MakeRun):
    possible, impossible = (
        SyntheticCell(Layer.TCP, Pattern.STREAM, size, {"one": rate}) for size, rate in ((64, 90e6), (1024, 150e6))
    )
    warnings = texts(analyse([make_run([possible, impossible])]), Severity.WARNING)
    assert "tcp throughput at 1 KiB is 16" in warnings
    assert "64 B" not in warnings


def test_samples_too_short_for_the_clock_are_told(make_run: MakeRun):
    cells = [SyntheticCell(Layer.MEMORY, Pattern.PINGPONG, 64, {"one": 500.0})]
    assert "reading the clock takes more than 1 %" in texts(analyse([make_run(cells)]), Severity.NOTE)


def test_two_runs_are_called_what_they_are(make_run: MakeRun):
    findings = analyse([make_run(two(1.0), "before"), make_run(two(1.0), "after", seed=5)])
    assert "whatever else changed between them is in the ratio" in texts(findings, Severity.WARNING)
    assert findings.title == "one and other, before and after"
    assert any("after / before ratio" in effect for effect in findings.headline.effects)
    assert any("Welch" in paragraph for paragraph in findings.method)


def test_the_method_names_its_sources_and_the_levels_that_were_used(make_run: MakeRun):
    method = "\n".join(analyse([make_run(two(1.0), blocks=3)], margin=0.03, confidence=0.99).method)
    for source in ("Hoefler and Belli", "Benjamini and Hochberg", "Schuirmann", "Hettmansperger"):
        assert source in method
    assert "beyond 3 %" in method
    assert "99 %" in method


def test_ladder_cells_of_two_real_rates_favour_the_faster_wire(make_run: MakeRun):
    findings = analyse([make_run(ladder_cells({"fast-ethernet": 100e6, "myrinet": 1280e6}))])
    assert findings.headline.sentence.startswith("myrinet is faster than fast-ethernet at every network layer")
