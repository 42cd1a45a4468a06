"""Any tests of any runs on one pair of axes: which there are, where each stands, and which series they make.

Two tests of one series never stand at one place: nothing is averaged that differs by more than its launches.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import polars as pl

from fabricbench.analysis.comparing import check_levels
from fabricbench.analysis.configurations import run_names
from fabricbench.analysis.expectation import launches_of
from fabricbench.analysis.fabrics import fabric_facts
from fabricbench.analysis.findings import CellKey, FabricFacts, Origin, Proof
from fabricbench.analysis.findings.plot import (
    BESIDE,
    DATE,
    FABRIC,
    LAYER,
    LOAD,
    PATTERN,
    RECEIVE,
    RUN,
    Plot,
    PlotPoint,
    PlotSeries,
    PlotY,
    Trait,
    Traits,
)
from fabricbench.analysis.measured import key_of
from fabricbench.analysis.order_effects import without_order_effects
from fabricbench.analysis.plot_tests import (
    PlotRequest,
    PlottedRun,
    PlottedTest,
    baseline_of,
    has_y,
    tests_of,
    traits_in,
)
from fabricbench.analysis.sides import NothingMeasured, read_sides
from fabricbench.analysis.traits import OWN, in_order, is_value, meets, values_of
from fabricbench.analysis.wording import named
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Pattern, Receive
from fabricbench.quantity import count
from fabricbench.record.account import account_of
from fabricbench.record.provenance import marks_of
from fabricbench.record.store import Run

MOST_SERIES = 16
"""That anybody tells apart."""
MOST_NAMED = 12
"""Values of a trait that a message lists."""


def find_plot(runs: Sequence[Run], asked: PlotRequest, confidence: float = 0.95) -> Plot:
    """Return what was asked for of these runs. UsageError names what they have, or says why there is nothing to draw."""
    check_levels(0.5, confidence)
    met: dict[tuple[str, str, CellKey], Traits] = {}
    read = [_read(run, name, asked, met) for run, name in zip(runs, run_names(runs), strict=True)]
    _check_y(asked.y, [key for _, _, key in met], runs)
    tests = [one for of in read for one in tests_of(of, confidence)]
    _check_names(asked, [*met.values(), *(one.traits for one in tests)], runs)
    chosen = [one for one in tests if meets(one.traits, asked.where)]
    placed = [one for one in chosen if asked.x in one.traits and not one.is_impossible]
    if not placed:
        raise _nothing(asked, chosen, met.values(), runs)
    _check_units(placed)
    names = asked.series or _telling(placed, asked.x)
    places = tuple(dict.fromkeys(fabric.name for run in runs for fabric in run.manifest.testbed.fabrics))
    baselines = dict.fromkeys(baseline_of(of) for of in read if of.sides and asked.y is PlotY.COEFFICIENT)
    drawn = {str(one.traits[FABRIC]) for one in placed} | set(baselines)
    facts = _facts([(of.name, fabric_facts(side, "")) for of in read for side in of.sides if side.name in drawn])
    return Plot(
        x=asked.x,
        y=asked.y,
        unit=placed[0].unit,
        baseline=", ".join(baselines) or None,
        told_apart_by=names,
        series=tuple(_series(placed, asked.x, names, places)),
        common={
            name: values[0]
            for name, values in values_of(one.traits for one in placed).items()
            if len(values) == 1 and all(name in one.traits for one in placed)
        },
        fabrics=facts,
        places=places,
        marks=marks_of((one.name, one.mark) for one in facts),
        confidence=confidence,
        left_out=tuple(_called(one.traits) for one in chosen if one.is_impossible),
        run_directories=tuple(str(run.path) for run in runs),
        accounts=tuple(account_of(run) for run in runs),
    )


def quantity_named(name: str, runs: Sequence[Run]) -> PlotY:
    """Return what is to stand on the axis; UsageError names what these runs have."""
    if name not in set(PlotY):
        rows = (run.cells().filter(pl.col("metric").is_not_null()).iter_rows(named=True) for run in runs)
        keys = {key_of(row) for of_run in rows for row in of_run}
        raise UsageError(f"--y {name}: there is nothing of that name", hint=f"{_named(runs)} has {_had(keys)}")
    return PlotY(name)


def _facts(of_runs: Sequence[tuple[str, FabricFacts]]) -> tuple[FabricFacts, ...]:
    """Return each fabric once, its path as sure as in the run where it is least so.

    Where its numbers come from elsewhere in one run than in another, it is once for each run, and named so.
    """
    marks: dict[str, set[Origin | None]] = defaultdict(set)
    for _, one in of_runs:
        marks[one.name].add(one.mark)
    found: dict[str, FabricFacts] = {}
    for run, one in of_runs:
        name = one.name if len(marks[one.name]) == 1 else f"{one.name} of {run}"
        if name not in found or one.proof is not Proof.PROVEN:
            found[name] = one.model_copy(update={"name": name})
    return tuple(found.values())


def _read(run: Run, name: str, asked: PlotRequest, met: dict[tuple[str, str, CellKey], Traits]) -> PlottedRun:
    """Read what may be drawn of a run, and write down in `met` what else it has. What is paired needs all of it."""

    def is_wanted(fabric: str, key: CellKey) -> bool:
        place = name, fabric, key
        if place not in met:
            met[place] = traits_in(run, name, fabric, key, asked)
        others = [one for one in asked.where if one not in met[place]]
        return (has_y(asked.y, key) and meets(met[place], asked.where, unknown=others)) or asked.y.is_paired

    try:
        sides = read_sides([run], wanted=is_wanted)
    except NothingMeasured:
        if not met:
            raise
        sides = []
    if asked.y.is_paired:
        sides, _ = without_order_effects(sides)
    return PlottedRun(name, run, sides, {side.name: launches_of(side) for side in sides}, asked)


def _telling(tests: Sequence[PlottedTest], x: str) -> tuple[str, ...]:
    """Return the traits that tell apart what stands at one place, as few as do; the fabric where nothing has to be told."""
    known = [name for name in values_of(one.traits for one in tests) if name != x]
    names: list[str] = []
    for name in known:
        groups: dict[tuple[Trait | None, ...], set[Trait | None]] = defaultdict(set)
        for one in tests:
            groups[one.key((x, *names))].add(one.traits.get(name))
        if any(len(values) > 1 for values in groups.values()):
            names.append(name)
    return tuple(names) or (FABRIC,)


def _series(tests: Sequence[PlottedTest], x: str, names: Sequence[str], places: Sequence[str]) -> Iterator[PlotSeries]:
    """Yield the series in the order of their traits, each with its points in the order of the axis."""
    groups: dict[tuple[Trait | None, ...], list[PlottedTest]] = defaultdict(list)
    for one in tests:
        groups[one.key(names)].append(one)
    if len(groups) > MOST_SERIES:
        several = {name: len({one.traits.get(name) for one in tests}) for name in names}
        raise UsageError(
            f"{len(groups)} series cannot be told apart on one pair of axes: {MOST_SERIES} are the most",
            hint="choose some: "
            + ", ".join(f"--where {name}=... ({number})" for name, number in several.items() if number > 1),
        )
    values: dict[str, Sequence[Trait]] = dict(values_of(one.traits for one in tests))
    values |= {FABRIC: list(places), LAYER: list(Layer), PATTERN: list(Pattern), RECEIVE: list(Receive)}
    ranks = {name: {value: rank for rank, value in enumerate(values.get(name, ()))} for name in (*names, x)}

    def place(key: tuple[Trait | None, ...]) -> tuple[int, ...]:
        return tuple(-1 if of is None else ranks[name].get(of, -1) for name, of in zip(names, key, strict=True))

    for key in sorted(groups, key=place):
        group = sorted(groups[key], key=lambda one: ranks[x][one.traits[x]])
        _check_places(group, x)
        yield PlotSeries(
            traits={name: of for name, of in zip(names, key, strict=True) if of is not None},
            points=tuple(
                PlotPoint(x=one.traits[x], y=one.y, launches=one.launches, values=one.values, traits=one.traits)
                for one in group
            ),
        )


def _check_places(group: Sequence[PlottedTest], x: str) -> None:
    """Raise UsageError where two tests of a series stand at one place, with what tells them apart."""
    at: dict[Trait, list[PlottedTest]] = defaultdict(list)
    for one in group:
        at[one.traits[x]].append(one)
    for value, tests in at.items():
        if len(tests) > 1:
            differ = {
                name: values for name, values in values_of(one.traits for one in tests).items() if len(values) > 1
            }
            lacking = [
                name for one in tests for name in values_of(two.traits for two in tests) if name not in one.traits
            ]
            first = next(iter([*differ, *lacking]), RUN)
            raise UsageError(
                f"{count(len(tests), 'test')} of one series stand at {x} {value}; they differ in {_listed(differ) or first}",
                hint=f"tell them apart by --series {first}, or choose by --where {first}={in_order(differ.get(first, ['...']))[0]}",
            )


def _called(traits: Traits) -> str:
    """Return a test by the traits that name it."""
    return " ".join(str(traits[name]) for name in OWN if name in traits and name not in (DATE, BESIDE))


def _listed(values: Mapping[str, Sequence[Trait]]) -> str:
    """Return `layer tcp, mpi; size 64, 1024, ...`."""
    return "; ".join(
        f"{name} {', '.join(map(str, of[:MOST_NAMED]))}{', ...' if len(of) > MOST_NAMED else ''}"
        for name, of in values.items()
    )


def _named(runs: Sequence[Run]) -> str:
    return named([str(run.path) for run in runs])


def _check_y(y: PlotY, keys: Sequence[CellKey], runs: Sequence[Run]) -> None:
    """Raise UsageError where no test has what is to stand on the axis."""
    if not any(has_y(y, key) for key in keys):
        raise UsageError(f"no test of {_named(runs)} has a {y}", hint=f"--y can be {_had(keys)}")


def _had(keys: Collection[CellKey]) -> str:
    """Return what tests have that can stand on the axis."""
    return ", ".join(one for one in PlotY if any(has_y(one, key) for key in keys)) or "nothing that can be drawn"


def _check_names(asked: PlotRequest, tests: Sequence[Traits], runs: Sequence[Run]) -> None:
    """Raise UsageError for a trait that no test has, with those that there are, and for another one in a list of values."""
    known = values_of(tests)
    for option, names in (("--x", (asked.x,)), ("--series", asked.series), ("--where", asked.where)):
        for name in names:
            if name not in known:
                several = [f"{one} ({len(values)})" for one, values in known.items() if len(values) > 1]
                raise UsageError(
                    f"{option} {name}: no test of {_named(runs)} has that",
                    hint=f"they differ in {', '.join(several) or 'nothing'}; there are also "
                    + ", ".join(one for one, values in known.items() if len(values) == 1 and one in OWN),
                )
    for name, texts in asked.where.items():
        for text in texts:
            if "=" in text and not any(is_value(value, text) for value in known[name]):
                raise UsageError(
                    f"--where {name}: no test has {text}",
                    hint=f"commas part the values of {name}; another trait takes a --where of its own: --where {text}",
                )


def _nothing(
    asked: PlotRequest, chosen: Sequence[PlottedTest], met: Iterable[Traits], runs: Sequence[Run]
) -> UsageError:
    """Return why there is nothing to draw."""
    if not chosen:
        there = {name: values for name, values in values_of(met).items() if name in asked.where}
        wanted = ", ".join(f"{name}={','.join(texts)}" for name, texts in asked.where.items())
        return UsageError(
            f"there is nothing to draw: no test of {_named(runs)} with a {asked.y} has {wanted or 'a value'}",
            hint=f"there are {_listed(there)}" if there else "measure one, or choose another --y",
        )
    if all(one.is_impossible for one in chosen):
        names = ", ".join(_called(one.traits) for one in chosen[:MOST_NAMED])
        return UsageError(
            f"there is nothing to draw: what there is cannot be true: {names}", hint="see `fabricbench report`"
        )
    several = [name for name, values in values_of(one.traits for one in chosen).items() if len(values) > 1]
    return UsageError(
        f"there is nothing to draw: no test with a {asked.y} has {asked.x}",
        hint=f"they differ in {', '.join(several) or 'nothing'}",
    )


def _check_units(tests: Sequence[PlottedTest]) -> None:
    """Raise UsageError where rates of several units would stand on one axis."""
    units = {one.unit: one for one in tests}
    if len(units) > 1:
        loads = ", ".join(f"{one.traits[LOAD]} in {unit}" for unit, one in units.items())
        raise UsageError(f"rates of several units do not fit on one axis: {loads}", hint="choose by --where load=...")
