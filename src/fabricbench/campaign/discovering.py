"""Asks hosts that no testbed file names yet what they have: through ssh, the starter of a batch system, or a lab.

What the answers come to is `testbed.discovery`'s to tell, and `testbed.first_file` writes it down.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from fabricbench import __version__
from fabricbench.campaign.events import NodesAsked, Notify
from fabricbench.campaign.preflight import NodeAnswer, addresses_of, ask_nodes
from fabricbench.campaign.venue import LAB_PREFIX, Standing, find_venue
from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.lab import Lab
from fabricbench.launch.starter import srun
from fabricbench.model import Layer
from fabricbench.quantity import count
from fabricbench.testbed.discovery import Discovery, discover
from fabricbench.testbed.first_file import HowAsked
from fabricbench.testbed.model import Fabric, LauncherKind, Node, Testbed
from fabricbench.testbed.node_facts import NodeFacts
from fabricbench.testbed.preflight_result import Finding, Silent, folded, told


@dataclass(frozen=True)
class AskedHosts:
    """Which hosts are asked and how; `is_allocated`: they are those of the batch job that this runs in."""

    hosts: tuple[str, ...]
    launcher: LauncherKind
    name: str
    lab: str | None = None
    reach: tuple[str, ...] = ()
    is_allocated: bool = False

    @property
    def starter(self) -> str | None:
        """Within a batch job srun reaches the nodes."""
        return srun.NAME if self.launcher is LauncherKind.SLURM else None

    def testbed(self) -> Testbed:
        """Return a testbed of these hosts without any network, through which they are asked."""
        return Testbed(
            name=self.name,
            launcher=self.launcher,
            nodes=tuple(Node(name=name) for name in self.hosts),
            fabrics=(Fabric(name="memory", layers=(Layer.MEMORY, Layer.MPI)),),
            lab=self.lab,
            starter=self.starter,
            reach=self.reach or None,
            is_allocated=self.is_allocated,
        )


def wanted_lab(lab: str, name: str | None) -> AskedHosts:
    """Return the nodes of a running lab; UsageError where none of that name runs."""
    venue = find_venue(f"{LAB_PREFIX}{lab}")
    if not isinstance(venue, Standing):
        raise UsageError(
            f"{lab!r} is a fabric of labs, and no lab that runs", hint="start one: `fabricbench lab up NAME`"
        )
    hosts = tuple(node.name for node in venue.given.nodes)
    return AskedHosts(hosts=hosts, launcher=LauncherKind.LAB, name=name or lab, lab=lab)


def look_at_hosts(wanted: AskedHosts, command: Sequence[str], notify: Notify) -> tuple[Discovery, HowAsked]:
    """Return what was found on the hosts and how they were asked; EnvironmentLacks names those that do not answer."""
    venue = Standing(given=wanted.testbed())
    venue.check()
    launcher, hosts = venue.sketch(), len(wanted.hosts)
    notify(NodesAsked(0, hosts))
    answers = ask_nodes(venue.testbed(), launcher, tell=lambda done: notify(NodesAsked(done, hosts)))
    _check_all_answer(answers)
    known = {name: one for name, one in answers.items() if isinstance(one, NodeAnswer)}
    rates = _rates_of_lab(wanted.lab)
    return (
        discover({name: _with_rates(one.facts, rates) for name, one in known.items()}, addresses_of(venue.testbed())),
        _origin(wanted, command, known),
    )


def _rates_of_lab(lab: str | None) -> dict[str, float]:
    """Return the line rates of a lab by interface: the drivers of its links know none."""
    fabrics = Lab.open(lab).testbed().fabrics if lab is not None else ()
    return {one.interface: one.wire.line_rate_bit_s for one in fabrics if one.interface and one.wire}


def _with_rates(facts: NodeFacts, rates: Mapping[str, float]) -> NodeFacts:
    return facts.model_copy(
        update={
            "interfaces": tuple(
                one.model_copy(update={"speed_bit_s": rates.get(one.name, one.speed_bit_s)}) for one in facts.interfaces
            )
        }
    )


def _check_all_answer(answers: Mapping[str, NodeAnswer | Silent]) -> None:
    """Raise EnvironmentLacks where a host is silent, or another version of ours answers, which may tell other things."""
    findings = [
        Finding(node=name, subject=one.subject, found=one.found, needed=f"fabricbench {__version__}", action=one.action)
        for name, one in answers.items()
        if isinstance(one, Silent)
    ]
    findings += [
        Finding(
            node=name,
            subject="fabricbench",
            found=f"fabricbench {one.facts.version}",
            needed=f"fabricbench {__version__}, as here",
            action="install the same version at the same path on every node",
        )
        for name, one in answers.items()
        if isinstance(one, NodeAnswer) and one.facts.version != __version__
    ]
    if findings:
        strange = {one.node for one in findings}
        rest = folded(name for name in answers if name not in strange)
        without = f"; without them: --hosts {shlex.quote(rest)}" if rest else ""
        raise EnvironmentLacks(
            "\n".join([f"{len(strange)} of {count(len(answers), 'host')} cannot be looked at", *told(findings)]),
            hint=f"mend this and give the same command again{without}",
        )


def _origin(wanted: AskedHosts, command: Sequence[str], answers: Mapping[str, NodeAnswer]) -> HowAsked:
    """Return what the file says of how it came about, and of the MPIs of the hosts."""
    elsewhere: dict[str, list[str]] = {}
    for name, one in answers.items():
        for prefix in one.facts.mpis:
            elsewhere.setdefault(prefix, []).append(name)
    closed = ("permissions.may_open_frame_sockets", "permissions.may_open_ip_sockets")
    origin = HowAsked(
        name=wanted.name,
        launcher=wanted.launcher,
        command=shlex.join(command),
        lab=wanted.lab,
        starter=wanted.starter,
        reach=wanted.reach,
        is_allocated=wanted.is_allocated,
    )
    return replace(
        origin,
        mpi={name: one.inventory.get("mpi.version", "") for name, one in answers.items()},
        raw_refused=tuple(
            name for name, one in answers.items() if any(one.inventory.get(what) == "no" for what in closed)
        ),
        others_mpi={prefix: tuple(nodes) for prefix, nodes in elsewhere.items()},
    )
