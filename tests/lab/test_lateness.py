"""What a switch's windows say of a span of time: a flood's lateness is the flood's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fabricbench.lab.status import read_lateness

MS = 1_000_000
START = 1_793_400_000_000 * MS
WINDOW = 10 * MS


def window(number: int, frames: dict[int, int]) -> str:
    """The line of the window that begins so many windows after the start."""
    begin = START + number * WINDOW
    pairs = [[late_ns, count] for late_ns, count in frames.items()]
    told = {"begin_unix_ns": begin, "end_unix_ns": begin + WINDOW, "maximum": max(frames), "held_ns": max(frames)}
    told["frames"] = pairs
    return json.dumps(told) + "\n"


def span(first_ms: float, last_ms: float) -> tuple[int, int]:
    return START + round(first_ms * MS), START + round(last_ms * MS)


FLOOD, QUIET = {1_200_000: 50, 800_000: 50}, {79: 99, 700: 1}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A flood of 100 ms, then a pause, then a ping-pong of 100 ms."""
    path = tmp_path / "switch-fe.lateness.jsonl"
    lines = [window(number, FLOOD) for number in range(10)] + [window(number, QUIET) for number in range(12, 22)]
    path.write_text("".join(lines))
    return path


def test_a_floods_lateness_is_not_held_against_a_ping_pong_measured_at_another_time(path: Path):
    found = read_lateness(path, {0: span(0, 100), 1: span(120, 220)})
    assert found[0].p50 == 800_000
    assert found[0].p99 == found[0].maximum == 1_200_000
    assert (found[1].count, found[1].p50, found[1].p99, found[1].maximum) == (1000, 79, 79, 700)
    assert found[1].mean == pytest.approx(0.99 * 79 + 7)
    assert found[0].held_share == pytest.approx(10 * 1.2 / 100)
    assert found[1].held_share == pytest.approx(10 * 700 / (100 * MS))


def test_a_window_that_a_cell_shares_with_what_ran_before_is_not_held_against_it(path: Path):
    path.write_text("".join([window(0, FLOOD), window(1, FLOOD), window(2, QUIET), window(3, QUIET)]))
    assert read_lateness(path, {0: span(15, 40)})[0].maximum == 700


def test_a_cell_shorter_than_two_windows_has_those_it_touches(path: Path):
    assert read_lateness(path, {0: span(124, 131)})[0].count == 200


def test_a_switch_of_an_earlier_version_tells_all_but_for_how_long_it_held_frames(path: Path):
    path.write_text("".join(line.replace('"held_ns": 700, ', "") + "\n" for line in path.read_text().splitlines()))
    found = read_lateness(path, {0: span(0, 100), 1: span(120, 220)})
    assert found[0].held_share is not None
    assert (found[1].count, found[1].held_share) == (1000, None)


def test_a_span_without_a_frame_is_left_out(path: Path):
    assert read_lateness(path, {0: span(101, 119), 1: span(500, 600)}) == {}


def test_spans_of_which_windows_were_dropped_are_not_told(path: Path):
    path.rename(path.with_name(path.name + ".old"))
    path.write_text(window(22, QUIET) + window(23, FLOOD))
    found = read_lateness(path, {0: span(-50, 100), 1: span(0, 100), 2: span(150, 240)})
    assert set(found) == {1, 2}
    assert found[2].count == 900
    assert found[2].maximum == 1_200_000


def test_a_line_that_is_still_being_written_is_not_read(path: Path):
    path.write_text(window(0, QUIET) + window(1, QUIET)[:40])
    assert read_lateness(path, {0: span(0, 20)})[0].count == 100


def test_a_switch_that_has_written_nothing_or_nonsense_tells_nothing(tmp_path: Path):
    garbled = tmp_path / "garbled"
    garbled.write_text("{}\n[1]\n")
    for path in (tmp_path / "missing", garbled):
        assert read_lateness(path, {0: span(0, 20)}) == {}


def test_lines_that_a_full_disk_cut_short_cost_no_others(path: Path):
    whole = read_lateness(path, {0: span(0, 100), 1: span(120, 220), 2: span(125, 128)})
    lines = path.read_text().splitlines(keepends=True)
    for at in (0, 5, len(lines) - 4, len(lines)):
        cut = [*lines[:at], '{"begin_unix_ns": 17\n', "\n", '{"begin_unix_ns": "x", "frames": []}\n', *lines[at:]]
        path.write_text("".join(cut))
        assert read_lateness(path, {0: span(0, 100), 1: span(120, 220), 2: span(125, 128)}) == whole
    path.write_text("".join([lines[10], "[1]\n" * 3, *lines[11:]]))
    assert read_lateness(path, {2: span(125, 128)}) == {2: whole[2]}


def test_an_old_file_that_begins_with_a_cut_line_tells_of_what_follows_it(path: Path):
    path.with_name(path.name + ".old").write_text('_ns": 17}\n' + "".join(path.read_text()))
    path.write_text(window(22, QUIET))
    assert set(read_lateness(path, {0: span(-50, 100), 1: span(0, 100), 2: span(120, 230)})) == {1, 2}
