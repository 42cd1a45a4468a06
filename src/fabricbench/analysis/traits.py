"""The traits of tests: what each is, by name, so that any of them can stand on an axis, tell series apart, or choose. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from fabricbench.analysis.findings import CellKey
from fabricbench.analysis.findings.plot import (
    ALONE,
    BESIDE,
    DATE,
    FABRIC,
    FLOWS,
    LAYER,
    LOAD,
    MEMBERS,
    NODES,
    PATTERN,
    RANKS,
    RECEIVE,
    RUN,
    SIZE,
    WITHOUT,
    Trait,
    Traits,
)
from fabricbench.model import Layer, RdmaDoor
from fabricbench.pattern_facts import LAYER_PARAMETERS
from fabricbench.patterns import PATTERNS
from fabricbench.quantity import parse_bytes
from fabricbench.record.setup import OF_THE_FIGURE, WORKLOAD, Setup, lost_words, words_of

Where = Mapping[str, Sequence[str]]
"""What is chosen: names of traits, each with the values that will do, a shell's patterns among them."""

OWN = (FABRIC, LAYER, LOAD, PATTERN, RUN, RECEIVE, SIZE, RANKS, NODES, FLOWS, BESIDE, MEMBERS, WITHOUT, DATE)
"""Those that any test may have, in the order in which they tell series apart; a parameter of such a name is not shown."""
FIGURE = "figure"
"""What a load that tells several figures of merit calls this one."""
DOOR, USUAL = "door", "usual"
"""The way into a layer, which only cells name that ask for another than the usual one."""


def traits_of(key: CellKey) -> Traits:
    """Return the traits of a test wherever it was measured."""
    traits: Traits = {LAYER: key.layer.value, PATTERN: key.pattern.value, RECEIVE: key.receive.value}
    if key.workload is not None:
        parameters = dict(key.workload.parameters)
        traits |= {name: value for name, value in parameters.items() if name not in (*OWN, *OF_THE_FIGURE, WORKLOAD)}
        traits |= {LOAD: load_name(key), RANKS: key.workload.ranks}
        traits |= {FIGURE: figure} if (figure := parameters.get(FIGURE)) else {}
        return traits
    facts = PATTERNS[key.pattern]
    known = LAYER_PARAMETERS.get(key.layer, {}) | facts.parameters
    traits |= {name: known[name].default for name in known if known[name].is_of(key.layer)}
    traits[DOOR] = RdmaDoor.SEND.value if key.layer is Layer.RDMA else USUAL
    traits |= {name: value for name, value in key.setup.parameters if name not in OWN or name == FLOWS}
    if facts.has_size:
        traits[SIZE] = key.message_bytes
    if facts.most_ranks is not None:
        traits[RANKS] = facts.most_ranks if key.layer is not Layer.MEMORY else 1
    if key.ranks is not None:
        traits[RANKS] = key.ranks
    beside = words_of(key.pattern, Setup(congestor=key.congestor)) if key.congestor is not None else (ALONE,)
    traits[BESIDE] = beside[-1]
    if key.members:
        traits[MEMBERS] = " ".join(map(str, key.members))
    if key.lost_nodes:
        traits[WITHOUT] = lost_words(key.lost_nodes)
    return traits


def load_name(key: CellKey) -> str:
    """Return what a load is called, whatever its parameters: `IS.W`, `hpl`."""
    return "" if key.workload is None else key.workload.short


def meets(traits: Traits, where: Where, *, unknown: Sequence[str] = ()) -> bool:
    """Tell whether a test is chosen; of traits that are yet `unknown` it is taken to be."""
    return all(
        name in unknown or (name in traits and any(is_value(traits[name], text) for text in texts))
        for name, texts in where.items()
    )


def is_value(value: Trait, text: str) -> bool:
    """Tell whether a text names a value: a shell's pattern, `64KiB` of a size, `4` of 4.0."""
    if fnmatchcase(str(value), text):
        return True
    try:
        return not isinstance(value, str) and float(parse_bytes(text)) == value
    except ValueError:
        return False


def values_of(tests: Iterable[Traits]) -> dict[str, list[Trait]]:
    """Return the traits of tests, each with its values: numbers in their order, others as they are met."""
    found: dict[str, dict[Trait, None]] = {}
    for traits in tests:
        for name, value in traits.items():
            found.setdefault(name, {})[value] = None
    names = sorted(found, key=lambda name: (OWN.index(name), "") if name in OWN else (len(OWN), name))
    return {name: in_order(found[name]) for name in names}


def in_order(values: Iterable[Trait]) -> list[Trait]:
    """Return numbers in their order, and texts behind them as they are met."""
    listed = list(values)
    numbers = sorted(one for one in listed if not isinstance(one, str))
    return [*numbers, *(one for one in listed if isinstance(one, str))]
