"""What is said of farms that did not do the same work on all fabrics, and what becomes of their jobs in the chapter."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.caution.numbers import unequal_work
from fabricbench.analysis.findings import Verdict
from fabricbench.analysis.findings.loads import FarmOnFabric
from fabricbench.analysis.gate import GateVerdict, check_regressions
from fabricbench.analysis.material import Material
from fabricbench.campaign.plan import LaunchPlan, plan_run
from fabricbench.campaign.specification import campaign_of
from fabricbench.chapters.workloads import workload_lines
from fabricbench.record.farm_jobs import JobEnd
from fabricbench.record.farm_lines import FarmAttempt, FarmFooter, FarmHeader, FarmRecord
from fabricbench.record.launch import LaunchFacts, write_launch
from fabricbench.record.launch_files import FARM_RECORDS
from fabricbench.record.lines import RankInfo
from fabricbench.record.manifest import Manifest, PlannedLaunch, write_manifest
from fabricbench.record.provenance import Origin, Proof
from fabricbench.record.store import Run
from fabricbench.record.workload_cells import LaunchOfWorkload, WorkloadPart, record_of
from fabricbench.report.losses import losses_of
from fabricbench.workload.adapter import Output, WorkloadResult
from fabricbench.workload.farm import FarmStart
from support.applications import lab_of
from support.synthetic_run import STARTED_NS

JOBS = 40
Farmed = Callable[[LaunchPlan], tuple[int, float]]
"""How many jobs a launch does, in how many seconds."""


def record(hosts: list[str], done: int, seconds: float) -> FarmRecord:
    ranks = tuple(RankInfo(rank=rank, host=host, pid=rank + 1, cpus=[0]) for rank, host in enumerate(hosts))
    header = FarmHeader(
        program="fabricbench-farm",
        program_version="1",
        name="speech",
        jobs=JOBS,
        at_once=1,
        retries=0,
        workers=tuple(range(1, len(hosts))),
        rank_count=len(hosts),
        ranks=ranks,
        mpi_library="M",
        started_unix_ns=STARTED_NS,
    )
    step = seconds / JOBS
    attempts = [
        FarmAttempt(
            job=job,
            attempt=0,
            node=hosts[1],
            rank=1,
            ended=JobEnd.DONE if job < done else JobEnd.EXIT_CODE,
            exit_code=int(job >= done),
            signal=None,
            reason="" if job < done else "exit 1",
            is_last=True,
            counts=True,
            given_s=job * step,
            staged_s=job * step,
            run_seconds=step,
            ended_s=(job + 1) * step,
            input_bytes=1000,
            input_digest=f"d{job}",
            output_bytes=0,
            output_digest="e",
        )
        for job in range(JOBS)
    ]
    footer = FarmFooter(
        finished_unix_ns=STARTED_NS + 1,
        seconds=seconds,
        attempts=JOBS,
        done=done,
        lost=JOBS - done,
        retried=0,
        staged_bytes=1000 * JOBS,
    )
    return FarmRecord(header=header, attempts=attempts, footer=footer)


def farm_run(path: Path, farmed: Farmed, blocks: int = 12) -> Run:
    bed = lab_of(3)
    campaign = campaign_of(
        {"campaign": {"blocks": blocks}, "farm": [{"name": "speech", "jobs": JOBS, "input": "1kB"}]}, "c.toml"
    )
    plan = plan_run(campaign, bed, seed=1)
    planned = tuple(
        PlannedLaunch(launch_id=one.launch_id, block=one.block, position=one.position, fabric=one.fabric)
        for one in plan.launches
    )
    path.mkdir(parents=True)
    write_manifest(
        path,
        Manifest(campaign_name="c", campaign=campaign.model_dump(mode="json"), testbed=bed, seed=1, planned=planned),
    )
    random = np.random.default_rng(1)
    for one in plan.launches:
        start = one.workload
        assert isinstance(start, FarmStart)
        directory = path / "launches" / one.launch_id
        directory.mkdir(parents=True)
        done, seconds = farmed(one)
        hosts = [node.name for node in bed.nodes]
        found = read(start, directory, record(hosts, done, seconds * float(np.exp(random.normal(0, 0.01)))))
        part = WorkloadPart(
            kind=start.kind,
            name=start.name,
            ranks=start.ranks,
            parameters=start.parameters,
            figures=found.figures,
            checks=found.checks,
            fixed=dict(found.fixed),
            definition=dict(start.definition),
        )
        told = record_of(found, LaunchOfWorkload(one.launch_id, one.fabric, plan.cells[one.cells[0]]))
        facts = LaunchFacts(
            block=one.block,
            position=one.position,
            origin=Origin.EMULATED,
            proof=Proof.PROVEN,
            is_valid=True,
            invalid_because=(),
            exit_code=0,
        )
        write_launch(directory, told, facts=facts, workload=part)
    return Run.open(path)


def read(start: FarmStart, directory: Path, told: FarmRecord) -> WorkloadResult:
    assert told.header is not None
    assert told.footer is not None
    lines = (one.model_dump_json(by_alias=True) for one in (told.header, *told.attempts, told.footer))
    (directory / FARM_RECORDS).write_text("".join(f"{one}\n" for one in lines))
    found = start.parse(Output(directory, directory / "stdout.log", directory / "stderr.log"))
    assert found is not None
    return found


def test_a_failed_job_in_480_is_no_end_of_the_comparison(tmp_path: Path):
    def farmed(one: LaunchPlan) -> tuple[int, float]:
        return (39 if (one.fabric, one.block) == ("myrinet", 3) else 40, 5.0 if one.fabric == "myrinet" else 10.0)

    findings = analyse([farm_run(tmp_path / "run", farmed)])
    assert findings.cells[0].verdict is Verdict.B_FASTER
    assert not [one for one in findings.warnings if "more differs than the network" in one.text]
    assert any("myrinet lost 1 of 480 jobs for good" in line for line in losses_of(findings))
    fabrics = [FarmOnFabric.model_validate(one) for one in findings.chapters["farms"]]
    assert fabrics[1].success.value == pytest.approx(479 / 480)
    assert fabrics[1].success.low is not None
    assert fabrics[1].success.low < 479 / 480


def test_a_farm_is_compared_by_its_time_for_as_many_jobs_done(tmp_path: Path):
    findings = analyse([farm_run(tmp_path / "run", lambda one: (37, 9.25) if one.fabric == "myrinet" else (40, 10.0))])
    assert findings.cells[0].ratio == pytest.approx(1.0, rel=0.02)


def test_a_farm_that_loses_its_jobs_quickly_wins_nothing(tmp_path: Path):
    findings = analyse([farm_run(tmp_path / "run", lambda one: (30, 3.0) if one.fabric == "myrinet" else (40, 10.0))])
    (time,) = findings.cells
    assert time.verdict is Verdict.NOT_ENOUGH_DATA
    assert time.more_blocks_needed is None
    words = "120 of 480 jobs on myrinet failed for good"
    assert words in map(str, time.notes)
    (row,) = findings.headline.effects
    assert row.pairs[0].verdict is Verdict.NOT_ENOUGH_DATA
    assert any(words in str(one) for one in (*row.doubts, *row.losses))
    assert not [one for one in findings.warnings if "inputs of the jobs" in one.text], "they were sent the same"


@pytest.mark.slow
def test_the_gate_passes_no_farm_that_loses_its_jobs(tmp_path: Path):
    whole = farm_run(tmp_path / "old", lambda _: (40, 10.0))
    quick = check_regressions([whole], [farm_run(tmp_path / "quicker", lambda _: (30, 7.0))], maximum=0.05)
    assert quick.verdict is GateVerdict.INCONCLUSIVE
    assert "120 of 480 jobs" in quick.cells[0].gave_nothing
    slow = check_regressions([whole], [farm_run(tmp_path / "slower", lambda _: (30, 20.0))], maximum=0.05)
    assert slow.verdict is GateVerdict.REGRESSED
    assert check_regressions([whole], [farm_run(tmp_path / "same", lambda _: (40, 10.0))], maximum=0.05).cells


def test_equal_failures_are_equal_work(tmp_path: Path):
    findings = analyse([farm_run(tmp_path / "run", lambda one: (39, 5.0 if one.fabric == "myrinet" else 10.0))])
    assert findings.cells[0].verdict is Verdict.B_FASTER


@pytest.mark.slow
def test_success_counts_the_jobs_of_launches_that_did_none(tmp_path: Path):
    run = farm_run(tmp_path / "run", lambda one: (0, 5.0) if (one.fabric, one.block) == ("myrinet", 3) else (40, 10.0))
    findings = analyse([run])
    rows = [FarmOnFabric.model_validate(one) for one in findings.chapters["farms"]]
    whole, holed = rows
    assert (whole.done, whole.jobs, whole.launches, whole.idle) == (480, 480, 12, 0)
    assert (holed.done, holed.jobs, holed.lost, holed.launches, holed.idle) == (440, 480, 40, 12, 1)
    assert whole.success.low == pytest.approx(0.9124, abs=1e-4), "of 40 jobs, whatever the launches"
    assert holed.success.low is not None
    assert holed.success.low < 0.65, "one launch in twelve: launches differ, jobs do not"
    assert "No job was done in 1 of 12 launches on myrinet." in workload_lines(findings)


def test_a_farm_that_never_did_a_job_is_told(tmp_path: Path):
    run = farm_run(tmp_path / "run", lambda one: (0, 5.0) if one.fabric == "myrinet" else (40, 10.0))
    rows = [FarmOnFabric.model_validate(one) for one in analyse([run]).chapters["farms"]]
    assert [(one.done, one.jobs, one.jobs_per_hour is None) for one in rows] == [(480, 480, False), (0, 480, True)]


@pytest.mark.parametrize("asked", [("openmpi", "mpich"), (None, None)])
def test_another_mpi_is_told_only_where_sides_ask_for_the_same(asked: tuple[str | None, str | None]):
    def side(name: str, mpi: str | None, library: str) -> SimpleNamespace:
        part = WorkloadPart(kind="farm", name="speech.3", ranks=3, fixed={"MPI": library})
        launch = SimpleNamespace(summary=SimpleNamespace(workload=part, header=None))
        fabric, run = SimpleNamespace(mpi=mpi), SimpleNamespace(manifest=None)
        return SimpleNamespace(
            name=name, fabric=fabric, launches=[launch], run=run, runs=(), facts_of_work={}, places_of_work={}
        )

    sides = [side("a", asked[0], "Open MPI"), side("b", asked[1], "MPICH")]
    told = list(unequal_work(cast("Material", SimpleNamespace(sides=sides))))
    assert bool(told) == (asked[0] == asked[1])
