"""What `explain` writes for programs: every stage, with the ends of its interval."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from fabricbench.model import Layer, Pattern
from support.calling import call_of
from support.stamps import Stamped
from support.synthetic_run import WAY, SyntheticCell, stamped_cells_run


def test_markdown_has_an_item_for_each_sentence_and_a_heading_above_each_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """Sentences ran into one paragraph, and the name of a table into the table."""
    one = {"net": Stamped(WAY, WAY, apart_ns=0)}
    stamped_cells_run(tmp_path / "run", (SyntheticCell(Layer.UDP, Pattern.PINGPONG, 64, {}, samples=20), one))
    code, told, _ = call_of(capsys, monkeypatch)("explain", tmp_path / "run", "--format", "markdown")
    assert code == 0
    prose, *tables = told.rstrip("\n").split("\n### ")
    assert all(line.startswith("- ") for line in prose.rstrip().split("\n"))
    assert len(tables) == 2
    for text in tables:
        _, empty, head, *_ = text.split("\n")
        assert (empty, head[:2]) == ("", "| ")


def test_json_and_csv_have_every_stage_with_its_interval(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    one = {"net": Stamped(WAY, WAY, apart_ns=0)}
    in_turn = SyntheticCell(Layer.UDP, Pattern.PINGPONG, 64, {}, samples=20)
    lone = replace(in_turn, pattern=Pattern.PACED, parameters={"intervals": "random"})
    stamped_cells_run(tmp_path / "run", (in_turn, one), (lone, one))
    call = call_of(capsys, monkeypatch)
    told = {form: call("explain", tmp_path / "run", "--format", form) for form in ("json", "csv")}
    assert {form: code for form, (code, _, _) in told.items()} == {"json": 0, "csv": 0}
    stages = json.loads(told["json"][1])["stages"]
    rows = list(csv.DictReader(io.StringIO(told["csv"][1])))
    assert len(rows) == len(stages) > 0
    assert [float(row["median_low"]) for row in rows] == pytest.approx(
        [one["median"]["low"] for one in stages], rel=1e-3
    )
