"""What somebody else's files say is shown, and cannot steer the terminal of who reads it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text

from fabricbench.analysis.findings import Findings
from fabricbench.printable import PrintableConsole, one_line, printable
from support.calling import Call
from support.configured_runs import write_system
from support.synthetic_run import ladder_cells, write_synthetic_run

ACTING = "\x1b[31mRED\x1b]0;title\x07\x9b2J\u202elast\u2066\u2028\x7f"
"""Colour, the window's title, a C1 control, a bidirectional override, a line separator, DEL."""


def acting_in(text: str) -> list[str]:
    return [f"{ord(one):x}" for one in text if one in set(ACTING) - set("[31mREDtitle]0;2Jlast")]


@pytest.fixture(scope="module")
def hostile_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose every free text acts, one launch of which was on the wrong path and says so."""
    path = tmp_path_factory.mktemp("hostile") / "run"
    write_synthetic_run(path, cells=ladder_cells({"slow": 1e8, "fast": 1e9}, sizes=(64,), samples=20), blocks=3)

    def edit(name: str, change: dict[str, Any]) -> None:
        data = json.loads((path / name).read_text())
        for keys, value in change.items():
            place, *rest = reversed(keys.split("."))
            inner = data
            for key in reversed(rest):
                inner = inner[key]
            inner[place] = value
        (path / name).write_text(json.dumps(data))

    edit("manifest.json", {"campaign_name": ACTING, "testbed.name": ACTING, "inventory": {ACTING: {ACTING: ACTING}}})
    edit("manifest.json", {"versions": {ACTING: ACTING}, "testbed.notes": [ACTING], "command": [ACTING]})
    first, *_ = sorted(launch.name for launch in (path / "launches").iterdir())
    edit(
        f"launches/{first}/launch.json",
        {"facts.is_valid": False, "facts.invalid_because": [ACTING], "facts.conditions": {ACTING: ACTING}},
    )
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("report", "--format", "text"),
        ("report", "--format", "markdown", "-o", "-"),
        ("show", "--format", "text"),
        ("compare",),
        ("compare", "--format", "markdown"),
        ("compare", "--format", "json"),
        ("selfcheck",),
        ("trend",),
        ("trend", "--format", "markdown"),
        ("runs",),
    ],
)
def test_a_report_shows_what_acts_without_acting(hostile_run: Path, fabricbench: Call, arguments: tuple[str, ...]):
    command, *options = arguments
    _, out, err = fabricbench(command, hostile_run, *options)
    assert out
    assert acting_in(out + err) == []


@pytest.mark.slow
def test_a_page_shows_what_reorders_a_line_without_reordering(hostile_run: Path, fabricbench: Call, tmp_path: Path):
    code, _, err = fabricbench("report", hostile_run, "-o", tmp_path / "page.html")
    assert code == 0, err
    page = (tmp_path / "page.html").read_text()
    assert "\\u202elast" in page
    assert [sign for sign in "\x1b\x07\x9b\u202e\u2066" if sign in page] == []


@pytest.mark.slow
def test_names_of_configurations_are_drawn_without_acting(fabricbench: Call, tmp_path: Path):
    """A processor calls itself what it likes, and so does whoever compares; neither ends the process that draws."""
    runs = [tmp_path / name for name in ("a", "b", "c")]
    for seed, run in enumerate(runs):
        write_system(run, {"ib": 1.0}, seed=seed, processor=f"{ACTING}\ufffe{seed}")
    for given in (runs, [f"{ACTING}={runs[0]}", f"\udcff={runs[1]}"]):
        for output in ("page.html", "first.svg", "data.json", "table.csv"):
            figure = ("--figure", "first-screen") if output == "first.svg" else ()
            code, out, err = fabricbench("report", *given, *figure, "-o", tmp_path / output)
            assert code == 0, err
            shown = "" if output == "data.json" else (tmp_path / output).read_text()
            assert acting_in(out + err + shown) == []
        code, _, err = fabricbench("report", *given, "--format", "svg", "-o", tmp_path / "figures")
        assert code == 0, err


def test_the_gate_and_an_error_do_not_act(hostile_run: Path, fabricbench: Call, tmp_path: Path):
    _, out, err = fabricbench("check", hostile_run, "--baseline", hostile_run)
    assert acting_in(out + err) == []
    code, out, err = fabricbench("show", tmp_path / ACTING)
    assert code == 2
    assert "\\u001b[31mRED" in err
    assert acting_in(out + err) == []


def test_data_stays_the_same_data(hostile_run: Path, fabricbench: Call):
    _, out, _ = fabricbench("report", hostile_run, "--format", "json", "-o", "-")
    assert ACTING in set(strings_in(json.loads(out)))


def strings_in(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict | list):
        for inner in data.items() if isinstance(data, dict) else data:
            yield from strings_in(list(inner) if isinstance(inner, tuple) else inner)


def test_escapes_are_those_of_json_and_a_name_stays_on_its_line():
    assert printable("a\x1b\u202e\n\tµ × ● é") == "a\\u001b\\u202e\n\tµ × ● é"
    acting = "\U000e0041\x9b"
    assert json.loads(f'"{printable(acting)}"') == acting
    assert one_line("fast\nverdict: slow") == "fast\\u000averdict: slow"


def test_a_console_keeps_its_own_colours_only():
    console = PrintableConsole(force_terminal=True, color_system="standard", width=60)
    with console.capture() as capture:
        console.print(Text("a\x1b[31mb", style="red"))
    assert capture.get() == "\x1b[31ma\\u001b[31mb\x1b[0m\n"


@pytest.mark.parametrize(
    "arguments",
    [
        *(("report", "--format", name) for name in ("html", "json", "latex", "markdown", "csv", "text")),
        ("compare", "--format", "json"),
        ("show",),
        ("verify",),
        *(("export", "--format", name) for name in ("csv", "parquet", "benchstat", "ro-crate")),
    ],
    ids="-".join,
)
def test_a_run_in_a_folder_whose_name_is_no_utf_8_is_read_as_any(
    tmp_path: Path, fabricbench: Call, arguments: tuple[str, ...]
):
    path = tmp_path / os.fsdecode(b"na\xefve")
    write_synthetic_run(path, cells=ladder_cells({"slow": 1e8, "fast": 1e9}, sizes=(64,), samples=20), blocks=3)
    output = ("-o", tmp_path / "out") if arguments[0] in ("report", "export") else ()
    code, _, err = fabricbench(arguments[0], path, *arguments[1:], *output)
    assert code == (5 if arguments[0] == "verify" else 0), err
    assert "LOST" not in err
    if "json" in arguments and output:
        Findings.model_validate_json((tmp_path / "out").read_bytes())
