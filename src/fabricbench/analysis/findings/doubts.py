"""Why a row could be wrong, typed: what kind of doubt, of whom, and its numbers, so that doubts of one kind are told together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from fabricbench.model import Model
from fabricbench.quantity import Scaled
from fabricbench.statistics.decision import Consequence


def _is_none(value: object) -> bool:
    return value is None


class Number(Model):
    """A number in a doubt: its value, and how it is written in its unit; `until` is the other end of what is a range already."""

    value: float
    written: str
    unit: str = ""
    until: Number | None = Field(default=None, exclude_if=_is_none)

    def __str__(self) -> str:
        """Return `3.2 %`, `3.2 to 4.1 %`."""
        return _range([self])

    def to(self, end: Number) -> Number:
        """Return the range from this number to a larger one."""
        return self.model_copy(update={"until": end})


def scaled_number(value: float, scaled: Scaled) -> Number:
    """Return a number that is written in the unit that suits it."""
    return Number(value=value, written=scaled.number, unit=scaled.unit)


def percentage(share: float, digits: str = ".3g") -> Number:
    """Return a share as a number of per cent."""
    return Number(value=share, written=f"{100.0 * share:{digits}}", unit="%")


def whole(value: int) -> Number:
    """Return a count as a number."""
    return Number(value=value, written=f"{value:,}")


class Doubt(Model):
    """Why the numbers of a row may not be what they seem. `kind` is its sentence, with a place `{}` for each of the `numbers`.

    `subject` is the fabric that it is about. With `is_void` they cannot be right; with `is_beyond_wire` the level that is shown is
    better than the wire allows, by no more than buffers explain. By `delay_share` of its time, at most, the instrument delayed it
    (1: nothing bounds it), and by `excess_share`, at most, its value is too good. `consequence` is what the verdict loses if the
    doubt is right, None where nobody can tell; where it loses nothing the doubt `is_harmless`: a remark. `is_loss`: starts were
    lost; `lost_starts` counts them, or launches that gave nothing, of the fabric `lost_on`. `is_group`: the launches of one side
    fall into two groups. `is_unknown`: of what nobody knows, and no number bounds.
    """

    not_written: ClassVar[dict[str, Any]] = {
        "subject": "",
        "numbers": (),
        "is_void": False,
        "is_beyond_wire": False,
        "delay_share": None,
        "excess_share": None,
        "consequence": None,
        "is_loss": False,
        "is_group": False,
        "is_unknown": False,
        "lost_on": "",
        "lost_starts": 0,
    }
    """What goes without saying."""
    kind: str
    subject: str = ""
    numbers: tuple[Number, ...] = ()
    is_void: bool = False
    is_beyond_wire: bool = False
    delay_share: float | None = None
    excess_share: float | None = None
    consequence: Consequence | None = None
    is_loss: bool = False
    is_group: bool = False
    is_unknown: bool = False
    lost_on: str = ""
    lost_starts: int = 0

    @classmethod
    def of(cls, *parts: str | Number, subject: str = "", **change: Any) -> Self:
        """Return a doubt from its words and numbers, in their order."""
        kind = "".join("{}" if isinstance(part, Number) else escaped(part) for part in parts)
        numbers = tuple(part for part in parts if isinstance(part, Number))
        return cls(kind=kind, subject=subject, numbers=numbers, **change)

    @property
    def is_harmless(self) -> bool:
        """Whether the verdict would be the same without."""
        return self.consequence is Consequence.NOTHING

    @property
    def group(self) -> tuple[str, str, Consequence | None]:
        """What doubts have in common that differ in their numbers only."""
        return self.subject, self.kind, self.consequence

    def __str__(self) -> str:
        """Return its sentence."""
        return together([self])

    @model_serializer(mode="wrap")
    def _without_the_usual(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = written(self)
        return {
            name: value
            for name, value in fields.items()
            if name not in self.not_written or getattr(self, name) != self.not_written[name]
        }


def escaped(words: str) -> str:
    """Return words for a kind: a brace in them is no place of a number."""
    return words.replace("{", "{{").replace("}", "}}")


def together(doubts: Sequence[Doubt]) -> str:
    """Return the sentence of doubts of one group, a number that is not the same in all as its range: `in 3 to 12 calls`."""
    first = doubts[0]
    columns = zip(*(one.numbers for one in doubts), strict=True)
    sentence = first.kind.format(*map(_range, columns))
    has_bound = first.delay_share is not None or first.excess_share is not None
    is_told = first.consequence is not None and (has_bound or not first.is_harmless)
    loses = f"; {LOSES[first.consequence]}" if is_told and first.consequence is not None else ""
    return f"{f'{first.subject}: ' if first.subject else ''}{sentence}{loses}"


LOSES = {
    Consequence.NOTHING: "who is faster would be the same without it",
    Consequence.AMOUNT: "by how much is in doubt, not who is faster",
    Consequence.EQUALITY: "whether they are equivalent is in doubt",
    Consequence.DIRECTION: "who is faster is in doubt",
}
"""What a doubt would change, in words."""


def _range(numbers: Sequence[Number]) -> str:
    low = min(numbers, key=lambda one: one.value)
    high = max((one.until or one for one in numbers), key=lambda one: one.value)
    last = f"{high.written} {high.unit}".rstrip()
    if (low.written, low.unit) == (high.written, high.unit):
        return last
    return f"{low.written if low.unit == high.unit else f'{low.written} {low.unit}'} to {last}"
