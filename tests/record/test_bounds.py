"""What is read of a run directory is bounded before it is read, and what is quoted of it before it is shown."""

from __future__ import annotations

import hashlib
import json
import time
from functools import partial
from pathlib import Path

import polars as pl
import pytest

from fabricbench.analysis import analyse
from fabricbench.model import Layer, Pattern
from fabricbench.printable import shortened
from fabricbench.record import integrity, store
from fabricbench.record.decoding import check_size
from fabricbench.record.integrity import Room, data_hash, file_sha256, read_file, read_lines, seals, values_of
from fabricbench.record.parquet_size import check_parquet_size
from fabricbench.record.past_runs import past_runs
from fabricbench.record.reading import parse_record
from fabricbench.record.run_state import State
from fabricbench.record.store import Run, write_launch
from fabricbench.record.verification import RunVerdict, verify
from fabricbench.report.html import render_html
from fabricbench.table import as_markdown, as_text, table
from support.decoding import set_limits
from support.synthetic_run import SyntheticCell, write_synthetic_run

CELLS = (SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {"a": 1e5, "b": 2e5}, samples=5),)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write_synthetic_run(tmp_path / "run", cells=CELLS, blocks=1)
    return tmp_path / "run"


def replaced_samples(run: Path, rows: int) -> None:
    """Put as many equal samples into a launch, with the right hash and number."""
    launch = run / "launches/b00-a"
    first = pl.read_parquet(launch / "samples.parquet")
    columns = [
        pl.repeat(first[name][0], rows, dtype=kind, eager=False).alias(name) for name, kind in first.schema.items()
    ]
    pl.select(*columns).lazy().sink_parquet(launch / "samples.parquet", compression="zstd")
    told = json.loads((launch / "launch.json").read_text())
    told["samples"] = rows
    told["sha256"]["samples.parquet"] = hashlib.sha256((launch / "samples.parquet").read_bytes()).hexdigest()
    (launch / "launch.json").write_text(json.dumps(told))


@pytest.mark.slow
def test_a_small_file_of_rows_without_end_is_refused_unread(run: Path):
    replaced_samples(run, 120_000_000)
    began = time.process_time()
    found = Run.open(run).damaged
    assert [one.launch_id for one in found] == ["b00-a"]
    assert "120,000,000 rows" in found[0].reason
    assert time.process_time() - began < 2


def test_pages_that_unpack_to_more_than_they_should_are_refused(tmp_path: Path):
    pl.DataFrame({"text": ["x" * 1_000_000] * 20}).write_parquet(tmp_path / "bomb.parquet", use_pyarrow=False)
    with pytest.raises(ValueError, match="bytes unpacked"):
        check_parquet_size(tmp_path / "bomb.parquet", 100, 1000, 100_000)


def test_a_file_whose_footer_tells_less_than_its_pages_is_refused(run: Path):
    path = run / "launches/b00-a/samples.parquet"
    check_size(path, pl.read_parquet(path).height)
    with pytest.raises(ValueError, match="rows"):
        check_size(path, 1)


@pytest.mark.parametrize("name", ["manifest.json", "launches/b00-a/launch.json", "launches/b00-a/samples.parquet"])
def test_a_sparse_file_of_gigabytes_is_refused_unread(run: Path, name: str):
    with (run / name).open("r+b") as file:
        file.truncate(50 * 1024**3)
    found = past_runs(run.parent)
    assert [one.state for one in found] == [State.DAMAGED]
    assert "bytes, and" in str(found[0].reason)


@pytest.mark.parametrize("name", ["launches/b00-a/launch.json", "launches/b00-a/samples.parquet"])
def test_a_file_with_holes_is_altered_and_not_hashed(run: Path, name: str):
    whole = data_hash(run)
    with (run / name).open("r+b") as file:
        file.truncate(3 * 1024**3)
    began = time.process_time()
    found = verify(run)
    assert time.process_time() - began < 1
    assert found.verdict is RunVerdict.ALTERED
    assert name in [one.path for one in found.altered]
    assert found.data_sha256 not in ("", whole)


def test_a_file_that_cannot_be_read_costs_its_launch_and_not_the_hash_of_the_data(run: Path):
    with (run / "launches/b00-a/samples.parquet").open("r+b") as file:
        file.truncate(50 * 1024**3)
    assert {one.fabric for one in analyse([Run.open(run)]).summaries} == {"b"}
    assert len(data_hash(run)) == 64


def test_a_large_file_without_holes_is_read(tmp_path: Path):
    content = b"x" * (integrity.HOLES_FROM_BYTES + 1)
    (tmp_path / "records.jsonl").write_bytes(content)
    assert file_sha256(tmp_path / "records.jsonl") == hashlib.sha256(content).hexdigest()


def test_a_string_of_megabytes_is_refused(tmp_path: Path):
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"a": "x" * 1_000_000 + '"', "b": "y" * 1_000_000}))
    assert read_file(path)
    path.write_text(json.dumps({"a": "x" * 1_000_000 + '"' * 50_000}))
    with pytest.raises(OSError, match="a string in it has"):
        read_file(path)


@pytest.mark.parametrize("of", ["bytes_left", "values_left"])
def test_what_all_launches_tell_together_is_bounded_as_what_one_file_may(
    tmp_path: Path, of: str, monkeypatch: pytest.MonkeyPatch
):
    run = write_synthetic_run(tmp_path / "run", cells=CELLS, blocks=2)
    content = (run.launches[0].directory / "launch.json").read_bytes()
    most = len(content) if of == "bytes_left" else values_of(content)
    monkeypatch.setattr(store, "Room", partial(Room, **{of: 3 * most}))
    found = Run.open(run.path)
    assert 2 <= len(found.launches) < 4
    assert len(found.damaged) == 4 - len(found.launches)
    assert "those before it leave no room: together they may have" in found.damaged[-1].reason


def test_texts_of_megabytes_do_not_reach_the_page(tmp_path: Path):
    run = write_synthetic_run(tmp_path / "run", cells=CELLS, blocks=1)
    facts = run.launches[0].summary.facts.model_copy(update={"is_valid": False, "invalid_because": ("why " * 250_000,)})
    write_launch(run.launches[0].directory, facts=facts)
    page = render_html(analyse([Run.open(run.path)]))
    assert "why why" in page
    assert len(page) < 100_000 + len(render_html(analyse([run])))


def test_a_cell_of_more_samples_than_one_report_can_hold_is_refused(run: Path, monkeypatch: pytest.MonkeyPatch):
    assert Run.open(run).damaged == ()
    set_limits(monkeypatch, MOST_OF_A_CELL=14)
    assert {one.launch_id for one in Run.open(run).damaged} == {"b00-a", "b00-b"}
    assert "a cell of it has 15 samples, and 14 are the most" in Run.open(run).damaged[0].reason


def test_a_run_whose_journal_cannot_be_read_hides_no_other(run: Path):
    write_synthetic_run(run.parent / "good", cells=CELLS, blocks=1)
    with (run / "journal.jsonl").open("wb") as file:
        file.truncate(5 * 1024**3)
    found = {Path(one.path).name: one for one in past_runs(run.parent)}
    assert (found["good"].state, found["run"].state) == (State.COMPLETE, State.DAMAGED)
    assert "journal.jsonl cannot be read" in str(found["run"].reason)


def test_a_bad_run_hides_no_other(run: Path):
    write_synthetic_run(run.parent / "good", cells=CELLS, blocks=1)
    (run / "dossier.html").symlink_to("/dev/null")
    found = {Path(one.path).name: one for one in past_runs(run.parent)}
    assert (found["good"].state, found["run"].state) == (State.COMPLETE, State.DAMAGED)
    assert "outside of the run directory" in str(found["run"].reason)


def test_values_are_counted_before_they_are_made(tmp_path: Path):
    (tmp_path / "x.json").write_bytes(b"[" + b"[]," * 1000 + b"1]")
    assert read_file(tmp_path / "x.json")
    with pytest.raises(OSError, match="2,001 values"):
        read_file(tmp_path / "x.json", most_values=2000)


def test_a_line_without_end_costs_itself_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(integrity, "MOST_LINE_BYTES", 1000)
    (tmp_path / "records.jsonl").write_bytes(b"short\n" + b"x" * 5000 + b"\nshort\n" + b"y" * 5000)
    found = list(read_lines(tmp_path / "records.jsonl"))
    assert [len(line) for line in found] == [6, 101, 6, 101]
    assert [one.line for one in parse_record(found).damage][:4] == [1, 2, 3, 4]


def test_the_journal_names_no_file_outside_and_few_hashes_of_one(tmp_path: Path):
    names = ["/etc/passwd", "../x", "manifest.json"]
    lines = [json.dumps({"event": "described", "facts": {"sha256": dict.fromkeys(names, str(n))}}) for n in range(5000)]
    (tmp_path / "journal.jsonl").write_text("\n".join(lines))
    found = seals(tmp_path)
    assert list(found) == ["manifest.json"]
    assert found["manifest.json"][-1] == "4999"
    assert len(found["manifest.json"]) == integrity.MOST_HASHES


def test_what_is_quoted_is_cut_and_says_so(run: Path):
    assert shortened("x" * 3000) == "x" * 1000 + "... (3,000 characters)"
    content = table(("name",), [("y" * 5000,)])
    assert "... (5,000 characters)" in as_text(content)
    assert "... (5,000 characters)" in as_markdown(content)
    told = json.loads((run / "manifest.json").read_text())
    told["campaign_name"] = "z" * 1_000_000
    (run / "manifest.json").write_text(json.dumps(told))
    assert len(Run.open(run).manifest.campaign_name) < 1100
