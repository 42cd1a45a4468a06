"""What holds of every export, whatever its format."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.cli.export import ExportFormat
from fabricbench.errors import UsageError
from fabricbench.exchange.exported import Exporter, Fact
from fabricbench.exchange.exporter import EXPORTERS, export_run, exporter_named
from fabricbench.record.store import Run
from support.exported_run import exported, exported_run

TEXTS = [one.name for one in EXPORTERS if one.is_text]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return exported_run(tmp_path_factory.mktemp("run"))


def whole(run: Run, name: str) -> str:
    """All files of an export, one after the other."""
    return "".join(file.content.decode() for file in exported(run, name).files if isinstance(file.content, bytes))


def test_the_command_offers_every_format_there_is():
    assert [name.value for name in ExportFormat] == [one.name for one in EXPORTERS]


def test_a_format_that_is_none_is_named_with_those_there_are():
    with pytest.raises(UsageError, match="there is no format 'xml'") as raised:
        exporter_named("xml")
    assert "junit" in str(raised.value.hint)


@pytest.mark.slow
@pytest.mark.parametrize("name", TEXTS)
def test_numbers_of_a_lab_are_marked_as_emulated(run: Run, name: str):
    assert "emulated" in whole(run, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in TEXTS if name != "osu"])
def test_every_fabric_and_test_is_named(run: Run, name: str):
    text = whole(run, name)
    assert all(word in text for word in ("slow", "fast", "pingpong", "stream", "alltoall", "persistent", "1024")) or (
        name == "benchstat" and all(word in text for word in ("BenchmarkPingpong", "BenchmarkAlltoall/", "persistent"))
    )


@pytest.mark.parametrize("one", [one for one in EXPORTERS if not one.marks_bad], ids=lambda one: one.name)
def test_what_counts_nowhere_is_left_out_and_counted_where_it_cannot_be_marked(run: Run, one: object):
    found = exported(run, one.name)  # type: ignore[attr-defined]
    assert found.results == 8
    assert dict(found.left_out) == {
        "path refuted: the traffic went another way": 3,
        "not measured: no answer": 1,
    }
    assert "left out 3 results: path refuted: the traffic went another way" in found.remarks


@pytest.mark.parametrize("name", ["junit", "reframe"])
def test_the_value_of_a_refuted_launch_is_in_no_file_that_marks_it(run: Run, name: str):
    text = whole(run, name)
    assert "the traffic went another way" in text
    assert "42000" not in text
    assert "24000" not in text


def test_what_a_format_has_no_place_for_is_told(run: Run):
    (told,) = (line for line in exported(run, "extra-p").remarks if line.startswith("the format has no place for"))
    assert Fact.LAUNCH in told
    assert Fact.SPREAD in told


@pytest.mark.parametrize("one", EXPORTERS, ids=lambda one: one.name)
def test_a_format_says_that_it_lacks_launches_and_machines_where_it_does(run: Run, one: Exporter):
    contents = [file.content for file in exported(run, one.name).files]
    told = b"".join(content if isinstance(content, bytes) else content.read_bytes() for content in contents)
    assert (Fact.LAUNCH in one.cannot_hold) is (b"b00-slow" not in told)
    assert (b'"inventory"' in told) is not any(fact in one.cannot_hold for fact in (Fact.MACHINES, Fact.CONFIGURATION))


def test_a_path_that_nobody_proved_is_marked(tmp_path: Path):
    run = exported_run(tmp_path / "run", unproven=["fast"], invalid=())
    for name in set(TEXTS) - {"csv", "reframe"}:
        text = whole(run, name)
        assert (
            "path=unknown" in text
            or "path:unknown" in text
            or 'path="unknown"' in text
            or "path: unknown" in text
            or (name == "osu" and "path unknown" in text)
        ), name


def test_a_run_without_any_result_that_counts_is_refused_with_the_reasons(tmp_path: Path):
    run = exported_run(tmp_path / "run", invalid=[f"b0{block}-{name}" for block in (0, 1) for name in ("slow", "fast")])
    with pytest.raises(UsageError, match=r"has no result that bencher can hold: path refuted: the traffic"):
        export_run(run, exporter_named("bencher"))


def test_the_names_of_two_tests_differ_where_a_blank_or_a_stroke_is_all_that_does():
    from fabricbench.exchange.exported import name_of

    assert name_of({"a": "x y"}) == "a=x%20y"
    assert len({name_of({"a": text}) for text in ("x y", "x/y", "x%20y", "x_y")}) == 4
