"""The hosts that a run was measured on: in a line, whether they were busy, and what the doctor found of them."""

from __future__ import annotations

import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.findings import Severity
from fabricbench.analysis.hosts import busy_words
from fabricbench.record.manifest import write_manifest
from fabricbench.record.store import Run
from fabricbench.testbed.advice import Advice, AdviceWeight, findings_in

from .conftest import MakeRun, two

LOAD = Advice(
    weight=AdviceWeight.WARNING, subject="load", finding="the machine is busy: load 2.5 on 1 processor", action=""
)
GUEST = Advice(weight=AdviceWeight.NOTE, subject="virtualisation", finding="this is a virtual machine", action="")
FACTS = {
    "cpu.model": "a processor",
    "cpu.usable": "1",
    "cpu.logical": "2",
    "kernel.release": "6.18",
    "load": "2.50",
    LOAD.key: LOAD.finding,
    GUEST.key: GUEST.finding,
}


def with_inventory(run: Run, facts: dict[str, str]) -> Run:
    manifest = run.manifest.model_copy(update={"inventory": {node.name: facts for node in run.manifest.testbed.nodes}})
    write_manifest(run.path, manifest)
    return Run.open(run.path)


def test_an_inventory_keeps_the_weight_of_what_the_doctor_found_and_older_ones_are_notes():
    assert list(findings_in(FACTS)) == [
        (AdviceWeight.WARNING, "load", LOAD.finding),
        (AdviceWeight.NOTE, "virtualisation", GUEST.finding),
    ]
    assert list(findings_in({"advice.load": "busy"})) == [(AdviceWeight.NOTE, "load", "busy")]


def test_what_the_doctor_found_is_among_the_warnings_and_the_system_stands_in_a_line(make_run: MakeRun):
    findings = analyse([with_inventory(make_run(two(1.5)), FACTS)])
    told = {(one.severity, one.subject, one.text) for one in findings.warnings}
    assert (Severity.WARNING, "every node", LOAD.finding) in told
    assert (Severity.NOTE, "every node", GUEST.finding) in told
    assert findings.headline.system == "2 nodes, a processor, 1 of 2 processors, Linux 6.18"


@pytest.mark.slow
def test_a_busy_machine_bounds_the_answer_and_is_the_cause_of_what_is_open(make_run: MakeRun):
    findings = analyse([with_inventory(make_run(two(1.0)), FACTS)])
    assert findings.headline.evidence[0].words == (
        "Emulated on one busy machine: shows the links asked for, not real cards."
    )
    assert findings.headline.next_steps[0] == "measure again while the machine is quiet: load 2.5 on 1 processor"
    quiet = analyse([with_inventory(make_run(two(1.0), "idle"), FACTS | {"load": "0.10"})])
    assert "busy" not in quiet.headline.evidence[0].words
    assert not any("quiet" in step for step in quiet.headline.next_steps)


def test_the_busiest_host_is_named():
    idle = {"load": "0.10", "cpu.usable": "8"}
    assert busy_words({"n0": idle, "n1": {"load": "7.83", "cpu.usable": "2"}}) == "load 7.8 on 2 processors"
    assert busy_words({"n0": idle, "n1": {"missing": "it did not answer"}}) == ""
