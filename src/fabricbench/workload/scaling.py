"""Rules of weak scaling: what a placeholder is worth on so many ranks, in a tiny arithmetic that can do nothing else.

`round(n * sqrt(ranks))`: numbers, `ranks`, `nodes`, parameters, + - * / **, brackets, and the functions below. It is parsed by
Python's parser and computed here, in floating point.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter

from fabricbench.configuration import MOST_QUOTED, shown
from fabricbench.printable import shortened

FUNCTIONS: Mapping[str, Callable[[float], float]] = MappingProxyType(
    {
        "sqrt": math.sqrt,
        "cbrt": math.cbrt,
        "log2": math.log2,
        "round": round,
        "floor": math.floor,
        "ceil": math.ceil,
    }
)

OPERATORS: Mapping[type[ast.operator], Callable[[float, float], float]] = MappingProxyType(
    {
        ast.Add: lambda a, b: a + b,
        ast.Sub: lambda a, b: a - b,
        ast.Mult: lambda a, b: a * b,
        ast.Div: lambda a, b: a / b,
        ast.Pow: math.pow,
    }
)

MOST_OF_A_RULE = 200

WHOLE = 2.0**53
"""Up to here whole numbers are exact, and written without a point."""


def names_of(rule: str) -> tuple[str, ...]:
    """Return what a rule must be told: names, each once. ValueError where it is no rule."""
    try:
        whole = ast.parse(rule.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(f"{shown(rule)} is no rule; write one such as round(n * sqrt(ranks))") from None
    found: dict[str, None] = {}
    pending = [whole]
    while pending:
        match pending.pop():
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                pass
            case ast.Name(id=name):
                found[name] = None
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                pending.append(operand)
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in OPERATORS:
                pending += [left, right]
            case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name in FUNCTIONS:
                pending.append(argument)
            case other:
                raise ValueError(
                    f"{shown(rule)}: {shortened(ast.unparse(other), MOST_QUOTED)} is no number, name, + - * / ** or one of "
                    f"{', '.join(FUNCTIONS)} of one number"
                )
    return tuple(found)


def value_of(rule: str, values: Mapping[str, str | int | float]) -> int | float:
    """Return what a rule is worth, as a whole number where it is one; ValueError where that is no finite number."""
    numbers = {}
    for name in names_of(rule):
        value = values.get(name)
        if value is None or isinstance(value, str):
            raise ValueError(f"{shown(rule)} needs a number {name}, found {value!r}")
        numbers[name] = float(value)
    try:
        found = _computed(ast.parse(rule.strip(), mode="eval").body, numbers)
    except (ArithmeticError, ValueError) as error:
        raise ValueError(f"{shown(rule)} has no value: {error}") from None
    if not math.isfinite(found):
        raise ValueError(f"{shown(rule)} is {found}, needed a finite number")
    return int(found) if found == int(found) and abs(found) < WHOLE else found


def _computed(node: ast.expr, numbers: Mapping[str, float]) -> float:
    """Return the value of what `names_of` has found to be of this arithmetic."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return float(value)
        case ast.Name(id=name):
            return numbers[name]
        case ast.UnaryOp(operand=operand):
            return -_computed(operand, numbers)
        case ast.BinOp(left=left, op=operator, right=right):
            return OPERATORS[type(operator)](_computed(left, numbers), _computed(right, numbers))
        case ast.Call(func=ast.Name(id=name), args=[argument]):
            return float(FUNCTIONS[name](_computed(argument, numbers)))
    raise ValueError(f"{ast.unparse(node)} is not of this arithmetic")


def _check(rule: str) -> str:
    names_of(rule)
    return rule


Rule = Annotated[str, Field(max_length=MOST_OF_A_RULE), AfterValidator(_check)]
"""A rule as people write it."""

STRONG: Literal["strong"] = "strong"

ParameterName = Annotated[str, Field(pattern=r"^[A-Za-z_]\w*$")]

_RULES = TypeAdapter(dict[ParameterName, Rule])


def _read_scaling(value: Any) -> Any:
    """Check what people write before a union of types does, which would tell every problem twice."""
    if value == STRONG:
        return value
    if isinstance(value, Mapping):
        return _RULES.validate_python(value)
    raise ValueError(
        f'found {shown(value)}, needed "{STRONG}", or for weak scaling a rule of what a placeholder is worth: '
        'scaling = { n = "round(n * sqrt(ranks))" }'
    )


Scaling = Annotated[Literal["strong"] | dict[ParameterName, Rule], BeforeValidator(_read_scaling)]
"""The same input on any number of ranks, or rules."""
