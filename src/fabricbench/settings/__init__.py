"""Settings of hosts that a campaign varies: applied on all nodes, read back, restored, whatever happens.

`setting` says what one is, with a file here and two lines below for each kind; `agent` reads and writes on a node, `session` has
all nodes of a run brought to a state, `ledger` keeps what they were, `restoring` brings it back where a run could not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from fabricbench.settings.custom import CustomKind, CustomTable
from fabricbench.settings.governor import GovernorKind, GovernorTable
from fabricbench.settings.interface import InterfaceKind, InterfaceTable
from fabricbench.settings.setting import Setting, SettingKind, Write
from fabricbench.settings.sysctl import SysctlKind, SysctlTable
from fabricbench.testbed.model import Fabric

KINDS: dict[str, SettingKind] = {
    kind.NAME: kind
    for kind in (
        InterfaceKind(),
        SysctlKind(),
        GovernorKind(),
        CustomKind(),
    )
}
"""In the order in which they are written."""


class HostSettings(
    InterfaceTable,
    SysctlTable,
    GovernorTable,
    CustomTable,
):
    """What a condition sets on hosts."""

    def settings_on(self, fabric: Fabric) -> tuple[Setting, ...]:
        """Return all of it, as it is asked of the nodes of a fabric. Raises UsageError."""
        return tuple(setting for kind in KINDS.values() for setting in kind.asked(self, fabric))


def writes_of(settings: Iterable[Setting], devices: Sequence[str] | None = None) -> Iterator[Write]:
    """Yield the commands that write settings, in the order of their kinds. `devices` are their interfaces, as a node knows them."""
    known = list(settings)
    named = zip(known, [one.device for one in known] if devices is None else devices, strict=True)
    in_order = sorted(named, key=lambda one: (list(KINDS).index(one[0].kind), one[1]))
    for (kind, device), group in groupby(in_order, key=lambda one: (one[0].kind, one[1])):
        yield from KINDS[kind].writes([setting for setting, _ in group], device)
