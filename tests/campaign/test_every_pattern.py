"""Every layer in every pattern that it can carry, and every MPI operation, on four nodes of a lab; arithmetic and faults too."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.run import start_run
from fabricbench.campaign.specification import Campaign, Congestor, Experiment
from fabricbench.campaign.venue import OwnLab
from fabricbench.lab import lab_support, parse_fabrics
from fabricbench.model import Layer, Metric, Pattern
from fabricbench.pattern_facts import USUAL_LAYERS, Family
from fabricbench.patterns import PATTERNS, why_impossible
from fabricbench.record.store import Run

pytestmark = [pytest.mark.lab, pytest.mark.mpi]

NODES = 4
UDP_RATE = 100e6 * 1472 / (1472 + 28 + 14 + 24)
"""Payload bits a second of full frames on fast-ethernet: 28 B IP and UDP, 14 B header, 24 B check, preamble and gap."""


def measure(directory: Path, experiments: tuple[Experiment, ...], fabrics: str = "fast-ethernet") -> Run:
    if lab_support().mode == "none":
        pytest.skip(f"no lab can be had here: {lab_support().reason}")
    campaign = Campaign(name="tiny", blocks=2, experiments=experiments)
    venue = OwnLab(nodes=NODES, fabrics=tuple(parse_fabrics(fabrics)))
    start_run(directory, campaign, venue, plan_run(campaign, venue.testbed(), seed=1), notify=lambda _event: None)
    return Run.open(directory)


def carried(pattern: Pattern) -> tuple[Layer, ...]:
    return tuple(layer for layer in USUAL_LAYERS if why_impossible(layer, pattern, {}) is None)


@pytest.mark.timeout(240)
def test_every_layer_carries_every_pattern_that_it_can(tmp_path: Path):
    experiments = tuple(
        Experiment(
            layers=carried(pattern),
            pattern=pattern,
            message_bytes=(1024,) if facts.has_size else (),
            maximum_seconds=0.05,
            minimum_samples=3,
            warmup_samples=1,
            verify_messages=2,
        )
        for pattern, facts in PATTERNS.items()
        if facts.family is not Family.WORKLOAD and carried(pattern)
    )
    run = measure(tmp_path / "run", experiments)
    cells = run.cells()
    failed = cells.filter(pl.col("status") != "done")
    # Four ranks on few processors: a short call may be over before the last rank has a processor to begin it on.
    late = pl.col("reason").str.contains("did all ranks begin within")
    assert failed.filter(~late).select("layer", "pattern", "reason").unique().rows() == []
    operations = [pattern for pattern, facts in PATTERNS.items() if facts.family is Family.OPERATION]
    assert failed.height <= len(operations) / 2  # of two launches: a quarter
    assert [launch.is_valid for launch in run.launches] == [True, True], [
        launch.summary.facts.invalid_because for launch in run.launches
    ]
    found = set(cells.select(pl.col("layer", "pattern").cast(pl.String)).rows())
    assert found == {(str(layer), str(each.pattern)) for each in experiments for layer in each.layers}
    assert cells.filter(pl.col("layer") != "memory")["verified"].min() > 0
    assert cells["corrupted"].sum() == 0
    assert cells["measured"].min() >= 1


@pytest.mark.alone
@pytest.mark.timeout(120)
def test_topologies_have_the_throughput_that_arithmetic_gives_a_full_duplex_switch(tmp_path: Path):
    """Over UDP, where no acknowledgement takes a share: docs/patterns.md has the derivation. Bounds are wide: machines are busy."""
    shares = {
        Pattern.RING: 1.0,
        Pattern.STAR: 1 / 3,
        Pattern.CHAOS: 1 / 3,
        Pattern.INCAST: 1 / 3,
        Pattern.OUTCAST: 1 / 3,
    }
    run = measure(
        tmp_path / "run",
        tuple(
            Experiment(
                layers=(Layer.UDP,),
                pattern=pattern,
                message_bytes=(1472,),
                maximum_seconds=0.4,
                minimum_samples=5,
                warmup_samples=3,
            )
            for pattern in shares
        ),
    )
    cells = run.cells().select("launch_id", "cell", "pattern", "channels", "sent", "lost")
    quantiles = run.launch_quantiles().join(
        cells.select("launch_id", "cell", "channels", "sent", "lost"), on=["launch_id", "cell"]
    )
    for row in quantiles.iter_rows(named=True):
        predicted = UDP_RATE * shares[Pattern(row["pattern"])]
        channel = row["mean"] / row["channels"]
        assert 0.75 * predicted < channel < 1.05 * predicted, row["pattern"]
    incast = quantiles.filter(pattern="incast")
    assert all(lost > 0.3 * sent for lost, sent in incast.select("lost", "sent").rows())  # three full links into one
    ring = quantiles.filter(pattern="ring")
    assert all(lost <= 0.05 * sent for lost, sent in ring.select("lost", "sent").rows())


@pytest.mark.timeout(120)
def test_an_incast_fills_the_link_and_its_queue_and_one_that_is_idle_disturbs_nobody(tmp_path: Path):
    victim = {"maximum_seconds": 0.3, "minimum_samples": 50, "warmup_samples": 5}
    run = measure(
        tmp_path / "run",
        (
            Experiment(
                layers=(Layer.TCP,),
                pattern=Pattern.INCAST,
                message_bytes=(16384,),
                parameters={"flows": (1, 4)},
                maximum_seconds=1.0,
                minimum_samples=5,
                warmup_samples=20,
            ),
            Experiment(
                layers=(Layer.UDP,),
                pattern=Pattern.PINGPONG,
                message_bytes=(64,),
                congestor=Congestor(pattern=Pattern.INCAST, message_bytes=(1024,), layer=Layer.TCP),
                **victim,
            ),
            Experiment(
                layers=(Layer.UDP,),
                pattern=Pattern.PINGPONG,
                message_bytes=(64,),
                congestor=Congestor(pattern=Pattern.INCAST, message_bytes=(1024,), layer=Layer.TCP, idle=True),
                **victim,
            ),
        ),
    )
    quantiles = run.launch_quantiles()
    for row in quantiles.filter(pattern="incast").iter_rows(named=True):
        assert row["metric"] == Metric.THROUGHPUT
        assert row["mean"] > 0.75 * 94e6  # 0.90 is what a quiet machine gives: benchmarks and docs/patterns.md
    trips = quantiles.filter(pattern="pingpong")
    isolated = trips.filter(~pl.col("variant").str.contains("beside"))["median"]
    congested = trips.filter(pl.col("variant").str.contains("beside incast"))["median"]
    idle = trips.filter(pl.col("variant").str.contains("beside idle incast"))["median"]
    assert len(isolated) == len(congested) == len(idle) == 2
    assert congested.min() > 3 * isolated.max()  # behind the queue of the victim's own link
    assert idle.min() < 2 * isolated.max()


@pytest.mark.timeout(120)
def test_each_direction_of_a_crooked_link_has_its_own_latency(tmp_path: Path):
    run = measure(
        tmp_path / "run",
        (
            Experiment(
                layers=(Layer.UDP,),
                pattern=Pattern.ONEWAY,
                message_bytes=(64,),
                maximum_seconds=0.3,
                minimum_samples=50,
            ),
        ),
        "fast-ethernet:n1.delay-up=200us,n1.delay-down=700us",
    )
    medians = (
        run.channels().group_by("source").agg(pl.col("time_ns").median()).sort("source").collect()["time_ns"].to_list()
    )
    assert medians[0] - medians[1] == pytest.approx(500e3, abs=100e3)
