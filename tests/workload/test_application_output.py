"""What is read from what a program printed: figures, numbers to be verified, success, and what keeps a cell from having a value."""

from __future__ import annotations

import json
import math
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from fabricbench.campaign.attempt import Attempts
from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.run_directory import RunDirectory
from fabricbench.campaign.start import start_of
from fabricbench.model import Layer, Pattern
from fabricbench.record.probe_plan import PlanProbe
from fabricbench.record.workload_cells import LaunchOfWorkload, record_of
from fabricbench.testbed.model import Fabric
from fabricbench.workload import application_output
from fabricbench.workload.adapter import Output, WorkloadResult
from fabricbench.workload.command_start import CommandStart
from fabricbench.workload.counted import AROUND, BEGUN, MPI_LINE, rank_line
from support.applications import PRINTED, RATE, TIME, campaign, lab_of, parsed, start, starts, table
from support.fake_launcher import FakeLauncher

OUTPUTS = Path(__file__).parent / "outputs"
VERIFIED = {"name": "value", "regex": r"^time (\S+)$"}


def test_a_time_is_kept_in_seconds_and_a_rate_in_its_own_unit(tmp_path: Path):
    found = parsed(tmp_path, start(figure=[{**TIME, "unit": "ms"}]), "time 250\r\n")
    assert (found.seconds, found.failed) == ((0.25,), None)
    assert [(one.name, one.value, one.unit) for one in found.figures] == [("time", 0.25, "s")]
    found = parsed(tmp_path, start(figure=[RATE, TIME]), "rate 3.5\ntime 2\n")
    assert (found.rate, found.seconds) == (3.5, (3.0,))
    assert found.values == {"figure.time": 2.0}
    assert [rank.rank for rank in found.ranks] == [0, 1]
    assert found.interfaces["fe0"].received == 7


def test_a_time_for_each_of_something_is_no_time_of_the_run(tmp_path: Path):
    found = parsed(tmp_path, start(figure=[{**TIME, "unit": "ms/step"}]), "time 250\n")
    assert (found.printed_seconds, found.seconds) == (0.25, (3.0,))
    assert [(one.value, one.unit, one.told_in) for one in found.figures] == [(0.25, "s", "ms/step")]


@pytest.mark.parametrize(
    ("select", "value"),
    [("first", 1.0), ("last", 2.0), ("max", 4.0), ("min", 1.0), ("mean", 2.5), ("median", 2.5), ("sum", 10.0)],
)
def test_of_several_matches_the_table_says_which_counts(tmp_path: Path, select: str, value: float):
    one = start(figure=[{**RATE, "select": select}])
    assert parsed(tmp_path, one, "rate 1\nrate 3\nrate 4D0\nrate 2\n").rate == value


@pytest.mark.parametrize(
    ("stdout", "said"),
    [
        ("nothing here\n", "in stdout matched nothing; stdout ends: nothing here"),
        ("other 1\n", "matched nothing; stdout ends: other 1"),
        (
            "time 1\ntime 2\n",
            "matched 2 times: '1' in line 1, '2' in line 2; say by select which counts (first, last, max,",
        ),
        ("time soon\n", "matched 'soon', which is no finite number"),
        ("time nan\n", "which is no finite number"),
        ("time 0\n", "figure 'time' is 0 s"),
    ],
)
def test_a_figure_that_is_not_there_is_a_failed_cell_with_what_was_searched(tmp_path: Path, stdout: str, said: str):
    found = parsed(tmp_path, start(), stdout)
    assert found.failed is not None
    assert not found.failed.is_wrong
    assert said in found.failed.reason
    assert found.figures == ()


@pytest.mark.parametrize(
    "keys", [{"figure": [{**TIME, "regex": r"(?:x+x+)+y (\d)"}]}, {"success": {"found": "(?:x+x+)+y"}}]
)
def test_a_search_that_would_never_end_is_ended_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: dict[str, Any]
):
    monkeypatch.setattr(application_output, "SEARCH_SECONDS", 0.2)
    begin = time.monotonic()
    with pytest.raises(
        ValueError, match=r"'\(\?:x\+x\+\)\+y.*' was searched for in stdout for 0.2 s without an end; write it so"
    ):
        parsed(tmp_path, start(**keys), "x" * 60 + "\ntime 1\n")
    assert time.monotonic() - begin < 5
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL


@pytest.mark.parametrize(
    ("share", "said"), [("0", None), ("100", None), ("100.5", "is 100.5 %, needed a share"), ("-1", "is -1 %")]
)
def test_a_share_of_communication_is_from_nothing_to_all(tmp_path: Path, share: str, said: str | None):
    of_time = {"name": "communication", "regex": r"^share (\S+)$", "unit": "%", "better": "lower"}
    found = parsed(tmp_path, start(figure=[TIME, of_time]), f"time 1\nshare {share}\n")
    assert (found.communication_share == float(share) / 100) == (said is None)
    assert (found.failed is None) == (said is None)
    if found.failed is not None:
        assert str(said) in found.failed.reason


@pytest.mark.parametrize(
    ("keys", "stdout", "said"),
    [
        ({"regex": r"^time (?:(\d+)|none)$"}, "time none\n", "matched '', which is no finite number"),
        ({"unit": "s/step", "select": "sum"}, "time 1e308\ntime 1e308\n", "figure 'time' is inf s"),
        ({"unit": "s/step", "select": "mean"}, "time 1e308\ntime 1e308\n", "figure 'time' is inf s"),
        ({"unit": "h/step"}, "time 1e308\n", "figure 'time' is inf s"),
    ],
)
def test_a_figure_that_is_no_number_any_more_is_a_failed_cell(
    tmp_path: Path, keys: dict[str, str], stdout: str, said: str
):
    found = parsed(tmp_path, start(figure=[{**TIME, **keys}]), stdout)
    assert found.failed is not None
    assert said in found.failed.reason
    further = parsed(tmp_path, start(figure=[RATE, {**TIME, **keys}]), f"rate 2\n{stdout}")
    assert further.failed is not None
    assert not any(math.isinf(value) for value in further.values.values())


def test_an_expression_is_shown_as_it_was_written(tmp_path: Path):
    """With its backslashes as they are: it is searched for in the campaign, and copied."""
    found = parsed(tmp_path, start(figure=[{**TIME, "regex": r"^speed\s+(\d+)$"}]), "time 1\n")
    assert found.failed is not None
    assert r"figure 'time': '^speed\s+(\d+)$' in stdout matched nothing" in found.failed.reason


def test_a_number_to_be_verified_that_took_no_part_in_its_match_does_not_hold(tmp_path: Path):
    one = start(verify=[{"name": "energy", "regex": r"^E=(?:(\d+)|none)$"}])
    found = parsed(tmp_path, one, "time 1\nE=none\n")
    assert [check.holds for check in found.checks] == [True, False]


class Careless(CommandStart):
    """An adapter that does not expect what it finds."""

    def parse(self, output: Output) -> WorkloadResult | None:
        del output
        raise KeyError("time")


def test_whatever_an_adapter_raises_is_a_failed_cell(tmp_path: Path):
    plan = plan_run(campaign(table(ranks=[2])), lab_of(), seed=1)
    launch = plan.launches[0]
    assert launch.workload is not None
    careless = Careless.model_construct(**dict(launch.workload))
    parsed(tmp_path, start(), "time 1\n")
    written = start_of(launch.model_copy(update={"workload": careless}), plan).read(tmp_path, None)
    assert written is not None
    assert written.record.is_complete
    (cell,) = written.record.cells
    assert cell.failed is not None
    assert cell.failed.reason == "what it wrote cannot be read: KeyError: 'time'"


@pytest.mark.parametrize(("exit_code", "is_adopted"), [(0, True), (139, False)])
def test_what_a_crash_kept_from_being_stored_is_adopted_unless_the_program_died(
    tmp_path: Path, exit_code: int, is_adopted: bool
):
    plan = plan_run(campaign(table(ranks=[2])), lab_of(), seed=1)
    run = RunDirectory(tmp_path / "run")
    run.create()
    launch = plan.launches[0]
    parsed(run.prepare(launch.launch_id), start(), "time 1\n", exit_code=exit_code)
    found = Attempts(run, plan, FakeLauncher(run.path)).finished(launch)
    assert (found is not None) == is_adopted


def test_a_launch_records_the_conditions_that_it_was_started_with_whatever_holds_later(tmp_path: Path):
    """Its directory was another one on the node of rank 0, and the launcher says something else by the time it is stored."""

    class Elsewhere(FakeLauncher):
        waits = "asleep"

        def stage(self, directory: Path, fabric: Fabric) -> Path:
            del directory, fabric
            return Path("/staged/there")

        def conditions(self, fabric: Fabric) -> dict[str, str]:
            del fabric
            return {"mpi waits": self.waits}

    plan = plan_run(campaign(table(ranks=[2], environment={"SCRATCH": "{directory}"})), lab_of(), seed=1)
    run = RunDirectory(tmp_path / "run")
    run.create()
    launch, launcher = plan.launches[0], Elsewhere(tmp_path / "launcher")
    attempts = Attempts(run, plan, launcher)
    attempt = attempts.prepare(launch)
    parsed(attempt.directory, start(), "time 1\n")
    launcher.waits = "spinning"
    found = attempts.finished(launch)
    assert found is not None
    assert found.facts.conditions == {"mpi waits": "asleep", "workload environment": "SCRATCH=/staged/there"}


def test_a_wrong_result_is_a_failed_cell_whatever_the_figure_says(tmp_path: Path):
    one = start(
        success={"found": ["PASSED"], "absent": ["FAILED"]},
        verify=[{"name": "energy", "regex": r"E=(\S+)", "reference": -4.0, "relative": 1e-3}],
    )
    assert parsed(tmp_path, one, "time 1\nPASSED\nE=-4.001\n").failed is None
    for stdout, said in (
        ("time 1\nE=-4\n", "wrong result: success: found nothing in stdout, needed 'PASSED'"),
        ("time 1\nPASSED\nFAILED\nE=-4\n", "found 'FAILED', needed no 'FAILED' in stdout"),
        ("time 1\nPASSED\nE=-4.1\n", "energy: found -4.1, needed -4 within 0.001"),
        ("time 1\nPASSED\n", "energy: found figure 'energy'"),
    ):
        failed = parsed(tmp_path, one, stdout).failed
        assert failed is not None
        assert failed.is_wrong
        assert said in failed.reason


def test_a_number_near_zero_is_verified_by_its_absolute_distance(tmp_path: Path):
    one = start(verify=[{"name": "residual", "regex": r"R=(\S+)", "reference": 0, "relative": 1e-3, "absolute": 1e-9}])
    assert parsed(tmp_path, one, "time 1\nR=5e-10\n").failed is None
    failed = parsed(tmp_path, one, "time 1\nR=2e-9\n").failed
    assert failed is not None
    assert "found 2e-09, needed 0 within 0.001, or 1e-09 of any size" in failed.reason


def test_a_whole_number_as_reference_must_be_met_exactly_and_is_told_so(tmp_path: Path):
    one = start(verify=[{"name": "errors", "regex": r"E=(\S+)", "reference": 0}])
    assert parsed(tmp_path, one, "time 1\nE=0\n").failed is None
    failed = parsed(tmp_path, one, "time 1\nE=1\n").failed
    assert failed is not None
    assert "errors: found 1, needed 0 exactly" in failed.reason
    near = parsed(tmp_path, one.model_copy(), "time 1\nE=1.0000000000000002e-300\n").failed
    assert near is not None
    assert "found 1.0000000000000002e-300, needed 0 exactly" in near.reason


def test_what_must_be_absent_of_a_file_that_is_not_there_is_not_shown_to_be(tmp_path: Path):
    one = start(success={"absent": ["FAILED"], "file": "result.txt"}, verify=[VERIFIED])
    failed = parsed(tmp_path, one, "time 1\n").failed
    assert failed is not None
    assert "found no file result.txt, needed no 'FAILED' in result.txt" in failed.reason
    assert parsed(tmp_path, one, "time 1\n", result_txt="").failed is None


def test_what_was_written_around_a_program_is_not_searched(tmp_path: Path):
    one = start(
        figure=[{**RATE, "regex": r"(\d+\.?\d*)", "select": "first"}],
        success={"absent": ["(?i)host", "MPICH"]},
        verify=[{"name": "sum", "regex": r"(\d+\.\d+)"}],
    )
    found = parsed(tmp_path, one, "42.5 done\n")
    assert found.failed is None
    assert (found.rate, found.fixed["sum"]) == (42.5, "42.5")


def test_a_program_that_was_started_and_printed_nothing_did_start(tmp_path: Path):
    (tmp_path / "stdout.log").write_text(rank_line(0, 1) + f"{MPI_LINE}\n")
    output = Output(tmp_path, tmp_path / "stdout.log", tmp_path / "stderr.log")
    silent = start().parse(output)
    assert silent is not None
    assert not silent.has_started
    (tmp_path / BEGUN).touch()
    begun = start().parse(output)
    assert begun is not None
    assert begun.has_started
    assert begun.damage


def test_another_exit_code_than_those_allowed_makes_no_value(tmp_path: Path):
    failed = parsed(tmp_path, start(), "time 1\nABORT\n", exit_code=3).failed
    assert failed is not None
    assert failed.reason == "it ended with exit code 3; stdout ends: time 1 | ABORT"
    assert parsed(tmp_path, start(success={**PRINTED, "exit_codes": [0, 3]}), "time 1\n", exit_code=3).failed is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"interfaces": {"a": {}}}',
        '{"exit_code": "0"}',
        '{"exit_code": 0, "other": 1}',
        '{"arguments_sha256": 3}',
    ],
)
def test_what_was_written_around_a_program_and_is_not_ours_tells_nothing(tmp_path: Path, text: str):
    parsed(tmp_path, start(), "time 1\n")
    (tmp_path / AROUND).write_text(text)
    found = start().parse(Output(tmp_path, tmp_path / "stdout.log", tmp_path / "stderr.log"))
    assert found is not None
    assert found.damage


def test_a_number_without_a_reference_must_be_the_same_on_every_fabric(tmp_path: Path):
    one = start(verify=[{"name": "energy", "regex": r"E=(\S+)"}])
    assert parsed(tmp_path, one, "time 1\nE=-4.001\n").fixed["energy"] == "-4.001"


def test_a_number_that_is_called_like_a_fact_takes_its_place_of_none(tmp_path: Path):
    one = start(verify=[{"name": "further figures", "regex": r"E=(\S+)"}])
    found = parsed(tmp_path, one, "time 1\nE=-4.001\n").fixed
    assert (found["further figures"], found["number further figures"]) == ("none", "-4.001")


def test_a_file_that_the_command_names_must_be_the_same_unless_its_name_is_the_fabrics(tmp_path: Path):
    one = start(command=["echo", "solve.py", "{interface}.conf", "-v"])
    parsed(tmp_path, one, "time 1\n")
    around = json.loads((tmp_path / AROUND).read_text())
    (tmp_path / AROUND).write_text(json.dumps({**around, "arguments_sha256": ["a1", "b2", ""]}))
    found = one.parse(Output(tmp_path, tmp_path / "stdout.log", tmp_path / "stderr.log"))
    assert found is not None
    assert {what: text for what, text in found.fixed.items() if what.startswith("file")} == {
        "file solve.py sha256": "a1"
    }


def test_an_output_of_a_file_is_read_there_and_a_program_that_nobody_saw_end_left_no_whole_record(tmp_path: Path):
    one = start(figure=[{**TIME, "file": "result.txt"}], success={"found": ["fine"], "file": "stderr"})
    assert parsed(tmp_path, one, "", stderr="fine\n", result_txt="time 4\n").seconds == (4.0,)
    killed = parsed(tmp_path, start(), "time 4\n", exit_code=0)
    assert not killed.damage
    (tmp_path / AROUND).unlink()
    assert parsed(tmp_path, start(), "time 4\n", exit_code=None).damage


@pytest.mark.parametrize(
    ("name", "value", "unit", "share"),
    [
        ("scalapack-lu", 361.185, "MFLOP/s", None),
        ("lammps-lj", 5.96824, "s", 0.9469),
        ("hpcc", 0.000650959, "TFLOP/s", None),
        ("qe-au4", 6.62, "s", None),
        ("hpcg-official", 0.486761, "GFLOP/s", None),
        ("pvm-pingpong", 22.344, "MB/s", None),
        ("gromacs", 5.467, "ns/day", None),
    ],
)
def test_the_applications_that_are_shipped_read_what_the_programs_print(
    tmp_path: Path, name: str, value: float, unit: str, share: float | None
):
    one = starts({"kind": "command", "application": name, "ranks": [4]})[-1]
    text = (OUTPUTS / f"{name}.txt").read_text()
    (tmp_path / "HPCG-Benchmark_3.1_2026-11-22_15-30-36.txt").write_text(text)
    found = parsed(tmp_path, one, text, hpccoutf_txt=text, md_log=text, lasted=10)
    assert found.failed is None, found.failed
    assert (found.figures[0].value, found.figures[0].unit) == (pytest.approx(value), unit)
    assert found.communication_share == (None if share is None else pytest.approx(share))
    assert len(found.figures) == len(one.application.figure)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("6.62s", 6.62),
        ("1m 2.50s", 62.5),
        ("1h23m", 4980),
        ("1d 2h 3m 4s", 93784),
        ("0.5h", 1800),
        ("2m", 120),
        ("180.0ms", 0.18),
        ("1 min 3 s", 63),
        ("12 us", 12e-6),
    ],
)
def test_a_duration_is_the_sum_of_its_parts(tmp_path: Path, written: str, seconds: float):
    one = start(figure=[{**TIME, "regex": "^took (.*) in all$", "unit": "duration"}])
    found = parsed(tmp_path, one, f"took {written} in all\n", lasted=1e5)
    assert (found.figures[0].value, found.figures[0].unit) == (pytest.approx(seconds), "s")


@pytest.mark.parametrize(
    ("written", "unit", "step"),
    [
        ("0.15", "s", 0.01),
        ("1.0e3", "s", 100.0),
        ("1.0D+03", "ms", 0.1),
        ("12", "min", 60.0),
        ("1h 2m", "duration", 60.0),
        ("1m 2.50s", "duration", 0.01),
        ("26h", "duration", 3600.0),
    ],
)
def test_what_the_last_digit_counts_is_kept_with_the_figure_and_in_the_record(
    tmp_path: Path, written: str, unit: str, step: float
):
    one = start(figure=[{**TIME, "regex": "^took (.*) in all$", "unit": unit}])
    found = parsed(tmp_path, one, f"took {written} in all\n", lasted=1e6)
    assert (found.figures[0].printed_step, found.printed_step) == (pytest.approx(step), pytest.approx(step))
    probe = PlanProbe(id=0, layer=Layer.MPI, pattern=Pattern.WORKLOAD, message_bytes=0)
    (cell,) = record_of(found, LaunchOfWorkload("b00-fe0", "fe0", probe)).cells
    assert cell.end is not None
    assert cell.end.printed_step == pytest.approx(step * 1e9)


def test_of_a_sum_the_steps_add_up_and_of_another_choice_the_coarsest_counts(tmp_path: Path):
    for select, step in (("sum", 0.11), ("mean", 0.1), ("max", 0.1)):
        one = start(figure=[{**TIME, "select": select}])
        found = parsed(tmp_path, one, "time 1.25\ntime 3.5\n", lasted=10)
        assert found.figures[0].printed_step == pytest.approx(step)


@pytest.mark.parametrize("written", ["6.62", "1m x", "soon", "1:02", "-3s"])
def test_what_is_no_duration_is_said(tmp_path: Path, written: str):
    one = start(figure=[{**TIME, "regex": "^took (.*) in all$", "unit": "duration"}])
    failed = parsed(tmp_path, one, f"took {written} in all\n").failed
    assert failed is not None
    assert f"matched {written!r}, which is no finite number" in failed.reason


def test_of_a_name_with_an_asterisk_the_one_file_is_read_and_of_two_none(tmp_path: Path):
    one = start(figure=[{**TIME, "file": "result-*.txt"}])
    (tmp_path / "result-1.txt").write_text("time 4\n")
    assert parsed(tmp_path, one, "fine\n").seconds == (4.0,)
    (tmp_path / "result-2.txt").write_text("time 5\n")
    failed = parsed(tmp_path, one, "fine\n").failed
    assert failed is not None
    assert "in result-*.txt matched nothing, which is empty or not there" in failed.reason
