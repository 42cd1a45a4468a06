"""Every altered file is noticed before a number is shown, names itself, and costs its launch and no other."""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.model import Layer, Pattern
from fabricbench.record import decoding
from fabricbench.record.decoding import DECODER
from fabricbench.record.integrity import data_hash, file_sha256, launch_path, seals
from fabricbench.record.store import Run
from support.scripts import script
from support.synthetic_run import SyntheticCell, forget_hashes, write_synthetic_run

CELLS = [
    SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {"a": 1e5, "b": 2e5}, samples=40),
    SyntheticCell(
        Layer.TCP,
        Pattern.INCAST,
        1024,
        {"a": 90e6, "b": 90e6},
        ranks=(0, 1, 2),
        channel_shares={(1, 0, 0): 0.5, (2, 0, 0): 0.5},
    ),
]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return write_synthetic_run(tmp_path / "run", cells=CELLS, blocks=2)


def damaged(run: Run) -> dict[str, str]:
    opened = Run.open(run.path)
    assert len(opened.launches) + len(opened.damaged) == 4
    return {one.launch_id: one.reason for one in opened.damaged}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["samples.parquet", "cells.parquet", "channels.parquet"])
def test_every_flipped_bit_is_noticed_names_the_file_and_costs_one_launch(run: Run, name: str):
    drawn = random.Random(5)
    path = run.path / "launches/b01-a" / name
    whole = path.read_bytes()
    for _ in range(25):
        flipped = bytearray(whole)
        flipped[drawn.randrange(len(whole))] ^= 1 << drawn.randrange(8)
        path.write_bytes(flipped)
        found = damaged(run)
        assert list(found) == ["b01-a"]
        assert f"b01-a/{name} cannot be read: it was altered" in found["b01-a"]
    path.write_bytes(whole)
    assert damaged(run) == {}


def test_files_of_two_launches_that_were_swapped_are_noticed(run: Run):
    one, other = (run.path / "launches" / name / "samples.parquet" for name in ("b00-a", "b01-a"))
    kept = one.read_bytes()
    shutil.copy(other, one)
    other.write_bytes(kept)
    assert sorted(damaged(run)) == ["b00-a", "b01-a"]


def journal(run: Run, *entries: dict[str, object]) -> None:
    (run.path / "journal.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))


def sealed(run: Run, launch_id: str) -> dict[str, object]:
    path = launch_path(launch_id)
    return {
        "event": "finished",
        "unix_ns": 1,
        "launch_id": launch_id,
        "facts": {"sha256": {path: file_sha256(run.path / path)}},
    }


def test_a_launch_json_that_is_not_what_the_journal_knows_is_noticed(run: Run):
    journal(run, sealed(run, "b00-a"))
    forget_hashes(run.path / "launches/b00-a")
    assert "launch.json cannot be read: it was altered" in damaged(run)["b00-a"]


def test_a_launch_without_hashes_counts_only_where_nobody_ever_told_of_any(run: Run):
    """Rewritten by who left the hashes out, with the journal's line of it gone: the others' lines tell that there were some."""
    forget_hashes(run.path / "launches/b00-a")
    assert damaged(run) == {}
    others = [sealed(run, launch_id) for launch_id in ("b00-b", "b01-a", "b01-b")]
    journal(run, *others)
    assert "it has lost its hashes" in damaged(run)["b00-a"]
    journal(run, {"event": "finished", "unix_ns": 1, "launch_id": "b00-a"}, *others)
    assert damaged(run) == {}  # an earlier version finished it


def test_a_launch_of_an_earlier_version_that_was_adopted_later_keeps_counting(run: Run):
    """It crashed before its line was written; a resume by this version has its `launch.json` sealed, which has no hashes in it."""
    forget_hashes(run.path / "launches/b00-a")
    journal(run, {"event": "described", "unix_ns": 1, "facts": {"sha256": {"manifest.json": "0"}}})
    assert damaged(run) == {}  # as it is when it is adopted
    journal(run, *[sealed(run, launch_id) for launch_id in ("b00-a", "b00-b")])
    assert damaged(run) == {}


def test_a_launch_that_was_started_again_is_not_held_against_what_it_was_before(run: Run):
    started = {"event": "started", "unix_ns": 2, "launch_id": "b00-a"}
    journal(run, sealed(run, "b00-a"), started)
    assert seals(run.path) == {}


def test_garbled_lines_of_the_journal_are_passed_over(run: Run):
    text = [
        "[" * 5000,
        '{"facts": {"sha256": 5}}',
        "7",
        '{"facts": {"sha256": {"x": 1}}}',
        '{"seed": ' + "9" * 5000 + "}",
    ]
    (run.path / "journal.jsonl").write_text("\n".join(text))
    assert seals(run.path) == {}
    assert damaged(run) == {}


def as_float(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.col("time_ns").cast(pl.Float64) + 0.5)


def no_json(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.lit("not json").alias("values"))


def far_index(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.lit(1e300).alias("index"))


def no_numbers(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.lit('{"overlap": "much"}').alias("values"))


def unknown_pattern(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(pl.lit("brandnew").alias("pattern"))


def twice(frame: pl.DataFrame) -> pl.DataFrame:
    return pl.concat([frame, frame])


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("samples.parquet", as_float),
        ("samples.parquet", twice),
        ("cells.parquet", no_json),
        ("cells.parquet", no_numbers),
        ("cells.parquet", unknown_pattern),
        ("cells.parquet", twice),
        ("channels.parquet", twice),
        ("channels.parquet", far_index),
    ],
)
def test_without_hashes_a_file_that_cannot_be_what_was_measured_costs_its_launch(
    run: Run, name: str, change: Callable[[pl.DataFrame], pl.DataFrame]
):
    forget_hashes(run.path / "launches/b01-a")
    path = run.path / "launches/b01-a" / name
    change(pl.read_parquet(path)).write_parquet(path)
    assert f"{name} cannot be read" in damaged(run)["b01-a"]


@pytest.mark.slow
def test_without_hashes_damage_never_reaches_this_process(run: Run, capfd: pytest.CaptureFixture[str]):
    """Of these bits some make polars panic, which is told on stderr, and some are not noticed: nobody could."""
    forget_hashes(run.path / "launches/b01-a")
    path = run.path / "launches/b01-a/cells.parquet"
    whole = path.read_bytes()
    reasons = []
    for seed in range(300):
        drawn = random.Random(seed)
        flipped = bytearray(whole)
        flipped[drawn.randrange(len(whole))] ^= 1 << drawn.randrange(8)
        path.write_bytes(flipped)
        try:
            DECODER.check_content(path)
        except ValueError as error:
            reasons.append(str(error))
    assert "it makes the Parquet reader panic" in reasons
    assert len(reasons) > 100
    assert "panicked" not in capfd.readouterr().err


def test_a_file_that_ends_its_reader_costs_its_launch_and_the_next_is_read(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    dying = f'[ -e {tmp_path}/died ] && exec {sys.executable} "$@"\ntouch {tmp_path}/died\nkill -ABRT $$'
    reader = script(tmp_path / "reader", dying)
    monkeypatch.setattr(sys, "executable", str(reader))
    DECODER.end()
    (reason,) = damaged(run).values()
    assert "cells.parquet cannot be read: decoding it ended the process that tried (exit code -6)" in reason


NO_THREADS = """
import polars
def panic(*_, **__):
    raise polars.exceptions.PanicException("could not spawn threads")
polars.LazyFrame.collect = panic
from fabricbench.record.decoding import _serve
_serve()
"""


@pytest.mark.slow
@pytest.mark.parametrize("has_reader", [True, False])
def test_where_no_file_can_be_decoded_none_is_called_damaged(
    has_reader: bool, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    reader = tmp_path / "reader"
    if has_reader:
        (tmp_path / "no_threads.py").write_text(NO_THREADS)
        script(reader, f"exec {sys.executable} {tmp_path}/no_threads.py")
    monkeypatch.setattr(sys, "executable", str(reader))
    DECODER.end()
    with pytest.raises(EnvironmentLacks, match=r"tables \(Parquet\) cannot be read here"):
        damaged(run)


@pytest.mark.slow
def test_a_process_that_was_forked_leaves_the_decoding_child_to_its_parent(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    reader = script(tmp_path / "reader", f'echo >> {tmp_path}/started\nexec {sys.executable} "$@"')
    monkeypatch.setattr(sys, "executable", str(reader))
    path = run.path / "launches/b00-a/cells.parquet"
    DECODER.end()
    DECODER.check_content(path)
    forked = os.fork()
    if forked == 0:
        code = 1
        try:
            DECODER.check_content(path)
            DECODER.end()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) == 0
    DECODER.check_content(path)
    assert (tmp_path / "started").read_text() == "\n\n"


@pytest.mark.slow
@pytest.mark.timeout(30)
def test_many_files_are_decoded_by_a_second_child_while_the_first_is_busy(run: Run, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(decoding, "MANY_FILES", 1)
    decoders, path = decoding.Decoders(), run.path / "launches/b00-a/cells.parquet"
    decoders.check_content(path)
    with decoders._first._lock:
        decoders.check_content(path)
    decoders.end()


def test_an_answer_that_was_not_waited_for_is_not_taken_for_that_of_the_next_file(
    run: Run, monkeypatch: pytest.MonkeyPatch
):
    launch = run.path / "launches/b00-a"
    (launch / "broken").mkdir()
    broken = launch / "broken/cells.parquet"
    broken.write_bytes(b"PAR1")
    DECODER.check_content(launch / "cells.parquet")

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(socket.socket, "makefile", interrupted)
        with pytest.raises(KeyboardInterrupt):
            DECODER.check_content(broken)
    DECODER.check_content(launch / "cells.parquet")


def test_a_run_without_hashes_reads_as_before(run: Run):
    before = run.launch_quantiles()
    for launch in run.launches:
        forget_hashes(launch.directory)
    assert Run.open(run.path).launch_quantiles().equals(before)


@pytest.mark.parametrize("version", ["9" * 5000, "9" * 20])
def test_an_absurd_version_is_an_error_and_no_traceback(run: Run, version: str):
    (run.path / "manifest.json").write_text(f'{{"schema": "fabricbench/run/{version}"}}')
    with pytest.raises(UsageError, match=r"manifest\.json cannot be read"):
        Run.open(run.path)


def test_a_file_that_is_gone_or_is_no_file_costs_its_launch(run: Run):
    (run.path / "launches/b00-a/channels.parquet").unlink()
    (run.path / "launches/b01-b/channels.parquet").unlink()
    (run.path / "launches/b01-b/channels.parquet").mkdir()
    assert sorted(damaged(run)) == ["b00-a", "b01-b"]


def test_the_hash_of_the_data_covers_every_launch(run: Run):
    before = data_hash(run.path)
    shutil.rmtree(run.path / "launches/b01-a")
    assert data_hash(run.path) != before
