"""What `fabricbench compare` writes: cells and curves as tables, a layer each, or every field for programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fabricbench.analysis.findings import BASIC_PATTERNS, Comparison, Findings, Verdict
from fabricbench.cli.tables import Format, Table, as_csv, as_json, as_markdown, as_text, bounded_text, value_text
from fabricbench.model import Layer, Metric, Pattern
from fabricbench.quantity import format_bytes
from fabricbench.report.words import place_words


def render(findings: Findings, form: Format) -> str:
    """Return the comparisons in a format; JSON and CSV hold every field of `Comparison`, cells first, then curves."""
    comparisons = [*findings.cells, *findings.curves]
    if form is Format.JSON:
        return as_json([one.model_dump(mode="json") for one in comparisons])
    if form is Format.CSV:
        return as_csv([one.model_dump(mode="json") for one in comparisons], list(Comparison.model_fields))
    writer: Callable[[Table], str] = as_markdown if form is Format.MARKDOWN else as_text
    head = [f"# {findings.title}" if form is Format.MARKDOWN else findings.title, "", findings.headline.sentence]
    parts = ["\n".join([*head, *filter(None, (findings.headline.detail, findings.headline.conditions))])]
    pairs = list(dict.fromkeys((one.fabric_a, one.fabric_b) for one in comparisons))
    for pair in pairs:
        for layer in Layer:
            rows = [one for one in comparisons if one.layer is layer and (one.fabric_a, one.fabric_b) == pair]
            if rows:
                parts.append(writer(_table(layer, pair, rows)))
    parts += _crossovers(findings)
    return "\n\n".join(parts)


def _table(layer: Layer, pair: tuple[str, str], comparisons: Sequence[Comparison]) -> Table:
    control = " (control: no fabric changes it)" if layer is Layer.MEMORY else ""
    a, b = pair
    columns = ("what", f"A: {a}", f"B: {b}", "ratio B/A", "p adj.", "verdict")
    order = sorted(
        comparisons,
        key=lambda one: (
            list(Metric).index(one.metric),
            one.receive,
            one.variant,
            one.kind == "curve",
            one.message_bytes or 0,
        ),
    )
    has_ways = len({one.receive for one in comparisons}) > 1
    return Table(f"{layer.value}{control}", columns, [_row(one, has_ways=has_ways) for one in order])


def _row(one: Comparison, *, has_ways: bool) -> tuple[str, ...]:
    size = "all sizes" if one.message_bytes is None else format_bytes(one.message_bytes)
    words = [
        _pattern(one.pattern),
        one.metric.value.replace("_time", "").replace("_", " "),
        one.variant,
        one.receive.value if has_ways else "",
        size,
    ]
    ratio = bounded_text(
        f"{one.ratio:.3f}", *(None if bound is None else f"{bound:.3f}" for bound in (one.ratio_low, one.ratio_high))
    )
    p_value = "-" if one.p_adjusted is None else f"{one.p_adjusted:.2g}"
    return (
        " ".join(word for word in words if word),
        _median(one, one.value_a, one.low_a, one.high_a),
        _median(one, one.value_b, one.low_b, one.high_b),
        ratio,
        p_value,
        verdict_text(one),
    )


def _pattern(pattern: Pattern) -> str:
    """Return a pattern's name; that a round trip is a ping-pong's and a throughput a stream's goes without saying."""
    return "" if pattern in BASIC_PATTERNS else pattern.value


def _median(one: Comparison, value: float | None, low: float | None, high: float | None) -> str:
    if value is None:
        return ""
    texts = [None if bound is None else value_text(bound, one.metric) for bound in (low, high)]
    return bounded_text(value_text(value, one.metric), *texts)


def verdict_text(one: Comparison) -> str:
    """Return the verdict with the fabric's name; "equivalent" and "not enough data" must not look alike."""
    if one.verdict is Verdict.EQUIVALENT:
        return "= equivalent"
    if one.verdict is Verdict.NOT_ENOUGH_DATA:
        more = one.more_blocks_needed
        return "? not enough data" + ("" if more is None else f" (about {more} more blocks)")
    name, letter = (one.fabric_a, "A") if one.verdict is Verdict.A_FASTER else (one.fabric_b, "B")
    return f"{letter} faster: {name}"


def _crossovers(findings: Findings) -> list[str]:
    lines = [
        f"- {' '.join(filter(None, (one.layer.value, _pattern(one.pattern))))} "
        f"{one.metric.value.replace('_', ' ')}: {one.faster_above} overtakes {one.faster_below} {place_words(one)}"
        for one in findings.crossovers
    ]
    return ["\n".join(["crossovers", *lines])] if lines else []
