"""What the lab reads of the frames of measured stages: those of a span, from both files, past a line that was cut short."""

from __future__ import annotations

from pathlib import Path

from fabricbench.lab.status import read_crossings

SECOND = 1_000_000_000
NOW = 1_793_400_000 * SECOND


def row(at: int) -> list[int]:
    return [NOW + at, 5_000, NOW + at + 6_000, NOW + at + 6_100]


def test_frames_of_a_span_are_read_from_both_files(tmp_path: Path):
    path = tmp_path / "crossings.jsonl"
    (tmp_path / "crossings.jsonl.old").write_text(f"{row(0)}\n{row(90 * SECOND)}\n")
    path.write_text(f"{row(100 * SECOND)}\n[1, 2\n[3]\n{row(101 * SECOND)}\n{row(102 * SECOND)}\n[{NOW}")
    spans = {3: (NOW + 90 * SECOND, NOW + 101 * SECOND), 4: (NOW + 200 * SECOND, NOW + 201 * SECOND)}
    assert read_crossings(path, spans) == {3: [row(90 * SECOND), row(100 * SECOND), row(101 * SECOND)]}


def test_no_file_and_no_span_tell_nothing(tmp_path: Path):
    assert read_crossings(tmp_path / "crossings.jsonl", {1: (0, 1)}) == {}
    assert read_crossings(tmp_path / "crossings.jsonl", {}) == {}
