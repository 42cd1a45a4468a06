"""Guidelines of collectives: sizes that mean the same bytes, what is broken and what it costs, and how rarely chance breaks any."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.guidelines import GUIDELINES, Bytes, checks_of
from fabricbench.chapters import guidelines
from fabricbench.chapters.chapter import rows_of
from fabricbench.chapters.guidelines import BrokenGuideline
from fabricbench.model import Layer, Pattern, Receive
from fabricbench.patterns import PATTERNS
from fabricbench.record.store import Run
from fabricbench.report.terminal import render_terminal
from support.synthetic_run import SyntheticCell, synthetic_testbed, write_synthetic_run

RANKS = (0, 1, 2, 3)
SIZES = (64, 256, 1024, 4096)
PER_BYTE = {
    Pattern.BCAST: 2.0,
    Pattern.GATHER: 3.0,
    Pattern.SCATTER: 3.0,
    Pattern.ALLGATHER: 6.0,
    Pattern.ALLTOALL: 7.0,
    Pattern.REDUCE: 2.5,
    Pattern.ALLREDUCE: 4.0,
    Pattern.REDUCE_SCATTER_BLOCK: 6.0,
}
"""In ns, beside START of each call: operations that keep every guideline."""
START = 20_000.0


def run_of(path: Path, longer: Mapping[tuple[Pattern, int], float], *, blocks: int = 8) -> Run:
    """Collectives of four ranks, of which some take so many times as long as they might."""
    cells = [
        SyntheticCell(
            Layer.MPI,
            pattern,
            size,
            {"net": (START + per_byte * size) * longer.get((pattern, size), 1.0)},
            receive=Receive.LIBRARY,
            ranks=RANKS,
            samples=60,
        )
        for pattern, per_byte in PER_BYTE.items()
        for size in SIZES
    ]
    return write_synthetic_run(path, cells=cells, blocks=blocks, testbed=synthetic_testbed({"net": 1e9}, nodes=4))


def test_an_operation_slower_than_calls_in_its_place_is_named_with_what_it_costs(tmp_path: Path):
    findings = analyse([run_of(tmp_path / "run", {(Pattern.ALLGATHER, 1024): 2.5})])
    found = rows_of(findings, guidelines.NAME, BrokenGuideline)
    assert found
    assert all(one.key.pattern is Pattern.ALLGATHER for one in found)
    assert all(one.key.message_bytes == 1024 for one in found)
    by_calls = {tuple((call.pattern, call.message_bytes, call.times) for call in one.replacement): one for one in found}
    both = by_calls[(Pattern.GATHER, 1024, 1), (Pattern.BCAST, 4096, 1)]
    takes, instead = 2.5 * (START + 6 * 1024), 2 * START + 3 * 1024 + 2 * 4096
    assert both.time.value == pytest.approx(takes, rel=0.03)
    assert both.replaced.value == pytest.approx(instead, rel=0.03)
    assert both.gain.value == pytest.approx(takes - instead, rel=0.1)
    assert both.factor.value == pytest.approx(takes / instead, rel=0.03)
    assert {((Pattern.ALLTOALL, 1024, 1),), ((Pattern.ALLGATHER, 4096, 1),)} <= by_calls.keys()
    assert [one.gain.value for one in found] == sorted((one.gain.value for one in found), reverse=True)

    text = " ".join(render_terminal(findings, 120, color=False).replace("\N{NO-BREAK SPACE}", " ").split())
    assert "allgather of 1 KiB" in text
    assert "gather of 1 KiB and bcast of 4 KiB together" in text
    assert "to gain" in text


def test_a_run_whose_operations_keep_all_guidelines_has_no_such_chapter(tmp_path: Path):
    findings = analyse([run_of(tmp_path / "run", {})])
    assert guidelines.NAME not in findings.chapters
    assert guidelines.CHAPTER.title not in render_terminal(findings, 120, color=False)


def test_a_larger_message_that_is_faster_and_parts_that_are_faster_break_a_guideline(tmp_path: Path):
    findings = analyse([run_of(tmp_path / "run", {(Pattern.BCAST, 256): 1.5, (Pattern.ALLTOALL, 4096): 6.0})])
    found = {
        (one.key.pattern, one.replacement[0].pattern, one.replacement[0].message_bytes, one.replacement[0].times)
        for one in rows_of(findings, guidelines.NAME, BrokenGuideline)
        if len(one.replacement) == 1
    }
    assert (Pattern.BCAST, Pattern.BCAST, 1024, 1) in found
    assert (Pattern.ALLTOALL, Pattern.ALLTOALL, 1024, 4) in found


def test_too_few_launches_break_nothing(tmp_path: Path):
    findings = analyse([run_of(tmp_path / "run", {(Pattern.ALLGATHER, 1024): 2.5}, blocks=4)])
    assert guidelines.NAME not in findings.chapters


def test_sizes_are_those_that_move_the_same_bytes():
    assert Bytes.ALL_BLOCKS.needed(1024, 4) == 4096
    assert Bytes.ONE_BLOCK.needed(1000, 3) == 334
    assert Bytes.SAME.needed(1024, 4) == 1024
    buffers = {Pattern.BCAST, Pattern.REDUCE, Pattern.ALLREDUCE, Pattern.BARRIER}
    for operation, terms in GUIDELINES:
        for pattern, of in terms:
            if Pattern.BARRIER is operation:
                continue
            expected = {
                (False, True): Bytes.ALL_BLOCKS,
                (True, False): Bytes.ONE_BLOCK,
            }.get((operation in buffers, pattern in buffers), Bytes.SAME)
            assert of is expected, (operation, pattern)
        assert PATTERNS[operation].least_ranks >= 2


@pytest.mark.slow
def test_chance_breaks_guidelines_in_at_most_one_run_of_twenty():
    from support.simulated_sides import CellKey, metric_of, sides_of

    keys = [
        CellKey(
            layer=Layer.MPI,
            pattern=pattern,
            receive=Receive.LIBRARY,
            message_bytes=size,
            metric=metric_of(pattern),
            ranks=4,
        )
        for pattern in PER_BYTE
        for size in SIZES
    ]
    random = np.random.default_rng(1)
    runs = 300
    wrong = 0
    for _ in range(runs):
        # Every operation takes the same: each check of two equal calls is at the edge of what it allows.
        logs = (
            np.log(START) + 0.02 * random.standard_normal((1, len(keys), 6)) + 0.03 * random.standard_normal((1, 1, 6))
        )
        sides = sides_of(keys, logs, ("net",))
        for cell in sides[0].cells.values():
            object.__setattr__(cell.facts, "ranks", RANKS)
        checks = checks_of(sides, 0.0, {"net": frozenset(keys)})
        assert len(checks) > 60
        wrong += any(one.p_value < 0.05 for one in checks)
    assert wrong <= 0.05 * runs + 3 * np.sqrt(0.05 * 0.95 * runs)
