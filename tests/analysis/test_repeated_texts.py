"""The same text in several imports is one measurement: told with both runs, and counted once."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.gate import GateVerdict, check_regressions
from fabricbench.errors import UsageError
from fabricbench.exchange.storing import import_run
from fabricbench.record.store import Run
from support.osu_texts import osu_text


def imported(folder: Path, name: str, *values: float) -> Run:
    """A run of a text for each value, which two runs have in common where it is the same."""
    paths = [folder / f"{name}-{value}.txt" for value in values]
    for path, value in zip(paths, values, strict=True):
        path.write_text(osu_text(values=(value, 2 * value)))
    import_run(folder / name, {"ib": paths})
    return Run.open(folder / name)


def test_a_text_that_an_earlier_run_has_as_well_counts_once_and_both_are_named(tmp_path: Path):
    before, after = imported(tmp_path, "one", 2.51, 2.53), imported(tmp_path, "two", 2.53, 2.57)
    findings = analyse(before=[before], after=[after])
    (left_out,) = (one for one in findings.warnings if one.severity == "invalid")
    assert left_out.text == (
        f"left out of everything here: its text two-2.53.txt in {after.path} is the same as in {before.path}: one measurement, "
        "which counts once"
    )
    assert (findings.launches, findings.launches_invalid) == (4, 1)
    assert findings.cells[0].value_b == pytest.approx(2 * 2570.0)


def test_a_run_without_a_text_of_its_own_is_refused(tmp_path: Path):
    before, after = imported(tmp_path, "one", 2.51, 2.53), imported(tmp_path, "two", 2.53)
    with pytest.raises(UsageError, match=r"two has no text of its own: its text .* is the same as in .*one"):
        analyse(before=[before], after=[after])


def test_a_gate_says_so_and_does_not_pass(tmp_path: Path):
    before, after = imported(tmp_path, "one", 2.51, 2.53), imported(tmp_path, "two", 2.53, 2.57)
    report = check_regressions([before], [after], maximum=0.05)
    assert report.verdict is not GateVerdict.PASSED
    assert any("is the same as in" in one for one in report.lost)
