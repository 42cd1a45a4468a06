"""The sentence of the first screen: never longer than is read at once, and made of what was compared, however little that is."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.effects import Judge
from fabricbench.analysis.findings import Doubt
from fabricbench.analysis.headline import BY_THE_SCREEN
from fabricbench.analysis.phrases import MOST_WORDS
from fabricbench.analysis.wording import instead
from fabricbench.model import Layer, Metric
from support.example_conditions import findings_in_conditions
from support.simulated_sides import first_screen, keys_of, sides_of
from support.synthetic_run import Noise

from .conftest import MakeRun, two


def test_a_fabric_that_beats_two_that_share_no_block_is_named_with_the_nearer_one():
    keys = keys_of((Layer.TCP,), (64,), (16384,))
    logs = np.random.default_rng(1).normal(0.0, 0.01, (3, 2, 12))
    logs[0] += np.array([[-1.0], [1.0]])  # less time, a higher rate
    logs[2] += np.array([[0.5], [-0.5]])
    logs[1, :, ::2] = logs[2, :, 1::2] = np.nan
    headline, _ = first_screen(sides_of(keys, logs, ["a", "b", "c"]))
    assert headline.sentence.startswith("a is fastest of 3, against the next best: ")
    assert "small TCP messages 2.7 times quicker (" in headline.sentence, "as b is: c, the second, shares no block"


@pytest.mark.parametrize("size", [64, 1024])
def test_a_message_of_up_to_1_kib_is_called_small(size: int):
    keys = keys_of((Layer.TCP,), (size,), ())
    logs = np.random.default_rng(2).normal(0.0, 0.01, (2, 1, 12)) + np.array([0.0, 1.0])[:, None, None]
    assert "small TCP messages" in first_screen(sides_of(keys, logs, ["a", "b"]))[0].sentence


@pytest.mark.parametrize("fabrics", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_the_sentence_has_at_most_so_many_words_whoever_leads_where(fabrics: int, seed: int):
    random = np.random.default_rng(seed)
    keys = keys_of((Layer.TCP, Layer.MPI), (64,), (16384,))
    logs = random.normal(0.0, 0.01, (fabrics, len(keys), 8))
    logs += random.choice([-0.5, 0.0, 0.5], (fabrics, len(keys), 1))
    names = [f"fabric-{number}" for number in range(fabrics)]
    sentence = first_screen(sides_of(keys, logs, names))[0].sentence
    assert len(sentence.split()) <= MOST_WORDS, sentence


def test_networks_in_several_conditions_are_told_by_factor_the_network_first(tmp_path: Path):
    medians = {"eth-usual": 1e9, "eth-jumbo": 1e9, "myri-usual": 10e9, "myri-jumbo": 10.4e9}
    sentence = findings_in_conditions(tmp_path / "apart", medians).headline.sentence
    assert re.fullmatch(
        r"myri is faster: TCP streams (9\.9|10\.0|10\.1) times the rate; jumbo makes TCP streams [345]\.?\d* % better\.",
        sentence,
    ), sentence


def test_values_beside_each_other_have_one_unit_and_the_digits_that_tell_them_apart():
    assert instead(Metric.ROUND_TRIP_TIME, 32.4e3, 93.7e3) == "32 instead of 94 µs"
    assert instead(Metric.THROUGHPUT, 1.274e9, 94.2e6) == "1,270 instead of 94 Mbit/s"
    assert instead(Metric.ROUND_TRIP_TIME, 64.02e3, 64.31e3) == "64.02 instead of 64.31 µs"
    assert instead(Metric.THROUGHPUT, 1e11, 1e3) == "100 Gbit/s instead of 1.00 kbit/s"


def test_seems_is_said_only_where_a_row_that_is_quoted_is_in_doubt():
    keys = keys_of((Layer.TCP, Layer.MPI), (64,), (16384,))
    logs = np.random.default_rng(1).normal(0.0, 0.01, (2, len(keys), 12))
    logs[1] += np.where([key.metric.is_lower_better for key in keys], -1.0, 1.0)[:, None]

    def doubtful(*layers: Layer) -> Judge:
        return lambda _side, cell, _is_tail, _level: (
            (Doubt.of("something is amiss"),) if cell.key.layer in layers else ()
        )

    sides = sides_of(keys, logs, ["a", "b"])
    assert first_screen(sides, judge=doubtful(Layer.TCP))[0].sentence.startswith("b is faster: small MPI messages ")
    assert first_screen(sides, judge=doubtful(*Layer))[0].sentence.startswith("b seems faster: ")


def test_a_tail_without_an_interval_has_the_ratio_of_its_own_levels():
    keys = keys_of((Layer.TCP,), (64,), ())
    sides = sides_of(keys, np.full((2, 1, 2), 10.0), ["a", "b"])
    for side, tail in zip(sides, (2e5, 8e5), strict=True):
        (cell,) = side.cells.values()
        side.cells[cell.key] = replace(cell, tails={0.99: np.full(2, tail)}, pooled=np.ones(1000))
    headline, _ = first_screen(sides)
    (row,) = [one for one in headline.effects if not one.is_typical]
    (pair,) = row.pairs
    assert (pair.low, pair.high) == (None, None)
    assert pair.times == pytest.approx(0.25)
    assert [one.value for one in row.readings] == pytest.approx([2e5, 8e5])


def test_one_ratio_has_one_verdict_on_the_first_screen_and_in_every_table(make_run: MakeRun):
    findings = analyse([make_run(two(1.03), noise=Noise(launch=0.02, sample=0.02), blocks=8)])
    of_rows = {
        (pair.fabric_a, pair.fabric_b, effect.layer, effect.metric, effect.message_bytes): pair.verdict
        for effect in (*findings.headline.effects, *findings.headline.more_effects)
        if effect.is_typical
        for pair in effect.pairs
    }
    of_cells = {
        (one.fabric_a, one.fabric_b, one.layer, one.metric, one.message_bytes): one.verdict for one in findings.cells
    }
    assert of_rows
    assert {row: of_cells[row] for row in of_rows} == of_rows
    noted = [one for one in findings.cells if BY_THE_SCREEN in one.notes]
    assert noted
    for one in noted:
        assert (one.fabric_a, one.fabric_b, one.layer, one.metric, one.message_bytes) in of_rows
        assert one.verdict.is_open or one.verdict.is_ahead  # its own interval, which is narrower, says more


def test_where_nothing_can_be_compared_the_sentence_promises_nothing_below(make_run: MakeRun):
    cells = [replace(cell, medians={name: 1.0}) for cell, name in zip(two(1.0), ("one", "other") * 50, strict=False)]
    sentence = analyse([make_run(cells)]).headline.sentence
    assert sentence == "Nothing can be compared: no test was measured in the same way on all of one and other."
