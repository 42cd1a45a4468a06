"""The gate's verdicts as CI reads them: failures, what could not be said, and the exit code beside them."""

from __future__ import annotations

from pathlib import Path

import pytest
from junitparser import Failure, JUnitXml, Skipped, TestCase

from fabricbench.model import Layer, Pattern
from support.calling import Call
from support.synthetic_run import Noise, SyntheticCell, write_synthetic_run


def written(
    folder: Path, slower: float, *, blocks: int = 12, layers: tuple[Layer, ...] = (Layer.TCP, Layer.MPI)
) -> Path:
    cells = [
        SyntheticCell(layer, Pattern.PINGPONG, 64, {"net": 50_000.0 * (slower if layer is Layer.TCP else 1.0)})
        for layer in layers
    ]
    return write_synthetic_run(
        folder, cells=cells, blocks=blocks, noise=Noise(launch=0.002), seed=len(folder.name)
    ).path


def cases(text: str) -> dict[str, TestCase]:
    return {case.name: case for suite in JUnitXml.fromstring(text.encode()) for case in suite}


def test_a_regression_is_a_failure_that_says_how_much(tmp_path: Path, fabricbench: Call):
    old, new = written(tmp_path / "old", 1.0), written(tmp_path / "after", 1.5)
    code, out, _ = fabricbench("check", "--baseline", old, new, "--format", "junit")
    found = cases(out)
    assert code == 1
    case = found["tcp round trip time blocking 64 B"]
    (failure,) = case.result
    assert isinstance(failure, Failure)
    assert failure.type == "slower"
    assert failure.message.startswith("slowdown 1.5")
    assert failure.message.endswith("allowed 1.050")
    assert case.classname == "fabricbench.net.tcp.pingpong"
    assert found["mpi round trip time blocking 64 B"].result == []
    (suite,) = JUnitXml.fromstring(out.encode())
    assert (suite.tests, suite.failures, suite.skipped) == (2, 1, 0)
    assert {(one.name, one.value) for one in suite.properties()} >= {("origin", "emulated"), ("allowed", "5 %")}


def test_what_the_data_cannot_say_is_skipped_and_the_code_says_so(tmp_path: Path, fabricbench: Call):
    old, new = written(tmp_path / "old", 1.0, blocks=2), written(tmp_path / "after", 1.0, blocks=2)
    code, out, _ = fabricbench("check", "--baseline", old, new, "--format", "junit")
    assert code == 5
    results = [one for case in cases(out).values() for one in case.result]
    assert len(results) == 2
    assert all(isinstance(one, Skipped) for one in results)
    assert {one.message.split("; ")[-1] for one in results} == {"whether it is slower by more than 5 % cannot be said"}


def test_a_test_that_the_new_side_lacks_is_a_case_of_the_gate(tmp_path: Path, fabricbench: Call):
    old, new = written(tmp_path / "old", 1.0), written(tmp_path / "after", 1.0, layers=(Layer.TCP,))
    code, out, _ = fabricbench("check", "--baseline", old, new, "--format", "junit")
    assert code == 5
    (name,) = [name for name in cases(out) if name.startswith("not in all runs: ")]
    assert "mpi" in name
    assert isinstance(cases(out)[name].result[0], Skipped)


@pytest.mark.parametrize("form", ["text", "json", "csv", "markdown"])
def test_the_other_formats_are_as_they_were(form: str, tmp_path: Path, fabricbench: Call):
    old, new = written(tmp_path / "old", 1.0), written(tmp_path / "after", 1.0)
    assert fabricbench("check", "--baseline", old, new, "--format", form)[0] == 0


def test_a_gate_that_judged_nothing_says_so(tmp_path: Path, fabricbench: Call):
    old, new = written(tmp_path / "old", 1.0, blocks=3), written(tmp_path / "new", 1.0, blocks=3)
    for cells in new.glob("launches/*/cells.parquet"):
        cells.unlink()
    code, _, err = fabricbench("check", "--baseline", old, new)
    assert code == 5
    assert "nothing is left to judge, and a part was lost: net (after): none of 3 launches" in err
    assert "pass" not in err
