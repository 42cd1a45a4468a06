from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabricbench.campaign.events import Event, NodesAsked, Notice, RunStarted, Tick
from fabricbench.cli.progress import ENDING, interruptible
from fabricbench.errors import Interrupted, RunIncomplete
from fabricbench.record.integrity import PLAN

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture(autouse=True)
def handlers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS, ids=["Ctrl-C", "SIGTERM"])
def test_a_signal_ends_the_run_at_an_event_that_leaves_nothing_half_done(number: signal.Signals, tmp_path: Path):
    (tmp_path / PLAN).touch()
    told: list[Event] = []
    events = [RunStarted(2, 0, 1, 9.0), Notice("stored"), Tick(1.0)]

    def run() -> None:
        with interruptible(tmp_path, told.append) as notify:
            notify(events[0])
            os.kill(os.getpid(), number)
            notify(events[1])
            notify(events[2])

    with pytest.raises(Interrupted, match="interrupted") as raised:
        run()
    assert told == events[:2]
    assert raised.value.hint == f"go on with `fabricbench resume {tmp_path}`"


@pytest.mark.parametrize("is_in_launch", [False, True])
def test_a_job_that_ends_leaves_a_run_that_is_incomplete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_in_launch: bool
):
    (tmp_path / PLAN).touch()
    monkeypatch.setenv("SLURM_JOB_ID", "4711")

    def run() -> None:
        with interruptible(tmp_path, lambda _event: None) as notify:
            os.kill(os.getpid(), signal.SIGTERM)
            try:
                notify(Tick(1.0))
            except KeyboardInterrupt:
                if not is_in_launch:
                    raise
                raise Interrupted("interrupted during b00-net") from None  # as the execution does

    with pytest.raises(RunIncomplete, match=r"job 4711 is about to end.*\(SIGTERM\)") as raised:
        run()
    assert f"`fabricbench resume {tmp_path} --submit`" in str(raised.value.hint)


def test_a_signal_during_the_preflight_leaves_nothing_to_go_on_with(tmp_path: Path):
    def run() -> None:
        with interruptible(tmp_path, lambda _event: None) as notify:
            os.kill(os.getpid(), signal.SIGINT)
            notify(NodesAsked(0, 2))

    with pytest.raises(Interrupted, match="before anything was written") as raised:
        run()
    assert raised.value.hint == "give the same command to begin again"


def test_what_a_signal_does_to_the_launch_that_runs_is_said():
    assert b"ending the launch that runs (`fabricbench resume` measures it again)" in ENDING


def test_a_second_signal_ends_it_wherever_it_is_and_the_first_says_so(capfd: pytest.CaptureFixture[str]):
    passed: list[str] = []

    def run() -> None:
        with interruptible(Path("run"), lambda _event: None):
            for which in ("first", "second"):
                os.kill(os.getpid(), signal.SIGTERM)
                passed.append(which)

    with pytest.raises(Interrupted):
        run()
    assert passed == ["first"]
    assert "again (Ctrl-C) ends at once" in capfd.readouterr().err


def test_handlers_are_as_before_afterwards_and_an_ignored_signal_stays_ignored():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    before = signal.getsignal(signal.SIGTERM)
    with interruptible(Path("run"), lambda _event: None) as notify:
        os.kill(os.getpid(), signal.SIGINT)
        notify(Tick(1.0))
    assert [signal.getsignal(number) for number in SIGNALS] == [signal.SIG_IGN, before]
