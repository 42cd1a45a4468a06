"""How numbers and comparisons read in a sentence, the same in headline, effects and warnings."""

from __future__ import annotations

from collections.abc import Sequence

from fabricbench.analysis.findings import Comparison, Verdict
from fabricbench.model import Metric
from fabricbench.quantity import format_bytes

FACTOR_FROM = 1.5
"""From here up a difference reads as `3.1 times`, below as a percentage."""

METRIC_WORDS = {Metric.ROUND_TRIP_TIME: "round trip", Metric.THROUGHPUT: "throughput"}


def what(comparison: Comparison) -> str:
    """Return what is compared: `tcp round trip of 64 B`, `tcp throughput at 16 KiB`, `udp throughput over all sizes`."""
    words = [comparison.layer.value, METRIC_WORDS[comparison.metric]]
    if comparison.variant:
        words.insert(1, f"({comparison.variant})")
    size = comparison.message_bytes
    if size is None:
        return f"{' '.join(words)} over all sizes"
    return f"{' '.join(words)} {'of' if comparison.metric.is_lower_better else 'at'} {format_bytes(size)}"


def faster(comparison: Comparison) -> str | None:
    """Return the name of the faster side where the verdict names one."""
    if comparison.verdict is Verdict.A_FASTER:
        return comparison.fabric_a
    return comparison.fabric_b if comparison.verdict is Verdict.B_FASTER else None


def slower(comparison: Comparison) -> str | None:
    """Return the name of the slower side where the verdict names one."""
    if comparison.verdict is Verdict.A_FASTER:
        return comparison.fabric_b
    return comparison.fabric_a if comparison.verdict is Verdict.B_FASTER else None


def how_much(comparison: Comparison) -> str:
    """Return by how much the faster side is better, with the interval: `3.10 times shorter (3.05 to 3.14)`."""
    adjective = "shorter" if comparison.metric.is_lower_better else "higher"
    is_inverted = (comparison.verdict is Verdict.B_FASTER) == comparison.metric.is_lower_better
    values = (comparison.ratio, comparison.ratio_low, comparison.ratio_high)
    if is_inverted:
        values = (
            1.0 / values[0],
            None if values[2] is None else 1.0 / values[2],
            None if values[1] is None else 1.0 / values[1],
        )
    factor, low, high = values
    is_factor = factor >= FACTOR_FROM
    if not is_factor:  # the share by which a time is shorter, or a rate higher
        factor, low, high = (None if one is None else _percent(one, comparison.metric) for one in values)  # type: ignore[assignment]
    digits = _decimals(factor, is_factor)
    bounds = "" if low is None or high is None else f" ({low:.{digits}f} to {high:.{digits}f})"
    return f"{factor:.{digits}f} {'times' if is_factor else '%'} {adjective}{bounds}"


def _percent(factor: float, metric: Metric) -> float:
    return 100.0 * (1.0 - 1.0 / factor if metric.is_lower_better else factor - 1.0)


def _decimals(value: float, is_factor: bool) -> int:
    if not is_factor:
        return 1
    return 2 if value < 10 else 1 if value < 100 else 0


def ratio(comparison: Comparison) -> str:
    """Return the ratio b / a with its interval."""
    if comparison.ratio_low is None or comparison.ratio_high is None:
        return f"ratio {comparison.ratio:.3f}"
    return f"ratio {comparison.ratio:.3f} ({comparison.ratio_low:.3f} to {comparison.ratio_high:.3f})"


def enumeration(items: Sequence[str]) -> str:
    """Return `a, b and c`."""
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""


def count(number: int, noun: str) -> str:
    """Return `1 launch`, `3 launches`, `2 more blocks`."""
    ending = "" if number == 1 else "es" if noun.endswith(("ch", "s")) else "s"
    return f"{number:,} {noun}{ending}"


def percent(share: float) -> str:
    """Return a share as a percentage with three significant digits: `2 %`, `0.346 %`."""
    return f"{100.0 * share:.3g} %"
