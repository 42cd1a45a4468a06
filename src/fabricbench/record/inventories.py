"""Inventories of many hosts, kept as what differs from what most of them have: a thousand hosts of one kind are as long as one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

MOST_WHOLE = 8
"""So many hosts have each its own facts written out, for people who look into the file."""
MOST_FACTS = 5_000_000
"""Of all hosts together: a short file that stands for more was made to fill the memory."""
COMMON = ""
"""Stands where a host's name would, which is never empty: what more than half of the hosts have."""


def folded(inventory: Mapping[str, Mapping[str, str]]) -> Mapping[str, Mapping[str, str | None]]:
    """Return the facts of many hosts by what they have in common, and each host's others; None is a fact that it lacks."""
    if len(inventory) <= MOST_WHOLE:
        return inventory
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    for facts in inventory.values():
        for fact, value in facts.items():
            counted[fact][value] += 1
    usual = {fact: values.most_common(1)[0] for fact, values in counted.items()}
    common = {fact: value for fact, (value, hosts) in usual.items() if 2 * hosts > len(inventory)}
    if len(common) * (len(inventory) + 1) > MOST_FACTS:
        return inventory
    return {COMMON: common, **{host: _differing(facts, common) for host, facts in inventory.items()}}


def _differing(facts: Mapping[str, str], common: Mapping[str, str]) -> dict[str, str | None]:
    return {fact: value for fact, value in facts.items() if common.get(fact) != value} | {
        fact: None for fact in common if fact not in facts
    }


def unfolded(inventory: Any) -> Any:
    """Return the facts of each host whole, from either form; what is neither as it is, for the model to refuse."""
    if not isinstance(inventory, dict) or not isinstance(common := inventory.get(COMMON), dict):
        return inventory
    if len(common) * len(inventory) > MOST_FACTS:
        raise ValueError(f"{len(common)} facts of {len(inventory)} hosts are more than {MOST_FACTS:,}")
    return {
        host: {fact: value for fact, value in {**common, **facts}.items() if value is not None}
        if isinstance(facts, dict)
        else facts
        for host, facts in inventory.items()
        if host != COMMON
    }


Inventory = Annotated[
    dict[str, dict[str, str]], BeforeValidator(unfolded), PlainSerializer(folded, when_used="json", return_type=Any)
]
"""The doctor's facts by host, folded in JSON."""
