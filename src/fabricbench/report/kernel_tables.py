"""The tables of kernels: what each took on each fabric, what the network is worth to it, speed-up, the study of 2000."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, pairwise

from fabricbench.analysis.findings import Findings, Interval, KernelFindings, Sensitivity
from fabricbench.published import PublishedKernel, published_kernels
from fabricbench.report.tables import Table, table
from fabricbench.report.warning_groups import spoken
from fabricbench.report.words import NOTHING, counted, outcome_words, share_words

CALLS_SHOWN = 2

RATE_NOTE = "Mop/s are official counts over the time, whatever work a program does: compare times"


def kernel_table(findings: Findings) -> Table:
    """A row for each kernel on each fabric: time, communication, then rates."""
    kernels = findings.kernels
    if kernels is None:
        return table((), ())
    rows = [
        (
            f"{one.kernel}",
            one.fabric,
            seconds_words(one.seconds),
            share_words(one.communication_share),
            ", ".join(f"{call} {share_words(share)}" for call, share in list(one.calls.items())[:CALLS_SHOWN])
            or NOTHING,
            number_words(one.mops_total),
            number_words(one.mops_per_process),
            NOTHING if one.of_reference is None else f"{one.of_reference:.3g}",
            str(one.launches),
        )
        for one in kernels.results
    ]
    reference = "Of the reference" if kernels.reference is None else f"Times {kernels.reference.name}"
    columns = (
        "Kernel",
        "Fabric",
        "Time",
        "Communication",
        "Most time in",
        "Mop/s total",
        "Mop/s a process",
        reference,
        "Launches",
    )
    made = table(columns, rows, (2, 3, 5, 6, 7, 8))
    return made if kernels.reference is not None else made.without(7)


def sensitivity_table(findings: Findings) -> Table:
    """A row for each kernel, the one that gains most by the faster network first."""
    kernels = findings.kernels
    if kernels is None:
        return table((), ())
    published = {one.benchmark: one for one in published_kernels()} if _is_of_the_study(kernels) else {}
    rows = [
        (
            f"{one.kernel}",
            f"{one.slower} / {one.faster}",
            ratio_words(one),
            NOTHING if one.lead is None else interval_text(one.lead),
            verdict_of(one, findings.margin),
            counted(one.launches, "pair"),
            _published_ratio(published.get(one.kernel.benchmark)),
        )
        for one in kernels.sensitivities
    ]
    ratio = f"Ratio ({findings.confidence * 100:g} % interval, unadjusted)"
    columns = ("Kernel", "Of times", ratio, "Over the next", "Verdict", "n", "Study of 2000, class A")
    undecided = [index for index, one in enumerate(kernels.sensitivities) if one.verdict.leader is None]
    made = table(columns, rows, (2, 3, 5, 6), undecided)
    return made if published else made.without(6)


def speed_up_table(findings: Findings) -> Table:
    """A row for each kernel on more ranks than its fewest."""
    kernels = findings.kernels
    rows = [
        (
            f"{one.kernel}",
            one.fabric,
            interval_text(one.speed_up),
            f"{one.kernel.ranks / one.fewest:g}",
            share_words(one.speed_up.value * one.fewest / one.kernel.ranks),
        )
        for one in (kernels.speed_ups if kernels is not None else ())
    ]
    return table(("Kernel", "Fabric", "Speed-up (interval)", "Of", "Efficiency"), rows, (2, 3, 4))


def study_table(findings: Findings) -> Table:
    """The table of the Fast Ethernet and Myrinet study, as it gives it."""
    if findings.kernels is None:
        return table((), ())
    rows = [
        (
            f"{one.benchmark}.A on 4 ranks",
            *(number for fabric in one.seconds for number in _study_numbers(one, fabric)),
            f"{one.ratio:.2f}",
        )
        for one in published_kernels()
    ]
    fabrics = list(published_kernels()[0].seconds)
    each = [f"{what}, {fabric}" for fabric in fabrics for what in ("Time", "Mop/s total", "Mop/s a process")]
    return replace(table(("Kernel", *each, "Ratio of times"), rows, range(1, 8)), is_published=True)


def seconds_words(interval: Interval) -> str:
    """Return `12.3 s (12.1 to 12.6)`."""
    if interval.low is None or interval.high is None:
        return f"{interval.value:.4g} s (no interval)"
    return f"{interval.value:.4g} s ({interval.low:.4g} to {interval.high:.4g})"


def number_words(value: float | None) -> str:
    """Return a rate in Mop/s, or the sign for nothing."""
    return NOTHING if value is None else f"{value:,.2f}" if value < 100 else f"{value:,.0f}"


def interval_text(interval: Interval) -> str:
    """Return `3.14 (3.05 to 3.20)`."""
    bounds = (
        "no interval" if interval.low is None or interval.high is None else f"{interval.low:.2f} to {interval.high:.2f}"
    )
    return f"{interval.value:.2f} ({bounds})"


def ratio_words(one: Sensitivity) -> str:
    """Return a ratio with its interval."""
    bounds = "no interval" if one.low is None or one.high is None else f"{one.low:.3f} to {one.high:.3f}"
    return f"{one.ratio:.3f} ({bounds})"


def leader_of(one: Sensitivity) -> str | None:
    """Return the fabric that is faster or ahead, None where neither is."""
    if one.verdict.leader is None:
        return None
    return one.faster if one.ratio >= 1 else one.slower


def verdict_of(one: Sensitivity, margin: float) -> str:
    """Return the verdict in words that name the leading fabric; `A` and `B` of it are not those of the pair here."""
    leader = leader_of(one) or ""
    return outcome_words(one.verdict, leader, leader, margin)


def kernel_tables(findings: Findings) -> list[tuple[str, Table]]:
    """Return all tables of the section with their titles."""
    return [
        ("What the network is worth to each", sensitivity_table(findings)),
        (f"Times ({RATE_NOTE})", kernel_table(findings)),
        ("Speed-up", speed_up_table(findings)),
        ("The study of 2000: four nodes with 450 MHz processors, class A", study_table(findings)),
    ]


def kernel_lines(findings: Findings) -> tuple[str, ...]:
    """Return what the section says in words: which kernels gain most and least, which reference the rates are beside."""
    kernels = findings.kernels
    if kernels is None:
        return ()
    lines = [
        _order_line(list(group)) for _, group in groupby(kernels.sensitivities, lambda one: (one.slower, one.faster))
    ]
    if kernels.reference is not None:
        lines.append(f"Rates are normalised to {kernels.reference.name}: {kernels.reference.source}.")
    return tuple(filter(None, lines))


def _order_line(group: Sequence[Sensitivity]) -> str:
    """Return who gains most by the faster network and who least; those whose order is not settled together."""
    if len(group) < 2 or not group[0].is_decided:
        return ""
    tiers = [[group[0]]]
    for before, one in pairwise(group):
        if before.may_be_behind:
            tiers[-1].append(one)
        else:
            tiers.append([one])
    most, *others = tiers
    names, times = _named(most), spoken([f"{one.ratio:.1f}" for one in most])
    close = "" if len(most) == 1 else " (too close to tell which more)"
    verb = "gains" if len(most) == 1 else "gain"
    end = (
        f", {_named(others[-1])} the least ({spoken([f'{one.ratio:.2f}' for one in others[-1]])} times)"
        if others
        else ""
    )
    return f"{names} {verb} most by {group[0].faster}, {times} times shorter than on {group[0].slower}{close}{end}."


def _named(group: Sequence[Sensitivity]) -> str:
    return spoken([one.kernel.benchmark for one in group])


def _is_of_the_study(kernels: KernelFindings) -> bool:
    fabrics: Sequence[str] = tuple(published_kernels()[0].seconds)
    return any((one.slower, one.faster) == tuple(fabrics) for one in kernels.sensitivities)


def _published_ratio(one: PublishedKernel | None) -> str:
    return NOTHING if one is None else f"{one.ratio:.2f}"


def _study_numbers(one: PublishedKernel, fabric: str) -> tuple[str, str, str]:
    return f"{one.seconds[fabric]:g} s", f"{one.mops_total[fabric]:g}", f"{one.mops_per_process[fabric]:g}"
