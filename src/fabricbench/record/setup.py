"""What tells cells of one layer, pattern, size and way of waiting apart, typed: programs compare its fields.

Its words for people are made here and read nowhere: `variant` of tables and exports, and the parts of it that reports set.
A stored launch of any version has ranks, parameters and congestor in columns of their own: an old run is read as a new one is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

from fabricbench.model import Layer, Model, Pattern
from fabricbench.pattern_facts import LAYER_PARAMETERS, Family, Parameters
from fabricbench.patterns import PATTERNS
from fabricbench.quantity import format_bytes
from fabricbench.record.lines import Cell
from fabricbench.record.probe_plan import PlanCongestor, PlanProbe

Value = str | int | float
"""Of a parameter, of a cell or of a workload."""

WORKLOAD = "workload"
"""Among the parameters of a cell: the workload's name. `figure` and `unit` are those of its primary figure of merit."""
OF_THE_FIGURE = ("figure", "unit")
KERNEL = "kernel"
OF_LAYERS = {name: parameter for known in LAYER_PARAMETERS.values() for name, parameter in known.items()}
NAMING = (KERNEL, "benchmark", "class", WORKLOAD)
"""Parameters that name what is run: kept at their defaults as well. The first is named without its `kernel=`, as STREAM does."""


def _pairs(given: Any) -> Any:
    return tuple(sorted(given.items())) if isinstance(given, Mapping) else given


Named = Annotated[tuple[tuple[str, Value], ...], BeforeValidator(_pairs), PlainSerializer(dict)]
"""Parameters by their names, in the order of the names: a mapping that can be a key. JSON has an object."""


class CongestorSetup(Model):
    """What other ranks did meanwhile. `ranks` counts them; `parameters` are those that are not at their defaults."""

    layer: Layer
    pattern: Pattern
    message_bytes: int
    ranks: int
    parameters: Named = ()
    is_idle: bool = False


class Setup(Model):
    """The ranks, parameters, congestor and lost nodes of a cell.

    `ranks` counts them where a pattern takes any number; `members` are they where they are not the first ones. `parameters` are
    those that are not at their defaults, and what names a workload or a kernel. `lost_nodes` were missing, so that ranks of
    the cell were on other nodes than before.
    """

    ranks: int | None = None
    members: tuple[int, ...] = ()
    parameters: Named = ()
    congestor: CongestorSetup | None = None
    lost_nodes: tuple[str, ...] = ()

    @property
    def setup(self) -> Setup:
        """These fields alone, of whatever has more."""
        return Setup.model_construct(**{name: getattr(self, name) for name in SETUP_FIELDS})

    @property
    def order(self) -> tuple[Any, ...]:
        """What setups are sorted by: fewer ranks first, then as their parameters, congestors and lost nodes come."""
        beside: tuple[Any, ...] = ()
        if (one := self.congestor) is not None:
            beside = (one.layer, one.pattern, one.message_bytes, one.ranks, one.is_idle, _order_of(one.parameters))
        return self.ranks or 0, self.members, _order_of(self.parameters), beside, self.lost_nodes


SETUP_FIELDS = tuple(Setup.model_fields)


def _order_of(parameters: tuple[tuple[str, Value], ...]) -> tuple[tuple[str, bool, Value], ...]:
    """Return parameters so that any two can be compared: numbers stand before words."""
    return tuple((name, isinstance(value, str), value) for name, value in parameters)


def setup_of(cell: Cell | PlanProbe, lost_nodes: tuple[str, ...] = ()) -> Setup:
    """Return the setup of a cell that is planned or recorded."""
    return _setup(cell.pattern, cell.ranks, cell.parameters, cell.congestor, lost_nodes)


def stored_setup(row: Mapping[str, Any]) -> Setup:
    """Return the setup of a row of `Run.cells`, of whatever version its run is."""
    ranks, lost_nodes = tuple(row["ranks"] or ()), tuple(row["lost_nodes"] or ())
    return _of_columns(Pattern(str(row["pattern"])), ranks, row["parameters"], row["congestor"], lost_nodes)


@lru_cache(maxsize=65536)  # a run repeats few of them in many launches
def _of_columns(
    pattern: Pattern, ranks: tuple[int, ...], parameters: str | None, congestor: str | None, lost: tuple[str, ...]
) -> Setup:
    beside = None if congestor is None else PlanCongestor.model_validate_json(congestor)
    return _setup(pattern, ranks, json.loads(parameters or "{}"), beside, lost)


def _setup(
    pattern: Pattern,
    ranks: tuple[int, ...],
    parameters: Parameters,
    congestor: PlanCongestor | None,
    lost_nodes: tuple[str, ...],
) -> Setup:
    takes_any = PATTERNS[pattern].most_ranks is None
    is_workload = PATTERNS[pattern].family is Family.WORKLOAD
    return Setup(
        # A cell that failed before it opened may not tell its ranks.
        ranks=len(ranks) if takes_any and ranks else None,
        members=() if is_workload or ranks == tuple(range(len(ranks))) else ranks,
        parameters=_unusual(pattern, parameters),
        congestor=None
        if congestor is None
        else CongestorSetup(
            layer=congestor.layer,
            pattern=congestor.pattern,
            message_bytes=congestor.message_bytes,
            ranks=len(congestor.ranks),
            parameters=_unusual(congestor.pattern, congestor.parameters),
            is_idle=congestor.is_idle,
        ),
        lost_nodes=lost_nodes,
    )


def _unusual(pattern: Pattern, parameters: Parameters) -> Named:
    """Return the parameters that are not at their defaults, and those that name what is run."""
    known = OF_LAYERS | PATTERNS[pattern].parameters
    is_workload = PATTERNS[pattern].family is Family.WORKLOAD
    return tuple(
        (name, value)
        for name, value in sorted(parameters.items())
        if (name in NAMING or name not in known or known[name].default != value)
        and not (is_workload and name in OF_THE_FIGURE)
    )


def variant(cell: Cell | PlanProbe) -> str:
    """Return the words for a cell's setup; empty for a plain ping-pong or stream."""
    return variant_of(cell.pattern, setup_of(cell))


def variant_of(pattern: Pattern, setup: Setup) -> str:
    """Return the words for a setup as they stand in the column `variant`: its parts with commas between."""
    return ",".join(words_of(pattern, setup))


def words_of(pattern: Pattern, setup: Setup) -> tuple[str, ...]:
    """Return the words for each part of a setup, for people.

    In this order: `4 ranks` where a pattern takes any number of them, or `ranks 0 3` where they are not the first ones; the kernel
    of layer memory (`triad`) and `name=value` of every other parameter that is not at its default; `beside incast tcp 64 KiB of 4
    ranks` with a congestor; `without c3`. A kernel is called as its benchmarkers do: `IS.W 4 ranks`; any other workload by its
    name: `hpl 4 ranks`, `n=800`.
    """
    parts = _workload_words(pattern, setup) if PATTERNS[pattern].family is Family.WORKLOAD else _probe_words(setup)
    return (*parts, lost_words(setup.lost_nodes)) if setup.lost_nodes else tuple(parts)


def lost_words(nodes: Sequence[str]) -> str:
    """Return what a test is called whose ranks are on other nodes since some failed: `without c3`."""
    return f"without {' '.join(nodes)}"


def _probe_words(setup: Setup) -> Iterator[str]:
    if setup.members:
        yield f"ranks {' '.join(str(rank) for rank in setup.members)}"
    elif setup.ranks is not None:
        yield "1 rank" if setup.ranks == 1 else f"{setup.ranks} ranks"
    yield from parameter_words(setup.parameters)
    if (one := setup.congestor) is not None:
        idle = "idle " if one.is_idle else ""
        beside = f"beside {idle}{one.pattern} {one.layer} {format_bytes(one.message_bytes)} of {one.ranks} ranks"
        yield " ".join([beside, *parameter_words(one.parameters)])


def _workload_words(pattern: Pattern, setup: Setup) -> Iterator[str]:
    if setup.ranks is None:
        return
    given = dict(setup.parameters)
    is_npb = pattern is Pattern.NPB
    name = ".".join(str(given.pop(one)) for one in ("benchmark", "class")) if is_npb else given.pop(WORKLOAD, WORKLOAD)
    yield f"{name} {setup.ranks} rank{'' if setup.ranks == 1 else 's'}"
    yield from parameter_words(tuple(given.items()))


def parameter_words(parameters: Named) -> Iterator[str]:
    """Yield `flows=16` of each parameter; of a kernel of layer memory its name alone."""
    for name, value in parameters:
        yield str(value) if name == KERNEL else f"{name}={value}"
