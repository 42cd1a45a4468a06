"""Checks the parameters of a pattern against the table of patterns, and spreads lists of values into a cell each. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from fabricbench.configuration import did_you_mean
from fabricbench.model import Pattern
from fabricbench.patterns import PATTERNS, Parameter

Value = str | int | float
Sweep = Mapping[str, Value | tuple[Value, ...]]
"""What people write: a value, or a list of values that each get a cell."""


DOOR = "door"
"""Which way into its layer a cell takes. Any pattern has it; the measurer knows which there are, and refuses others."""


def check_parameters(pattern: Pattern, parameters: Sweep) -> None:
    """Raise ValueError for a parameter that the pattern does not have, or a value that it cannot take."""
    known = PATTERNS[pattern].parameters
    for name, values in parameters.items():
        if name == DOOR:
            _check_door(values)
            continue
        if name not in known:
            there = f"it has {', '.join(known)}" if known else "it has none"
            raise ValueError(f"parameters: {pattern} has no {name!r}; {there}{did_you_mean(name, list(known))}")
        if values == ():
            raise ValueError(f"parameters.{name}: found an empty list, needed at least one value")
        for value in as_list(values):
            _check_value(name, known[name], value)


def _check_door(values: Value | tuple[Value, ...]) -> None:
    if values == () or not all(isinstance(value, str) and value for value in as_list(values)):
        raise ValueError(f"parameters.{DOOR}: found {values!r}, needed the name of a way into the layer, or several")


def _check_value(name: str, parameter: Parameter, value: Value) -> None:
    if parameter.words:
        if value not in parameter.words:
            raise ValueError(
                f"parameters.{name}: found {value!r}, needed one of {', '.join(parameter.words)}"
                f"{did_you_mean(str(value), list(parameter.words))}"
            )
        return
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    is_fit = is_number and (isinstance(parameter.default, float) or isinstance(value, int))
    if not is_fit or not parameter.least <= float(value) <= parameter.most:
        kind = "a number" if isinstance(parameter.default, float) else "a whole number"
        raise ValueError(
            f"parameters.{name}: found {value!r}, needed {kind} from {parameter.least:g} to {parameter.most:g} "
            f"({parameter.summary})"
        )


def as_list(values: Value | tuple[Value, ...]) -> tuple[Value, ...]:
    """Return a value or a list of them as a list."""
    return values if isinstance(values, tuple) else (values,)


def spread(parameters: Sweep) -> Iterator[dict[str, Value]]:
    """Yield every combination of the values given."""
    names = list(parameters)
    for values in product(*(as_list(parameters[name]) for name in names)):
        yield dict(zip(names, values, strict=True))
