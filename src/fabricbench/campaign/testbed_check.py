"""Proving a testbed, up to where it is measured: a preflight, clocks and speeds, who reaches whom, and the campaign of each fabric.

A node with which something is wrong on a fabric is left out of what is measured there, so that the others are still proven. What
the measurement comes to is `analysis.testbed_check`'s to tell.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address

from pydantic import ValidationError

from fabricbench.campaign.events import NodesAsked, Notify
from fabricbench.campaign.pattern_presets import STREAM_BYTES
from fabricbench.campaign.plan import RunPlan, plan_run
from fabricbench.campaign.preflight import SKIPPED, NodeAnswer, look_at_nodes
from fabricbench.campaign.specification import Campaign, Experiment
from fabricbench.campaign.venue import Standing
from fabricbench.launch.asking import MOST_IN_FLIGHT, AskingLimits, CommandAnswer, ask_all
from fabricbench.launch.launcher import Launcher
from fabricbench.model import Layer, Pattern
from fabricbench.testbed import reaching
from fabricbench.testbed.joining import (
    ClockReading,
    Reachability,
    Reached,
    judge_clocks,
    judge_members,
    judge_speeds,
    judge_way,
)
from fabricbench.testbed.model import Fabric, Testbed
from fabricbench.testbed.preflight_result import PAIR, Finding, FindingSeverity, Preflight, Silent
from fabricbench.testbed.wire import IP_HEADER_BYTES, UDP_HEADER_BYTES

QUESTION_SECONDS = 20.0
ALL_SECONDS, SECONDS_A_QUESTION = 60.0, 0.5

HARMLESS = {"speed", "clock", "load", "lab"}
"""Findings that do not keep a node's links from being measured."""

MOST_ALONE, MOST_ALONE_AGAIN = 8, 16
"""So many nodes are measured one pair at a time, which loads nothing beside, and so many are when something looked slow; more in
rounds of disjoint pairs, which share what lies between switches, and of a lab the processors."""

SECONDS_A_PAIR, SECONDS_A_STREAM, SECONDS_AT_ONCE = 0.02, 0.1, 0.05
"""What a pair, a direction of one, and a direction of many at once have in a launch: dozens of datagrams, and over a slow link of
messages of TCP."""


@dataclass(frozen=True)
class Looked:
    """How the nodes were found before anything is measured; `answers` are those that told of themselves."""

    testbed: Testbed
    preflight: Preflight
    findings: tuple[Finding, ...]
    answers: Mapping[str, NodeAnswer]
    clocks: Mapping[str, ClockReading]

    def sound_nodes(self, fabric: Fabric) -> tuple[str, ...]:
        """Return the nodes that may be measured on a fabric; none where the fabric as a whole is wrong."""
        wrong = [
            one
            for one in self.findings
            if one.severity is FindingSeverity.ERROR
            and one.subject not in HARMLESS
            and (not one.fabric or fabric.name in one.fabric.split(PAIR))
        ]
        if any(not one.node for one in wrong):
            return ()
        bad = {one.node for one in wrong}
        return tuple(node.name for node in self.testbed.joined_by(fabric) if node.name not in bad)


def look_at_testbed(place: Standing, notify: Notify) -> Looked:
    """Return how the nodes were found, and who answers whom on each fabric. Raises what no launch could be started for."""
    testbed = place.testbed()
    preflight, told = look_at_nodes(place, None, notify)
    answers = {name: one for name, one in told.items() if not isinstance(one, Silent)}
    facts = {name: one.facts for name, one in answers.items()}
    clocks = {name: ClockReading(one.facts.unix_ns, one.asked_ns) for name, one in answers.items() if one.facts.unix_ns}
    # Another MPI may start and be slow, which a run warns of; a testbed that is proven has one.
    findings = [
        one.model_copy(update={"severity": FindingSeverity.ERROR}) if one.subject == "mpi" else one
        for one in preflight.findings
    ]
    findings += judge_members(testbed)
    findings += judge_speeds(testbed, facts)
    findings += judge_clocks(facts, clocks)
    looked = Looked(testbed, preflight, tuple(findings), answers, clocks)
    for way in _ways(looked, place.sketch(), notify):
        findings += judge_way(way)
    return Looked(testbed, preflight, tuple(findings), answers, clocks)


def _ways(looked: Looked, launcher: Launcher, notify: Notify) -> list[Reachability]:
    """Ask the sound nodes of each fabric whom they reach there."""
    attached = {node.name: node.attachments for node in looked.preflight.nodes}
    questions: dict[tuple[str, str], Sequence[str]] = {}
    addresses: dict[str, dict[str, str]] = {}
    for fabric in looked.testbed.fabrics:
        of = {name: attached[name].get(fabric.name) for name in looked.sound_nodes(fabric)}
        own = {name: one.address.partition("/")[0] for name, one in of.items() if one is not None and one.address}
        if len(own) > 1:
            addresses[fabric.name] = own
            for name, address in own.items():
                peers = [other for node, other in own.items() if node != name]
                tokens = [sys.executable, "-I", "-S", reaching.__file__, address, str(_full_bytes(fabric)), *peers]
                questions[fabric.name, name] = launcher.in_node(name, tokens)
    if not questions:
        return []
    notify(NodesAsked(0, len(questions)))
    answers = _asked(questions, looked, lambda done: notify(NodesAsked(done, len(questions))))
    return [
        Reachability(
            looked.testbed.fabric(fabric),
            {name: IPv4Address(address) for name, address in own.items()},
            {name: answers[fabric, name] for name in own},
        )
        for fabric, own in addresses.items()
    ]


def _full_bytes(fabric: Fabric) -> int:
    """Return the payload of a datagram that fills the fabric's MTU."""
    return fabric.mtu - IP_HEADER_BYTES - UDP_HEADER_BYTES


def _asked(
    questions: Mapping[tuple[str, str], Sequence[str]], looked: Looked, tell: Callable[[int], None]
) -> dict[tuple[str, str], Reached]:
    silent_s = 2 * reaching.TRIES * reaching.TRY_SECONDS * -(-len(looked.testbed.nodes) // reaching.AT_ONCE)
    is_apart = looked.testbed.launcher.is_cluster
    width = MOST_IN_FLIGHT if is_apart else max(2, len(os.sched_getaffinity(0)))
    each_s = QUESTION_SECONDS + silent_s
    limits = AskingLimits(each_s, ALL_SECONDS + len(questions) * (SECONDS_A_QUESTION + silent_s / width), width)
    keys = {f"{fabric}/{node}": (fabric, node) for fabric, node in questions}
    answers = ask_all({name: questions[key] for name, key in keys.items()}, limits, tell)
    return {keys[name]: _understood(answer) for name, answer in answers.items()}


def _understood(answer: CommandAnswer) -> Reached:
    line = next((one for one in reversed(answer.stdout.splitlines()) if one.startswith("{")), "")
    try:
        return Reached.model_validate(json.loads(line)["reached"])
    except (ValidationError, ValueError, KeyError, TypeError):
        return Reached(problem=answer.problem or answer.last_words)


def check_campaign(fabric: Fabric, hosts: int, *, is_again: bool = False) -> Campaign:
    """Return what proves a fabric: datagrams that fill the MTU and streams over TCP of every pair, and streams over MPI.

    Again, once something looked slow, only the streams that pairs are judged by.
    """
    every = "alone" if hosts <= (MOST_ALONE_AGAIN if is_again else MOST_ALONE) else "rounds"
    # Nothing is judged by MPI's streams where there are TCP's: of many nodes each in one pair shows what MPI makes of the network.
    of_mpi = "halves" if every == "rounds" and Layer.TCP in fabric.layers else every
    turns = {"alone": hosts * (hosts - 1) / 2, "rounds": hosts - 1 + hosts % 2, "halves": 1}
    wanted = (
        (Layer.UDP, Pattern.PAIRS, _full_bytes(fabric), every, SECONDS_A_PAIR),
        (Layer.TCP, Pattern.PAIRS_STREAM, STREAM_BYTES, every, 2 * SECONDS_A_STREAM),
        (Layer.MPI, Pattern.PAIRS_STREAM, STREAM_BYTES, of_mpi, 2 * SECONDS_AT_ONCE),
    )
    there = [one for one in wanted if one[0] in fabric.layers]
    asked = [one for one in there if one[1] is Pattern.PAIRS_STREAM][:1] if is_again else there
    return Campaign(
        name=f"check of {fabric.name}",
        description="every pair of nodes: does it carry what the testbed says?",
        blocks=1,  # whoever looks slow in it is measured again
        unfit="leave out",
        experiments=tuple(
            Experiment(
                layers=(layer,),
                pattern=pattern,
                message_bytes=(size,),
                maximum_seconds=turns[schedule] * seconds,
                minimum_samples=5,
                warmup_samples=2,
                verify_messages=1,
                parameters={"schedule": schedule},
            )
            for layer, pattern, size, schedule, seconds in asked
        ),
    )


@dataclass(frozen=True)
class Measuring:
    """What proves one fabric: its nodes that are sound, the campaign, and its plan there; `found` are the nodes' inventories."""

    fabric: Fabric
    nodes: tuple[str, ...]
    campaign: Campaign
    venue: Standing
    plan: RunPlan
    found: Preflight

    def again(self, nodes: Collection[str]) -> Measuring:
        """Return what measures the pairs of these nodes once more, one at a time where there are not too many of them."""
        testbed = self.venue.testbed()
        part = testbed.model_copy(update={"nodes": tuple(node for node in testbed.nodes if node.name in nodes)})
        campaign = check_campaign(self.fabric, len(part.nodes), is_again=True)
        return replace(
            self,
            nodes=tuple(node.name for node in part.nodes),
            campaign=campaign,
            venue=Standing(given=part),
            plan=plan_run(campaign, part, seed=self.plan.seed),
        )


def measurings(looked: Looked, seed: int) -> list[Measuring]:
    """Return what is to be measured of each fabric that joins two sound nodes and has an interface."""
    return [
        _measuring(looked, fabric, nodes, seed)
        for fabric in looked.testbed.fabrics
        if fabric.has_interface and len(nodes := looked.sound_nodes(fabric)) > 1
        if any(layer in fabric.layers for layer in (Layer.UDP, Layer.TCP, Layer.MPI))
    ]


def _measuring(looked: Looked, fabric: Fabric, nodes: Iterable[str], seed: int) -> Measuring:
    names = tuple(nodes)
    alone = fabric.model_copy(update={"condition_of": ""})  # its other conditions are checked by themselves
    part = looked.testbed.model_copy(
        update={"fabrics": (alone,), "nodes": tuple(node for node in looked.testbed.nodes if node.name in names)}
    )
    found = SKIPPED.model_copy(update={"inventories": looked.preflight.inventories})
    campaign = check_campaign(fabric, len(names))
    return Measuring(alone, names, campaign, Standing(given=part), plan_run(campaign, part, seed=seed), found)
