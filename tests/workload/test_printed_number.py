"""A number that an expression found is all of what was printed, in the unit asked for, and no time longer than its launch."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from fabricbench.campaign.plan import plan_run
from fabricbench.errors import UsageError
from fabricbench.workload.counted import BEGUN
from fabricbench.workload.printed_number import NotWholeError, read_number
from support.applications import RATE, TIME, campaign, lab_of, parsed, start, table


def reason_of(tmp_path: Path, stdout: str, *, lasted: float = 1e4, **figure: Any) -> str | None:
    """Why a launch has no figure; None where it has."""
    found = parsed(tmp_path, start(figure=[{**TIME, **figure}]), stdout, lasted=lasted)
    return None if found.failed is None else found.failed.reason


@pytest.mark.parametrize(
    ("stdout", "regex"),
    [
        ("Wall time: 1.412s\n", r"^Wall time: ([\d.]+)"),
        ("Wall time: 7 s\n", r"^Wall time: (\S+)"),
        ("Wall time: 7 seconds\n", r"^Wall time: (\S+)"),
        ("Wall time (s): 7 on 4 procs\n", r"(\S+) on"),
        ("3,5,7\n", r"^3,(\d+),"),
        ("3 128 7\n", r"^(\d+)\s"),
        ("3.5 128 7\n", r"^(\S+)"),
        ("n_25 took 7.\n", r"took (\d+)"),
        ("run-7 of 9\n", r"run-(\d+)"),
        ("1.25E+01 s\n", r"^(\S+)"),
        ("avg 7.1 MBps 18.2\n", r"avg (\S+)"),
        ("avg 7.1 min 1.2 max 9.0\n", r"avg (\S+)"),
        ("total 2,940.4 s\n", r"total ([\d.,]+)"),
        ("total 2'940 s\n", r"total ([\d.']+)"),
    ],
)
def test_a_whole_number_in_its_unit_is_taken(tmp_path: Path, stdout: str, regex: str):
    assert reason_of(tmp_path, stdout, regex=regex) is None


@pytest.mark.parametrize(
    ("stdout", "regex", "said"),
    [
        ("Wall time: 180.0ms\n", r"^Wall time: ([\d.]+)", "'180.0' of 'Wall time: 180.0ms', in ms, and the figure's unit is s"),
        ("Wall time: 180.0 ms\n", r"^Wall time: ([\d.]+)", "in ms, and the figure's unit is s"),
        ("Wall time: 180.0 ms\n", r"^Wall time: (\S+) ms", "in ms, and the figure's unit is s"),
        ("Wall time: 3 min 1.1 s\n", r"^Wall time: (\S+)", "in min, and"),
        ("Wall time: 26h 6m\n", r"^Wall time: (\d+)", "in h, and"),
        ("Wall time: 3m\n", r"^Wall time: (\d+)", "in m, and"),
        ("took 7 [µs]\n", r"took (\S+)", "in µs, and"),
        ("took 7 Gbit/s\n", r"took (\S+)", "in Gbit/s, and"),
        ("took 2,940.4 s\n", r"took (\d+\.?\d*)", "'2' of 'took 2,940.4 s', which goes on behind it; take the whole number into"),
        ("took 3,00 s\n", r"took (\d+)", "'3' of 'took 3,00 s', which goes on behind it"),
        ("took 3,00 s\n", r"took (\S+)", "'3,00', which is no finite number; with a decimal comma it is none: environment"),
        ("took 2,940 s\n", r"took (\S+)", "'2,940', which may be thousands or decimals: nothing tells"),
        ("took 2'940.4 s\n", r"took (\d+)", "goes on behind it"),
        ("took 2_940 s\n", r"took (\d+)", "goes on behind it"),
        ("took 2 940 s\n", r"took (\d+)", "goes on behind it"),
        ("took 2\u00a0940,4 s\n", r"took (\d+)", "goes on behind it"),
        ("took 1.25E+01 s\n", r"took (\d+\.\d*)", "goes on behind it"),
        ("took 12 s\n", r"took (\d)", "goes on behind it"),
        ("took 12 s\n", r"(\d) s", "'2' of 'took 12 s', which begins before it"),
        ("took 2,940 s\n", r"(\d+) s", "'940' of 'took 2,940 s', which begins before it"),
        ("took 2.940 s\n", r"(\d+) s", "begins before it"),
        ("took -3 s\n", r"(\d+) s", "begins before it"),
        ("took 2 940 s\n", r"(\d+) s", "begins before it"),
        ("Wall time: 1.4s\n", r"^Wall time: (\S+)", 'leave it out of the group, or write unit = "duration", which reads 1.4s'),
    ],
)  # fmt: skip
def test_a_part_of_a_number_or_another_unit_is_refused_with_the_text_found(
    tmp_path: Path, stdout: str, regex: str, said: str
):
    reason = reason_of(tmp_path, stdout, regex=regex)
    assert reason is not None
    assert said in reason


def test_a_program_that_changes_its_unit_is_read_as_a_duration(tmp_path: Path):
    one = start(figure=[{**TIME, "regex": r"^Wall time: (\S+)", "unit": "duration"}])
    assert parsed(tmp_path, one, "Wall time: 1.412s\n").seconds == (1.412,)
    assert parsed(tmp_path, one, "Wall time: 180.0ms\n").seconds == (0.18,)


@pytest.mark.parametrize(("unit", "is_taken"), [("Mbit/s", True), ("Mbps", True), ("Gbit/s", False), ("MB/s", False)])
def test_a_rate_of_another_size_is_refused(tmp_path: Path, unit: str, is_taken: bool):
    one = start(figure=[{**RATE, "unit": "Mbit/s"}], success={"found": [r"\S"]})
    found = parsed(tmp_path, one.model_copy(), f"rate 940\n{unit}\n")
    assert found.failed is None
    free = start(figure=[{**RATE, "regex": r"^rate (\S+)", "unit": "Mbit/s"}])
    assert (parsed(tmp_path, free, f"rate 940 {unit}\n").failed is None) == is_taken


@pytest.mark.parametrize(
    ("text", "value", "last"),
    [("26.10", 26.1, 0.01), ("3", 3, 1), ("1.0D+03", 1000, 100), ("1,234,567", 1234567, 1), ("2 940.5", 2940.5, 0.1)],
)
def test_a_number_is_read_with_what_its_last_digit_is_worth(text: str, value: float, last: float):
    found = read_number(text)
    assert (found.value, found.last_digit) == (pytest.approx(value), pytest.approx(last))


@pytest.mark.parametrize("text", ["", "nan", "inf", "****", "0x10", "1_0", "1e999", "--3", "1.2.3"])
def test_what_is_no_number_is_none(text: str):
    with pytest.raises(NotWholeError, match="no finite number"):
        read_number(text)


@pytest.mark.parametrize(
    ("keys", "stdout", "said"),
    [
        (
            {"regex": r"CPU\s+(\S.*\S)\s+WALL", "unit": "duration"},
            "     PWSCF        :     6h26m CPU       26h 6m WALL\n",
            "'26h 6m' in 'CPU       26h 6m WALL', and the launch that printed it took 0.4 s",
        ),
        ({}, "time 9000\n", "'9000' s in 'time 9000', and the launch that printed it took 0.4 s"),
        ({"unit": "h"}, "time 3\n", "'3' h in"),
        ({"select": "min"}, "time 9000\ntime 0.3\n", "'9000' s in"),
        ({}, "time 1.41\n", "the launch that printed it took 0.4 s"),
    ],
)
def test_a_time_longer_than_the_launch_that_printed_it_is_no_figure(
    tmp_path: Path, keys: dict[str, Any], stdout: str, said: str
):
    reason = reason_of(tmp_path, stdout, lasted=0.4, **keys)
    assert reason is not None
    assert said in reason


@pytest.mark.parametrize("stdout", ["time 1\n", "time 0.4\n", "time 0.5\n"])
def test_a_time_is_no_longer_than_its_launch_by_what_was_rounded_off_it(tmp_path: Path, stdout: str):
    assert reason_of(tmp_path, stdout, lasted=0.4) is None


def test_a_further_time_may_be_that_of_all_processors_and_no_more(tmp_path: Path):
    one = start(figure=[TIME, {**TIME, "name": "processors", "regex": r"^cpu (\S+)"}])
    processors = len(os.sched_getaffinity(0))
    assert parsed(tmp_path, one, f"time 3\ncpu {2.9 * processors:.2f}\n").failed is None
    failed = parsed(tmp_path, one, f"time 3\ncpu {4.0 * processors:.2f}\n").failed
    assert failed is not None
    assert f"took 3 s on {processors} processors" in failed.reason


def test_a_file_that_was_written_before_the_launch_holds_no_result_of_it(tmp_path: Path):
    one = start(figure=[{**TIME, "file": "result.txt"}])
    (tmp_path / BEGUN).touch()
    os.utime(tmp_path / BEGUN, (10**9, 10**9))
    (tmp_path / "result.txt").write_text("time 2\n")
    assert parsed(tmp_path, one, "done\n").seconds == (2.0,)
    os.utime(tmp_path / "result.txt", (10**9 - 60, 10**9 - 60))
    failed = parsed(tmp_path, one, "done\n").failed
    assert failed is not None
    assert "result.txt was last written 60 s before the program was started" in failed.reason


@pytest.mark.parametrize(
    "keys",
    [{"figure": [{**TIME, "file": "in.txt"}]}, {"verify": [{"name": "e", "regex": "E=(.)", "file": "in.txt"}]}],
)
def test_a_figure_of_a_file_that_we_write_is_refused(keys: dict[str, Any]):
    with pytest.raises(UsageError, match=r"in.txt is one of `files`, which fabricbench writes"):
        plan_run(campaign(table(files={"in.txt": "time 3"}, **keys)), lab_of(), seed=1)


@pytest.mark.parametrize("name", ["plan.json", "conditions.json", "around.json", "launch.json"])
def test_a_figure_of_our_own_record_is_refused(name: str):
    with pytest.raises(UsageError, match=rf"{name} is fabricbench's own in a launch's directory"):
        plan_run(campaign(table(figure=[{**TIME, "file": name}])), lab_of(), seed=1)


def test_an_input_that_an_asterisk_finds_is_no_result(tmp_path: Path):
    one = start(figure=[{**TIME, "file": "in*"}], files={"in.txt": "time 3"})
    failed = parsed(tmp_path, one, "done\n", in_txt="time 3\n").failed
    assert failed is not None
    assert "in.txt is one of `files`" in failed.reason


def test_two_runs_in_one_log_are_told_with_their_lines_and_how_to_choose(tmp_path: Path):
    reason = reason_of(tmp_path, "time 1.5\nother\ntime 2.5\n")
    assert reason is not None
    assert "matched 2 times: '1.5' in line 1, '2.5' in line 3; say by select which counts" in reason
    assert "built for another MPI" not in reason
