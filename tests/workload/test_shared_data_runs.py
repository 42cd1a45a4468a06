"""fabricbench-shared-data: every byte compared, caches told, plain about what it cannot do, as fast as the wire lets it be."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.findings.loads import LoadRatio
from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.run import start_run
from fabricbench.campaign.specification import campaign_of
from fabricbench.campaign.venue import OwnLab
from fabricbench.chapters.chapter import rows_of
from fabricbench.lab import lab_support, parse_fabrics
from fabricbench.record.kernel_lines import KernelRun, read_kernel_record
from fabricbench.record.launch_files import KERNEL_RECORDS
from fabricbench.record.provenance import Proof
from fabricbench.record.store import Run
from fabricbench.record.workload_cells import LEADER_BYTES
from fabricbench.workload.adapter import Output, WorkloadResult
from fabricbench.workload.shared_data import OF_CACHE, SharedDataStart
from support.kernel_runs import TIME_LIMIT_S, Done, kernel_command, run_kernel, waiting_asleep

pytestmark = pytest.mark.mpi

PROGRAM = "fabricbench-shared-data"
LOOPBACK = ("--interface", "lo")


def start(ranks: int, *words: object) -> Done:
    return run_kernel(PROGRAM, ranks, *words)


def moved(folder: Path, ranks: int, *words: object) -> KernelRun:
    done = start(ranks, *words, "--output", folder / KERNEL_RECORDS)
    assert done.returncode == 0, (ranks, words, done.stdout, done.stderr)
    record = read_kernel_record(folder / KERNEL_RECORDS)
    assert record.is_complete
    assert record.is_verified
    (run,) = record.runs
    return run


def parsed(folder: Path, one: SharedDataStart) -> WorkloadResult:
    found = one.parse(Output(folder, folder / "stdout.log", folder / "stderr.log"))
    assert found is not None
    return found


@pytest.mark.parametrize("mode", ["read", "write", "both"])
def test_what_the_first_rank_serves_is_read_and_written(mode: str, tmp_path: Path):
    block, blocks, clients = 300_001, 4, 2
    run = moved(tmp_path, 3, *LOOPBACK, "--block", block, "--blocks", blocks, "--mode", mode)
    passes = 2 if mode == "both" else 1
    assert run.operations == clients * block * blocks * passes == run.values["leader_bytes"]
    assert run.mops_total == pytest.approx(run.operations / run.seconds / 1e6)
    assert {"read_mb_s", "write_mb_s"} & run.values.keys() == (
        {"read_mb_s", "write_mb_s"} if mode == "both" else {f"{mode}_mb_s"}
    )
    slowest, median = run.values["slowest_client_seconds"], run.values["median_client_seconds"]
    assert slowest is not None
    assert median is not None
    assert 0 < median <= slowest <= run.seconds
    rates = [run.values[f"rank_{rank}_mb_s"] for rank in (1, 2)]
    assert min(rate for rate in rates if rate is not None) == run.values["slowest_client_mb_s"]
    assert run.facts == {"data": "in rank 0's memory"}


def test_its_cell_is_judged_by_all_clients_together_and_has_no_share_of_mpi(tmp_path: Path):
    run = moved(tmp_path, 2, *LOOPBACK, "--block", 100_000, "--mode", "both")
    found = parsed(tmp_path, SharedDataStart(block=100_000, mode="both", ranks=2))
    assert [one.name for one in found.figures] == [
        "shared data",
        "reading",
        "writing",
        "time of the slowest client",
        "time of the median client",
        "the slowest client",
    ]
    assert found.rate == pytest.approx(200_000 / run.seconds / 1e6)
    assert found.values[LEADER_BYTES] == 200_000
    assert found.communication_share is None
    assert "communication_share" not in found.values


@pytest.mark.parametrize("block", [64 * 1024, 50_001])
def test_files_are_read_and_written_and_the_cache_is_told(block: int, tmp_path: Path):
    shared = tmp_path / "shared"
    shared.mkdir()
    words = ("--path", shared, "--file-system", "any", "--block", block, "--blocks", 3, "--mode", "both")
    run = moved(tmp_path, 3, *words)
    assert run.operations == 3 * 3 * block * 2
    assert run.values["leader_bytes"] == 3 * block * 2
    assert list(shared.iterdir()) == []
    one = SharedDataStart(block=block, blocks=3, mode="both", ranks=3, path=str(shared), file_system="any")
    found = parsed(tmp_path, one)
    assert found.fixed["cache"] == run.facts["cache"] in OF_CACHE
    assert found.figures[1].name == f"reading, {OF_CACHE[run.facts['cache']]}"
    assert LEADER_BYTES not in found.values  # all ranks are on one machine: nothing proves a path


def test_of_files_that_stay_in_memory_the_cache_is_told_to_be_kept(tmp_path: Path):
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("no /dev/shm")
    run = moved(tmp_path, 2, "--path", "/dev/shm", "--file-system", "any", "--block", 8192)
    assert run.facts["cache"] == "kept"


def spoilt(folder: Path, whole: int) -> Iterator[Path]:
    """Yield the files of a run that are whole, their last word overwritten."""
    for path in folder.glob("shared-data-*/read-*"):
        with suppress(OSError):
            if path.stat().st_size == whole:
                with path.open("r+b") as file:
                    file.seek(whole - 8)
                    file.write(bytes(8))
                yield path


def test_a_byte_that_was_changed_meanwhile_fails_the_cell(tmp_path: Path):
    shared = tmp_path / "shared"
    shared.mkdir()
    block, blocks = 2**20, 48
    words = ("--path", shared, "--file-system", "any", "--block", block, "--blocks", blocks, "--output", KERNEL_RECORDS)
    running = subprocess.Popen(
        kernel_command(PROGRAM, 2, *words),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=tmp_path,
        env=waiting_asleep(),
    )
    deadline, files = time.monotonic() + TIME_LIMIT_S, set[Path]()
    while running.poll() is None and time.monotonic() < deadline:
        files.update(spoilt(shared, block * blocks))
        time.sleep(1e-3)
    running.kill()
    said, _ = running.communicate()
    assert files, said
    assert running.returncode == 1, said
    one = SharedDataStart(block=block, blocks=blocks, ranks=2, path=str(shared), file_system="any")
    failed = parsed(tmp_path, one).failed
    assert failed is not None
    assert failed.is_wrong
    assert f"wrong blocks is {len(files)}.0, expected 0.0" in failed.reason


@pytest.mark.parametrize(
    ("ranks", "words", "code", "said"),
    [
        (2, (), 2, "--interface or --subnet must say which fabric is read over"),
        (1, LOOPBACK, 2, "1 rank has nobody to serve; take 2 or more"),
        (2, (*LOOPBACK, "--block", 0), 2, '--block needs a number from 1 to 1099511627776, found "0"'),
        (2, (*LOOPBACK, "--mode", "append"), 2, '--mode needs one of read, write, both, found "append"'),
        (2, ("--path", "here"), 2, '--path needs a whole path, found "here"'),
        (2, ("--interface", "no-such0"), 3, "this host has no interface in the fabric"),
        (2, ("--path", "/nowhere/at/all"), 3, "statfs(/nowhere/at/all) failed (No such file or directory)"),
        (2, ("--path", "/proc"), 3, "what is read there crosses no fabric; name a folder of a network or cluster"),
    ],
)
def test_what_it_cannot_do_is_refused_once(ranks: int, words: tuple[object, ...], code: int, said: str):
    done = start(ranks, *words)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert done.stderr.count("fabricbench-shared-data: ") == 1


def run_on_two_fabrics(folder: Path, table: dict[str, object]) -> Run:
    if lab_support().mode == "none":
        pytest.skip("no lab here")
    asked = campaign_of({"campaign": {"blocks": 2}, "shared-data": [table]}, "c.toml")
    venue = OwnLab(nodes=3, fabrics=tuple(parse_fabrics("slow=fast-ethernet:rate=10Mbit/s,fast=fast-ethernet")))
    start_run(folder, asked, venue, plan_run(asked, venue.testbed(), seed=1), notify=lambda _: None)
    return Run.open(folder)


@pytest.mark.lab
def test_ten_times_the_rate_is_ten_times_the_data(tmp_path: Path):
    """Of each fabric the best launch counts: what disturbs only slows."""
    run = run_on_two_fabrics(tmp_path / "run", {"block": "500kB", "blocks": 2, "mode": "both"})
    assert {launch.proof for launch in run.launches} == {Proof.PROVEN}
    rates: dict[tuple[str, str], list[float]] = {}
    for launch in run.launches:
        part = launch.summary.workload
        assert part is not None
        for figure in part.figures:
            rates.setdefault((figure.name, launch.summary.fabric), []).append(figure.value)
    for name in ("reading", "writing", "shared data"):
        slow, fast = max(rates[name, "slow"]), max(rates[name, "fast"])
        assert fast / slow == pytest.approx(10, rel=0.2), (name, rates)
        assert slow == pytest.approx(10 / 8, rel=0.2), (name, rates)
    (ratio,) = rows_of(analyse([run]), "workload-ratios", LoadRatio)
    assert ratio.expectation is not None
    assert ratio.expectation.payload_bytes == 2 * 2 * 2 * 500e3  # of two clients, there and back
    assert ratio.expectation.ratio.value == pytest.approx(10, rel=0.2)


@pytest.mark.lab
def test_files_of_one_machine_are_refuted_by_the_counters_whoever_takes_any(tmp_path: Path):
    (tmp_path / "shared").mkdir()
    table = {"block": "1MiB", "path": str(tmp_path / "shared"), "file_system": "any"}
    run = run_on_two_fabrics(tmp_path / "run", table)
    assert {launch.proof for launch in run.launches} == {Proof.REFUTED}
