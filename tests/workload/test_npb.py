"""The eight benchmarks as data, the tokens of fabricbench-npb, and what a launch of it comes to."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.workload.npb import BENCHMARKS, NpbRun, find_benchmark, npb_program, read_list

FIXTURE = Path(__file__).parents[2] / "schema/fixtures/kernel_record.jsonl"
LINES = FIXTURE.read_bytes().splitlines(keepends=True)
GOOD = [LINES[0], LINES[1], LINES[3].replace(b'"runs":2', b'"runs":1')]
PROGRAM = Path("/bin/fabricbench-npb")


def test_the_eight_admit_the_numbers_of_ranks_that_the_official_versions_do():
    admissible = {name: benchmark.admissible_ranks(20) for name, benchmark in BENCHMARKS.items()}
    powers = (1, 2, 4, 8, 16)
    assert admissible == {
        "ep": tuple(range(1, 21)),
        "mg": powers,
        "cg": powers,
        "ft": powers,
        "is": powers,
        "lu": (1, 2, 4, 6, 8, 9, 12, 15, 16, 18, 20),
        "sp": (1, 4, 9, 16),
        "bt": (1, 4, 9, 16),
    }
    assert not find_benchmark("ep").admits(0)


def test_each_says_what_it_stresses():
    assert all(benchmark.stresses and benchmark.title and benchmark.rank_rule for benchmark in BENCHMARKS.values())
    assert all(name == benchmark.name for name, benchmark in BENCHMARKS.items())


def test_the_tokens_say_everything_that_is_asked():
    run = NpbRun("cg", "A", ranks=2, repetitions=3)
    assert npb_program(run, Path("/run/records.jsonl"), PROGRAM) == [
        "/bin/fabricbench-npb",
        *("cg", "--class", "A", "--ranks", "2", "--repeat", "3", "--output", "/run/records.jsonl"),
    ]
    assert "--ranks" not in npb_program(NpbRun("cg"), Path("r"), PROGRAM)


def test_the_program_is_that_of_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FABRICBENCH_BIN", str(tmp_path))
    with pytest.raises(EnvironmentLacks, match="fabricbench-npb is not built"):
        npb_program(NpbRun("cg"), Path("r"))
    (tmp_path / "fabricbench-npb").touch()
    assert npb_program(NpbRun("cg"), Path("r"))[0] == str(tmp_path / "fabricbench-npb")


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"kernel": "dc"}, "no NPB kernel 'dc'"),
        ({"kernel": "cg", "problem_class": "Z"}, "no NPB class 'Z'"),
        ({"kernel": "cg", "ranks": 0}, "at least 1"),
        ({"kernel": "cg", "repetitions": 0}, "at least 1"),
    ],
)
def test_a_run_that_cannot_be_is_refused(wrong: dict, what: str):
    with pytest.raises(UsageError, match=what):
        NpbRun(**wrong)


def test_the_list_tells_the_ranks_of_each_kernel():
    text = "ep  random numbers\n    ranks, class S: 1-4 9\nbt  blocks\n    ranks, class S: none\n"
    assert read_list(text) == {"ep": (1, 2, 3, 4, 9), "bt": ()}
    assert read_list("") == {}
