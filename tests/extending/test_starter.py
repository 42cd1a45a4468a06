"""One more starter, `examples/extending/starter.py`: real ranks are started with it and measure."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.run import start_run
from fabricbench.campaign.specification import Campaign, Experiment
from fabricbench.campaign.venue import Standing
from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.launch import mpi
from fabricbench.launch.starting import Job, Placement
from fabricbench.model import Layer, Pattern
from fabricbench.record.store import Run
from fabricbench.testbed.reading import local_testbed

EXAMPLE = Path(__file__).parents[2] / "examples/extending/starter.py"


@pytest.fixture
def gforker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The example, listed among the starters."""
    specification = importlib.util.spec_from_file_location("gforker", EXAMPLE)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    monkeypatch.setattr(mpi, "STARTERS", (*mpi.STARTERS, module))
    mpi.find_starter.cache_clear()
    yield module
    mpi.find_starter.cache_clear()


@pytest.mark.mpi
def test_a_starter_is_one_file_and_one_line_and_ranks_are_measured_with_it(tmp_path: Path, gforker: Any):
    try:
        mpi.find_starter("gforker")
    except EnvironmentLacks as error:
        pytest.skip(f"this MPI has no gforker: {error.message}")
    local = local_testbed()
    testbed = local.model_copy(update={"starter": "gforker", "fabrics": local.fabrics[:1]})
    experiment = Experiment(
        layers=(Layer.TCP, Layer.MPI),
        pattern=Pattern.PINGPONG,
        message_bytes=(1024,),
        maximum_seconds="50ms",
        minimum_samples=5,
        warmup_samples=2,
    )
    campaign = Campaign(name="tiny", blocks=2, experiments=(experiment,))
    start_run(
        tmp_path / "run", campaign, Standing(given=testbed), plan_run(campaign, testbed, seed=1), notify=lambda _: None
    )
    run = Run.open(tmp_path / "run")
    assert set(run.cells()["status"]) == {"done"}
    assert [launch.is_valid for launch in run.launches] == [True, True]
    assert run.manifest.versions["starter"].startswith(gforker.NAME)
    assert run.launches[0].summary.facts.conditions["starter"].startswith(gforker.NAME)


def test_a_starter_says_what_it_cannot_do(gforker: Any):
    with pytest.raises(UsageError, match="on this machine only"):
        gforker.tokens("mpiexec.gforker", Job(("probe",), Placement(2, ("n0", "n1"))))
