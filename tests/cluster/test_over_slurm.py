"""A Slurm of four virtual nodes: runs within an allocation and submitted ones find what the lab's own launcher finds there."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from cluster.nodes import SESSIONS_DIFFER_BY
from cluster.slurm_nodes import Slurm, slurm_over, why_none
from fabricbench.lab import Lab, lab_support, parse_fabrics
from fabricbench.launch.starting import yield_library
from fabricbench.record.store import Run
from support.lab_outside import becomes_true
from support.openmpi import NAME, open_mpi

pytestmark = [pytest.mark.cluster, pytest.mark.lab, pytest.mark.mpi, pytest.mark.alone, pytest.mark.timeout(900)]

PROGRAM = [sys.executable, "-c", "from fabricbench.cli import main; main()"]
FABRICS = "fast-ethernet,myrinet"
RUN_SECONDS = 200

CAMPAIGN = """\
[campaign]
blocks = 5
unfit = "leave out"

[[experiment]]
layers = ["tcp", "mpi"]
pattern = "pingpong"
message_bytes = ["64KiB"]
maximum_seconds = "100ms"
"""
"""What the wire alone decides, so that a busy machine does not."""

BY_SLURM = """\
[testbed]
name = "lab-by-slurm"
launcher = "slurm"

[slurm]
nodes = 4
"""

BY_LAB = """\
[testbed]
name = "lab-by-itself"
launcher = "lab"
lab = "{lab}"
nodes = "n[0-3]"
"""

FABRIC = """
[[fabric]]
name = "{network}-{mpi}"
network = "{network}"
mpi = "{mpi}"
interface = "{interface}"
mtu = {mtu}
line_rate = {rate}
is_emulated = true
"""

OTHER_MPI = 'layers = ["mpi"]\n'
"""With its own MPI: the other layers are the same with any."""

TWO_MPIS = 'condition_of = "{network}"\n'

MPICH = f'[[mpi]]\nname = "mpich"\nprefix = "{sys.prefix}"\n'

ASLEEP = 'mpi_environment = {{ LD_PRELOAD = "{preload}", OMPI_MCA_mpi_yield_when_idle = "1" }}\n'
"""The nodes share processors, which no Slurm knows: as the lab's launcher does, ranks that wait are let sleep."""

Compared = dict[tuple[str, str, str], dict[str, Any]]
"""Layer, metric and MPI -> a row of `compare`: fast-ethernet against myrinet with that MPI."""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    reason = why_none() or (None if lab_support().mode == "root" else f"no lab with root: {lab_support().reason}")
    if reason is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("slurm")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder / "state"))
        lab = Lab.up("by-slurm", 4, tuple(parse_fabrics(FABRICS)), owned=True)
        try:
            with slurm_over(lab, folder / "cluster") as found:
                write_files(found)
                yield found
        finally:
            lab.down()


def write_files(slurm: Slurm) -> None:
    """The campaign, and the testbeds: both MPIs by Slurm and by the lab's own launcher, MPICH alone by Slurm."""
    where = BY_LAB.format(lab=slurm.lab.name)
    mpis = f"\n{MPICH}\n{open_mpi().table}"
    both, asleep = (fabrics(slurm.lab, ("mpich", "openmpi"), TWO_MPIS + rest) for rest in ("", ASLEEP))
    for name, text in {
        "campaign.toml": CAMPAIGN,
        "by-lab.toml": where + mpis + both,
        "by-slurm.toml": BY_SLURM + mpis + asleep,
        "mpich.toml": f"{BY_SLURM}\n{MPICH}{fabrics(slurm.lab, ('mpich',), ASLEEP)}",
    }.items():
        (slurm.folder / name).write_text(text)


def fabrics(lab: Lab, mpis: Sequence[str], rest: str) -> str:
    """The tables of the lab's fabrics, one with each MPI."""
    return "".join(
        (FABRIC + rest + (OTHER_MPI if mpi == NAME else "")).format(
            network=fabric.name,
            mpi=mpi,
            interface=fabric.interface,
            mtu=fabric.mtu,
            rate=int(fabric.wire.line_rate_bit_s),
            preload=yield_library(),
        )
        for fabric in lab.testbed().fabrics
        if fabric.wire is not None
        for mpi in mpis
    )


def asked(testbed: str, run: str, *options: str) -> list[str]:
    """The command of a run."""
    return [*PROGRAM, "run", "campaign.toml", "--testbed", testbed, "-o", run, *options]


def compared(run: Path) -> Compared:
    done = subprocess.run(
        [*PROGRAM, "compare", str(run), "--format", "json"], capture_output=True, text=True, timeout=60, check=True
    )
    found: Compared = {}
    for row in json.loads(done.stdout):
        sides = [row["fabric_a"].rpartition("-"), row["fabric_b"].rpartition("-")]
        if [network for network, _, _ in sides] == ["fast-ethernet", "myrinet"] and sides[0][2] == sides[1][2]:
            found[row["layer"], row["metric"], sides[0][2]] = row
    return found


@pytest.fixture(scope="module")
def by_lab(slurm: Slurm) -> Compared:
    """What the lab's own launcher finds in the same lab, with both MPIs."""
    done = subprocess.run(
        asked("by-lab.toml", "by-lab"),
        cwd=slurm.folder,
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return compared(slurm.folder / "by-lab")


def check_that_they_agree(found: Compared, expected: Compared, *, mpis: set[str]) -> None:
    """The verdicts are the same, and so are the ratios as far as two sessions can tell."""
    assert found.keys() == {what for what in expected if what[2] in mpis}
    assert {mpi for _, _, mpi in found} == mpis
    for what, one in found.items():
        other = expected[what]
        assert one["verdict"] == other["verdict"] == "B faster", (what, one, other)
        assert one["ratio"] == pytest.approx(other["ratio"], rel=SESSIONS_DIFFER_BY), (what, one, other)


def check_that_it_is_whole(run: Path, launches: int) -> None:
    """Every launch is there, on the nodes, over its fabric, by srun."""
    stored = Run.open(run)
    assert len(stored.launches) == launches
    for launch in stored.launches:
        facts = launch.summary.facts
        assert facts.is_valid, facts.invalid_because
        assert facts.path_proof
        assert facts.conditions["starter"].startswith("srun ")
        assert facts.conditions["mpi"].startswith(LIBRARIES[launch.fabric.rpartition("-")[2]])
        assert launch.summary.header is not None
        assert {rank.host for rank in launch.summary.header.ranks} == {"n0", "n1"}
    assert stored.manifest.inventory.keys() == {"n0", "n1", "n2", "n3"}
    assert all("missing" not in facts for facts in stored.manifest.inventory.values())


LIBRARIES = {"mpich": "MPICH ", "openmpi": "Open MPI "}


def test_within_an_allocation_srun_starts_mpich_over_pmi2_and_open_mpi_over_pmix(slurm: Slurm, by_lab: Compared):
    command = asked("by-slurm.toml", "by-slurm")
    done = slurm.run("salloc", "--nodes=4", "--exclusive", *command, seconds=RUN_SECONDS)
    assert done.returncode == 0, done.stderr[-3000:]
    run = slurm.folder / "by-slurm"
    check_that_it_is_whole(run, 20)
    check_that_they_agree(compared(run), by_lab, mpis={"mpich", "openmpi"})
    started = [
        json.loads(line)["facts"]["command"]
        for line in (run / "journal.jsonl").read_text().splitlines()
        if '"started"' in line
    ]
    assert {next(word for word in command if word.startswith("--mpi=")) for command in started} == {
        "--mpi=pmi2",
        "--mpi=pmix",
    }


def job_of(run: Path) -> str:
    """The number of a run's last job; empty before it is known."""
    record = run / "submission.json"
    jobs = json.loads(record.read_text())["jobs"] if record.exists() else []
    return str(jobs[-1]["number"]) if jobs else ""


def launches_done(run: Path) -> int:
    return len(list(run.glob("launches/*/launch.json")))


def test_a_submitted_run_whose_job_is_cancelled_half_way_is_submitted_again_and_finds_the_same(
    slurm: Slurm, by_lab: Compared
):
    run = slurm.folder / "submitted"
    resume = [*PROGRAM, "resume", str(run)]
    with subprocess.Popen(
        slurm.tokens(*asked("mpich.toml", "submitted", "--submit")),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as waiting:
        assert becomes_true(lambda: launches_done(run) >= 1 or waiting.poll() is not None, 120)
        os.killpg(waiting.pid, signal.SIGINT)  # as a terminal's Ctrl-C
        _, said = waiting.communicate(timeout=60)
    assert waiting.returncode == 130, said
    first = job_of(run)
    assert f"`fabricbench resume {run}`" in said
    assert f"`scancel {first}` cancels the job" in said

    with subprocess.Popen(slurm.tokens(*resume), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as again:
        assert becomes_true(lambda: launches_done(run) >= 3 or again.poll() is not None, 120)
        assert slurm.run("scancel", first).returncode == 0
        _, said = again.communicate(timeout=RUN_SECONDS)
    assert again.returncode == 4, said
    assert re.search(rf"job {first} ended before the run did \(CANCELLED.*: \d of 10 launches are measured", said), said
    assert "[4/10]" in said or "[3/10]" in said

    events = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
    assert [one for one in events if one["event"] == "failed"] == []  # what the job took with it did not fail by itself

    kept = launches_done(run)
    told = slurm.run(*resume)
    assert told.returncode == 4
    assert "--submit` submits the rest on the same nodes" in told.stderr

    done = slurm.run(*resume, "--submit", seconds=RUN_SECONDS)
    assert done.returncode == 0, done.stderr[-3000:]
    assert job_of(run) != first
    assert launches_done(run) == 10 > kept
    assert "#SBATCH --nodelist=n[0-3]\n" in (run / "submit.sh").read_text()
    check_that_it_is_whole(run, 10)
    check_that_they_agree(compared(run), by_lab, mpis={"mpich"})

    over = slurm.run(*resume)
    assert over.returncode == 0, over.stderr
    assert "fast-ethernet-mpich or myrinet-mpich?" in over.stdout
