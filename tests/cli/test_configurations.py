"""Any number of configurations through `compare` and `report`: how they are given, and that no form runs over its width."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.calling import Call
from support.configured_runs import EPYC, XEON, write_system


@pytest.fixture(autouse=True)
def among_the_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve processors with one run each."""
    folder = tmp_path_factory.mktemp("study")
    for number in range(12):
        processor = f"Intel(R) Xeon(R) Platinum {8000 + number} CPU @ 2.40GHz"
        write_system(folder / f"s{number:02d}", {"infiniband": 1 + number / 10}, seed=number, processor=processor)
    return folder


def test_three_runs_are_three_configurations(fabricbench: Call, tmp_path: Path):
    for name, processor in (("a", XEON), ("b", EPYC), ("c", "Z")):
        write_system(tmp_path / name, {"ib": 1.0}, seed=ord(name), processor=processor)
    code, out, err = fabricbench("compare", "a", "b", "c", "--format", "json")
    assert code == 0, err
    pairs = {(one["fabric_a"], one["fabric_b"]) for one in json.loads(out)}
    assert pairs == {("Xeon Gold 6148", "EPYC 7742"), ("Xeon Gold 6148", "Z"), ("EPYC 7742", "Z")}
    assert "warning: configurations: one run a side" in err


def test_runs_are_named_and_grouped_by_whoever_compares(fabricbench: Call, tmp_path: Path):
    for seed, name in enumerate(("a1", "a2", "b1", "b=2")):
        write_system(tmp_path / name, {"ib": 1.0}, seed=seed)
    code, out, err = fabricbench("report", "old=a1", "old=a2", "new=b1", "new=b=2", "--format", "json", "-o", "-")
    assert code == 0, err
    assert [one["name"] for one in json.loads(out)["fabrics"]] == ["old", "new"]
    assert "warning: configurations: two runs on a side" in err
    # a folder that is called so is a folder
    assert fabricbench("compare", "b=2", "a1")[0] == 0


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["old=a", "b"], "b has no name", "NAME=RUNDIR"),
        (["old=a"], "the one name old", "two names or more"),
        (["old=a", "new=nowhere"], "there is no run directory nowhere", "check the path"),
        (["a", "b", "a"], "given twice", "each run counts once"),
        ([], "no run directory was given", "three configurations or more"),
        (["old=a", "--before", "b", "--after", "c"], "are both given", "run directories alone"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_do(
    arguments: list[str], message: str, hint: str, fabricbench: Call, tmp_path: Path
):
    for name in ("a", "b"):
        write_system(tmp_path / name, {"ib": 1.0}, seed=ord(name), blocks=2)
    code, _, err = fabricbench("compare", *arguments)
    assert code == 2
    assert message in err
    assert hint in err


@pytest.mark.parametrize("width", [80, 132])
@pytest.mark.parametrize("number", [1, 2, 5, 12])
def test_no_line_of_the_terminal_is_wider_than_it(
    number: int, width: int, study: Path, fabricbench: Call, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", str(width))
    runs = [study / f"s{one:02d}" for one in range(number)]
    given = runs if number > 2 else [f"x{one}={run}" for one, run in enumerate(runs)] if number == 2 else runs
    code, out, err = fabricbench("report", *given, "--format", "text")
    assert code == 0, err
    assert max(map(len, out.splitlines())) <= width
    if number > 4:
        assert "Xeon Platinum 8000" in " ".join(out.split())
        assert "[1]" in out


def test_each_of_many_configurations_has_a_line_with_its_places_in_markdown(study: Path, fabricbench: Call):
    _, out, _ = fabricbench("report", *sorted(study.glob("s*"))[:6], "--format", "markdown", "-o", "-")
    lines = [line for line in out.splitlines() if line.startswith("| A Xeon Platinum 8000 |")]
    assert len(lines) == 1
    assert r"\[1\]" in lines[0]
