"""What a run tells while it goes on, where stderr is no terminal."""

from __future__ import annotations

import io

from rich.console import Console

from fabricbench.campaign.events import GroupAgain, LaunchFailed, LaunchFinished, RunStarted
from fabricbench.campaign.order import groups_of, launch_of, order_blocks
from fabricbench.cli.progress import RunProgress


def test_a_group_that_is_run_again_is_told_and_its_finished_launches_no_longer_count():
    launches = list(order_blocks([launch_of("slow", (0,), 1.0), launch_of("fast", (0,), 1.0)], range(2), seed=1))
    ((group,), _) = groups_of(launches)
    written = io.StringIO()
    progress = RunProgress(Console(file=written, width=200))
    progress.show(RunStarted(4, 0, 2, 60.0))
    progress.show(LaunchFinished(group.launches[0], 1.0, 6, 0, ()))
    progress.show(LaunchFailed(group.launches[1], "ended with exit code 9", is_retried=True))
    progress.show(GroupAgain(group, 1, f"{group.launches[1].launch_id} failed"))
    progress.show(LaunchFinished(group.launches[0], 1.0, 6, 0, ()))
    first, second = (launch.launch_id for launch in group.launches)
    assert written.getvalue().splitlines()[1:] == [
        f"[1/4] {first} 1.0 s, 6 tests measured",
        f"{second} failed: ended with exit code 9; it is tried again when its block is over",
        f"{first}, {second} are measured again together: {second} failed; 1 that was finished kept aside",
        f"[1/4] {first} 1.0 s, 6 tests measured",
    ]
