"""The table of patterns as C++: `fabricbench.patterns` as the enum, the facts and the lists of types that the measurer has.

Four files, each included by the one header or source that explains it: `native/core/pattern_table.inc` by `pattern_facts.hpp`,
`native/pattern/pair_patterns.inc` by `patterns.hpp`, `native/pattern/group_patterns.inc` by `channels.cpp`,
`native/mpi_operation/operations.inc` by `operation.cpp`. Pure: `generate_schemas` writes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import StrEnum

from fabricbench.pattern_facts import LAYER_PARAMETERS, Family, Layer, Metric, Parameter, PatternFacts
from fabricbench.patterns import PATTERNS, Pattern

HEAD = "// Made from src/fabricbench/patterns.py by `make docs`: change it there.\n"

LEAST_RANKS, SMALLEST_BYTES = 2, 1
"""What `PatternFacts` has in both languages where nothing else is said."""

FOLDERS = {
    Family.PAIR: "pattern",
    Family.LOCKSTEP: "pattern",
    Family.FLOOD: "pattern",
    Family.OPERATION: "mpi_operation",
}
"""Where the types of a family lie. Those of a matrix are pairs, and a workload is a program of its own."""


def native_files() -> dict[str, str]:
    """Return the files by their path from the folder `native`."""
    return {
        "core/pattern_table.inc": _table(),
        "pattern/pair_patterns.inc": _list("Patterns", (Family.PAIR,)),
        "pattern/group_patterns.inc": _list("GroupPatterns", (Family.LOCKSTEP, Family.FLOOD)),
        "mpi_operation/operations.inc": _list("Operations", (Family.OPERATION,)),
    }


def header_of(facts: PatternFacts) -> str:
    """Return the header of a pattern's type, by its path from the folder `native`."""
    return facts.header or f"{FOLDERS[facts.family]}/{_identifier(facts.name)}.hpp"


def _table() -> str:
    parts = [
        HEAD,
        _enum("Family", Family),
        _enum("Metric", Metric),
        _enum("Pattern", Pattern),
        *_word_lists(),
        *dict.fromkeys(_parameters(facts) for facts in PATTERNS.values() if _has_parameters(facts)),
        f"inline constexpr std::array<PatternFacts, {len(PATTERNS)}> pattern_table{{{{",
        *(_row(facts) for facts in PATTERNS.values()),
        "}};\n",
        _layer_parameters(),
    ]
    return "\n".join(parts)


def _layer_parameters() -> str:
    listed = [
        f"    {_parameter(name, replace(parameter, only_over=(layer,)))},\n"
        for layer, known in LAYER_PARAMETERS.items()
        for name, parameter in known.items()
    ]
    array = f"inline constexpr std::array<ParameterFacts, {len(listed)}>"
    return f"{array} layer_parameters{{{{\n{''.join(listed)}}}}};\n"


def _row(facts: PatternFacts) -> str:
    """Return the facts of a pattern, without those that are as usual."""
    said = [
        f".family = Family::{facts.family}",
        f".metric = Metric::{facts.metric}",
        f".layers = {_layers(facts.layers)}",
    ]
    if facts.least_ranks != LEAST_RANKS:
        said.append(f".least_ranks = {facts.least_ranks}")
    if facts.most_ranks is not None:
        said.append(f".most_ranks = {facts.most_ranks}")
    if facts.smallest_message_bytes != SMALLEST_BYTES:
        said.append(f".smallest_message_bytes = {facts.smallest_message_bytes}")
    if not facts.has_size:
        said.append(".has_size = false")
    if facts.stamps_both_ends:
        said.append(".stamps_both_ends = true")
    if facts.is_stream:
        said.append(".is_stream = true")
    if _has_parameters(facts):
        said.append(f".parameters = {_parameters_name(facts)}")
    return f"    // {facts.name}: {facts.summary}\n    {{{', '.join(said)}}},"


def _has_parameters(facts: PatternFacts) -> bool:
    """Tell whether the measurer has to know its parameters: a workload's are its program's."""
    return facts.family is not Family.WORKLOAD and bool(facts.parameters)


def _parameters(facts: PatternFacts) -> str:
    listed = "".join(f"    {_parameter(name, one)},\n" for name, one in facts.parameters.items())
    array = f"inline constexpr std::array<ParameterFacts, {len(facts.parameters)}>"
    return f"{array} {_parameters_name(facts)}{{{{\n{listed}}}}};\n"


def _parameters_name(facts: PatternFacts) -> str:
    """Return what the list of a pattern's parameters is called: after the first pattern that has the same."""
    first = next(one for one in PATTERNS.values() if one.parameters == facts.parameters)
    return f"parameters_of_{_identifier(first.name)}"


def _parameter(name: str, parameter: Parameter) -> str:
    said = [f".name = {_text(name)}"]
    if parameter.words:
        said.append(f".words = names_of<words::{_type(name)}>")
    else:
        numbers = {"usual": float(parameter.default), "least": parameter.least, "most": parameter.most}
        if any(number < 0 or number != int(number) for number in numbers.values()):
            raise ValueError(f"parameter {name}: native patterns take whole numbers from 0 on")
        said += [f".{what} = {int(number)}" for what, number in numbers.items()]
    if parameter.only_over:
        said.append(f".layers = {_layers(parameter.only_over)}")
    return f"{{{', '.join(said)}}}"


def _word_lists() -> Iterator[str]:
    """Yield an enum for each parameter that is one of several words."""
    found: dict[str, tuple[str, ...]] = {}
    of_patterns = [(facts.name, facts.parameters) for facts in PATTERNS.values() if _has_parameters(facts)]
    for owner, parameters in (*of_patterns, *LAYER_PARAMETERS.items()):
        for name, parameter in parameters.items():
            if parameter.words and found.setdefault(name, parameter.words) != parameter.words:
                raise ValueError(f"parameter {name} of {owner}: another pattern or layer has other words for it")
    for name, listed in found.items():
        yield f"namespace words {{\nenum class {_type(name)} {{ {', '.join(map(_identifier, listed))} }};\n}}"
        yield _names(f"words::{_type(name)}", listed)


def _list(name: str, families: tuple[Family, ...]) -> str:
    listed = [facts for facts in PATTERNS.values() if facts.family in families]
    headers = sorted({header_of(facts) for facts in listed})
    types = ",\n".join(f"    Listed<Pattern::{_identifier(facts.name)}, {_type(facts.name)}>" for facts in listed)
    includes = "".join(f'#include "{header}"\n' for header in headers)
    return f"{HEAD}{includes}\nnamespace fabricbench {{\n\nusing {name} = PatternList<\n{types}>;\n\n}}  // namespace fabricbench\n"


def _enum(name: str, words: type[StrEnum]) -> str:
    values = [str(word) for word in words]
    listed = "".join(f"    {_identifier(value)},\n" for value in values)
    return f"enum class {name} {{\n{listed}}};\n{_names(name, values)}"


def _names(enum: str, words: Iterable[str]) -> str:
    listed = list(words)
    names = "".join(f"    {_text(word)},\n" for word in listed)
    array = f"std::array<std::string_view, {len(listed)}> names_of<{enum}>"
    return f"template <>\ninline constexpr {array}{{\n{names}}};\n"


def _layers(layers: Iterable[Layer]) -> str:
    return "LayerSet::of(" + ", ".join(f"Layer::{layer}" for layer in layers) + ")"


def _identifier(word: str) -> str:
    """Return a word of the table as C++ names it: `message-rate` is `message_rate`."""
    return word.replace("-", "_")


def _type(word: str) -> str:
    """Return the name of its type: `message-rate` is `MessageRate`."""
    return "".join(part.capitalize() for part in re.split("[-_]", word))


def _text(word: str) -> str:
    return f'"{word}"'
