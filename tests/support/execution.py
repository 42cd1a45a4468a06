"""A run of three blocks on two fabrics under a fake launcher, for the tests of `campaign.execute`."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from fabricbench.campaign.events import Event
from fabricbench.campaign.execute import Execution
from fabricbench.campaign.plan import RunPlan, plan_run
from fabricbench.campaign.run_directory import RunDirectory
from fabricbench.campaign.specification import Campaign, Experiment
from fabricbench.record.integrity import MANIFEST
from fabricbench.record.journal import Journal, JournalEvent
from fabricbench.record.manifest import Manifest, manifest_text
from fabricbench.testbed.model import Testbed
from support.fake_launcher import FAKE_PROBE, FakeLauncher

EXPERIMENT = Experiment(layers=("memory", "frame", "tcp"), pattern="pingpong", message_bytes=(64, 1024))
CAMPAIGN = Campaign(name="tiny", blocks=3, experiments=(EXPERIMENT,))


class Setting:
    """A run directory with a plan of 3 blocks on 2 fabrics and a fake launcher."""

    def __init__(self, tmp_path: Path, testbed: Testbed) -> None:
        self.testbed = testbed
        self.directory = RunDirectory(tmp_path / "run")
        self.directory.create()
        self.plan: RunPlan = plan_run(CAMPAIGN, testbed, seed=5)
        self.launcher = FakeLauncher(tmp_path / "behaviour")
        self.events: list[Event] = []
        self.ids = [launch.launch_id for launch in self.plan.launches]

    def run(self, limit_seconds: float = 30.0, later_seconds: float = 0.0) -> None:
        """Run what is left; `later_seconds` sets the clock forward."""
        Execution(
            self.directory,
            self.plan,
            self.launcher,
            self.events.append,
            limit=lambda _estimate: limit_seconds,
            now=lambda: time.time() + later_seconds,
        ).run()

    def write_manifest(self) -> None:
        manifest = Manifest(campaign_name="tiny", testbed=self.testbed, seed=5, planned=self.plan.launches)
        Journal(self.directory.path).write(MANIFEST, manifest_text(manifest))

    def of(self, kind: type) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]

    def entries(self, event: JournalEvent) -> list[str | None]:
        return [entry.launch_id for entry in Journal(self.directory.path).entries() if entry.event is event]


def make_record(setting: Setting, launch_id: str) -> Path:
    """Let the fake measurer write a launch's record again, as it was before it was converted."""
    directory = setting.directory.launch(launch_id)
    launch = next(one for one in setting.plan.launches if one.launch_id == launch_id)
    tokens = [sys.executable, str(FAKE_PROBE), str(directory / "plan.json"), "none", str(setting.plan.ranks_of(launch))]
    subprocess.run(tokens, check=True)
    return directory / "records.jsonl"
