"""Configurations: which fabrics of which runs are one side of a comparison, and what each side is called.

A configuration is a fabric on machines: of one fabric two runs are the same configuration where nothing that they tell of
themselves differs. A name has what differs and no more: processor and fabric wherever they do, then as few of the other traits as
tell all apart; what else differs is told beside it (`hidden_differences`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from fabricbench.analysis.change import fabric_settings
from fabricbench.analysis.findings.plot import BOARD, FABRIC, KERNEL, MPI, NODES, PROCESSOR, RUN
from fabricbench.analysis.machines import machine_traits, of_machines
from fabricbench.analysis.measured import Configuration, Side
from fabricbench.analysis.sides import check_copies
from fabricbench.errors import UsageError
from fabricbench.printable import one_line
from fabricbench.quantity import count, enumeration
from fabricbench.record.store import Run
from fabricbench.testbed.model import Fabric, mpi_of
from fabricbench.testbed.short_names import short_kernel, short_mpi, short_processor

NAME = "configuration"
"""The trait that whoever compares gave: a name."""
FIRST = (NAME, PROCESSOR, BOARD, FABRIC, MPI, KERNEL)
"""In the order in which a name has them; then the settings of the fabric, the nodes, and the run."""
STUDIED = (PROCESSOR, FABRIC)
"""Named wherever they differ, even if others tell all sides apart; but where whoever compares gave names."""
OF_PLACE = ("interface", "subnet", "nodes", "condition")
"""Of what a fabric is told: where it is found, and what other traits say."""
SELF_EVIDENT = (NAME, BOARD, FABRIC, NODES, RUN)
"""Whose values need no word that says what they are."""
MOST_TOLD = 3
"""Values of a trait that are told with the sides that have them."""
UNKNOWN = "unknown"

Traits = dict[str, str]


def run_names(runs: Sequence[Run]) -> list[str]:
    """Return what tells runs apart: the names of their folders, with as much of the way there as it takes."""
    paths = [Path(run.path).absolute() for run in runs]
    for length in range(1, max(len(path.parts) for path in paths) + 1):
        names = ["/".join(path.parts[-length:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    twice = next(path for path in paths if paths.count(path) > 1)
    raise UsageError(f"{twice} is given twice", hint="each run counts once")


def configurations_of(runs: Sequence[Run]) -> list[Configuration]:
    """Return the configurations of some runs, in the order of these; runs of the same one are together.

    Where all runs are one configuration, each run is a side of its own, named by its folder.
    """
    check_copies(runs)
    found = _grouped((run, fabric.name, traits_of_run(run, fabric.name)) for run in runs for fabric in _fabrics(run))
    if len(found) == 1:
        names = run_names(runs)
        ((_, fabric, traits),) = [found[0]]
        found = [((run,), fabric, traits | {RUN: name}) for run, name in zip(runs, names, strict=True)]
    return _named(found)


def configurations_named(runs: Mapping[str, Sequence[Run]]) -> list[Configuration]:
    """Return the configurations of runs that were given names: each fabric of a name is one, whatever else its runs differ in."""
    check_copies([run for some in runs.values() for run in some])
    found: list[tuple[tuple[Run, ...], str, Traits]] = []
    for name, some in runs.items():
        for fabric in dict.fromkeys(fabric.name for run in some for fabric in _fabrics(run)):
            having = tuple(run for run in some if any(one.name == fabric for one in _fabrics(run)))
            traits = [traits_of_run(run, fabric) for run in having]
            whats = dict.fromkeys(what for one in traits for what in one)
            whole = {what: enumeration(list(dict.fromkeys(one.get(what, UNKNOWN) for one in traits))) for what in whats}
            found.append((having, fabric, {NAME: name, **whole}))
    if len(found) == 1:
        raise UsageError(
            f"all runs are given the one name {found[0][2][NAME]}, and have the one fabric {found[0][1]}",
            hint="give two names or more: `old=A1 old=A2 new=B1 new=B2`",
        )
    return _named(found)


def _fabrics(run: Run) -> Sequence[Fabric]:
    return run.manifest.testbed.fabrics


def traits_of_run(run: Run, fabric: str) -> Traits:
    """Return what is known of a fabric of a run and of the machines there, by name, without what is not known."""
    manifest = run.manifest
    testbed, one = manifest.testbed, manifest.testbed.fabric(fabric)
    machines = machine_traits(run, one)
    asked = mpi_of(testbed.mpis, one)
    libraries = {launch.summary.facts.conditions.get("mpi", "") for launch in run.launches if launch.fabric == fabric}
    library = (
        enumeration(sorted(libraries - {""}))
        or of_machines(run, one)("mpi.version")
        or manifest.versions.get("mpi", "")
    )
    settings = {what: text for what, text in fabric_settings(one, OF_PLACE).items() if what not in FIRST}
    found = {
        PROCESSOR: machines[PROCESSOR],
        BOARD: machines[BOARD],
        FABRIC: fabric,
        MPI: ": ".join(filter(None, ("" if asked is None else asked.name, library))),
        KERNEL: machines[KERNEL],
        **settings,
        NODES: machines[NODES],
    }
    return {what: text for what, text in found.items() if text and text != "none"}


def _grouped(found: Iterable[tuple[Run, str, Traits]]) -> list[tuple[tuple[Run, ...], str, Traits]]:
    groups: dict[tuple[tuple[str, str], ...], list[tuple[Run, str, Traits]]] = defaultdict(list)
    for one in found:
        groups[tuple(sorted(one[2].items()))].append(one)
    return [(tuple(run for run, _, _ in group), group[0][1], group[0][2]) for group in groups.values()]


def _named(found: Sequence[tuple[tuple[Run, ...], str, Traits]]) -> list[Configuration]:
    """Return configurations, each called by what tells it from the others."""
    traits = [of for _, _, of in found]
    told = _telling(traits)
    words = {what: _short(what, [of.get(what, UNKNOWN) for of in traits]) for what in told}
    return [
        Configuration(
            name=", ".join(factors.values()),
            fabric=fabric,
            runs=runs,
            factors=factors,
            traits=_with_unknown(of, traits),
        )
        for index, (runs, fabric, of) in enumerate(found)
        for factors in [{what: words[what][index] for what in told}]
    ]


def _with_unknown(traits: Traits, every: Sequence[Traits]) -> Traits:
    """Return traits with those that only others have."""
    return {what: traits.get(what, UNKNOWN) for what in _in_order(every)}


def _in_order(every: Sequence[Traits]) -> list[str]:
    known = dict.fromkeys(what for of in every for what in of)
    last = [what for what in (NODES, RUN) if what in known]
    rest = [what for what in known if what not in (*FIRST, *last)]
    return [*(what for what in FIRST if what in known), *rest, *last]


def _telling(every: Sequence[Traits]) -> list[str]:
    """Return the traits that name sides: those that are studied wherever they differ, of the others as few as tell all apart."""
    order = _in_order(every)
    first = (NAME,) if NAME in order else STUDIED
    told = [what for what in order if what in first and len({of.get(what) for of in every}) > 1]
    for what in order:
        if len(_values(every, [*told, what])) > len(_values(every, told)):
            told.append(what)
    return sorted(told, key=order.index)


def _values(every: Sequence[Traits], whats: Sequence[str]) -> set[tuple[str | None, ...]]:
    return {tuple(of.get(what) for what in whats) for of in every}


def _short(what: str, values: Sequence[str]) -> list[str]:
    """Return the values of a trait as a name has them: they are anybody's texts. Whole where shortened ones would be alike."""
    short = [one_line(written(what, value)) if value != UNKNOWN else f"{what} unknown" for value in values]
    return short if len(set(short)) == len(set(values)) else list(values)


def written(what: str, value: str) -> str:
    """Return a value of a trait in short, with a word that says what it is where it does not say so itself."""
    if what in SHORTENED:
        return SHORTENED[what](value)
    return value if what in SELF_EVIDENT else f"{what} {value}"


SHORTENED: Mapping[str, Callable[[str], str]] = {
    PROCESSOR: short_processor,
    MPI: short_mpi,
    KERNEL: short_kernel,
}


def hidden_differences(sides: Sequence[Side]) -> Iterator[str]:
    """Yield what sides differ in besides what they are called by: it is in every ratio between them."""
    every = [dict(side.traits) for side in sides]
    named = {what for side in sides for what in side.factors}
    for what in _in_order(every):
        values: dict[str, list[str]] = {}
        for side in sides:
            values.setdefault(side.traits.get(what, UNKNOWN), []).append(side.name)
        if what not in named and len(values) > MOST_TOLD:
            yield f"{what} ({count(len(values), 'value')}, see the inventory)"
        elif what not in named and len(values) > 1:
            words = _short(what, list(values))
            told = (f"{word} of {enumeration(names)}" for word, names in zip(words, values.values(), strict=True))
            yield f"{what} ({'; '.join(told)})"
