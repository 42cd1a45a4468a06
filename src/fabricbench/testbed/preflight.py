"""Whether a testbed is there as its file says, from what its nodes told of themselves. Pure: facts in, findings out.

An error is what would spoil or stop the run, a warning what a reader of its numbers should know. Asking the nodes is
`campaign.preflight`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from fabricbench.native import BUILD_DIGITS
from fabricbench.testbed import attachments
from fabricbench.testbed.advice import BUSY_SHARE
from fabricbench.testbed.attachments import Attached
from fabricbench.testbed.model import Launcher, Testbed
from fabricbench.testbed.node_facts import NodeFacts
from fabricbench.testbed.preflight_result import Attachment, Finding, NodeResult, Preflight, Severity, Silent

SAME_BUILD = "install the same build at the same path on every node"


@dataclass(frozen=True)
class Needed:
    """What must be on each node: the version of fabricbench, programs by path with what each prints as its version, the MPI.

    `builds` are the SHA-256 of programs by path, as they are here, on processors of `architecture`.
    """

    version: str
    programs: Mapping[str, str]
    mpi: str | None = None
    builds: Mapping[str, str] = field(default_factory=dict)
    architecture: str = ""


def judge(
    testbed: Testbed,
    answers: Mapping[str, NodeFacts | Silent],
    needed: Needed,
    mpi: Mapping[str, str] | None = None,
) -> Preflight:
    """Return the testbed as it was found. `mpi` maps nodes to the version of the MPI there, where it is known."""
    findings: list[Finding] = []
    attached: list[Attached] = []
    for node in testbed.nodes:
        answer = answers[node.name]
        if isinstance(answer, Silent):
            what = f"fabricbench {needed.version}" + (" within reach" if answer.subject == "reach" else "")
            findings.append(
                Finding(node=node.name, subject=answer.subject, found=answer.found, needed=what, action=answer.action)
            )
            continue
        findings += _installation(node.name, answer, needed, (mpi or {}).get(node.name))
        if testbed.launcher is Launcher.SSH:  # of this machine a run tells itself, by what it does just then
            findings += _load(node.name, answer)
        of_node, wrong = attachments.of_node(testbed, node, answer)
        attached += of_node
        findings += wrong
    findings += attachments.between_nodes(testbed, answers, attached)
    return Preflight(
        testbed=testbed.name,
        nodes=tuple(_result(node.name, answers[node.name], attached) for node in testbed.nodes),
        findings=tuple(sorted(findings, key=lambda one: one.severity is not Severity.ERROR)),
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


def _installation(node: str, facts: NodeFacts, needed: Needed, mpi: str | None) -> Iterator[Finding]:
    def unlike(subject: str, found: str, wanted: str, action: str, severity: Severity = Severity.ERROR) -> Finding:
        return Finding(severity=severity, node=node, subject=subject, found=found, needed=wanted, action=action)

    if facts.version != needed.version:
        found = f"fabricbench {facts.version}"
        wanted = f"fabricbench {needed.version}, as here"
        yield unlike("fabricbench", found, wanted, "install the same version at the same path on every node")
    for path, version in needed.programs.items():
        there = facts.programs.get(path, "nothing was told of it")
        if there != version:
            wanted = f"{version} at that path, as here"
            yield unlike("program", f"{path}: {there}", wanted, SAME_BUILD)
        elif path in needed.builds:
            yield from _build(node, facts, needed, path)
    if needed.mpi is not None and mpi != needed.mpi:
        found = f"MPI {mpi}" if mpi else "no MPI that answers"
        wanted = f"{needed.mpi}, as here: other versions may not start, or differ in speed"
        action = "install the same MPI on every node" if mpi else "run `fabricbench doctor` there, which says why"
        yield unlike("mpi", found, wanted, action, Severity.WARNING)


def _build(node: str, facts: NodeFacts, needed: Needed, path: str) -> Iterator[Finding]:
    """Yield what a program of the right version is otherwise: versions are the same from one release to the next."""
    there, here = facts.builds.get(path), needed.builds[path]
    if facts.architecture and facts.architecture != needed.architecture:
        yield Finding(
            severity=Severity.WARNING,
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
            severity=Severity.WARNING,
            node=node,
            subject="load",
            found=f"load {facts.load:.1f} on {facts.processors} processors",
            needed=f"at most {BUSY_SHARE * facts.processors:g}: ranks that wait for a processor have long tails",
            action="measure when nothing else runs; else trust medians and ratios, not tails",
        )
