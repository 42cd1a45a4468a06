"""Conditions: what a campaign varies beside the fabric, `[[condition]]`. Pure: which sides there are, and what each sets.

    [[condition]]
    name = "jumbo"
    mtu = 9000

Every condition of a fabric is a *side*, a fabric of its own name, `eth-jumbo`, and so everything behind the plan compares
conditions as it compares fabrics. A fabric that no condition is for stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from pydantic import Field

from fabricbench.configuration import check_expanded, did_you_mean
from fabricbench.errors import UsageError
from fabricbench.settings import HostSettings, writes_of
from fabricbench.settings.setting import Setting
from fabricbench.testbed.model import Fabric, Handed, LauncherKind, MpiTransport, Testbed, Variable


class Condition(HostSettings):
    """`[[condition]]`: what differs of hosts (`settings`) and of MPI; what is not given is as the testbed has it.

    `fabrics` are those that it is for (empty: all), `mpi` names a [[mpi]] of the testbed. Variables and arguments of MPI come
    behind those of the fabric.
    """

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=60)
    description: str = ""
    fabrics: tuple[str, ...] = ()
    mpi: str = ""
    transport: MpiTransport | None = None
    mpi_environment: dict[Variable, Handed] = {}
    mpi_arguments: tuple[Handed, ...] = ()


def check_conditions(conditions: Sequence[Condition]) -> None:
    """Raise ValueError where two conditions have one name, or mean different things by a setting of the same name."""
    names = [one.name for one in conditions]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"condition {', '.join(twice)} is named twice: give each a `name` of its own")
    for one in conditions:
        check_expanded("mpi_environment", one.mpi_environment)
    for one, other in combinations(conditions, 2):
        for mine in one.custom:
            for theirs in other.custom:
                if mine.name == theirs.name and (mine.read, mine.write) != (theirs.read, theirs.write):
                    raise ValueError(
                        f"custom {mine.name!r} of conditions {one.name} and {other.name} is read or written in two ways: "
                        "only the `value` may differ"
                    )


def expanded(testbed: Testbed, conditions: Sequence[Condition]) -> Testbed:
    """Return the testbed with a fabric for each side. Raises UsageError for what a condition asks and the testbed lacks."""
    if not conditions:
        return testbed
    _check_names(testbed, conditions)
    fabrics: list[Fabric] = []
    for fabric in testbed.fabrics:
        fabrics += [_side(fabric, one, testbed) for one in conditions_of(fabric, conditions)] or [fabric]
    names = [side.name for side in fabrics]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(
            f"two fabrics in their conditions would be called {', '.join(twice)}", hint="rename a condition"
        )
    return testbed.model_copy(update={"fabrics": tuple(fabrics)})


def conditions_of(fabric: Fabric, conditions: Iterable[Condition]) -> list[Condition]:
    """Return the conditions that are for a fabric."""
    return [one for one in conditions if not one.fabrics or fabric.name in one.fabrics]


def sides_of(testbed: Testbed, conditions: Sequence[Condition]) -> dict[str, tuple[Setting, ...]]:
    """Return what is to be set of hosts on each side, by its name; nothing where no side sets anything."""
    sides = {
        _name(fabric, one): one.settings_on(fabric)
        for fabric in testbed.fabrics
        for one in conditions_of(fabric, conditions)
    }
    # A fabric without a condition is measured with the original values.
    sides |= {fabric.name: () for fabric in testbed.fabrics if not conditions_of(fabric, conditions)}
    return sides if any(sides.values()) else {}


def sets_mtu(fabric: Fabric, conditions: Sequence[Condition]) -> bool:
    """Tell whether every side of a fabric sets its MTU, so that the one that it has now does not matter."""
    sides = conditions_of(fabric, conditions)
    return bool(sides) and all(one.mtu is not None for one in sides)


def commands_of(
    testbed: Testbed, conditions: Sequence[Condition], *, with_sudo: bool
) -> Iterator[tuple[str, list[str]]]:
    """Yield each side that sets anything, with the commands that set it, as a shell would take them."""
    for side, settings in sides_of(testbed, conditions).items():
        if settings:
            yield side, [write.words(with_sudo=with_sudo) for write in writes_of(settings)]


def _check_names(testbed: Testbed, conditions: Sequence[Condition]) -> None:
    fabrics = [fabric.name for fabric in testbed.fabrics]
    mpis = [one.name for one in testbed.mpis]
    for one in conditions:
        for name in one.fabrics:
            if name not in fabrics:
                raise UsageError(
                    f"condition {one.name} is for fabric {name!r}, which the testbed does not have"
                    f"{did_you_mean(name, fabrics)}",
                    hint=f"there are {', '.join(fabrics)}",
                )
        if one.mpi and one.mpi not in mpis:
            raise UsageError(
                f"condition {one.name} is measured with mpi = {one.mpi!r}, which the testbed does not have"
                f"{did_you_mean(one.mpi, mpis)}",
                hint=f"there are {', '.join(mpis)}" if mpis else "add an [[mpi]] of that name to the testbed",
            )


def _name(fabric: Fabric, condition: Condition) -> str:
    return f"{fabric.name}-{condition.name}"


def _side(fabric: Fabric, condition: Condition, testbed: Testbed) -> Fabric:
    if condition.mtu is not None and testbed.launcher is LauncherKind.LAB and condition.mtu > fabric.mtu:
        raise UsageError(
            f"condition {condition.name} sets an MTU of {condition.mtu}, and the emulated switch of {fabric.name} "
            f"carries {fabric.mtu}",
            hint=f"build the lab with `mtu={condition.mtu}` behind the fabric: lab:PRESET:mtu={condition.mtu}",
        )
    asked = {setting.name: str(setting.value) for setting in condition.settings_on(fabric)}
    if asked and len(testbed.joined_by(fabric)) < len(testbed.nodes):
        raise UsageError(
            f"condition {condition.name} sets {', '.join(asked)} of hosts, and {fabric.name} joins only some nodes",
            hint="settings are brought to every node: measure the fabric by a testbed of its own nodes",
        )
    of_mpi: Mapping[str, Any] = {
        **({"mpi": condition.mpi} if condition.mpi else {}),
        **({"transport": condition.transport} if condition.transport is not None else {}),
    }
    return fabric.model_copy(
        update={
            "name": _name(fabric, condition),
            "condition": condition.name,
            "description": "; ".join(filter(None, (fabric.description, condition.description))),
            "mtu": condition.mtu or fabric.mtu,
            "mpi_environment": {**fabric.mpi_environment, **condition.mpi_environment},
            "mpi_arguments": (*fabric.mpi_arguments, *condition.mpi_arguments),
            "settings": {**fabric.settings, **asked},
            **of_mpi,
        }
    )
