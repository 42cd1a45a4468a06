"""A run of one fabric: what it carries and how fast it answers, no more than the rows' intervals say.

And what its rows have where no comparison tells it: shares of the line rate, launches that gave nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fabricbench.analysis.findings import CellKey, Doubt, Effect, Grade, Interval, Reading, is_basic
from fabricbench.analysis.instrument import wire_shares
from fabricbench.analysis.lost_launches import survivors
from fabricbench.analysis.measured import Side
from fabricbench.analysis.phrases import SMALL_BYTES, fitting, is_or_seems, unit_of
from fabricbench.analysis.rows import layer_name
from fabricbench.analysis.summary import scaled
from fabricbench.analysis.wording import in_one_unit, percent, size_text, value_text
from fabricbench.model import Layer


def sentence_of_one(name: str, leading: Sequence[Effect]) -> tuple[str, tuple[Effect, ...]]:
    """Return what one fabric can do in a sentence, and the rows that it quotes: a large stream, then a small message.

    Of a value that cannot be right, the layer below tells. Where neither was measured, it is what the other rows show.
    """
    told = [one for one in leading if one.grade is not Grade.VOID and one.readings[0].value is not None]
    basic = [one for one in told if one.key is not None and is_basic(one.key)]
    rate = next((one for one in basic if not one.metric.is_time), None)
    trip = next((one for one in basic if one.metric.is_time), None)
    quoted = tuple(one for one in (rate, trip) if one is not None)
    if not quoted:
        return _of_others(name, told), tuple(told)
    options = (
        " and ".join(_phrases(rate, trip, has_share=has_share, has_bounds=has_bounds, is_sure=_is_sure(quoted)))
        for has_share, has_bounds in ((True, True), (False, True), (True, False), (False, False))
    )
    return fitting(*(f"{name} {text}." for text in options)), quoted


def _is_sure(quoted: Sequence[Effect]) -> bool:
    return is_or_seems(quoted) == "is"


def _phrases(
    rate: Effect | None, trip: Effect | None, *, has_share: bool, has_bounds: bool, is_sure: bool
) -> Iterator[str]:
    """Yield `carries 1.26 Gbit/s over MPI, 98.4 % of its line rate,`, then `answers a small message in 107 µs`."""
    if rate is not None:
        reading = rate.readings[0]
        share = reading.share_of_line_rate
        of_wire = f", {percent(share.value)} of its line rate" if has_share and share is not None else ""
        comma = "," if of_wire and trip is not None else ""
        value = _value(rate, reading, has_bounds=has_bounds)
        yield f"{'carries' if is_sure else 'seems to carry'} {value} over {_layer(rate)}{of_wire}{comma}"
    if trip is not None:
        verb = "answers" if is_sure else "to answer" if rate is not None else "seems to answer"
        yield f"{verb} a {_message(trip, rate)} in {_value(trip, trip.readings[0], has_bounds=has_bounds)}"


def _layer(effect: Effect) -> str:
    return "raw frames" if effect.layer is Layer.FRAME else "" if effect.layer is None else layer_name(effect.layer)


def _message(trip: Effect, rate: Effect | None) -> str:
    """Return `small message`, with its layer where that is not the one that was told."""
    size = trip.message_bytes or 0
    layer = "" if trip.layer is None or (rate is not None and rate.layer is trip.layer) else layer_name(trip.layer)
    words = ("small" if size <= SMALL_BYTES else size_text(size), layer, "message")
    return " ".join(filter(None, words))


def _value(effect: Effect, reading: Reading, *, has_bounds: bool) -> str:
    """Return a value, with its interval in the same unit where there is one."""
    assert reading.value is not None  # noqa: S101 - rows without a value are not quoted
    if not has_bounds or reading.low is None or reading.high is None:
        return value_text(effect.metric, reading.value, unit=unit_of(effect))
    value, low, high = in_one_unit(effect.metric, (reading.value, reading.low, reading.high), unit=unit_of(effect))
    return f"{value} ({low.number if low.unit == value.unit else low} to {high.number if high.unit == value.unit else high})"


def _of_others(name: str, told: Sequence[Effect]) -> str:
    texts = [f"{one.what} {_value(one, one.readings[0], has_bounds=True)}" for one in told]
    if not texts:
        return f"{name} alone was measured, and nothing that users meet on it."
    return fitting(*(f"{name}: {'; '.join(texts[:number])}." for number in range(len(texts), 0, -1)))


def share_of_line_rate(
    side: Side, key: CellKey, level: tuple[float | None, float | None, float | None]
) -> Interval | None:
    """Return a stream's level, with its interval, as a share of what its wire carries; None of anything else."""
    value, low, high = level
    if value is None:
        return None
    share, _ = wire_shares(side, side.cells[key], value)
    return None if share is None else scaled(Interval(value=value, low=low, high=high), share / value)


def doubts_of_losses(side: Side, key: CellKey) -> list[Doubt]:
    """Return how many launches, or jobs, of a cell gave nothing; of its starts `lost_launches.doubt_of_losses` tells."""
    _, notes = survivors([side], [key])
    return [note for note in notes if not note.is_loss]
