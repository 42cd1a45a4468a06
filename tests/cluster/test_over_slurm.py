"""A Slurm of four virtual nodes: runs within an allocation and submitted ones find what the lab's own launcher finds there."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from scipy.stats import t as students_t

from cluster.slurm_nodes import Slurm, slurm_over, why_none
from fabricbench.lab import Lab, lab_support, parse_fabrics
from fabricbench.launch.starting import yield_library
from fabricbench.record.store import Run
from support.lab_outside import becomes_true

pytestmark = [pytest.mark.cluster, pytest.mark.lab, pytest.mark.mpi, pytest.mark.timeout(300)]

PROGRAM = [sys.executable, "-c", "from fabricbench.cli import main; main()"]
FABRICS = "fast-ethernet,myrinet"
RUN_SECONDS = 200

CAMPAIGN = """\
[campaign]
blocks = 4

[[experiment]]
layers = ["tcp", "mpi"]
pattern = "pingpong"
message_bytes = ["64KiB"]
maximum_seconds = "150ms"
"""
"""What the wire alone decides, so that a busy machine does not."""

TESTBED = """\
[testbed]
name = "lab-by-slurm"
launcher = "slurm"

[slurm]
nodes = 4
"""

FABRIC = """
[[fabric]]
name = "{name}"
interface = "{interface}"
mtu = {mtu}
line_rate = {rate}
is_emulated = true
mpi_environment = {{ LD_PRELOAD = "{preload}" }}
"""
"""The nodes share processors, which no Slurm knows: as the lab's launcher does, ranks that wait are let sleep."""


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
                (found.folder / "campaign.toml").write_text(CAMPAIGN)
                (found.folder / "testbed.toml").write_text(TESTBED + "".join(map(fabric, lab.testbed().fabrics)))
                yield found
        finally:
            lab.down()


def fabric(of_lab: object) -> str:
    from fabricbench.testbed.model import Fabric

    assert isinstance(of_lab, Fabric)
    assert of_lab.wire is not None
    return FABRIC.format(
        name=of_lab.name,
        interface=of_lab.interface,
        mtu=of_lab.mtu,
        rate=int(of_lab.wire.line_rate_bit_s),
        preload=yield_library(),
    )


def asked(run: str, *options: str) -> list[str]:
    """The command of a run on the Slurm."""
    files = ("campaign.toml", "--testbed", "testbed.toml", "-o", run)
    return [*PROGRAM, "run", *files, *options]


def compared(run: Path) -> dict[tuple[str, str], dict[str, float | str]]:
    done = subprocess.run(
        [*PROGRAM, "compare", str(run), "--format", "json"], capture_output=True, text=True, timeout=60, check=True
    )
    return {(row["layer"], row["metric"]): row for row in json.loads(done.stdout)}


@pytest.fixture(scope="module")
def by_lab(slurm: Slurm) -> dict[tuple[str, str], dict[str, float | str]]:
    """What the lab's own launcher finds in the same lab."""
    where = ["--testbed", f"lab:{slurm.lab.name}", "-o", str(slurm.folder / "by-lab")]
    done = subprocess.run(
        [*PROGRAM, "run", str(slurm.folder / "campaign.toml"), *where],
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return compared(slurm.folder / "by-lab")


LEVEL = 1e-4
"""Of the interval in which the other's ratio must lie: at 5 % every sixth would lie outside by chance alone, for both scatter."""


def check_that_they_agree(
    found: dict[tuple[str, str], dict[str, float | str]], expected: dict[tuple[str, str], dict[str, float | str]]
) -> None:
    assert found.keys() == expected.keys()
    for what, one in found.items():
        other = expected[what]
        assert one["verdict"] == other["verdict"] == "B faster", (what, one, other)
        for here, there in ((one, other), (other, one)):
            freedom = float(here["freedom"])
            wider = students_t.ppf(1 - LEVEL / 2, freedom) / students_t.ppf(0.975, freedom)
            low, high = (
                float(here["ratio"]) * (float(here[end]) / float(here["ratio"])) ** wider
                for end in ("ratio_low", "ratio_high")
            )
            assert low <= float(there["ratio"]) <= high, (what, here, there)


def check_that_it_is_whole(run: Path) -> None:
    """Every launch is there, on the nodes, over its fabric, by srun."""
    stored = Run.open(run)
    assert len(stored.launches) == 8
    for launch in stored.launches:
        facts = launch.summary.facts
        assert facts.is_valid, facts.invalid_because
        assert facts.path_proof
        assert facts.conditions["starter"].startswith("srun ")
        assert launch.summary.header is not None
        assert {rank.host for rank in launch.summary.header.ranks} == {"n0", "n1"}
    assert stored.manifest.inventory.keys() == {"n0", "n1", "n2", "n3"}
    assert all("missing" not in facts for facts in stored.manifest.inventory.values())


def test_within_an_allocation_mpich_is_started_by_srun_over_pmi2(
    slurm: Slurm, by_lab: dict[tuple[str, str], dict[str, float | str]]
):
    done = slurm.run("salloc", "--nodes=4", "--exclusive", *asked("mpich"), seconds=RUN_SECONDS)
    assert done.returncode == 0, done.stderr[-3000:]
    check_that_it_is_whole(slurm.folder / "mpich")
    check_that_they_agree(compared(slurm.folder / "mpich"), by_lab)


def job_of(run: Path) -> str:
    """The number of a run's last job; empty before it is known."""
    record = run / "submission.json"
    jobs = json.loads(record.read_text())["jobs"] if record.exists() else []
    return str(jobs[-1]["number"]) if jobs else ""


def launches_done(run: Path) -> int:
    return len(list(run.glob("launches/*/launch.json")))


def test_a_submitted_run_whose_job_is_cancelled_half_way_is_submitted_again_and_finds_the_same(
    slurm: Slurm, by_lab: dict[tuple[str, str], dict[str, float | str]]
):
    run = slurm.folder / "submitted"
    resume = [*PROGRAM, "resume", str(run)]
    with subprocess.Popen(
        slurm.tokens(*asked("submitted", "--submit")),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as waiting:
        assert becomes_true(lambda: launches_done(run) >= 1 or waiting.poll() is not None, 60)
        os.killpg(waiting.pid, signal.SIGINT)  # as a terminal's Ctrl-C
        _, said = waiting.communicate(timeout=30)
    assert waiting.returncode == 130, said
    first = job_of(run)
    assert f"`fabricbench resume {run}`" in said
    assert f"`scancel {first}` cancels the job" in said

    with subprocess.Popen(slurm.tokens(*resume), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as again:
        assert becomes_true(lambda: launches_done(run) >= 3, 60)
        assert slurm.run("scancel", first).returncode == 0
        _, said = again.communicate(timeout=60)
    assert again.returncode == 4, said
    assert re.search(rf"job {first} ended before the run did \(CANCELLED.*: \d of 8 launches are measured", said), said
    assert "[4/8]" in said or "[3/8]" in said

    kept = launches_done(run)
    told = slurm.run(*resume)
    assert told.returncode == 4
    assert "--submit` submits the rest on the same nodes" in told.stderr

    done = slurm.run(*resume, "--submit", seconds=RUN_SECONDS)
    assert done.returncode == 0, done.stderr[-3000:]
    assert job_of(run) != first
    assert f"{kept} of them done already" in done.stderr or kept < 8
    assert "#SBATCH --nodelist=n[0-3]\n" in (run / "submit.sh").read_text()
    check_that_it_is_whole(run)
    check_that_they_agree(compared(run), by_lab)

    over = slurm.run(*resume)
    assert over.returncode == 0, over.stderr
    assert "fast-ethernet or myrinet?" in over.stdout
