"""What `explain --confirm` measures of each cause, and what it says where that cannot be varied or is not confirmed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.preparing import Prepared
from fabricbench.campaign.run_directory import RunDirectory, StoredPlan
from fabricbench.campaign.specification import Campaign, Experiment
from fabricbench.campaign.venue import Conditioned, OwnLab, Standing
from fabricbench.cli import confirming
from fabricbench.errors import EnvironmentLacks
from fabricbench.lab import parse_fabrics
from fabricbench.model import Layer, Pattern
from support.calling import Call, call_of
from support.stamps import Stamped
from support.synthetic_run import WAY, SyntheticCell, stamped_cells_run

CLEAN = Stamped(WAY, WAY, apart_ns=0)
GRID = replace(CLEAN, pauses_ns=(0.5e6, 1.5e6), grid_ns=125_000)
PAIRS = SyntheticCell(Layer.TCP, Pattern.BURST, 64, {}, samples=40, parameters={"messages": 2, "nodelay": "off"})
LONE = SyntheticCell(Layer.UDP, Pattern.PACED, 64, {}, samples=200, parameters={"intervals": "random"})
MANY = replace(PAIRS, samples=200)
NODELAY = replace(PAIRS, parameters={"messages": 2, "nodelay": "on"})

Measured = Callable[[Prepared, Path], None]


def run_with(path: Path, *stamped: tuple[SyntheticCell, Stamped]) -> Path:
    """Write a run of the fabric `net` whose plan says that it took place in a lab."""
    stamped_cells_run(path, *((cell, {"net": one}) for cell, one in stamped))
    campaign = Campaign(
        name="tiny",
        blocks=2,
        experiments=(Experiment(layers=(Layer.UDP,), pattern=Pattern.PINGPONG, message_bytes=(64,)),),
    )
    venue = OwnLab(nodes=2, fabrics=tuple(parse_fabrics("net=gigabit-ethernet")))
    plan = plan_run(campaign, venue.testbed(), seed=1)
    RunDirectory(path).write_plan(StoredPlan(campaign=campaign, plan=plan, venue=venue))
    return path


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    return call_of(capsys, monkeypatch)


def confirmed(call: Call, run: Path, folder: Path) -> list[dict[str, object]]:
    code, stdout, stderr = call("explain", run, "--confirm", folder, "--format", "json")
    assert code == 0, stderr
    return list(json.loads(stdout)["stage-confirmations"])


@pytest.mark.parametrize("share", [0.1, 0.9])
def test_a_delayed_acknowledgement_is_confirmed_by_the_same_messages_sent_at_once(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch, share: float
):
    """Of one that a tenth of the messages meet, the median of messages showed nothing: not confirmed."""
    held = replace(CLEAN, held=share)

    def measure(prepared: Prepared, directory: Path) -> None:
        (experiment,) = prepared.campaign.experiments
        assert experiment.parameters == {"messages": 2, "nodelay": ("off", "on")}
        assert isinstance(prepared.venue, OwnLab | Standing)
        stamped_cells_run(
            directory, (MANY, {"net": held}), (replace(MANY, parameters=NODELAY.parameters), {"net": CLEAN})
        )

    monkeypatch.setattr(confirming, "measure", measure)
    (one,) = confirmed(call, run_with(tmp_path / "run", (MANY, held)), tmp_path / "confirmed")
    assert (one["varied"], one["is_confirmed"]) == ("TCP_NODELAY", True)
    assert (tmp_path / "confirmed" / "delayed-acknowledgement").is_dir()


def test_a_cause_that_stays_where_it_is_taken_away_is_not_confirmed(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
):
    def measure(prepared: Prepared, directory: Path) -> None:
        assert isinstance(prepared.venue, Conditioned)
        assert prepared.venue.conditions[1].coalesce == {"adaptive-rx": False, "rx-usecs": 0}
        stamped_cells_run(directory, (LONE, {"net-as-it-was": GRID, "net-uncoalesced": GRID}))

    monkeypatch.setattr(confirming, "measure", measure)
    run = run_with(tmp_path / "run", (LONE, GRID))
    (one,) = confirmed(call, run, tmp_path / "confirmed")
    assert (one["varied"], one["is_confirmed"]) == ("interrupt coalescing", False)


def test_what_cannot_be_varied_is_said_with_the_reason(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise EnvironmentLacks("n[0-1]: found ge0 has no coalesce rx-usecs")

    monkeypatch.setattr(confirming, "measure", refuse)
    run = run_with(tmp_path / "run", (LONE, GRID))
    _, stdout, _ = call("explain", run, "--confirm", tmp_path / "confirmed")
    said = " ".join(stdout.split())
    assert "interrupt coalescing cannot be varied here: n[0-1]: found ge0 has no coalesce rx-usecs." in said


def test_waits_for_a_processor_are_not_confirmed_as_no_setting_takes_them_away(tmp_path: Path, call: Call):
    cell = SyntheticCell(Layer.UDP, Pattern.PINGPONG, 64, {}, samples=60)
    run = run_with(tmp_path / "run", (cell, replace(CLEAN, waits=0.3)))
    (one,) = confirmed(call, run, tmp_path / "confirmed")
    assert (one["varied"], one["is_confirmed"]) == (None, None)
