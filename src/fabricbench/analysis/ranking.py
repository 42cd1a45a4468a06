"""stub"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def ranks(names: Sequence[str], better: Mapping[tuple[str, str], bool]) -> tuple[tuple[str, ...], ...]:
    tiers: list[list[str]] = []
    for name in names:
        if tiers and not any(better.get((one, name)) for one in tiers[-1]):
            tiers[-1].append(name)
        else:
            tiers.append([name])
    return tuple(map(tuple, tiers))
