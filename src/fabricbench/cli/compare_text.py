"""What `fabricbench compare` writes: cells and curves as tables, a layer each, or every field for programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fabricbench.analysis.findings import BASIC_PATTERNS, Comparison, Findings, Verdict
from fabricbench.cli.output import Format, as_json, bounded_text, value_text
from fabricbench.model import Layer, Metric, Pattern
from fabricbench.quantity import format_bytes
from fabricbench.report.comma_separated import comparisons_csv, origin_columns, origins_of
from fabricbench.report.first_screen import build_screen
from fabricbench.report.words import counted, place_words
from fabricbench.table import Table, as_markdown, as_text, table


def render(findings: Findings, form: Format) -> str:
    """Return the comparisons in a format; JSON and CSV hold every field of `Comparison`, cells first, then curves."""
    if form is Format.CSV:
        return comparisons_csv(findings).rstrip("\n")
    comparisons, origins = [*findings.cells, *findings.curves], origins_of(findings)
    if form is Format.JSON:
        return as_json(
            [row | origin_columns(row, origins) for row in (one.model_dump(mode="json") for one in comparisons)]
        )
    writer: Callable[[Table], str] = as_markdown if form is Format.MARKDOWN else as_text
    parts = ["\n".join(_head(findings, form))]
    pairs = list(dict.fromkeys((one.fabric_a, one.fabric_b) for one in comparisons))
    for pair in pairs:
        for layer in Layer:
            rows = [one for one in comparisons if one.layer is layer and (one.fabric_a, one.fabric_b) == pair]
            if rows:
                parts.append(writer(_table(layer, pair, rows)))
    parts += _crossovers(findings)
    return "\n\n".join(parts)


def _head(findings: Findings, form: Format) -> list[str]:
    """Return the answer as every report gives it: exceptions, evidence, what changed, how far it reaches."""
    screen = build_screen(findings)
    lines = [f"# {findings.title}" if form is Format.MARKDOWN else findings.title, "", screen.sentence]
    lines += [f"Except: {screen.exceptions}"] if screen.exceptions else []
    lines += [f"Evidence: {' · '.join(screen.evidence)}"] if screen.evidence else []
    lines += [*screen.changes, screen.counts] if screen.counts else []
    return [*lines, *filter(None, (screen.detail, screen.conditions))]


def _table(layer: Layer, pair: tuple[str, str], comparisons: Sequence[Comparison]) -> Table:
    control = " (control: no fabric changes it)" if layer is Layer.MEMORY else ""
    a, b = pair
    columns = ("what", f"A: {a}", f"B: {b}", "ratio B/A, interval unadjusted", "p adj.", "verdict")
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
    return table(columns, [_row(one, has_ways=has_ways) for one in order], title=f"{layer.value}{control}")


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
    texts = [None if bound is None else value_text(bound, one.metric, one.unit) for bound in (low, high)]
    return bounded_text(value_text(value, one.metric, one.unit), *texts)


def verdict_text(one: Comparison) -> str:
    """Return the verdict with the fabric's name; "equivalent" and "not enough data" must not look alike."""
    return "; ".join((_outcome(one), *one.notes))


def _outcome(one: Comparison) -> str:
    if one.verdict is Verdict.EQUIVALENT:
        return "= equivalent"
    if one.verdict is Verdict.NOT_ENOUGH_DATA:
        more = one.more_blocks_needed
        return "? not enough data" + ("" if more is None else f" (about {counted(more, 'more block')})")
    return f"{one.verdict.value}: {one.leader}{', perhaps by less than matters' if one.verdict.is_ahead else ''}"


def _crossovers(findings: Findings) -> list[str]:
    lines = [
        f"- {' '.join(filter(None, (one.layer.value, _pattern(one.pattern))))} "
        f"{one.metric.value.replace('_', ' ')}: {one.faster_above} overtakes {one.faster_below} {place_words(one)}"
        for one in findings.crossovers
    ]
    return ["\n".join(["crossovers", *lines])] if lines else []
