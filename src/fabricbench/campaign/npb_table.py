"""`[[npb]]` of a campaign: which kernels of the NAS Parallel Benchmarks are to be run, in which class, on how many ranks.

[[npb]]
benchmarks = ["IS", "CG"]    # default: all eight
class = "W"                  # or a list
ranks = [1, 4]               # default "all": the most that each takes on the nodes there are, one a node
repetitions = 3              # runs in one start
program = "own"              # or "official", found on PATH, or the folder that holds the official programs
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from fabricbench.model import Model
from fabricbench.workload.npb import BENCHMARKS, CLASSES

OWN: Literal["own"] = "own"
OFFICIAL: Literal["official"] = "official"

NAMES = tuple(name.upper() for name in BENCHMARKS)


def _as_list(value: Any) -> Any:
    return (value,) if isinstance(value, str | int) and value != "all" else value


def _known(allowed: tuple[str, ...], what: str) -> AfterValidator:
    def check(values: tuple[str, ...]) -> tuple[str, ...]:
        found = tuple(value.upper() for value in values)
        for value in found:
            if value not in allowed:
                raise ValueError(f"there is no {what} {value!r}; there are {', '.join(allowed)}")
        if not found:
            raise ValueError(f"needed at least one {what}")
        return tuple(dict.fromkeys(found))

    return AfterValidator(check)


def _check_ranks(value: Any) -> Any:
    numbers = _as_list(value)
    if numbers == "all" or (
        isinstance(numbers, list | tuple) and numbers and all(type(one) is int and one >= 1 for one in numbers)
    ):
        return numbers if numbers == "all" else tuple(dict.fromkeys(numbers))
    raise ValueError(f'found {value!r}, needed "all", or numbers of ranks such as [1, 4]')


def _located(value: str) -> str:
    """Return a folder as an absolute path: a launch starts elsewhere."""
    return value if value in (OWN, OFFICIAL) else str(Path(value).expanduser().absolute())


class NpbTable(Model):
    """Kernels to be run: each benchmark, class and number of ranks is a launch of its own in every block on every fabric."""

    benchmarks: Annotated[tuple[str, ...], BeforeValidator(_as_list), _known(NAMES, "benchmark")] = NAMES
    classes: Annotated[tuple[str, ...], BeforeValidator(_as_list), _known(CLASSES, "class")] = Field(
        default=("W",), alias="class"
    )
    ranks: Annotated[Literal["all"] | tuple[int, ...], BeforeValidator(_check_ranks)] = "all"
    repetitions: int = Field(default=1, ge=1, le=1000)
    program: Annotated[str, Field(min_length=1), AfterValidator(_located)] = OWN

    model_config = {**Model.model_config, "populate_by_name": True}

    @model_validator(mode="after")
    def _official_programs_run_once(self) -> NpbTable:
        if self.program != OWN and self.repetitions > 1:
            raise ValueError(
                f"repetitions: an official program runs once in a start, found {self.repetitions}; use blocks"
            )
        return self
