"""What `run` says at its end: what failed, and that nothing is there where nothing was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.campaign.specification import Campaign, CampaignTable
from fabricbench.cli.run import show_verdict
from fabricbench.errors import RunIncomplete
from fabricbench.model import Layer, Pattern
from support.synthetic_run import SyntheticCell, write_synthetic_run


def pingpong(size: int = 64, fails_in: frozenset[int] = frozenset()) -> SyntheticCell:
    medians = {"slow": 100e3, "fast": 20e3}
    return SyntheticCell(Layer.TCP, Pattern.PINGPONG, size, medians, samples=20, fails_in=fails_in)


def test_a_run_in_which_nothing_was_measured_is_incomplete_and_says_why(tmp_path: Path):
    run = write_synthetic_run(tmp_path, cells=[pingpong(fails_in=frozenset({0, 1}))], blocks=2)
    with pytest.raises(
        RunIncomplete, match=r"all 4 launches of .* are over, and none has a test that counts"
    ) as caught:
        show_verdict(run.path)
    assert "slow: tcp pingpong 64 B, 2 launches: no answer" in caught.value.message
    assert f"fabricbench show {run.path} --summary" in str(caught.value.hint)


def test_a_run_whose_launches_are_all_invalid_says_what_they_broke(tmp_path: Path):
    every = [f"b0{block}-{fabric}" for block in (0, 1) for fabric in ("slow", "fast")]
    run = write_synthetic_run(tmp_path, cells=[pingpong()], blocks=2, invalid=every)
    with pytest.raises(RunIncomplete, match="none has a test that counts") as caught:
        show_verdict(run.path)
    assert "b00-fast: " in caught.value.message


def test_what_failed_beside_what_counts_is_named_at_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Campaign, "model_validate", lambda _: CampaignTable(name="synthetic"))
    run = write_synthetic_run(
        tmp_path, cells=[pingpong(), *(pingpong(size, fails_in=frozenset(range(4))) for size in (1024, 2048))], blocks=4
    )
    show_verdict(run.path)
    told = capsys.readouterr()
    assert "4 tests could not be measured, or came out wrong, in one launch or more:" in told.err
    assert "slow: tcp pingpong 1 KiB, 4 launches: no answer" in told.err
    assert "could not be measured" not in told.out.splitlines()[0]
