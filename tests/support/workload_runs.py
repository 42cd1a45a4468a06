"""Runs of workloads whose truth is known: computing, what bytes take on each wire, 1 % of noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fabricbench.analysis.findings import WorkloadName
from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.specification import campaign_of
from fabricbench.lab import parse_fabrics
from fabricbench.lab.topology import plan_lab
from fabricbench.record.kernel_lines import (
    KernelFooter,
    KernelHeader,
    KernelProfile,
    KernelRecord,
    KernelRun,
    MessageSizes,
)
from fabricbench.record.launch import KernelPart, LaunchFacts, write_launch
from fabricbench.record.lines import RankInfo
from fabricbench.record.manifest import Manifest, PlannedLaunch, write_manifest
from fabricbench.record.store import Run
from fabricbench.record.workload_cells import LaunchOfWorkload, WorkloadPart, record_of, result_of_kernel
from fabricbench.workload.hpcg import HpcgStart
from fabricbench.workload.hpl import HplStart
from fabricbench.workload.npb_adapter import KernelStart

BLOCKS = 8
WIRES = {"fast-ethernet": 94.1e6, "myrinet": 1.28e9 * 8948 / 9038}
"""Payload that each wire carries, as `Wire` has it."""


@dataclass(frozen=True)
class Truth:
    """Seconds of computing on all ranks together, payload of each rank, and the share of its network time that is hidden."""

    computing: float
    payload: float
    hidden: float = 0.0

    def seconds(self, fabric: str, ranks: int, payload_bit_s: Mapping[str, float] = WIRES) -> float:
        network = 0.0 if ranks == 1 else 8 * self.payload / payload_bit_s[fabric]
        return self.computing / ranks + (1 - self.hidden) * network


def workload(name: str, ranks: int, **own: str) -> WorkloadName:
    return WorkloadName(ranks=ranks, parameters=(("workload", name), *own.items()))


KERNELS = {"FT": Truth(0.4, 2e7), "EP": Truth(8.0, 100.0), "CG": Truth(4.0, 2e7, hidden=0.9)}
LINPACK = Truth(4.0, 5e6)
GRIDS = Truth(4.0, 1e6)


def record_of_kernel(
    name: str, ranks: int, truth: Truth, seconds: float, rate: float | None, cpus: int
) -> KernelRecord:
    spent = 0.0 if ranks == 1 else max(seconds - truth.computing / ranks, 0.0)
    payload = 0 if ranks == 1 else round(truth.payload)
    profile = KernelProfile(
        compute_seconds=(seconds - spent,) * ranks,
        mpi_seconds=(spent,) * ranks,
        bytes_sent=(payload,) * ranks,
        calls=(),
        message_sizes=(MessageSizes(from_bytes=1, to_bytes=1, number=10 * ranks),),
    )
    run = KernelRun(
        repetition=0,
        size="1",
        iterations=1,
        seconds=seconds,
        operation_unit="floating point",
        mops_total=rate,
        mops_per_process=None,
        verified=True,
        profile=profile,
        values={"gflops": (rate or 0) / 1e3, "flops_per_hz": 2.0, "residual": 1e-9},
    )
    header = KernelHeader(
        program=name,
        program_version="0",
        kernel=name.lower(),
        rank_count=ranks,
        ranks=tuple(RankInfo(rank=rank, host=f"n{rank}", pid=1, cpus=(rank % cpus,)) for rank in range(ranks)),
        started_unix_ns=1,
    )
    return KernelRecord(header=header, runs=[run], footer=KernelFooter(runs=1, verified=1))


def run_of_workloads(
    path: Path,
    *,
    cpus: int = 4,
    dropped: int = 0,
    program_of: Mapping[str, str] | None = None,
    problem_class: str = "W",
    fabrics: str = "fast-ethernet,myrinet",
) -> Run:
    """NPB, Linpack and HPCG on one, two and four ranks of fabrics; `program_of`: what Linpack's hash is on each."""
    testbed = plan_lab("four", 4, parse_fabrics(fabrics), list(range(fabrics.count(",") + 1))).testbed()
    asked = {
        "campaign": {"blocks": BLOCKS},
        "npb": [{"benchmarks": list(KERNELS), "class": problem_class, "ranks": [1, 4]}],
        "workload": [
            {"kind": "hpl", "n": 1000, "ranks": [1, 2, 4]},
            {"kind": "hpcg", "nx": 16, "ranks": [1, 4]},
        ],
    }
    plan = plan_run(campaign_of(asked, "all.toml"), testbed, seed=1)
    random = np.random.default_rng(5)
    planned = tuple(PlannedLaunch(**one.model_dump(include=set(PlannedLaunch.model_fields))) for one in plan.launches)
    path.mkdir()
    write_manifest(path, Manifest(campaign_name="all", testbed=testbed, seed=1, planned=planned))
    for launch in plan.launches:
        start = launch.workload
        assert start is not None
        of_launch = LaunchOfWorkload(launch.launch_id, launch.fabric, plan.cells[launch.cells[0]])
        noise, ranks = float(np.exp(random.normal(0.0, 0.01))), start.ranks
        directory = path / "launches" / launch.launch_id
        directory.mkdir(parents=True)
        port = {"interface": "p", "received_frames": 1000, "dropped_frames": 0}
        facts = LaunchFacts(
            block=launch.block,
            position=launch.position,
            switches_before={launch.fabric: {"ports": [port]}},
            switches_after={launch.fabric: {"ports": [{**port, "received_frames": 3000, "dropped_frames": dropped}]}},
        )
        if isinstance(start, HplStart | HpcgStart):
            truth = LINPACK if isinstance(start, HplStart) else GRIDS
            work = 1.0 if isinstance(start, HplStart) else ranks
            # A grid on each rank is computed in the time of one on one rank.
            seconds = Truth(truth.computing * work, truth.payload).seconds(launch.fabric, ranks) * noise
            whole = Truth(truth.computing * work, truth.payload)
            record = record_of_kernel(start.kind, ranks, whole, seconds, 1e3 * work / seconds, cpus)
            parsed = start._result(record)
            write_launch(
                directory,
                record_of(parsed, of_launch),
                facts=facts,
                kernel=KernelPart(header=record.header, runs=tuple(record.runs)),
                workload=WorkloadPart(
                    kind=start.kind,
                    name=start.name,
                    ranks=ranks,
                    parameters=start.parameters,
                    figures=parsed.figures,
                    fixed={"program sha256": program_of[launch.fabric]} if program_of and start.kind == "hpl" else {},
                ),
            )
            continue
        assert isinstance(start, KernelStart)
        truth = KERNELS[start.benchmark]
        record = record_of_kernel(start.benchmark, ranks, truth, truth.seconds(launch.fabric, ranks) * noise, 1e3, cpus)
        write_launch(
            directory,
            record_of(result_of_kernel(record), of_launch),
            facts=facts,
            kernel=KernelPart(header=record.header, runs=tuple(record.runs)),
        )
    return Run.open(path)
