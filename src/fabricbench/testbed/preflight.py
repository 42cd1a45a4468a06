"""Whether a testbed is there as its file says, from what its nodes told of themselves: facts in, findings out.

Programs, versions and load of each node, then how it is attached to its fabrics: interfaces, MTU, addresses. Pure. An error is
what would spoil or stop the run, a warning what a reader of its numbers should know. Asking the nodes is `campaign.preflight`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address

from fabricbench.native import BUILD_DIGITS
from fabricbench.quantity import count, format_bytes
from fabricbench.testbed.advice import BUSY_SHARE, SHARED_BYTES_A_RANK
from fabricbench.testbed.allowance import Allowance
from fabricbench.testbed.attachments import (
    Attached,
    attached_alike,
    attachments_of,
    judge_control,
    judge_neighbours,
    judge_rdma,
    judge_tunnel,
)
from fabricbench.testbed.model import Testbed
from fabricbench.testbed.names import LOOK_UP_SECONDS
from fabricbench.testbed.node_facts import NodeFacts
from fabricbench.testbed.preflight_result import (
    ALLOWANCE,
    REACH,
    Attachment,
    Finding,
    FindingSeverity,
    NodeResult,
    Preflight,
    Silent,
)

SAME_BUILD = "install the same build at the same path on every node"


@dataclass(frozen=True)
class Requirements:
    """What must be on each node: the version of fabricbench, programs by path with what each prints as its version, the MPI.

    `builds` are the SHA-256 of programs by path, as they are here, on processors of `architecture`. Those of `higher_levels` are
    for processors that a node need not have: there the same file is enough, whether it runs or not. Over the fabrics `by_rdma`
    layer rdma is measured, with messages of so many bytes at most (0 where no plan says). `ranks_on_a_node` is the most that a
    launch starts on one.
    """

    version: str
    programs: Mapping[str, str]
    mpi: str | None = None
    builds: Mapping[str, str] = field(default_factory=dict)
    architecture: str = ""
    higher_levels: frozenset[str] = frozenset()
    by_rdma: Mapping[str, int] = field(default_factory=dict)
    ranks_on_a_node: int = 1


@dataclass(frozen=True)
class Known:
    """What is known of nodes besides their own facts: the version of the MPI there, and what their names lead to here."""

    mpi: Mapping[str, str] = field(default_factory=dict)
    addresses: Mapping[str, IPv4Address] = field(default_factory=dict)


def judge(
    testbed: Testbed,
    answers: Mapping[str, NodeFacts | Silent],
    needed: Requirements,
    known: Known = Known(),
) -> Preflight:
    """Return the testbed as it was found."""
    findings: list[Finding] = []
    attached: list[Attached] = []
    for node in testbed.nodes:
        answer = answers[node.name]
        if isinstance(answer, Silent):
            what = f"fabricbench {needed.version}" + (" within reach" if answer.subject == REACH else "")
            findings.append(
                Finding(node=node.name, subject=answer.subject, found=answer.found, needed=what, action=answer.action)
            )
            continue
        findings += _installation(node.name, answer, needed, known.mpi.get(node.name))
        findings += allowed(node.name, answer.allowance, needed.ranks_on_a_node)
        if testbed.launcher.is_cluster:  # of this machine a run tells itself, by what it does just then
            findings += _load(node.name, answer)
            findings += _name_service(node.name, answer)
        of_node, wrong = attachments_of(testbed, node, answer)
        attached += of_node
        findings += wrong
        if testbed.launcher.is_cluster:
            findings += judge_control(of_node, answer, known.addresses.get(node.name))
        for one in of_node:
            findings += [*judge_tunnel(one), *judge_neighbours(one, answer)]
            if one.fabric.name in needed.by_rdma:
                findings += judge_rdma(one, answer, needed.by_rdma[one.fabric.name])
    findings += attached_alike(testbed, answers, attached)
    return Preflight(
        testbed=testbed.name,
        nodes=tuple(_result(node.name, answers[node.name], attached) for node in testbed.nodes),
        findings=tuple(sorted(findings, key=lambda one: one.severity is not FindingSeverity.ERROR)),
    )


def _result(name: str, answer: NodeFacts | Silent, attached: Iterable[Attached]) -> NodeResult:
    if isinstance(answer, Silent):
        return NodeResult(name=name)
    attachments = {
        one.fabric.name: Attachment(
            interface=one.interface.name,
            address=str(one.address or ""),
            mtu=one.interface.mtu,
            state=one.interface.state,
            carriers=one.interface.carriers,
        )
        for one in attached
        if one.node == name
    }
    return NodeResult(
        name=name,
        host=answer.host,
        version=answer.version,
        load=answer.load,
        processors=answer.processors,
        attachments=attachments,
    )


PROCESSES_A_RANK = 4
"""The rank with its thread for waiting, and its share of what starts it."""


OPEN_FILES, OPEN_FILES_A_RANK = 16, 4
"""What the starter opens, and for each rank: with two ranks MPICH's needed between 16 and 24."""


def allowed(node: str, allowance: Allowance, ranks: int) -> Iterator[Finding]:
    """Yield what a node's container or job withholds from so many ranks."""
    shared, wanted = allowance.shared_memory_bytes, ranks * SHARED_BYTES_A_RANK
    if shared is not None and ranks > 1 and shared < wanted:
        yield Finding(
            node=node,
            subject=ALLOWANCE,
            found=f"{format_bytes(shared)} free in /dev/shm",
            needed=f"{format_bytes(wanted)} for {ranks} ranks, which speak through it",
            action="mount it larger: --shm-size 1g of a container, `mount -o remount,size=1g /dev/shm`",
        )
    if allowance.processes is not None and allowance.processes < ranks * PROCESSES_A_RANK:
        yield Finding(
            node=node,
            subject=ALLOWANCE,
            found=f"room for {allowance.processes} more processes",
            needed=f"{ranks * PROCESSES_A_RANK} for {count(ranks, 'rank')}",
            action="raise pids.max of the control group: --pids-limit of a container, TasksMax= of systemd",
        )
    files = OPEN_FILES + OPEN_FILES_A_RANK * ranks
    if allowance.open_files is not None and allowance.open_files < files:
        yield Finding(
            node=node,
            subject=ALLOWANCE,
            found=f"a process may open {allowance.open_files} files",
            needed=f"{files} for {count(ranks, 'rank')} and what starts them",
            action="raise it: ulimit -n, or nofile in /etc/security/limits.conf",
        )
    if allowance.file_bytes is not None and allowance.file_bytes < wanted:
        yield Finding(
            node=node,
            subject=ALLOWANCE,
            found=f"a file may have {format_bytes(allowance.file_bytes)}",
            needed=f"{format_bytes(wanted)}: memory that {count(ranks, 'rank')} of a node share is a file, and so is each record",
            action="raise it: ulimit -f unlimited, or fsize in /etc/security/limits.conf",
        )
    if allowance.processors is not None and allowance.processors < ranks:
        yield Finding(
            severity=FindingSeverity.WARNING,
            node=node,
            subject=ALLOWANCE,
            found=f"a quota of {allowance.processors:g} processors",
            needed=f"{count(ranks, 'processor')} for as many ranks: all of them stand still whenever the quota is used up",
            action="give whole processors (--cpuset-cpus of a container) in place of a share of time (--cpus, cpu.max)",
        )


def _installation(node: str, facts: NodeFacts, needed: Requirements, mpi: str | None) -> Iterator[Finding]:
    def unlike(
        subject: str, found: str, wanted: str, action: str, severity: FindingSeverity = FindingSeverity.ERROR
    ) -> Finding:
        return Finding(severity=severity, node=node, subject=subject, found=found, needed=wanted, action=action)

    if facts.version != needed.version:
        found = f"fabricbench {facts.version}"
        wanted = f"fabricbench {needed.version}, as here"
        yield unlike("fabricbench", found, wanted, "install the same version at the same path on every node")
    for path, version in needed.programs.items():
        there = facts.programs.get(path, "nothing was told of it")
        is_same_file = path in needed.builds and facts.builds.get(path) == needed.builds[path]
        if path in needed.higher_levels and is_same_file:
            continue
        if there != version:
            wanted = f"{version} at that path, as here"
            yield unlike("program", f"{path}: {there}", wanted, SAME_BUILD)
        elif path in needed.builds:
            yield from _build(node, facts, needed, path)
    if needed.mpi is not None and mpi != needed.mpi:
        found = f"MPI {mpi}" if mpi else "no MPI that answers"
        wanted = f"{needed.mpi}, as here: other versions may not start, or differ in speed"
        action = "install the same MPI on every node" if mpi else "run `fabricbench doctor` there, which says why"
        yield unlike("mpi", found, wanted, action, FindingSeverity.WARNING)


def _build(node: str, facts: NodeFacts, needed: Requirements, path: str) -> Iterator[Finding]:
    """Yield what a program of the right version is otherwise: versions are the same from one release to the next."""
    there, here = facts.builds.get(path), needed.builds[path]
    if facts.architecture and facts.architecture != needed.architecture:
        yield Finding(
            severity=FindingSeverity.WARNING,
            node=node,
            subject="program",
            found=f"{path} for {facts.architecture}",
            needed=f"the build that is here, for {needed.architecture}: of other processors only the version is compared",
            action="build both from the same source",
        )
    elif there != here:
        yield Finding(
            node=node,
            subject="program",
            found=f"{path} of {f'build {there[:BUILD_DIGITS]}' if there else 'a build that nobody tells'}",
            needed=f"build {here[:BUILD_DIGITS]}, as here",
            action=SAME_BUILD,
        )


def _load(node: str, facts: NodeFacts) -> Iterator[Finding]:
    """Yield a warning where a node is busy."""
    if facts.load is not None and facts.load > BUSY_SHARE * facts.processors:
        yield Finding(
            severity=FindingSeverity.WARNING,
            node=node,
            subject="load",
            found=f"load {facts.load:.1f} on {count(facts.processors, 'processor')}",
            needed=f"at most {BUSY_SHARE * facts.processors:g}: ranks that wait for a processor have long tails",
            action="measure when nothing else runs; else trust medians and ratios, not tails",
        )


def _name_service(node: str, facts: NodeFacts) -> Iterator[Finding]:
    if facts.is_name_service_silent:
        yield Finding(
            severity=FindingSeverity.WARNING,
            node=node,
            subject="names",
            found=f"that nobody told within {LOOK_UP_SECONDS:g} s what the node's own name {facts.host} leads to",
            needed="an answer at once: MPI starters and ssh look names up before they do anything",
            action="add the nodes to /etc/hosts there, or take silent name servers out of /etc/resolv.conf",
        )
