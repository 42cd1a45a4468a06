"""What is said of applications that were measured before: another test, another result, another build."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.analysis.test_applications import application_run

from fabricbench.analysis import analyse
from fabricbench.analysis.gate import GateVerdict, check_regressions
from fabricbench.analysis.trend import find_trend
from fabricbench.cli.check_text import conclude
from fabricbench.cli.check_text import render as checked
from fabricbench.cli.output import OutputFormat as Form
from fabricbench.errors import Inconclusive
from fabricbench.record.past_runs import past_runs

pytestmark = pytest.mark.slow


THREADS = {"environment": {"OMP_NUM_THREADS": "8", "NET": "{interface}"}}


def test_another_variable_input_or_command_of_the_same_application_is_told_as_what_changed(tmp_path: Path):
    before = application_run(tmp_path / "a", files={"in": "1"}, environment={"OMP_NUM_THREADS": "1"})
    after = application_run(tmp_path / "b", files={"in": "2"}, command=["/opt/lu", "-x", "{n}"], **THREADS)
    found = analyse(before=[before], after=[after])
    assert found.headline.changes is not None
    told = {text.split(" became")[0] for text in found.headline.changes.configuration}
    assert {"lu: variable OMP_NUM_THREADS '1'", "lu: variable NET not set", "lu: command lu '{n}'"} <= told
    assert sum(text.startswith("lu: input file in sha256 ") for text in found.headline.changes.configuration) == 1
    assert len(found.cells) == 2


def test_a_gate_passes_no_application_that_is_another_test_than_in_the_baseline(tmp_path: Path):
    old = application_run(tmp_path / "a", environment={"OMP_NUM_THREADS": "1"})
    new = application_run(tmp_path / "b", **THREADS)
    report = check_regressions([old], [new], maximum=0.05)
    assert (report.verdict, report.cells) == (GateVerdict.INCONCLUSIVE, ())
    assert len(report.redefined) == 2
    assert "fast-ethernet: mpi workload lu 4 ranks,n=800" in report.redefined[0]
    assert "not the same variable" in report.redefined[0]
    assert "lu: variable OMP_NUM_THREADS '1' became '8'" in checked(report, Form.TEXT)
    with pytest.raises(Inconclusive, match="2 tests cannot be compared"):
        conclude(report)


def test_a_gate_tells_of_another_result_or_build_and_judges_as_before(tmp_path: Path):
    old = application_run(tmp_path / "a", **THREADS)
    new = application_run(tmp_path / "b", energies=("2", "2"), **THREADS)
    report = check_regressions([old], [new], maximum=0.05)
    assert report.verdict is GateVerdict.PASSED
    assert (report.redefined, report.changed) == ((), ("lu: energy 1 became 2",))


def test_a_gate_passes_no_application_of_which_a_file_that_the_command_names_is_another(tmp_path: Path):
    old = application_run(tmp_path / "a", fixed={"file in.dat sha256": "11", "file gone sha256": "3"})
    new = application_run(tmp_path / "b", fixed={"file in.dat sha256": "22", "program sha256": "4"}, of_it=2.0)
    report = check_regressions([old], [new], maximum=0.05)
    assert (report.verdict, report.cells) == (GateVerdict.INCONCLUSIVE, ())
    assert {what.partition(": not ")[2] for what in report.redefined} == {"the same file in.dat sha256"}
    assert "lu: file in.dat sha256 11 became 22" in report.changed
    same = application_run(tmp_path / "c", fixed={"file in.dat sha256": "11"}, seed=4)
    assert check_regressions([old], [same], maximum=0.05).verdict is GateVerdict.PASSED


def test_another_time_is_another_cell_and_the_same_one_of_an_earlier_version_is_not(tmp_path: Path):
    solve = {"name": "solve", "regex": "(x)", "unit": "s", "better": "lower"}
    loop, total = ([{**solve, "name": name}, solve] for name in ("loop", "total"))
    old = application_run(tmp_path / "a", figure=loop)
    same = application_run(tmp_path / "b", figure=loop, is_of_earlier_version=True)
    other = application_run(tmp_path / "c", figure=total, is_of_earlier_version=True)
    assert check_regressions([old], [same], maximum=0.05).verdict is GateVerdict.PASSED
    report = check_regressions([same], [other], maximum=0.05)
    assert report.verdict is GateVerdict.INCONCLUSIVE
    assert report.unmatched[0] == "fast-ethernet: mpi workload lu 4 ranks,n=800 (loop)"
    assert "lu: primary figure loop became total" in report.changed


def test_a_trend_leaves_out_runs_in_which_the_test_was_another_than_in_the_newest(tmp_path: Path):
    for name, keys in (("old", {"environment": {"A": "1"}}), ("new", {}), ("newest", {})):
        application_run(tmp_path / name, seed=len(name), **keys)
    found = find_trend(str(tmp_path), past_runs(tmp_path), lambda fabric, _: fabric == "myrinet")
    (series,) = found.series
    assert [Path(one.run).name for one in series.points] == ["new", "newest"]
    assert [(Path(one.path).name, one.reason) for one in series.passed_over] == [
        ("old", f"not the same variable A as in {tmp_path}/newest")
    ]
    assert series.unit == "MFLOP/s"
