"""From runs to findings: calls each part of the analysis once, in order, and every chapter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from fabricbench.analysis.caution import find_warnings
from fabricbench.analysis.cell_doubts import cautioned, judge
from fabricbench.analysis.comparing import check_levels, compare_all, error_of_look
from fabricbench.analysis.crossovers import find_crossovers
from fabricbench.analysis.effects import Compared
from fabricbench.analysis.evidence import bounded
from fabricbench.analysis.fabrics import fabric_facts
from fabricbench.analysis.findings import (
    DEFAULT_CONFIDENCE,
    MARKS,
    CellSummary,
    Comparison,
    Crossover,
    FabricFacts,
    Findings,
    Grade,
    Headline,
    LadderStep,
    Origin,
    ReferenceMachine,
    Replication,
)
from fabricbench.analysis.findings.plot import NODES
from fabricbench.analysis.headline import RUNS_OF_EACH, as_on_screen, next_steps, write_headline
from fabricbench.analysis.hosts import quiet_words, system_words
from fabricbench.analysis.instrument import impossible
from fabricbench.analysis.ladder import build_ladder
from fabricbench.analysis.lost_launches import changed_starts, unequal_starts
from fabricbench.analysis.material import Material
from fabricbench.analysis.measured import Configuration, Side
from fabricbench.analysis.method import method, pause_of, reproduction, testbed_arguments
from fabricbench.analysis.order_effects import without_order_effects
from fabricbench.analysis.pairing import Pairing, all_pairs, pair
from fabricbench.analysis.rows import choose_rows
from fabricbench.analysis.sides import Wanted, read_sides
from fabricbench.analysis.summary import distribution, summarise
from fabricbench.analysis.trend import History, trend_up_to
from fabricbench.analysis.wording import named_cell, percent
from fabricbench.chapters import find_all
from fabricbench.chapters.anomalies import NAME as ANOMALIES
from fabricbench.chapters.anomalies import sizes_to_measure
from fabricbench.chapters.network_map import MAPS
from fabricbench.chapters.stage_tables import DIFFERENCES
from fabricbench.chapters.stages import leading_sentence
from fabricbench.errors import UsageError
from fabricbench.model import Layer
from fabricbench.quantity import count, enumeration, listed
from fabricbench.record.account import account_of
from fabricbench.record.decision_table import DecisionTable, decision_of
from fabricbench.record.manifest import Manifest, margin_of, may_grow
from fabricbench.record.provenance import marks_of
from fabricbench.record.run_account import RunAccount
from fabricbench.record.store import Run, StoredLaunch

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Of the first sides; the 27th is AA, as columns of spreadsheets are."""

DEFAULT_MARGIN = 0.02


def analyse(
    runs: Sequence[Run] = (),
    *,
    before: Sequence[Run] = (),
    after: Sequence[Run] = (),
    configurations: Sequence[Configuration] = (),
    baseline: str | None = None,
    margin: float | None = None,
    confidence: float = DEFAULT_CONFIDENCE,
    reference: ReferenceMachine | None = None,
    decision: DecisionTable | None = None,
    history: History | None = None,
) -> Findings:
    """Return everything that a report shows about one run, runs of the same fabrics before and after a change, or configurations.

    In one run every two fabrics are compared, of `configurations` every two; `baseline` (default: the first) comes first, as A of
    its pairs. Two `runs` are one before and one after; `before` and `after` hold several of each. `margin` is the smallest
    relative difference that matters (default: that of the first run's campaign). Rates of kernels are normalised to `reference`,
    fabrics are ranked by the weights and prices of `decision` (default: the campaign's own); of one run, the trend up to it is
    found in `history`.
    UsageError if the arguments make no sense or nothing was measured.
    """
    every_run = list({id(run): run for one in configurations for run in one.runs}.values()) or [*before, *after, *runs]
    margin = margin if margin is not None else _margin_of(every_run)
    check_levels(margin, confidence)
    is_change = len(every_run) > 1 and not configurations
    read = read_sides(runs, before=before, after=after, configurations=configurations)
    sides, order_words = without_order_effects(arrange(read, baseline, is_change=is_change))
    pairings = pairings_of(sides, is_change=is_change)
    level = 1.0 - error_of_look(every_run, 1.0 - confidence)
    summaries = [summarise(side, cell, confidence) for side in sides for cell in side.cells.values()]
    cells, curves = compare_all(
        pairings, margin, confidence, level, 1.0 - error_of_look(every_run, 1.0 - confidence, ahead=1)
    )
    cells = cautioned(cells, sides)
    crossovers = find_crossovers(pairings, cells, confidence)
    ladder = build_ladder(sides, confidence)
    headline, verdicts = write_headline(
        Compared(sides, pairings, cells, curves, ladder, margin, level, confidence, judge)
    )
    cells = as_on_screen(cells, verdicts, pairings)
    distributions = [one for side in sides for cell in side.cells.values() if (one := distribution(side, cell))]
    material = Material(
        sides,
        pairings,
        cells,
        ladder,
        distributions,
        margin,
        confidence,
        level,
        reference=reference,
        decision=decision or decision_of(every_run[0].manifest),
        trend=None if history is None else trend_up_to(every_run, history, _leading(sides, ladder), confidence),
    )
    found, paragraphs = find_all(material, is_measured=_origins(sides) != {Origin.IMPORTED})
    accounts = tuple(map(account_of, every_run))
    analysed = _Analysed(every_run, accounts, material, curves, crossovers, found, is_change, bool(configurations))
    return analysed.findings(
        headline=analysed.completed(headline, order_words),
        accounts=accounts,
        runs_before=len(before) or 1,
        summaries=tuple(summaries),
        paragraphs=paragraphs,
    )


def _origins(sides: Sequence[Side]) -> set[Origin]:
    return {launch.origin for side in sides for launch in side.launches}


@dataclass(frozen=True)
class _Analysed:
    """What was found of which runs: what findings are put together from. Of a change some of the `runs` were before it."""

    runs: Sequence[Run]
    accounts: Sequence[RunAccount]
    material: Material
    curves: Sequence[Comparison]
    crossovers: Sequence[Crossover]
    chapters: Mapping[str, tuple[Any, ...]]
    is_change: bool
    has_configurations: bool

    @property
    def sides(self) -> Sequence[Side]:
        return self.material.sides

    @property
    def manifest(self) -> Manifest:
        return self.runs[0].manifest

    @cached_property
    def launches(self) -> list[StoredLaunch]:
        """The launches that count."""
        return [launch for side in self.sides for launch in side.launches]

    @cached_property
    def samples(self) -> int:
        return sum(cell.pooled.size for side in self.sides for cell in side.cells.values())

    @cached_property
    def blocks(self) -> int:
        """The blocks of a run; of several those of the fabric that has the most."""
        of_sides = [side.blocks for side in self.sides]
        return len(set().union(*of_sides)) if len(self.runs) == 1 else max(map(len, of_sides))

    @cached_property
    def fabrics(self) -> tuple[FabricFacts, ...]:
        return tuple(fabric_facts(side, letters_of(index)) for index, side in enumerate(self.sides))

    @cached_property
    def marks(self) -> Mapping[Origin, Sequence[str]]:
        return marks_of((one.name, one.mark) for one in self.fabrics)

    def completed(self, headline: Headline, order_words: Sequence[str]) -> Headline:
        """Return the headline with what it rests on, and with what to do next."""
        material, busy = self.material, quiet_words([run.manifest for run in self.runs])
        clear = (one.key for one in headline.effects if one.grade is Grade.CLEAR)
        counts = len(self.launches), self.samples
        added = {
            "next_steps": self._next_steps(_not_quiet(headline, busy)),
            "evidence": bounded(
                headline.evidence,
                self.marks,
                len(self.sides),
                is_busy=bool(busy),
                nodes={side.name: side.traits[NODES] for side in self.sides if side.traits and not side.factors},
            ),
            "where": leading_sentence(self.chapters.get(DIFFERENCES, ()), clear),
            "system": system_words([run.manifest for run in (self.runs if self.has_configurations else self.runs[:1])]),
            **reproduction(self.runs, is_brief=self.has_configurations),
            "conditions": _conditions(
                self.sides, material.pairings, *counts, material.margin, material.confidence, self.marks, order_words
            ),
        }
        return headline.model_copy(update=added)

    def _next_steps(self, not_quiet: str) -> tuple[str, ...]:
        has_mpi = any(Layer.MPI in one.layers for one in self.manifest.testbed.fabrics)
        return next_steps(
            self.material.cells,
            self.curves,
            self.crossovers,
            self.material.margin,
            run_directory=None if _origins(self.sides) == {Origin.IMPORTED} else self.runs[0].path,
            blocks=max((launch.block + 1 for launch in self.manifest.planned), default=self.blocks),
            left=self.accounts[0].left if len(self.runs) == 1 else 0,
            may_grow=partial(may_grow, self.manifest),
            not_quiet=not_quiet,
            beyond_wire=_beyond_wire(self.sides),
            around_anomaly=sizes_to_measure(self.chapters.get(ANOMALIES, ())),
            has_workload=not has_mpi or any(key.workload is not None for side in self.sides for key in side.cells),
            has_prices=self.material.decision is not None or len(self.runs) > 1 or len(self.sides) < 2,
            runs_to_give=None if self.is_change or len(self.runs) == 1 else RUNS_OF_EACH,
            testbed=testbed_arguments(self.manifest),
        )

    def findings(
        self,
        headline: Headline,
        accounts: tuple[RunAccount, ...],
        runs_before: int,
        summaries: tuple[CellSummary, ...],
        paragraphs: Sequence[str],
    ) -> Findings:
        """Return all of it; of a change the first accounts are those of the runs before."""
        material, manifest = self.material, self.manifest
        invalid = sum(len(side.invalid) for side in self.sides)
        return Findings(
            title=_title(self.sides, material.pairings),
            run_directories=tuple(str(run.path) for run in self.runs),
            campaign=manifest.campaign_name,
            testbed=manifest.testbed.name,
            started=manifest.created.isoformat(timespec="seconds"),
            is_dated_by_import=manifest.is_dated_by_import,
            seconds_measured=sum(map(_seconds, self.launches)),
            blocks=self.blocks,
            launches=len(self.launches) + invalid,
            launches_invalid=invalid,
            samples=self.samples,
            confidence=material.confidence,
            margin=material.margin,
            is_emulated=any(side.fabric.is_emulated for side in self.sides),
            fabrics=self.fabrics,
            accounts=accounts,
            unequal_starts=changed_starts(accounts[:runs_before], accounts[runs_before:], material.confidence)
            if self.is_change
            else unequal_starts(accounts, material.confidence),
            headline=headline,
            summaries=summaries,
            cells=tuple(material.cells),
            curves=tuple(self.curves),
            crossovers=tuple(self.crossovers),
            ladder=tuple(material.ladder),
            distributions=tuple(material.distributions),
            warnings=tuple(find_warnings(replace(material, maps=self.chapters.get(MAPS.name, ())))),
            method=method(
                material.margin,
                material.confidence,
                replications=list(dict.fromkeys(one.replication for one in material.pairings)),
                seed=manifest.seed,
                more=paragraphs,
                origins=_origins(self.sides),
                lost_nodes={node for run in self.runs for loss in run.manifest.losses for node in loss.reasons},
                pause=pause_of(manifest),
            ),
            inventory=manifest.inventory,
            chapters=self.chapters,
        )


def _leading(sides: Sequence[Side], ladder: Sequence[LadderStep]) -> Wanted:
    """Return what tells whether a cell of a fabric leads the first screen."""
    names = {side.name for side in sides}
    keys = {row.key for row in choose_rows(sides, ladder) if row.is_leading}
    return lambda fabric, key: fabric in names and key in keys


def _not_quiet(headline: Headline, busy: str) -> str:
    """Return what shows that the machine was not quiet, where rows are not clear: its load, or that its switches were late."""
    if all(one.grade is Grade.CLEAR for one in headline.effects):
        return ""
    is_late = any(
        doubt.delay_share is not None and not doubt.is_harmless
        for one in headline.effects
        if one.grade in (Grade.DOUBTFUL, Grade.ALARM, Grade.VOID)
        for doubt in one.doubts
    )
    return busy or ("the emulated switch was late" if is_late else "")


def _beyond_wire(sides: Sequence[Side]) -> str:
    """Return the first value that its link does not allow, as what is wrong with it; empty where there is none.

    An emulated link is what was asked for: there it is the host that was late.
    """
    found = (
        f"{side.name}: {named_cell(cell.key, cell.key.message_bytes)} is {why}"
        for side in sides
        if not side.fabric.is_emulated
        for cell in side.cells.values()
        if (why := impossible(side, cell)) is not None
    )
    return next(found, "")


def _margin_of(runs: Sequence[Run]) -> float:
    """Return the margin of the first run's campaign."""
    return (margin_of(runs[0].manifest) if runs else None) or DEFAULT_MARGIN


def arrange(sides: Sequence[Side], baseline: str | None, *, is_change: bool) -> list[Side]:
    """Return the sides with the baseline first; it is A of all its pairs.

    The other networks in its condition follow, so that this is the first condition of each.
    """
    if is_change:
        if baseline is not None:
            raise UsageError(
                f"--baseline {baseline} does not go with a comparison before and after",
                hint="what was before is the baseline; leave --baseline out",
            )
        return list(sides)
    names = [side.name for side in sides]
    if baseline is not None and baseline not in names:
        what = "configuration" if sides[0].factors else "fabric"
        where = "here" if sides[0].factors else "in the run"
        raise UsageError(f"there is no {what} {baseline} {where}", hint=f"choose one of {'; '.join(names)}")
    if baseline is None:
        return list(sides)
    first = sides[names.index(baseline)]
    return sorted(sides, key=lambda side: (side is not first, side.fabric.condition != first.fabric.condition))


def pairings_of(sides: Sequence[Side], *, is_change: bool) -> list[Pairing]:
    """Return who is compared with whom: each fabric before with itself after, else every two sides."""
    return [pair(a, b) for a, b in zip(sides[::2], sides[1::2], strict=True)] if is_change else all_pairs(sides)


def _title(sides: Sequence[Side], pairings: Sequence[Pairing]) -> str:
    if not pairings:
        return sides[0].name
    names = [side.name for side in sides]
    if sides[0].factors:
        return _title_of_configurations(names)
    if not pairings[0].is_paired:
        return f"{enumeration([side.fabric.name for side in sides[::2]])}, before and after"
    return f"{enumeration(names, 'or')}?"


LONGEST_TITLE = 80


def _title_of_configurations(names: Sequence[str]) -> str:
    """Return a question that names all configurations, else how many there are and the first ones."""
    whole = f"{enumeration(names, 'or')}?"
    return (
        whole if len(whole) <= LONGEST_TITLE else f"{count(len(names), 'configuration')}: {listed([*names[:2], '...'])}"
    )


def _seconds(launch: StoredLaunch) -> float:
    header, footer = launch.summary.header, launch.summary.footer
    return (footer.finished_unix_ns - header.started_unix_ns) / 1e9 if header and footer else 0.0


def letters_of(index: int) -> str:
    """Return how a side is called for short: A to Z, AA, AB, ..."""
    before, last = divmod(index, len(LETTERS))
    return (letters_of(before - 1) if before else "") + LETTERS[last]


def _fewer_pairs(pairings: Sequence[Pairing], blocks: int) -> str:
    """Return how many blocks hold a launch of both fabrics, where those are fewer."""
    pairs = [len(set(one.a.blocks) & set(one.b.blocks)) for one in pairings]
    return f", {count(min(pairs), 'whole pair')}" if pairs and min(pairs) < blocks else ""


def _in_sessions(pairings: Sequence[Pairing]) -> str:
    """Return in how many sessions the blocks were measured, where it was not in one."""
    sessions = max((len(set(one.sessions.values())) for one in pairings), default=0)
    return f" in {sessions} sessions" if sessions > 1 else ""


def _widest(pairings: Sequence[Pairing]) -> Replication:
    """Return what is repeated in the pairs that tell least: launches, then runs, then blocks."""
    found = {one.replication for one in pairings}
    return next((one for one in (Replication.LAUNCHES, Replication.RUNS) if one in found), Replication.BLOCKS)


def _runs_of_each(sides: Sequence[Side]) -> str:
    """Return `6 configurations of 3 runs each`."""
    runs = [len(side.runs) for side in sides]
    most = count(max(runs), "run")
    return f"{count(len(sides), 'configuration')} of {f'{most} each' if min(runs) == max(runs) else f'{min(runs)} to {most}'}"


def _conditions(
    sides: Sequence[Side],
    pairings: Sequence[Pairing],
    launches: int,
    samples: int,
    margin: float,
    confidence: float,
    marks: Mapping[Origin, Sequence[str]],
    order: Sequence[str],
) -> str:
    """Return in a line what the first screen rests on."""
    replication = _widest(pairings)
    blocks = max((len(side.blocks) for side in sides), default=0)
    by = {
        Replication.BLOCKS: count(blocks, "block") + _fewer_pairs(pairings, blocks) + _in_sessions(pairings),
        Replication.RUNS: f"{count(len(sides[0].runs), 'run')} before, {len(sides[-1].runs)} after",
        Replication.LAUNCHES: f"{count(len(sides[0].runs), 'run')} before, {len(sides[-1].runs)} after",
    }[replication]
    if sides[0].factors:
        by = _runs_of_each(sides)
    parts = [f"{by}, {count(launches, 'valid launch')}, {count(samples, 'sample')}"]
    of_all = ""
    if len(sides) > 1:
        if replication is not Replication.LAUNCHES:
            parts.append(
                f"the intervals of this screen's ratios hold together with {percent(confidence)}, those of its levels each alone"
            )
        parts.append(f"differences below {percent(margin)} do not matter")
        of_all = "" if sides[0].factors else ", those of all fabrics over the same blocks"
    parts.append(f"levels are geometric means over launches, of tails medians{of_all}")
    parts += [f"{words}: ratios are without that" for words in order]
    for mark, names in marks.items():
        everything = len(names) == len(sides) > 1
        parts.append(f"{'all fabrics' if everything else enumeration(list(names))} {MARKS[mark].condition}")
    left_out = sum(len(side.invalid) for side in sides)
    if left_out:
        parts.append(f"{count(left_out, 'invalid launch')} left out")
    return "; ".join(parts) + "."
