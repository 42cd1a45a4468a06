"""Many commands at once: bounded, in time, and nothing left behind."""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fabricbench.launch import asking
from fabricbench.launch.asking import AskingLimits, CommandAnswer, ask_all, ask_together

QUICK = AskingLimits(each_s=30, all_s=60)


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


@pytest.mark.slow
def test_ten_nodes_that_hang_cost_one_time_limit_and_leave_no_process(tmp_path: Path):
    notes = [tmp_path / str(number) for number in range(10)]
    hung = {path.name: ["sh", "-c", f"echo $$ > {path}; sleep 1000 & wait"] for path in notes}
    begin = time.monotonic()
    answers = ask_all({**hung, "well": ["echo", "well"]}, AskingLimits(each_s=3, all_s=60))
    assert time.monotonic() - begin < 10 * 3
    assert answers["well"].stdout == "well\n"
    assert {answers[path.name].problem for path in notes} == {"there was no answer within 3 s"}
    assert not any(is_alive(int(path.read_text())) for path in notes)


def test_past_the_deadline_of_all_nobody_is_asked_any_more():
    hung = {str(number): ["sleep", "1000"] for number in range(3)}
    answers = ask_all(hung, AskingLimits(each_s=60, all_s=0.5, in_flight=1))
    assert answers["0"].problem is not None
    assert "no answer" in answers["0"].problem
    assert answers["2"].problem == "it was not asked: the 0.5 s for all nodes were over"


def test_the_last_words_of_a_command_are_its_last_line_or_its_exit_code():
    assert CommandAnswer(1, stderr="one\n  two  \n\n").last_words == "two"
    assert CommandAnswer(7, stdout="one", stderr=" \n").last_words == "exit code 7"


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


WORDS = """
import sys, time
print("a banner of the site", flush=True)
for name in sys.argv[1:]:
    print(f"{name}: a greeting", flush=True)
    print(f"{name}:+ answer", flush=True)
for name in sys.argv[1:]:
    print(f"{name}:  of {name}", flush=True)
print("other: answer of nobody", flush=True)
time.sleep(600)
"""


def is_answer(line: str) -> bool:
    return line.startswith("answer")


def test_one_command_asks_many_nodes_and_is_not_waited_for_once_all_have_answered():
    heard: list[int] = []
    tokens = [sys.executable, "-S", "-c", WORDS, "a", "b"]
    found = ask_together(tokens, {"a", "b"}, 60.0, is_answer, heard.append)
    assert {name: one.stdout for name, one in found.items()} == {"a": "answer of a", "b": "answer of b"}
    assert heard[-1] == 2
    assert all(one.begin_unix_ns < one.end_unix_ns for one in found.values())


def test_who_says_nothing_after_others_have_answered_is_not_waited_for(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(asking, "QUIET_SECONDS", 0.5)
    found = ask_together([sys.executable, "-S", "-c", WORDS, "a"], {"a", "silent"}, 60.0, is_answer)
    assert list(found) == ["a"]


def test_a_name_whose_domain_was_cut_is_the_node_s_where_no_other_has_it():
    words = 'printf "%s\\n" "a: answer 1" "b: answer 2" "c: answer 3" "10: answer 4" "d.two: answer 5"'
    nodes = ["a.site.org", "b.one", "b.two", "c", "c.one", "10.0.0.1", "d.two"]
    found = ask_together(["sh", "-c", words], nodes, 60.0, is_answer)
    assert {name: one.stdout for name, one in found.items()} == {
        "a.site.org": "answer 1",
        "c": "answer 3",
        "d.two": "answer 5",
    }


def test_a_command_for_all_that_does_not_start_or_says_nothing_is_no_answer():
    assert ask_together(["/nowhere/pdsh"], {"a"}, 60.0, is_answer) == {}
    assert ask_together(["false"], {"a"}, 60.0, is_answer) == {}
    assert ask_together(["sleep", "60"], {"a"}, 0.2, is_answer) == {}
