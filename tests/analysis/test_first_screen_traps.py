"""Where the first screen could say what its own intervals deny: each was a false sentence once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from fabricbench.analysis.effects import Judge
from fabricbench.analysis.findings import CellKey, Comparison, Doubt, Grade, Headline, Verdict
from fabricbench.analysis.measured import CellMeasured, FailedCell, Side
from fabricbench.analysis.pairing import pair
from fabricbench.analysis.rows import was_asked
from fabricbench.model import Layer, Metric, Pattern
from fabricbench.testbed.wire import Wire
from support.cell_keys import cell_key
from support.simulated_sides import first_screen, keys_of, sides_of, trusting

Floats = NDArray[np.float64]


def screen(
    keys: Sequence[CellKey],
    slower: Sequence[Callable[[CellKey], float]],
    *,
    blocks: int = 12,
    noise: float = 0.005,
    change: Callable[[Floats], None] = lambda _: None,
    **options: object,
) -> tuple[Headline, list[Comparison]]:
    """The screen of fabrics a, b, ... of which each is that much slower (log) than the first; `change` edits the log values."""
    random = np.random.default_rng(7)
    names = "abc"[: len(slower) + 1]
    values = 10.0 + random.normal(0.0, noise, (len(names), len(keys), blocks))
    for side, how in enumerate(slower, 1):
        values[side] += np.array([how(key) if key.metric.is_lower_better else -how(key) for key in keys])[:, np.newaxis]
    change(values)
    return first_screen(sides_of(keys, values, list(names)), **options)  # type: ignore[arg-type]


MPI_TCP = keys_of(layers=(Layer.TCP, Layer.MPI))


def test_an_order_comes_from_the_pairs_and_not_from_levels_of_other_blocks():
    # c has only the first five blocks, and the machine drifts: its level looks better than b's, which beats it in every block.
    def drift(values: Floats) -> None:
        values += (
            np.linspace(0.0, 0.5, values.shape[2])
            * np.where([key.metric.is_lower_better for key in MPI_TCP], 1, -1)[:, None]
        )
        values[2, :, 5:] = np.nan

    headline, _ = screen(MPI_TCP, [lambda _: -np.log(2), lambda _: -np.log(2) + np.log(1.1)], change=drift)
    assert headline.sentence.startswith("b is fastest of 3, against the next best: ")
    assert {effect.ranks for effect in headline.effects if effect.is_typical} == {(("b",), ("c",), ("a",))}


def test_the_numbers_of_the_sentence_are_those_of_the_pair_that_was_tested():
    def lost(values: Floats) -> None:
        values[:, :, 4] += np.where([key.metric.is_lower_better for key in MPI_TCP], np.log(3), -np.log(3))
        values[1, :, 4] = np.nan

    headline, _ = screen(MPI_TCP, [lambda _: np.log(1.08)], change=lost)
    assert headline.sentence.startswith("a is faster: small MPI messages 7.1 % less time (22.0 instead of 23.7 µs)")
    for effect in headline.effects:
        (pair,) = effect.pairs
        assert pair.value_a is not None
        assert pair.value_b is not None
        ratio = pair.value_a / pair.value_b if effect.metric.is_lower_better else pair.value_b / pair.value_a
        assert pair.times == pytest.approx(ratio)
        assert [reading.value for reading in effect.readings] == pytest.approx([pair.value_a, pair.value_b])


def test_an_equivalence_that_was_withheld_is_not_counted_either():
    def slow_mode(values: Floats) -> None:
        for block in range(0, 60, 8):
            values[1, :, block] += np.where([key.metric.is_lower_better for key in MPI_TCP], 0.06, -0.06)

    headline, cells = screen(MPI_TCP, [lambda _: 0.0], blocks=60, noise=0.002, change=slow_mode)
    assert all(one.is_mixed for one in cells)
    for effect in headline.effects:
        if effect.is_typical:
            assert [reading.slow for reading in effect.readings] == [(), tuple(range(0, 60, 8))]
    assert "equivalent" not in headline.sentence + headline.detail


def void(side: Side, cell: CellMeasured, _is_tail: bool, _level: float | None) -> tuple[Doubt, ...]:
    return (
        (Doubt.of("949 % of the line rate", is_void=True),) if side.name == "b" and not cell.key.metric.is_time else ()
    )


def test_numbers_that_cannot_be_right_carry_no_claim():
    headline, _ = screen(MPI_TCP, [lambda _: -np.log(2)], judge=void)
    assert headline.sentence.startswith("b is faster in 2 of 4 effects: small MPI messages")
    assert "streams" not in headline.sentence
    assert "8 of 8 sizes" in headline.detail  # the round trips alone
    assert [effect.grade for effect in headline.effects] == [Grade.CLEAR, Grade.VOID, Grade.CLEAR, Grade.VOID]
    equal, _ = screen(MPI_TCP, [lambda _: 0.0], blocks=40, judge=void)
    assert "equivalent" not in equal.sentence


def test_it_depends_only_where_no_other_size_speaks_against_it():
    def two_ways(values: Floats) -> None:
        for index, key in enumerate(keys):
            there = key.message_bytes in (64, 4096)
            values[1, index] += -0.3 if there else 0.3

    keys = keys_of(layers=(Layer.MPI,), trips=(64, 256, 1024, 4096, 16384), streams=())
    keys += keys_of(layers=(Layer.TCP,), trips=(64,), streams=(16384,))
    headline, _ = screen(keys, [lambda _: 0.0], change=two_ways)
    assert "depends" not in headline.sentence


def test_an_exception_names_only_sizes_next_to_each_other():
    keys = keys_of(layers=(Layer.MPI, Layer.TCP), trips=(64, 512, 1472, 4096, 16384), streams=(16384,))

    def slower(key: CellKey) -> float:
        is_bad = key.layer is Layer.TCP and key.metric is Metric.ROUND_TRIP_TIME and key.message_bytes in (512, 16384)
        return float(np.log(1.3)) if is_bad else -float(np.log(2))

    headline, _ = screen(keys, [slower])
    assert [text.partition(",")[0] for text in headline.exceptions] == [
        "TCP round trips of 512 B",
        "TCP round trips of 16 KiB",
    ]


def test_tails_that_a_coarse_clock_reads_alike_are_not_certain():
    keys = keys_of(layers=(Layer.MPI,), trips=(64,), streams=())
    values = np.full((2, len(keys), 3), 10.0)
    sides = sides_of(keys, values, ["a", "b"])
    for side, level in zip(sides, (20e3, 21e3), strict=True):
        cell = side.cells[keys[0]]
        cell.tails = {0.99: np.full(3, level)}
        cell.step_share = 0.05
        cell.pooled = np.ones(1000)
    headline, _ = first_screen(sides)
    (tail,) = [effect for effect in headline.effects if not effect.is_typical]
    assert tail.pairs[0].verdict is Verdict.NOT_RESOLVABLE


def hang(side: Side, layer: Layer) -> None:
    """A layer gives nothing: all of its tests fail."""
    for key in [key for key in side.cells if key.layer is layer]:
        del side.cells[key]
    side.failed = tuple(
        FailedCell(f"{layer} {pattern} of 64 B", "it hangs", "timeout", layer, pattern)
        for pattern in (Pattern.PINGPONG, Pattern.STREAM)
    )


def test_a_layer_that_gave_nothing_on_one_fabric_stays_on_the_screen():
    values = 10.0 + np.random.default_rng(3).normal(0, 0.005, (2, len(MPI_TCP), 12))
    a, b = sides_of(MPI_TCP, values, ["a", "b"])
    hang(b, Layer.MPI)
    headline, _ = first_screen([a, b])
    trip = next(effect for effect in headline.effects if effect.what == "MPI round trip, 64 B")
    assert trip.grade is Grade.OPEN
    assert "b: gave nothing" in map(str, trip.doubts)
    assert [reading.value is None for reading in trip.readings] == [False, True]


def test_a_change_counts_the_effects_of_the_fabric_that_it_names():
    random = np.random.default_rng(5)
    values = 10.0 + random.normal(0.0, 0.005, (4, len(MPI_TCP), 12))
    slower = np.array([0.1 if key.metric.is_lower_better else -0.1 for key in MPI_TCP])
    is_mpi = np.array([key.layer is Layer.MPI for key in MPI_TCP])
    values[1] += (slower * is_mpi)[:, np.newaxis]  # of the first fabric MPI alone became slower
    values[3] += 0.5 * slower[:, np.newaxis]
    sides = sides_of(MPI_TCP, values, ["x-old", "x-new", "y-old", "y-new"])
    for side in sides:
        side.fabric = side.fabric.model_copy(update={"condition_of": side.name[0]})
    pairings = [pair(sides[0], sides[1]), pair(sides[2], sides[3])]
    headline, _ = first_screen(sides, pairings=pairings)
    assert headline.sentence.startswith("x became slower in 2 of 4 effects: ")
    assert headline.changes is not None
    assert (headline.changes.slower, headline.changes.faster) == (18, 0)
    assert [effect.what.partition(": ")[0] for effect in headline.effects] == ["x"] * 4 + ["y"] * 4


def test_a_change_counts_what_may_be_less_than_the_margin_apart_from_what_is_unknown():
    values = 10.0 + np.random.default_rng(5).normal(0.0, 0.005, (2, len(MPI_TCP), 12))
    values[1] += np.where([key.metric.is_lower_better for key in MPI_TCP], 0.02, -0.02)[:, np.newaxis]
    sides = sides_of(MPI_TCP, values, ["x-old", "x-new"])
    for side in sides:
        side.fabric = side.fabric.model_copy(update={"condition_of": "x"})
    changes = first_screen(sides, pairings=[pair(*sides)])[0].changes
    assert changes is not None
    assert changes.ahead > 0
    assert changes.slower + changes.faster + changes.same + changes.ahead + changes.unknown == len(MPI_TCP)


def test_no_change_is_said_only_where_every_effect_was_measured_and_can_be_believed():
    values = 10.0 + np.random.default_rng(3).normal(0, 0.002, (2, len(MPI_TCP), 40))

    def said(judge: Judge = trusting, *, without: Layer | None = None) -> str:
        sides = sides_of(MPI_TCP, values, ["x-old", "x-new"])
        for side in sides:
            side.fabric = side.fabric.model_copy(update={"condition_of": "x"})
        if without is not None:
            hang(sides[1], without)
        return first_screen(sides, pairings=[pair(*sides)], judge=judge)[0].sentence

    def void(_side: Side, cell: CellMeasured, _is_tail: bool, _level: float | None) -> tuple[Doubt, ...]:
        return (Doubt.of("3 payloads arrived changed", is_void=True),) if cell.key.layer is Layer.MPI else ()

    assert said().startswith("No change beyond 2 % in what users meet")
    assert said(void) == said(without=Layer.MPI) == "No change is shown, and none is ruled out."


def test_a_change_counts_effects_that_gave_nothing_after_it_and_seems_where_its_row_is_in_doubt():
    values = 10.0 + np.random.default_rng(3).normal(0, 0.002, (2, len(MPI_TCP), 12))
    values[1] += np.array([-0.2 if key.metric.is_lower_better else 0.2 for key in MPI_TCP])[:, np.newaxis]

    def doubtful(_side: Side, _cell: CellMeasured, _is_tail: bool, _level: float | None) -> tuple[Doubt, ...]:
        return (Doubt.of("the switch was late"),)

    def said(judge: Judge = trusting, *, is_whole: bool = True) -> str:
        sides = sides_of(MPI_TCP, values, ["x-old", "x-new"])
        for side in sides:
            side.fabric = side.fabric.model_copy(update={"condition_of": "x"})
        if not is_whole:
            hang(sides[1], Layer.MPI)
        return first_screen(sides, pairings=[pair(*sides)], judge=judge)[0].sentence

    assert said().startswith("x became faster: ")
    assert said(is_whole=False).startswith("x became faster in 2 of 4 effects: ")
    assert said(doubtful).startswith("x seems to have become faster: ")


def test_the_interval_of_a_level_is_at_the_confidence_of_the_report():
    def widths(confidence: float) -> tuple[float, float]:
        headline, cells = screen(MPI_TCP, [lambda _: -np.log(2)], confidence=confidence)
        reading, cell = headline.effects[0].readings[0], cells[0]
        assert None not in (reading.low, reading.high, cell.low_a, cell.high_a)
        return np.log(reading.high / reading.low), np.log(cell.high_a / cell.low_a)  # type: ignore[operator]

    narrow, wide = widths(0.9), widths(0.99)
    # Student's quantiles at 11 degrees of freedom: 1.796 and 3.106.
    assert [one / other for one, other in zip(wide, narrow, strict=True)] == pytest.approx(
        [3.106 / 1.796] * 2, rel=1e-3
    )


def test_of_three_fabrics_a_row_that_is_void_gives_no_order():
    values = 10.0 + np.random.default_rng(3).normal(0, 0.002, (3, len(MPI_TCP), 12))
    values[1] += np.array([0.5 if key.pattern is Pattern.STREAM else 0.0 for key in MPI_TCP])[:, np.newaxis]

    def void(_side: Side, cell: CellMeasured, _is_tail: bool, _level: float | None) -> tuple[Doubt, ...]:
        return (Doubt.of("more than the wire carries", is_void=True),) if cell.key.pattern is Pattern.STREAM else ()

    headline, _ = first_screen(sides_of(MPI_TCP, values, ["a", "b", "c"]), judge=void)
    assert headline.sentence == "Not enough data to rank a, b and c."
    assert headline.detail == ""
    trusted, _ = first_screen(sides_of(MPI_TCP, values, ["a", "b", "c"]))
    assert trusted.sentence.startswith("No single fastest: MPI streams on b")


def test_what_differs_between_two_is_told_in_units():
    sides = sides_of(MPI_TCP, np.full((2, len(MPI_TCP), 12), 10.0), ["x-old", "x-new"])
    for side, rate in zip(sides, (20e6, 100e6), strict=True):
        side.fabric = side.fabric.model_copy(update={"condition_of": "x", "wire": Wire(line_rate_bit_s=rate)})
    headline, _ = first_screen(sides, pairings=[pair(*sides)])
    assert headline.changes is not None
    assert headline.changes.configuration == ("x: line rate 20.0 Mbit/s became 100 Mbit/s",)


def test_a_failure_of_one_pattern_is_none_of_a_pattern_whose_name_begins_alike():
    keys = [cell_key(Layer.TCP, Pattern.PAIRS, 64, 3), cell_key(Layer.TCP, Pattern.PINGPONG, 64)]
    _, b = sides_of(keys, 10.0 + np.random.default_rng(3).normal(0, 0.005, (2, 2, 12)), ["a", "b"])
    del b.cells[keys[0]]
    b.failed = (FailedCell("tcp pairs-stream of 64 B", "it hangs", "timeout", Layer.TCP, Pattern.PAIRS_STREAM),)
    assert not was_asked(b, keys[0])
    b.failed = (FailedCell("tcp pairs of 64 B", "it hangs", "timeout", Layer.TCP, Pattern.PAIRS),)
    assert was_asked(b, keys[0])


def ahead_in_one_size(key: CellKey) -> float:
    """b is 20 % faster everywhere but in the smallest message and the largest stream, the two sizes that are rows."""
    is_row = key.message_bytes == (64 if key.metric.is_lower_better else 262144)
    return 0.18 if is_row else -0.18


@pytest.mark.parametrize(
    ("trips", "streams", "counts"),
    [
        ((64, 512, 1472, 16384, 65536), (1472, 16384, 262144), ("512 B; b leads in 12 of 16 sizes", "4", "12 of 16")),
        ((64, 256, 1024, 4096, 16384), (), ("256 B; b leads in 8 of 10 sizes", "2", "8 of 10")),
    ],
)
def test_two_sizes_do_not_speak_for_a_whole_curve(trips: Sequence[int], streams: Sequence[int], counts: Sequence[str]):
    keys = keys_of((Layer.TCP, Layer.MPI), trips, streams)
    headline, _ = screen(keys, [ahead_in_one_size])
    sentence, of_a, of_b = counts
    assert (
        headline.sentence == f"It depends on the size: MPI messages are faster on a up to 64 B, on b from {sentence}."
    )
    assert headline.detail.startswith(
        f"Over MPI and TCP: a faster in {of_a}, b faster in {of_b} sizes; in their geometric "
    )
    assert " mean b is 1." in headline.detail


def test_of_three_fabrics_none_is_fastest_by_the_smallest_message_alone():
    keys = keys_of((Layer.TCP, Layer.MPI), (64, 256, 1024, 4096, 16384), ())
    headline, _ = screen(keys, [ahead_in_one_size, lambda _: 0.5])
    assert "fastest of 3" not in headline.sentence


def test_a_change_that_goes_both_ways_over_the_sizes_says_both():
    keys = keys_of((Layer.TCP, Layer.MPI), (64, 256, 1024, 4096, 16384), ())
    values = 10.0 + np.random.default_rng(7).normal(0.0, 0.005, (2, len(keys), 12))
    values[1] += np.array([ahead_in_one_size(key) for key in keys])[:, np.newaxis]
    sides = sides_of(keys, values, ["x-old", "x-new"])
    for side in sides:
        side.fabric = side.fabric.model_copy(update={"condition_of": "x"})
    headline, _ = first_screen(sides, pairings=[pair(*sides)])
    assert headline.sentence.startswith("x became slower in some sizes, faster in others: small MPI messages 2")
