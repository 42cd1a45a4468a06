"""Machines that share nothing: launches from a head that is no node, nodes that fail, a template, and the lab's verdicts."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from cluster.nodes import RATES_BIT_S, SESSIONS_DIFFER_BY, Cluster, Node, set_rate
from fabricbench.launch.starting import YIELD_LIBRARY
from fabricbench.native import native_file

pytestmark = [pytest.mark.cluster, pytest.mark.mpi, pytest.mark.timeout(600)]

PROGRAM = f"{sys.prefix}/bin/fabricbench"
RUN = "/root/runs/a"

ASLEEP = f'mpi_environment = {{ LD_PRELOAD = "{native_file(YIELD_LIBRARY)}" }}'
"""The nodes share processors: ranks that wait for one another must sleep, as the lab's do."""

FABRICS = f"""
[[fabric]]
name = "slow"
interface = "slow0"
line_rate = "200Mbit/s"
{ASLEEP}

[[fabric]]
name = "fast"
interface = "fast0"
line_rate = "1Gbit/s"
{ASLEEP}
"""

TESTBED = '[testbed]\nname = "four"\nnodes = "c[1-4]"\n' + FABRICS

BY_TEMPLATE = f"""[testbed]
name = "four"
nodes = "c[1-4]"
starter = ["{sys.prefix}/bin/mpiexec", "-launcher", "ssh", "-hosts", "{{hosts}}", "-wdir", "/", "-n", "{{ranks}}",
           "-genv", "{{name}}", "{{value}}", "{{program}}"]
reach = ["ssh", "-o", "BatchMode=yes", "{{node}}", "{{line}}"]
{FABRICS}"""
"""What a site would write for a starter that fabricbench does not know: here it is hydra all the same."""

STREAMS = """\
[campaign]
blocks = {blocks}
margin = 0.05

[[experiment]]
layers = ["tcp", "mpi"]
pattern = "stream"
message_bytes = ["{size}"]
maximum_seconds = "{seconds}"
"""

RING = """
[[experiment]]
layers = ["tcp"]
pattern = "ring"
message_bytes = ["64KiB"]
maximum_seconds = "100ms"
"""

LOW_RATES = {"slow": 50_000_000, "fast": 200_000_000}
"""What the lab's switch, a program, keeps on two processors that do other things as well."""

FACTS = """
import json, pathlib, sys
run = pathlib.Path(sys.argv[1])
launches = {path.parent.name: json.loads(path.read_text()) for path in run.glob("launches/*/launch.json")}
print(json.dumps({
    "launches": launches,
    "files": {name: sorted(path.name for path in (run / "launches" / name).iterdir()) for name in launches},
    "manifest": json.loads((run / "manifest.json").read_text()),
    "journal": [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()],
}))
"""


def facts_of(node: Node) -> dict[str, Any]:
    """What a run directory on a node holds."""
    found: dict[str, Any] = json.loads(node.said(f"{sys.prefix}/bin/python", "-c", FACTS, RUN))
    return found


def prepare(node: Node, campaign: str, testbed: str = TESTBED) -> tuple[str, ...]:
    """Write both files and return the command that runs them."""
    node.said("rm", "-rf", RUN)
    node.put("/root/testbed.toml", testbed)
    node.put("/root/campaign.toml", campaign)
    return (PROGRAM, "run", "/root/campaign.toml", "--testbed", "/root/testbed.toml", "-o", RUN)


def compared(node: Node) -> dict[tuple[str, str], dict[str, Any]]:
    """The comparisons of a run, by layer and pattern."""
    rows = json.loads(node.said(PROGRAM, "compare", RUN, "--format", "json"))
    return {(row["layer"], row["pattern"]): row for row in rows}


def check_measured(facts: dict[str, Any], hosts: set[str]) -> None:
    for launch in facts["launches"].values():
        assert launch["facts"]["is_valid"], launch["facts"]["invalid_because"]
        assert {rank["host"] for rank in launch["header"]["ranks"]} == hosts


@pytest.fixture(scope="module")
def ratios_of_the_lab(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, Any]]:
    """The comparisons of the same campaign by the lab launcher, on emulated fabrics of the same rates."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "campaign.toml").write_text(STREAMS.format(size="1MiB", blocks=5, seconds="200ms"))
    lab = ",".join(f"{name}=fast-ethernet:rate={rate}bit/s" for name, rate in LOW_RATES.items())
    measure = (
        PROGRAM,
        "run",
        str(folder / "campaign.toml"),
        "--testbed",
        f"lab:{lab}",
        "--nodes",
        "4",
        "-o",
        str(folder / "run"),
    )
    done = subprocess.run(measure, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    compare = (PROGRAM, "compare", str(folder / "run"), "--format", "json")
    rows = json.loads(subprocess.run(compare, capture_output=True, text=True, timeout=60, check=True).stdout)
    return {(row["layer"], row["pattern"]): row for row in rows}


@contextmanager
def at_low_rates(cluster: Cluster) -> Iterator[None]:
    """Let c1 and c2 send as slowly as the lab's nodes for a while."""
    for rates in (LOW_RATES, None):
        for node in cluster.nodes[:2]:
            for interface, rate in RATES_BIT_S.items():
                set_rate(node, interface, rates[interface.removesuffix("0")] if rates else rate)
        if rates:
            yield


def test_a_head_that_is_no_node_measures_what_the_lab_measures_and_leaves_nothing_behind(
    cluster: Cluster, ratios_of_the_lab: dict[tuple[str, str], dict[str, Any]]
):
    head = cluster.head
    with at_low_rates(cluster):
        head.said(*prepare(head, STREAMS.format(size="1MiB", blocks=5, seconds="200ms")))
    facts = facts_of(head)
    check_measured(facts, {"c1", "c2"})
    for files in facts["files"].values():
        assert files == [
            "cells.parquet",
            "conditions.json",
            "counters.parquet",
            "launch.json",
            "plan.json",
            "samples.parquet",
            "stderr.log",
            "stdout.log",
        ]
    for node in cluster.nodes:
        assert node.said("sh", "-c", "ls -A /tmp | grep fabricbench || true") == ""
        assert node.run("ls", "/root/runs").returncode != 0
    ours = compared(head)
    assert {layer for layer, _ in ours} == {"tcp", "mpi"}
    for key, one in ours.items():
        emulated = ratios_of_the_lab[key]
        assert one["verdict"] == emulated["verdict"] == "B faster", (key, one, emulated)
        assert one["ratio"] == pytest.approx(emulated["ratio"], rel=SESSIONS_DIFFER_BY), (key, one, emulated)


def in_the_middle_of(node: Node, command: tuple[str, ...], finished: int, victim: Node) -> tuple[int, str]:
    """Start a run, end another node once so many launches are finished and the next has begun; return code and stderr."""
    running = subprocess.Popen(
        [*node.inside(), *command],
        cwd="/",
        env=node.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        until = time.monotonic() + 120
        events: list[str] = []
        while events.count("finished") < finished or events[-1] != "started":
            assert time.monotonic() < until, events
            assert running.poll() is None, events
            time.sleep(0.05)
            journal = node.run("cat", f"{RUN}/journal.jsonl").stdout.splitlines()
            events = [json.loads(line)["event"] for line in journal if line.endswith("}")]
        time.sleep(0.3)
        victim.end()
        _, stderr = running.communicate(timeout=200)
    finally:
        running.kill()
    return running.returncode, stderr


def test_a_node_that_loses_its_power_costs_its_launch_and_the_run_goes_on_without_it_by_a_template_too(
    mortal_cluster: Cluster,
):
    head = mortal_cluster.head
    command = prepare(head, STREAMS.format(size="256KiB", blocks=3, seconds="50ms") + RING, BY_TEMPLATE)
    code, said = in_the_middle_of(head, (*command, "--without-failed-nodes"), 3, mortal_cluster.node("c2"))
    assert code == 0, said
    assert "c2 (" in said
    assert "does not answer" in said
    facts = facts_of(head)
    (loss,) = facts["manifest"]["losses"]
    assert (list(loss["reasons"]), loss["kept"]) == (["c2"], [0])
    assert len(facts["launches"]) == 6
    for launch in facts["launches"].values():
        assert launch["facts"]["is_valid"], launch["facts"]["invalid_because"]
        lost = {"c2"} if launch["facts"]["block"] else set()
        assert {rank["host"] for rank in launch["header"]["ranks"]} == {"c1", "c2", "c3", "c4"} - lost
    rows = json.loads(head.said(PROGRAM, "compare", RUN, "--format", "json"))
    blocks = {(row["layer"], row["pattern"], row["variant"]): row["launches"] for row in rows}
    assert blocks["tcp", "stream", "without c2"] == 2
    assert blocks["tcp", "ring", "3 ranks,without c2"] == 2
    head.said(PROGRAM, "report", RUN)
    dossier = head.said("cat", f"{RUN}/dossier.html")
    assert "a run that goes on without them (c2)" in dossier
    for node in mortal_cluster.nodes:
        if node.name != "c2":
            assert node.said("sh", "-c", "ls -A /tmp | grep fabricbench || true") == ""


@pytest.mark.timeout(900)
def test_open_mpi_starts_from_a_head_that_is_no_node_as_well(cluster: Cluster):
    open_mpi = pytest.importorskip("support.openmpi", reason="there is no Open MPI for tests here").open_mpi()
    head = cluster.head
    as_root = ("OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
    command = prepare(head, STREAMS.format(size="256KiB", blocks=2, seconds="50ms"))
    head.said("env", f"FABRICBENCH_BIN={open_mpi.programs}", *as_root, *command)
    facts = facts_of(head)
    check_measured(facts, {"c1", "c2"})
    assert {launch["header"]["mpi_library"].split()[0] for launch in facts["launches"].values()} == {"Open"}
