"""Many commands at once: bounded, in time, and nothing left behind."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabricbench.launch.asking import Limits, ask_all

QUICK = Limits(each_s=30, all_s=60)


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_every_command_is_answered_with_what_it_printed_and_its_exit_code():
    answers = ask_all({"a": ["echo", "one"], "b": ["sh", "-c", "echo two >&2; exit 7"]}, QUICK)
    assert (answers["a"].exit_code, answers["a"].stdout) == (0, "one\n")
    assert (answers["b"].exit_code, answers["b"].stderr) == (7, "two\n")


@pytest.mark.usefixtures("few_descriptors")
def test_150_nodes_are_asked_where_only_256_files_may_be_open():
    before = len(list(Path("/proc/self/fd").iterdir()))
    heard: list[int] = []
    answers = ask_all({str(number): ["echo", str(number)] for number in range(150)}, QUICK, heard.append)
    assert {name: answer.stdout.strip() for name, answer in answers.items()} == {str(n): str(n) for n in range(150)}
    assert heard[-1] == 150
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_ten_nodes_that_hang_cost_one_time_limit_and_leave_no_process(tmp_path: Path):
    notes = [tmp_path / str(number) for number in range(10)]
    hung = {path.name: ["sh", "-c", f"echo $$ > {path}; sleep 1000 & wait"] for path in notes}
    begin = time.monotonic()
    answers = ask_all({**hung, "well": ["echo", "well"]}, Limits(each_s=3, all_s=60))
    assert time.monotonic() - begin < 10 * 3
    assert answers["well"].stdout == "well\n"
    assert {answers[path.name].problem for path in notes} == {"there was no answer within 3 s"}
    assert not any(is_alive(int(path.read_text())) for path in notes)


def test_past_the_deadline_of_all_nobody_is_asked_any_more():
    hung = {str(number): ["sleep", "1000"] for number in range(3)}
    answers = ask_all(hung, Limits(each_s=60, all_s=0.5, in_flight=1))
    assert answers["0"].problem is not None
    assert "no answer" in answers["0"].problem
    assert answers["2"].problem == "it was not asked: the 0.5 s for all nodes were over"


def test_a_program_that_is_missing_is_an_answer_too():
    (answer,) = ask_all({"a": ["/no/such/program"]}, QUICK).values()
    assert answer.problem == "/no/such/program cannot be started here: No such file or directory"


def test_whoever_ends_the_asking_leaves_no_process(tmp_path: Path):
    note = tmp_path / "pid"

    def stop(_answered: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ask_all({"a": ["sh", "-c", f"echo $$ > {note}; exec sleep 1000"], "b": ["sleep", "0.3"]}, QUICK, stop)
    assert not is_alive(int(note.read_text()))


def test_a_helper_that_keeps_the_output_open_is_not_waited_for():
    begin = time.monotonic()
    answers = ask_all({"a": ["sh", "-c", "setsid sleep 20 & echo done"]}, QUICK)
    assert answers["a"].stdout == "done\n"
    assert time.monotonic() - begin < 15
