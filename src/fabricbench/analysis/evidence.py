"""Evidence: at most three lines that say how far the answer can be trusted, the gravest first, each with what it would change.

Values that cannot be right, rows whose verdict may change, what the numbers are of (emulated links, another program's texts, paths
that nobody proved), and which rows are clear or open.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from fabricbench.analysis.findings import Doubt, Effect, Evidence, Grade, Verdict
from fabricbench.quantity import count, enumeration
from fabricbench.record.provenance import MARKS, Origin

MOST_LINES = 3
MOST_NAMED = 2
"""Rows that a line names; each row of the table carries its own mark as well."""

BOUNDS = {
    Origin.EMULATED: "shows the links asked for, not real cards",
    Origin.SIMULATED: "shows the model, not hardware",
    Origin.PREDICTED: "shows the model, not hardware",
    Origin.IMPORTED: "shows what another program measured, by its own definitions (half a round trip is told as the whole)",
}
"""What numbers of an origin say nothing of, whatever their intervals."""


def evidence_of(effects: Sequence[Effect]) -> tuple[Evidence, ...]:
    """Return what is void, what may change, and how many rows are clear or open."""
    void = [one for one in effects if one.grade is Grade.VOID]
    doubtful = [one for grade in (Grade.ALARM, Grade.DOUBTFUL) for one in effects if one.grade is grade]
    lines = []
    if void:
        lines.append(Evidence(words=f"Cannot be right: {_few(void)}.", doubts=_doubts(void)))
    if doubtful:
        said = f"May change: {_claims(doubtful)}." if doubtful[0].pairs else f"In doubt: {_few(doubtful)}."
        lines.append(Evidence(words=said, doubts=_doubts(doubtful)))
    return (*lines, *_counts(effects))


def bounded(
    lines: Sequence[Evidence],
    marks: Mapping[Origin, Collection[str]],
    fabrics: int,
    *,
    is_busy: bool,
    nodes: Mapping[str, str] | None = None,
) -> tuple[Evidence, ...]:
    """Return the evidence with what numbers of such marks are of, before the counts, in at most MOST_LINES.

    `is_busy`: the machine that they were measured on was. `nodes` are those of each fabric, where they are not the same.
    """
    bounds = [_bound(mark, names, fabrics, is_busy=is_busy) for mark, names in marks.items()]
    if nodes:
        places = "; ".join(f"{name} on {of}" for name, of in nodes.items())
        bounds.append(f"On different nodes ({places}): what these differ in is in every ratio.")
    graver, counts = lines[:-1], lines[-1:]
    told = [*graver, *([Evidence(words=" ".join(bounds))] if bounds else []), *counts]
    if len(told) > MOST_LINES:
        last = Evidence(words=" ".join(one.words for one in told[MOST_LINES - 1 :]))
        told = [*told[: MOST_LINES - 1], last]
    return tuple(told)


def _bound(mark: Origin, names: Collection[str], fabrics: int, *, is_busy: bool) -> str:
    which = "" if len(names) == fabrics else f" ({enumeration(list(names))})"
    where = f" on one {'busy ' if is_busy else ''}machine" if mark is Origin.EMULATED else ""
    return f"{mark.value.capitalize()}{where}{which}: {BOUNDS.get(mark) or MARKS[mark].remark}."


def _counts(effects: Sequence[Effect]) -> Iterable[Evidence]:
    """Yield how many leading rows are clear, which of them are open, and which of the others, which the count is not of."""
    if not any(one.pairs for one in effects):
        return
    leading = [one for one in effects if one.is_typical]
    clear = sum(one.grade is Grade.CLEAR for one in leading)
    told = [f"Clear: {clear} of {count(len(leading), 'leading row')}."]
    for head, is_leading in (("Open", True), ("Open of tails and means", False)):
        still_open = [one for one in effects if one.is_typical is is_leading and one.grade is Grade.OPEN]
        told += [f"{head}: {_few(still_open)}."] if still_open else []
    yield Evidence(words=" ".join(told))


def _claims(effects: Sequence[Effect]) -> str:
    """Return `that myrinet is faster in MPI throughput, 256 KiB`: what a doubt, where it is justified, takes away."""
    claims: dict[str, list[Effect]] = {}
    for one in effects:
        claims.setdefault(_claim(one), []).append(one)
    return "; ".join(f"{claim} in {_few(those)}" for claim, those in claims.items())


def _claim(effect: Effect) -> str:
    if len(effect.pairs) > 1:
        return "the order of fabrics"
    (pair,) = effect.pairs
    leader = pair.verdict.of_leader(pair.fabric_a, pair.fabric_b)
    if leader is None:
        return "that they are equivalent" if pair.verdict is Verdict.EQUIVALENT else "who is faster"
    return f"that {leader} is {'faster' if pair.verdict.is_decided else 'ahead'}"


def _doubts(effects: Iterable[Effect]) -> tuple[Doubt, ...]:
    told = (doubt for one in effects for doubt in (*one.doubts, *one.losses))
    return tuple(dict.fromkeys(doubt for doubt in told if not doubt.is_harmless))


def _few(effects: Sequence[Effect]) -> str:
    names = list(dict.fromkeys(one.what for one in effects))
    if len(names) <= MOST_NAMED:
        return enumeration(names)
    named = names[:MOST_NAMED]
    return f"{'; '.join(named)}; and {sum(one.what not in named for one in effects)} more"
