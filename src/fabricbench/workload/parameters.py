"""The parameters of a workload, declared once: what people write, combinations, names of launches and options follow.

A field of a start that is a parameter of its program says so, `nb: Annotated[int, Argument("columns of a panel")] = 192`. From that
come

    the table of a campaign     `table_of`: a key for each, of which a list of values is a launch each, with the same bounds
    what is to be started       `ParametricTable.plan`: each combination of values on each number of ranks
    the name and the columns    `ParametricStart.values`
    the program's options       `ParametricStart.options`: of the field's name
    `fabricbench list KIND`     the keys with their help
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import Annotated, Any, ClassVar, Literal, cast

from pydantic import AfterValidator, BeforeValidator, Field, create_model, model_validator

from fabricbench.workload.adapter import (
    Parameters,
    Place,
    Ranks,
    RankSlots,
    Unseated,
    WorkloadKind,
    WorkloadStart,
    WorkloadTable,
    launch_name,
    named,
    seated,
)

MOST_REPETITIONS = 1000
GRID = "grid"
"""The key by which people say how ranks are arranged."""


class InName(Enum):
    """Whether the name of a launch and the columns of its cell have a parameter."""

    ALWAYS = "always"
    UNUSUAL = "where it is not at its default"
    NEVER = "never"


@dataclass(frozen=True)
class Instead:
    """A key that people may write in place of a parameter's own.

    `value` makes the parameter of what they wrote and of all that was chosen before, ranks included; ValueError where it cannot.
    """

    key: str
    kind: Any
    help: str
    value: Callable[[Any, Mapping[str, Any]], Any]


@dataclass(frozen=True)
class Argument:
    """What a field of a start is besides its type and its default.

    `help` says it in a few words; `key` is what people write for it, empty: the field's name. In names and columns it is called
    `short` (empty: by its field's name) and stands there as `words` of its value; those of one short name stand together, `2x2`.
    Several values are a launch each where it `is_listed`. Where nothing is written, it has the value of the field `like`, or what
    `instead` makes, or its default. Of it and of the key `instead_of` only one may be written.
    """

    help: str
    key: str = ""
    short: str = ""
    in_name: InName = InName.ALWAYS
    words: Callable[[Any], str | int | float] = lambda value: cast("str | int | float", value)
    is_listed: bool = True
    like: str = ""
    instead: Instead | None = None
    instead_of: str = ""


@dataclass(frozen=True)
class Arrangement:
    """How a program arranges its ranks: the fields whose product they are, what they come to where nobody says, and an example."""

    names: tuple[str, ...]
    of_ranks: Callable[[int], tuple[int, ...]]
    help: str
    example: str


@dataclass(frozen=True)
class RankRule:
    """Which numbers of ranks a program takes, also in words; `what` is the program with that of its parameters which matters."""

    what: str
    takes: Callable[[int], bool] = lambda _: True
    words: str = "any number"


class ParametricStart(WorkloadStart):
    """A start whose fields declare the parameters of its program."""

    arrangement: ClassVar[Arrangement | None] = None
    ranks_follow: ClassVar[tuple[str, ...]] = ()
    """The parameters on which it depends how many ranks the program takes."""

    @model_validator(mode="after")
    def _arrangement_has_the_ranks(self) -> ParametricStart:
        if self.arrangement is not None:
            sides = [getattr(self, name) for name in self.arrangement.names]
            if prod(sides) != self.ranks:
                raise ValueError(f"ranks: found {self.ranks}, needed {' x '.join(map(str, sides))} = {prod(sides)}")
        return self

    @classmethod
    def rank_rule(cls, chosen: Mapping[str, Any], seats: RankSlots) -> RankRule:
        """Return which numbers of ranks the program takes with these values of `ranks_follow`."""
        del chosen, seats
        return RankRule(kind_of(cls))

    @property
    def values(self) -> dict[str, str | int | float]:
        """What tells its cell apart besides the ranks."""
        told: dict[str, list[str | int | float]] = {}
        for name, argument in arguments_of(type(self)).items():
            value = getattr(self, name)
            is_usual = value == type(self).model_fields[name].default
            is_shown = argument.in_name is InName.ALWAYS or (argument.in_name is InName.UNUSUAL and not is_usual)
            if is_shown and value is not None:
                told.setdefault(argument.short or name, []).append(argument.words(value))
        return {name: each[0] if len(each) == 1 else "x".join(map(str, each)) for name, each in told.items()}

    @property
    def name(self) -> str:
        """Its kind, its values and its ranks: `hpl-n2000-nb192-grid2x2.4`."""
        return launch_name(self.kind, self.values, self.ranks)

    @property
    def parameters(self) -> Parameters:
        """Its kind, its values, and what rate it is judged by."""
        return named(self.kind, self.figure, self.values)

    def options(self, place: Place) -> Mapping[str, object]:
        """Return what the program is told: the option of each parameter that has a value, without its dashes."""
        del place
        told = {name: getattr(self, name) for name in arguments_of(type(self))}
        return {name.replace("_", "-"): value for name, value in told.items() if value is not None}


class ParametricTable(WorkloadTable):
    """What people write: of lists every combination is a launch of its own in every block on every fabric. See `table_of`."""

    start: ClassVar[type[ParametricStart]]

    @model_validator(mode="after")
    def _is_told_each_thing_once(self) -> ParametricTable:
        if self._grids and self._told("ranks") != "all":
            grid = self._grids[0]
            raise ValueError(
                "grid: ranks = [...] says how many there are as well; needed one of them: "
                f'"{"x".join(map(str, grid))}" is {prod(grid)} ranks'
            )
        for name, argument in arguments_of(self.start).items():
            key = argument.key or name
            pairs = ((key, argument.instead_of), (argument.instead.key if argument.instead else "", key))
            for one, other in pairs:
                if one and other and self._told(one) is not None and not self._is_usual(other):
                    raise ValueError(
                        f"{one}: it stands in place of {other}, which is there as well; needed one of them"
                    )
        return self

    @model_validator(mode="after")
    def _every_combination_can_be_started(self) -> ParametricTable:
        """Say now what is wrong with a combination, of which no field is wrong by itself."""
        for placed in self._placed([1] if not self._grids else [prod(grid) for grid in self._grids]):
            for chosen in self._choices(self._names, placed):
                self.start(**chosen)
        return self

    def plan(self, seats: RankSlots) -> Iterator[WorkloadStart | Unseated]:
        """Yield a start for each number of ranks that the testbed seats and each combination of parameters."""
        follow = self.start.ranks_follow
        others = [name for name in self._names if name not in follow]
        asked = tuple(dict.fromkeys(map(prod, self._grids))) or self._told("ranks")
        for problem in self._choices(follow, {}):
            rule = self.start.rank_rule(problem, seats)
            counts, left_out = seated(rule.what, asked, seats, rule.takes, rule.words)
            yield from left_out
            for placed in self._placed(counts):
                for chosen in self._choices(others, problem | placed):
                    yield self.start(**chosen, repetitions=self._told("repetitions"))

    @property
    def _grids(self) -> tuple[tuple[int, ...], ...]:
        """The arrangements that are asked for; none where they follow from the ranks."""
        return getattr(self, GRID, None) or ()

    @property
    def _names(self) -> list[str]:
        """The fields to be chosen, in order; those that another key may stand for last, as it may take all others."""
        arranged = self.start.arrangement.names if self.start.arrangement is not None else ()
        chosen = {name: one for name, one in arguments_of(self.start).items() if name not in arranged}
        return sorted(chosen, key=lambda name: chosen[name].instead is not None)

    def _told(self, key: str) -> Any:
        return getattr(self, key)

    def _is_usual(self, key: str) -> bool:
        return bool(self._told(key) == type(self).model_fields[key].default)

    def _placed(self, counts: Sequence[int]) -> Iterator[dict[str, Any]]:
        """Yield so many ranks, in each of their arrangements."""
        arrangement = self.start.arrangement
        if arrangement is None:
            yield from ({"ranks": count} for count in counts)
            return
        for grid in self._grids or map(arrangement.of_ranks, counts):
            if prod(grid) in counts:
                yield {"ranks": prod(grid), **dict(zip(arrangement.names, grid, strict=True))}

    def _choices(self, names: Sequence[str], chosen: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield every combination of the values of these fields, the last one varying fastest."""
        if not names:
            yield dict(chosen)
            return
        name, *others = names
        for value in self._values(name, chosen):
            yield from self._choices(others, {**chosen, name: value})

    def _values(self, name: str, chosen: Mapping[str, Any]) -> tuple[Any, ...]:
        argument = arguments_of(self.start)[name]
        told = self._told(argument.key or name)
        if told is not None:
            return tuple(told) if argument.is_listed else (told,)
        if argument.instead is not None and (other := self._told(argument.instead.key)) is not None:
            return (argument.instead.value(other, chosen),)
        return (chosen[argument.like] if argument.like else self.start.model_fields[name].default,)


def arguments_of(start: type[ParametricStart]) -> dict[str, Argument]:
    """Return the parameters that a start declares, by the names of their fields."""
    fields = start.model_fields.items()
    return {name: one for name, field in fields for one in field.metadata if isinstance(one, Argument)}


def kind_of(start: type[WorkloadStart]) -> str:
    """Return the `kind` of a start."""
    return str(start.model_fields["kind"].default)


def table_of(start: type[ParametricStart]) -> type[WorkloadTable]:
    """Return the model of what people write: `ranks`, `repetitions` and a key for each parameter of a start."""
    kind, arrangement = kind_of(start), start.arrangement
    fields: dict[str, Any] = {"kind": (Literal[kind], kind)}
    for name, argument in arguments_of(start).items():
        if arrangement is not None and name in arrangement.names:
            fields[GRID] = _of_grids(arrangement)
            continue
        field = start.model_fields[name]
        bare = [one for one in field.metadata if not isinstance(one, Argument)]
        one: Any = Annotated[field.annotation, *bare] if bare else field.annotation
        default = None if argument.like or argument.instead is not None else field.default
        if argument.is_listed:
            one, default = several(one), None if default is None else (default,)
        usual = f", default {field.default}" if default is None and argument.instead is not None else ""
        annotation = one if default is not None else one | None
        fields[argument.key or name] = (annotation, _described(default, f"{argument.help}{usual}"))
        if argument.instead is not None:
            fields[argument.instead.key] = (argument.instead.kind | None, _described(None, argument.instead.help))
    fields["ranks"] = (Ranks, _described("all", "ranks; all: one on each node"))
    fields["repetitions"] = (int, Field(1, ge=1, le=MOST_REPETITIONS, description="runs in one start"))
    name = f"{start.__name__.removesuffix('Start')}Table"
    table = create_model(
        name, __base__=ParametricTable, __module__=start.__module__, __doc__=ParametricTable.__doc__, **fields
    )
    table.start = start
    return table


def declared(start: type[ParametricStart], summary: str) -> WorkloadKind:
    """Return a kind of workload whose table follows from its start."""
    return WorkloadKind(kind_of(start), summary, table_of(start), start)


def _described(default: Any, help_text: str) -> Any:
    return Field(default, description=help_text)


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _each_once(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if not values:
        raise ValueError("found nothing, needed at least one value")
    return tuple(dict.fromkeys(values))


def several(one: Any) -> Any:
    """Return the type of what people write where every value is a cell: one value or a list."""
    return Annotated[tuple[one, ...], BeforeValidator(_as_tuple), AfterValidator(_each_once)]


def _of_grids(arrangement: Arrangement) -> tuple[Any, Any]:
    """Return the field of the key `grid`: `"2x4"`, `[2, 4]`, or a list of such."""
    number = len(arrangement.names)
    pattern = re.compile(" ?x ?".join([r"([1-9]\d{0,5})"] * number))

    def read(value: Any) -> tuple[int, ...]:
        if isinstance(value, str) and (found := pattern.fullmatch(value)):
            return tuple(map(int, found.groups()))
        is_numbers = isinstance(value, list | tuple) and all(type(one) is int and 0 < one < 10**6 for one in value)
        if is_numbers and len(value) == number:
            return tuple(value)
        raise ValueError(f'found {value!r}, needed {arrangement.help} such as "{arrangement.example}"')

    def read_all(value: Any) -> Any:
        grids = tuple(map(read, value if isinstance(value, list | tuple) else (value,)))
        if not grids:
            raise ValueError(f'found nothing, needed at least one such as "{arrangement.example}"')
        return tuple(dict.fromkeys(grids))

    grid: Any = tuple.__class_getitem__((int,) * number)
    grids: Any = Annotated[tuple[grid, ...], BeforeValidator(read_all)]
    return grids | None, _described(None, arrangement.help)
