"""fabricbench-training-step: verified, plain about what it cannot run, and as sensitive to a fabric as its load lets it be."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.run import start_run
from fabricbench.campaign.specification import campaign_of
from fabricbench.campaign.venue import OwnLab
from fabricbench.lab import lab_support, parse_fabrics
from fabricbench.record.kernel_lines import KernelRun, read_kernel_record
from fabricbench.record.store import Run
from support.kernel_runs import Done, run_kernel

pytestmark = pytest.mark.mpi


def start(ranks: int, *words: object) -> Done:
    return run_kernel("fabricbench-training-step", ranks, *words)


def stepped(folder: Path, ranks: int, *words: object) -> KernelRun:
    small = ("--hidden", 32, "--sequence", 16, "--layer-parameters", 5000, "--layer-ns", 100_000, "--steps", 1)
    done = start(ranks, *small, *words, "--output", folder / "record.jsonl")
    assert done.returncode == 0, (ranks, words, done.stdout, done.stderr)
    record = read_kernel_record(folder / "record.jsonl")
    assert record.is_verified
    (run,) = record.runs
    return run


def test_bytes_by_kind_are_those_of_the_papers(tmp_path: Path):
    """8 ranks as 2 x 2 x 2: written out here once more, from the grid and the dimensions."""
    words = ("--tp", 2, "--pp", 2, "--micro-batches", 3, "--experts", 2, "--expert-parameters", 600, "--scale", 5)
    run = stepped(tmp_path, 8, *words, "--embedding-parameters", 4000, "--head-parameters", 2000)
    element, batches, layers = 2, 3, 4
    activations = -(-16 * 32 // 5)
    tokens = -(
        -(16 * 32 * 2 // (2 * 2)) // 5
    )  # two experts a token; shared by two ranks of an expert group and of a tensor group
    gradients = (
        layers * 5000 // 2 // 5 + 4000 // 2 // 5 + 2000 // 2 // 5
    )  # of all stages, on one rank of a tensor group
    assert (
        run.values["gradient_bytes"] == 4 * gradients * element
    )  # each expert is on one of two replicas: nothing to sum
    assert run.values["tensor_bytes"] == 4 * layers * 4 * batches * activations * element
    assert run.values["pipeline_bytes"] == 4 * 1 * 2 * batches * activations * element
    assert run.values["expert_bytes"] == 4 * layers * 4 * batches * tokens * element
    assert run.facts["experts"] == "2 shared by 2 ranks"
    assert "1/5 of the model's" in run.facts["scaled"]
    assert "samples_per_second" not in run.values


def test_one_rank_computes_and_has_nothing_to_send(tmp_path: Path):
    run = stepped(tmp_path, 1)
    computing = run.values["computing_seconds"]
    assert computing is not None
    assert computing >= 4 * 3 * 100e-6
    assert run.values["gradient_bytes"] == 0
    assert "overlapped_of_communication" not in run.values


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--tp", 2, "--pp", 2), "--tp 2 x --pp 2 needs a multiple of 4 ranks, found 2"),
        (("--dp", 3), "--dp 3 x --tp 1 x --pp 1 needs 3 ranks, found 2"),
        (("--pp", 8), "--pp 8 needs a layer for each stage, found --layers 4"),
        (("--tp", 2, "--hidden", 0), "need the width of activations: give --hidden, or take data parallelism"),
        (("--element-bytes", 3), "--element-bytes needs 2, 4 or 8, found 3"),
        (("--experts", 1), "--experts-per-token 2 needs as many --experts, found 1"),
        (("--hidden", 100_000, "--sequence", 100_000), "take a smaller --micro-batch or --bucket-bytes, or a larger"),
    ],
)
def test_what_it_cannot_run_is_refused_once(words: tuple[object, ...], said: str):
    done = start(2, *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("fabricbench-training-step: ") == 1


@pytest.mark.lab
def test_what_a_faster_fabric_is_worth_depends_on_what_computing_hides(tmp_path: Path):
    """Ten times the rate: near that where nothing is computed, nothing where all is hidden behind computing.

    Both fabrics are slow enough for processors that others share, and of each cell the best launch counts: what disturbs
    only slows.
    """
    if lab_support().mode == "none":
        pytest.skip("no lab here")
    talking = {"kind": "training-step", "layer": "0s", "scale": 20, "steps": 2}
    computing = {**talking, "layer": "15s", "scale": 500, "bucket": "1MiB"}
    asked = campaign_of({"campaign": {"blocks": 2}, "workload": [talking, computing]}, "c.toml")
    venue = OwnLab(nodes=4, fabrics=tuple(parse_fabrics("slow=fast-ethernet:rate=10Mbit/s,fast=fast-ethernet")))
    start_run(tmp_path / "run", asked, venue, plan_run(asked, venue.testbed(), seed=1), notify=lambda _: None)
    run = Run.open(tmp_path / "run")
    assert {launch.proof for launch in run.launches} == {"proven"}
    steps: dict[tuple[str, bool], list[float]] = {}
    for launch in run.launches:
        part = launch.summary.workload
        assert part is not None
        assert all(check.holds for check in part.checks)
        rate = next(one.value for one in part.figures if one.unit == "step/s")
        steps.setdefault((launch.summary.fabric, "scale500" in launch.summary.launch_id), []).append(rate)
    assert {len(rates) for rates in steps.values()} == {2}
    ratio = {
        is_computing: max(steps["fast", is_computing]) / max(steps["slow", is_computing])
        for is_computing in (True, False)
    }
    assert ratio[True] == pytest.approx(1, abs=0.2), ratio
    assert ratio[False] == pytest.approx(10, rel=0.5), ratio
