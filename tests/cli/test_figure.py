"""`fabricbench figure`: where the picture and its numbers go, and what is refused before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.cli import completion
from fabricbench.model import Layer, Pattern
from support.calling import Call
from support.configured_runs import EPYC, XEON, write_system
from support.plots import quiet_run, timed


@pytest.fixture
def run(tmp_path: Path) -> Path:
    cells = timed(Layer.TCP, Pattern.PINGPONG, (64, 1024), {"slow": 99_000.0, "fast": 19_000.0})
    return quiet_run(tmp_path / "run", cells, blocks=3).path


@pytest.mark.parametrize(("ending", "start"), [("svg", b"<svg"), ("pdf", b"%PDF"), ("png", b"\x89PNG")])
def test_the_numbers_go_beside_the_picture(run: Path, tmp_path: Path, fabricbench: Call, ending: str, start: bytes):
    path = tmp_path / f"x.{ending}"
    code, out, err = fabricbench("figure", run, "--y", "half-round-trip", "--width", "85", "-o", path)
    assert (code, out.split()) == (0, [str(path), str(tmp_path / "x-data.csv")]), err
    assert path.read_bytes().startswith(start)
    assert "49532.0,ns" in (tmp_path / "x-data.csv").read_text()


def test_without_a_name_it_stands_beside_the_run_and_stdout_has_the_picture_alone(run: Path, fabricbench: Call):
    _, out, _ = fabricbench("figure", run, "--y", "throughput")
    assert out.split() == [str(run / "figure.svg"), str(run / "figure-data.csv")]
    _, out, _ = fabricbench("figure", run, "--y", "throughput", "-o", "-")
    assert out.startswith("<svg")
    assert "slow" in out


def test_several_choices_of_one_trait_add_up(run: Path, tmp_path: Path, fabricbench: Call):
    chosen = ("--where", "fabric=slow", "--where", "fabric=fast,none", "--where", "size=1KiB")
    code, _, err = fabricbench("figure", run, "--y", "round-trip", *chosen, "-o", tmp_path / "x.svg")
    assert code == 0, err
    data = (tmp_path / "x-data.csv").read_text()
    assert "slow" in data
    assert "fast" in data
    assert "64.0" not in data


@pytest.mark.slow
def test_machines_stand_on_an_axis_or_tell_series_apart(tmp_path: Path, fabricbench: Call):
    runs = [tmp_path / name for name in ("a", "b")]
    for seed, (run, processor) in enumerate(zip(runs, (XEON, EPYC), strict=True)):
        write_system(run, {"ib": 1.0, "gige": 2.0}, seed=seed, processor=processor)
    what = ("--y", "round-trip", "--where", "layer=mpi", "-o", tmp_path / "x.svg")
    for options in (("--x", "processor", "--kind", "bars"), ("--series", "processor", "--series", "fabric")):
        code, _, err = fabricbench("figure", *runs, *what, *options)
        assert code == 0, err
        assert all(name in (tmp_path / "x-data.csv").read_text() for name in ("EPYC 7742", "Xeon Gold 6148"))
    assert fabricbench("figure", *runs, *what, "--where", "processor=EPYC*")[0] == 0
    assert "Xeon" not in (tmp_path / "x-data.csv").read_text()


def test_that_nothing_is_published_of_the_kind_is_said(run: Path, tmp_path: Path, fabricbench: Call):
    code, _, err = fabricbench("figure", run, "--y", "round-trip", "--published", "-o", tmp_path / "x.svg")
    assert (code, err) == (0, "note: no published value is of the same fabric, layer, test and quantity\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--y", "latency"), "--y latency: there is nothing of that name"),
        (("--y", "throughput", "--x", "flows"), "--x flows: no test of"),
        (("--y", "throughput", "--where", "tcp"), "--where 'tcp' is no choice"),
        (("--y", "throughput", "--where", "layer=tcp,size=64"), "takes a --where of its own: --where size=64"),
        (("--y", "throughput", "--kind", "bars", "--log", "y"), "bars begin at 0"),
    ],
)
def test_what_is_refused_has_written_nothing(
    run: Path, tmp_path: Path, fabricbench: Call, options: tuple[str, ...], message: str
):
    code, _, err = fabricbench("figure", run, *options, "-o", tmp_path / "x.svg")
    assert code == 2
    assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_file_that_is_no_picture_is_refused(run: Path, tmp_path: Path, fabricbench: Call):
    code, _, err = fabricbench("figure", run, "--y", "throughput", "-o", tmp_path / "x.html")
    assert code == 2
    assert "svg, png, pdf are known" in err


def test_quantities_are_offered_as_far_as_they_are_typed():
    assert completion.quantities("sp") == ["speed-up"]
