"""The order of the layers, measured for real: each is built on the one below and cannot be faster."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from fabricbench.analysis import analyse
from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.run import start_run
from fabricbench.campaign.specification import Campaign, Experiment
from fabricbench.campaign.venue import OwnLab
from fabricbench.lab import lab_support, parse_fabrics
from fabricbench.model import Layer, Pattern
from fabricbench.record.store import Run

NETWORK = (Layer.FRAME, Layer.IP, Layer.UDP, Layer.TCP, Layer.MPI)
LADDER = Campaign(
    name="ladder",
    blocks=6,  # the fewest of which order statistics give an interval at 95 %
    experiments=(Experiment(layers=NETWORK, pattern=Pattern.PINGPONG, message_bytes=(64,), maximum_seconds="200ms"),),
)


@pytest.mark.lab
@pytest.mark.mpi
@pytest.mark.slow
def test_no_layer_answers_sooner_than_the_one_below_it_on_either_fabric(tmp_path: Path):
    if lab_support().mode == "none":
        pytest.skip(f"no lab can be had here: {lab_support().reason}")
    venue = OwnLab(nodes=2, fabrics=tuple(parse_fabrics("fast-ethernet,myrinet")))
    start_run(tmp_path / "run", LADDER, venue, plan_run(LADDER, venue.testbed(), seed=1), notify=lambda _: None)
    ladder = analyse([Run.open(tmp_path / "run")]).ladder
    for fabric in ("fast-ethernet", "myrinet"):
        steps = {step.layer: step.round_trip for step in ladder if step.fabric == fabric}
        assert tuple(steps) == NETWORK
        for below, above in pairwise(NETWORK):
            lower, upper = steps[below], steps[above]
            assert lower is not None
            assert upper is not None
            assert lower.low is not None
            assert upper.high is not None
            assert lower.low <= upper.high, f"{above} answers sooner than {below} on {fabric}: {upper} against {lower}"
        first, last = steps[Layer.FRAME], steps[Layer.MPI]
        assert first is not None
        assert last is not None
        assert first.value < last.value
