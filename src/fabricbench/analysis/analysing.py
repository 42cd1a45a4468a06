"""From runs to findings: calls each part of the analysis once, in order, and every chapter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fabricbench.analysis.caution import find_warnings
from fabricbench.analysis.comparing import Pairing, all_pairs, check_levels, compare_all, error_of_look, pair
from fabricbench.analysis.crossovers import cell_key, find_crossovers
from fabricbench.analysis.effects import Compared, Doubt
from fabricbench.analysis.findings import (
    MARKS,
    Comparison,
    FabricFacts,
    Findings,
    Origin,
    Proof,
    Reference,
    Replication,
)
from fabricbench.analysis.headline import next_steps, write_headline
from fabricbench.analysis.instrument import doubt_of, impossible, impossible_launches, tolerated
from fabricbench.analysis.ladder import build_ladder
from fabricbench.analysis.material import Material
from fabricbench.analysis.measured import CellMeasured, Side
from fabricbench.analysis.method import method, reproduce, testbed_arguments
from fabricbench.analysis.sides import read_sides
from fabricbench.analysis.summary import distribution, summarise
from fabricbench.analysis.wording import enumeration, named, percent
from fabricbench.chapters import find_all
from fabricbench.errors import UsageError
from fabricbench.quantity import count, with_ranges
from fabricbench.record.decision_table import DecisionTable, decision_of
from fabricbench.record.provenance import marks_of
from fabricbench.record.store import Run, StoredLaunch
from fabricbench.testbed.model import mpi_of

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Of the first sides; the 27th is AA, as columns of spreadsheets are."""

DEFAULT_MARGIN = 0.02
DEFAULT_CONFIDENCE = 0.95


def analyse(
    runs: Sequence[Run] = (),
    *,
    before: Sequence[Run] = (),
    after: Sequence[Run] = (),
    baseline: str | None = None,
    margin: float = DEFAULT_MARGIN,
    confidence: float = DEFAULT_CONFIDENCE,
    reference: Reference | None = None,
    decision: DecisionTable | None = None,
) -> Findings:
    """Return everything that a report shows about one run, or about runs of the same fabrics before and after a change.

    In one run every two fabrics are compared; `baseline` (default: the testbed's first) comes first, as A of its pairs. Two `runs`
    are one before and one after; `before` and `after` hold several of each. `margin` is the smallest relative difference that
    matters. Rates of kernels are normalised to `reference`, fabrics are ranked by the weights and prices of `decision` (default:
    the campaign's own). UsageError if the arguments make no sense or nothing was measured.
    """
    check_levels(margin, confidence)
    every_run = [*before, *after] if before or after else list(runs)
    is_one_run = len(every_run) == 1
    sides = arrange(read_sides(runs, before=before, after=after), baseline, is_one_run=is_one_run)
    pairings = pairings_of(sides, is_one_run=is_one_run)
    level = 1.0 - error_of_look(every_run, 1.0 - confidence)
    summaries = [summarise(side, cell, confidence) for side in sides for cell in side.cells.values()]
    cells, curves = compare_all(
        pairings, margin, confidence, level, 1.0 - error_of_look(every_run, 1.0 - confidence, ahead=1)
    )
    cells = _cautioned(cells, sides)
    crossovers = find_crossovers(pairings, cells, confidence)
    ladder = build_ladder(sides, confidence)
    distributions = [one for side in sides for cell in side.cells.values() if (one := distribution(side, cell))]
    manifest = every_run[0].manifest
    weights = decision or decision_of(manifest)
    material = Material(
        sides, pairings, cells, ladder, distributions, margin, confidence, level, reference=reference, decision=weights
    )
    origins = {launch.origin for side in sides for launch in side.launches}
    found, paragraphs = find_all(material, is_measured=origins != {Origin.IMPORTED})
    warnings = find_warnings(replace(material, maps=found.get("maps", ())))
    launches = [launch for side in sides for launch in side.launches]
    invalid = sum(len(side.invalid) for side in sides)
    samples = sum(cell.pooled.size for side in sides for cell in side.cells.values())
    blocks = (
        len({block for side in sides for block in side.blocks})
        if is_one_run
        else max(len(side.blocks) for side in sides)
    )
    headline = write_headline(
        Compared(sides, pairings, cells, curves, crossovers, ladder, margin, level, confidence, judge)
    )
    fabrics = tuple(_facts(side, letters_of(index)) for index, side in enumerate(sides))
    return Findings(
        title=_title(sides, pairings),
        run_directories=tuple(str(run.path) for run in every_run),
        campaign=manifest.campaign_name,
        testbed=manifest.testbed.name,
        started=manifest.created.isoformat(timespec="seconds"),
        seconds_measured=sum(_seconds(launch) for launch in launches),
        blocks=blocks,
        launches=len(launches) + invalid,
        launches_invalid=invalid,
        samples=samples,
        confidence=confidence,
        margin=margin,
        is_emulated=any(side.fabric.is_emulated for side in sides),
        fabrics=fabrics,
        headline=headline.model_copy(
            update={
                "next_steps": next_steps(
                    cells,
                    curves,
                    crossovers,
                    margin,
                    run_directory=None if origins == {Origin.IMPORTED} else every_run[0].path,
                    blocks=blocks,
                    doubts=headline.evidence if headline.in_doubt else (),
                    has_workload=any(found.get(name) is not None for name in ("kernels", "applications")),
                    testbed=testbed_arguments(manifest),
                ),
                "reproduce": tuple(line for run in every_run for line in reproduce(run)),
                "conditions": _conditions(
                    sides,
                    pairings,
                    len(launches),
                    samples,
                    margin,
                    confidence,
                    marks_of((one.name, one.mark) for one in fabrics),
                ),
            }
        ),
        summaries=tuple(summaries),
        cells=tuple(cells),
        curves=tuple(curves),
        crossovers=tuple(crossovers),
        ladder=tuple(ladder),
        distributions=tuple(distributions),
        warnings=tuple(warnings),
        method=method(
            margin,
            confidence,
            replication=pairings[0].replication if pairings else Replication.BLOCKS,
            seed=manifest.seed,
            more=paragraphs,
            origins=origins,
            lost_nodes={node for run in every_run for loss in run.manifest.losses for node in loss.reasons},
        ),
        inventory=manifest.inventory,
        **found,
    )


def judge(side: Side, cell: CellMeasured, is_tail: bool, level: float | None = None) -> tuple[Doubt, ...]:
    """Return what speaks against a cell's numbers: values that cannot be, payloads that changed, a switch that was late.

    `level` is what is shown of the cell, where that is not the mean of all its launches.
    """
    found = []
    beyond = impossible(side, cell, None if is_tail else level)
    if beyond is not None:
        found.append(Doubt(beyond, is_void=True))
    elif not is_tail:
        within = None if level is None else tolerated(side, cell, level)
        if within is not None:
            found.append(Doubt(within, is_beyond_wire=True))
        beyond_it = impossible_launches(side, cell)
        if beyond_it:
            which = (
                f"launch {named(list(beyond_it))} shows"
                if len(beyond_it) == 1
                else f"launches {named(list(beyond_it))} show"
            )
            found.append(Doubt(f"{which} {with_ranges(list(beyond_it.values()))}"))
    if cell.counts["corrupted"]:
        found.append(Doubt(f"{count(cell.counts['corrupted'], 'payload')} arrived changed", is_void=True))
    late = doubt_of(side, cell)
    if late is not None and (is_tail or not late.is_tail_only):
        found.append(Doubt(late.words, delay_share=late.delay_share))
    return tuple(found)


def _cautioned(cells: Sequence[Comparison], sides: Sequence[Side]) -> list[Comparison]:
    """Return the comparisons, each with a note where a level that it shows is better than its wire allows."""
    by_name = {side.name: side for side in sides}

    def caution(name: str, one: Comparison, level: float | None) -> str | None:
        side = by_name[name]
        cell = side.cells[cell_key(one)]
        words = impossible(side, cell, level) or (None if level is None else tolerated(side, cell, level))
        return None if words is None else f"{name}: {words}"

    def noted(one: Comparison) -> Comparison:
        found = (caution(one.fabric_a, one, one.value_a), caution(one.fabric_b, one, one.value_b))
        notes = tuple(note for note in found if note is not None)
        return one.model_copy(update={"notes": (*one.notes, *notes)}) if notes else one

    return [noted(one) for one in cells]


def arrange(sides: Sequence[Side], baseline: str | None, *, is_one_run: bool) -> list[Side]:
    """Return the sides with the baseline first; it is A of all its pairs."""
    if not is_one_run:
        if baseline is not None:
            raise UsageError(
                f"--baseline {baseline} does not go with a comparison before and after",
                hint="what was before is the baseline; leave --baseline out",
            )
        return list(sides)
    names = [side.name for side in sides]
    if baseline is not None and baseline not in names:
        raise UsageError(f"there is no fabric {baseline} in the run", hint=f"choose one of {', '.join(names)}")
    first = names.index(baseline) if baseline is not None else 0
    return [sides[first], *sides[:first], *sides[first + 1 :]]


def pairings_of(sides: Sequence[Side], *, is_one_run: bool) -> list[Pairing]:
    """Return who is compared with whom: every two fabrics of a run, each fabric before with itself after."""
    return all_pairs(sides) if is_one_run else [pair(a, b) for a, b in zip(sides[::2], sides[1::2], strict=True)]


def _title(sides: Sequence[Side], pairings: Sequence[Pairing]) -> str:
    if not pairings:
        return sides[0].name
    if not pairings[0].is_paired:
        return f"{enumeration([side.fabric.name for side in sides[::2]])}, before and after"
    names = [side.name for side in sides]
    return f"{', '.join(names[:-1])} or {names[-1]}?"


def _seconds(launch: StoredLaunch) -> float:
    header, footer = launch.summary.header, launch.summary.footer
    return (footer.finished_unix_ns - header.started_unix_ns) / 1e9 if header and footer else 0.0


def letters_of(index: int) -> str:
    """Return how a side is called for short: A to Z, AA, AB, ..."""
    before, last = divmod(index, len(LETTERS))
    return (letters_of(before - 1) if before else "") + LETTERS[last]


def _facts(side: Side, letter: str) -> FabricFacts:
    fabric, origin = side.fabric, _foreign_origin(side)
    measured = {key.layer for key in side.cells}
    return FabricFacts(
        name=side.name,
        letter=letter,
        description=fabric.description,
        line_rate_bit_s=fabric.wire.line_rate_bit_s if fabric.wire else None,
        mtu=None if origin else fabric.mtu,
        is_emulated=fabric.is_emulated,
        layers=tuple(layer for layer in fabric.layers if layer in measured) if origin else fabric.layers,
        price_per_node=fabric.price_per_node,
        currency=fabric.currency,
        origin=origin,
        proof=_proof(side),
        mpi=_mpi(side),
    )


def _mpi(side: Side) -> str:
    """Return the MPI that a side was measured with, where its testbed names some: `openmpi: Open MPI 5.0.11`."""
    testbed = side.run.manifest.testbed
    mpi = mpi_of(testbed.mpis, side.fabric)
    libraries = {launch.summary.facts.conditions.get("mpi", "") for launch in side.launches} - {""}
    return "" if mpi is None else ": ".join((mpi.name, *[" and ".join(sorted(libraries))] * bool(libraries)))


def _foreign_origin(side: Side) -> Origin | None:
    """Return where a side's numbers come from, if from elsewhere than measurements here."""
    found = {launch.origin for launch in side.launches}
    return next((origin for origin in (Origin.IMPORTED, Origin.PREDICTED, Origin.SIMULATED) if origin in found), None)


def _proof(side: Side) -> Proof:
    """Return what is known of the path of a side's launches that count; refuted where none is left."""
    found = {launch.proof for launch in side.launches}
    if not found:
        return Proof.REFUTED
    return Proof.UNKNOWN if Proof.UNKNOWN in found else Proof.PROVEN


def _fewer_pairs(pairings: Sequence[Pairing], blocks: int) -> str:
    """Return how many blocks hold a launch of both fabrics, where those are fewer."""
    pairs = [len(set(one.a.blocks) & set(one.b.blocks)) for one in pairings]
    return f", {count(min(pairs), 'whole pair')}" if pairs and min(pairs) < blocks else ""


def _conditions(
    sides: Sequence[Side],
    pairings: Sequence[Pairing],
    launches: int,
    samples: int,
    margin: float,
    confidence: float,
    marks: Mapping[Origin, Sequence[str]],
) -> str:
    """Return in a line what the first screen rests on."""
    replication = pairings[0].replication if pairings else Replication.BLOCKS
    blocks = max((len(side.blocks) for side in sides), default=0)
    by = {
        Replication.BLOCKS: count(blocks, "block") + _fewer_pairs(pairings, blocks),
        Replication.RUNS: f"{len(sides[0].runs)} runs before, {len(sides[-1].runs)} after",
        Replication.LAUNCHES: f"{count(len(sides[0].runs), 'run')} before, {len(sides[-1].runs)} after",
    }[replication]
    parts = [f"{by}, {count(launches, 'valid launch')}, {count(samples, 'sample')}"]
    if replication is not Replication.LAUNCHES:
        parts.append(
            f"the intervals of this screen's ratios hold together with {percent(confidence)}, those of its levels each alone"
        )
    parts.append(f"differences below {percent(margin)} do not matter")
    parts.append("levels are geometric means over launches, those of all fabrics over the same blocks")
    for mark, names in marks.items():
        everything = len(names) == len(sides)
        parts.append(f"{'all fabrics' if everything else enumeration(list(names))} {MARKS[mark].condition}")
    left_out = sum(len(side.invalid) for side in sides)
    if left_out:
        parts.append(f"{count(left_out, 'invalid launch')} left out")
    return "; ".join(parts) + "."
