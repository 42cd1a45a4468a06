"""The map of a network in runs whose truth is known: slow nodes, healthy networks, suspects that a second run clears."""

from __future__ import annotations

import base64
import csv
import io
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.findings import MapVerdict, Severity
from fabricbench.analysis.network_map import CONFIRMATION, confirmation_of, network_maps
from fabricbench.chapters.network_map import MAPS, map_verdict, matrix, slow_table
from fabricbench.cli.map import render
from fabricbench.cli.output import OutputFormat
from fabricbench.model import Layer, Pattern
from fabricbench.record.launch import LaunchSummary
from fabricbench.record.lines import FailureCode, PairFailed
from fabricbench.record.store import Run
from fabricbench.report.html import render_html
from fabricbench.statistics.candidates import Touch
from support.synthetic_run import Noise, SyntheticCell, synthetic_testbed, write_synthetic_run

PAIRS = tuple((one, other) for one in range(4) for other in range(one + 1, 4))
TRIP_NS = 1e5


def write(
    directory: Path,
    slower: Mapping[tuple[int, int], float],
    *,
    nodes: int = 4,
    seed: int = 1,
    blocks: int = 3,
    among: tuple[tuple[int, int], ...] = PAIRS,
    parameters: dict[str, str | int | float] | None = None,
) -> Run:
    """A run of `pairs` in which some pairs take that many times longer."""
    pairs = [pair for pair in among if max(pair) < nodes]
    cell = SyntheticCell(
        Layer.TCP,
        Pattern.PAIRS,
        1024,
        {"net": TRIP_NS},
        samples=40,
        ranks=tuple(range(nodes)),
        parameters=parameters or {},
        pair_medians={pair: TRIP_NS * (1 + 0.002 * sum(pair)) * slower.get(pair, 1.0) for pair in pairs},
    )
    return write_synthetic_run(
        directory,
        cells=[cell],
        blocks=blocks,
        seed=seed,
        noise=Noise(launch=0.005, sample=0.02),
        testbed=synthetic_testbed({"net": 100e6}, nodes=nodes),
    )


def with_slow_node(node: int, factor: float) -> dict[tuple[int, int], float]:
    return {pair: factor for pair in PAIRS if node in pair}


def test_a_slow_node_is_suspected_by_one_run_and_named_by_two(tmp_path: Path):
    run = write(tmp_path / "run", with_slow_node(2, 1.25))
    (alone,) = network_maps(run)
    (suspect,) = alone.slow
    assert (suspect.touch, suspect.hosts, suspect.is_confirmed) == (Touch.MEMBER, ("n2",), False)
    assert suspect.slower == pytest.approx(0.2, abs=0.02)
    assert suspect.slower_low <= suspect.slower <= suspect.slower_high
    assert not alone.is_measured_again
    (confirmed,) = network_maps(run, confirmation=write(tmp_path / "again", with_slow_node(2, 1.25), seed=2))
    assert [(one.hosts, one.is_confirmed) for one in confirmed.slow] == [(("n2",), True)]
    assert confirmed.is_measured_again


def test_a_slow_pair_is_told_from_a_slow_node(tmp_path: Path):
    (one,) = network_maps(write(tmp_path, {(1, 3): 1.3}))
    assert [(slow.touch, slow.hosts) for slow in one.slow] == [(Touch.PAIR, ("n1", "n3"))]


def test_nobody_is_accused_in_a_healthy_network(tmp_path: Path):
    for seed in range(1, 7):
        (one,) = network_maps(write(tmp_path / str(seed), {}, seed=seed))
        assert one.slow == ()
        assert one.is_judged


def test_a_second_run_clears_who_was_only_slow_once(tmp_path: Path):
    run = write(tmp_path / "run", with_slow_node(1, 1.3))
    assert network_maps(run)[0].slow
    (cleared,) = network_maps(run, confirmation=write(tmp_path / "again", {}, seed=2))
    assert cleared.slow == ()
    assert cleared.is_measured_again


def test_pairs_that_failed_are_named_with_the_reason_in_the_map_and_among_the_warnings(tmp_path: Path):
    run = write(tmp_path, {})
    for launch in run.launches[1:]:
        path = launch.directory / "launch.json"
        summary = LaunchSummary.model_validate_json(path.read_bytes())
        pair = PairFailed(
            cell=0, source=1, destination=3, code=FailureCode.TIMEOUT, reason="rank 3 on n3: nothing came for 10 s"
        )
        path.write_text(summary.model_copy(update={"failed_pairs": (pair,)}).model_dump_json(by_alias=True))
    run = Run.open(tmp_path)
    (one,) = network_maps(run)
    words = "n1 with n3 could not be measured in 2 of 3 launches: rank 3 on n3: nothing came for 10 s"
    assert one.failed_words == (words,)
    assert words in render([one], OutputFormat.TEXT, {})
    assert any(words in warning.text and warning.severity is Severity.WARNING for warning in analyse([run]).warnings)


def test_the_matrix_has_the_medians_both_ways_and_nothing_on_its_diagonal(tmp_path: Path):
    (one,) = network_maps(write(tmp_path, {(0, 1): 2.0}))
    assert one.hosts == ("n0", "n1", "n2", "n3")
    assert [one.matrix[host][host] for host in range(4)] == [None] * 4
    assert one.matrix[0][1] == one.matrix[1][0]
    assert one.matrix[0][1] == pytest.approx(2.0 * TRIP_NS * 1.002, rel=0.02)


def test_three_hosts_are_shown_and_not_judged(tmp_path: Path):
    (one,) = network_maps(write(tmp_path, {(0, 1): 2.0}, nodes=3))
    assert not one.is_judged
    assert one.slow == ()


def test_hosts_that_are_in_one_pair_each_are_shown_and_not_judged(tmp_path: Path):
    run = write(tmp_path, {(0, 2): 2.0}, among=((0, 2), (1, 3)), parameters={"schedule": "halves"})
    (one,) = network_maps(run)
    assert (one.is_judged, one.slow, one.schedule) == (False, (), "halves")
    assert [pair for pair in PAIRS if one.matrix[pair[0]][pair[1]] is not None] == [(0, 2), (1, 3)]
    words = "Each host is in one pair alone: causes cannot be told apart, so nobody is judged."
    assert map_verdict([one]) == words
    assert words in render([one], OutputFormat.TEXT, {})


def test_a_run_without_pairs_has_no_map(tmp_path: Path):
    cell = SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {"net": 1e5}, samples=20)
    assert network_maps(write_synthetic_run(tmp_path, cells=[cell], blocks=2)) == ()


def test_the_report_calls_a_suspect_a_suspect_until_the_folder_beside_it_confirms(tmp_path: Path):
    run = write(tmp_path, with_slow_node(3, 1.25))
    suspected = analyse([run])
    assert [slow.is_confirmed for slow in MAPS.of(suspected)[0].slow] == [False]
    (note,) = [one for one in suspected.warnings if "n3" in one.text]
    assert note.severity is Severity.NOTE
    assert "suspected by one run" in note.text
    write(tmp_path / CONFIRMATION, with_slow_node(3, 1.25), seed=2)
    assert confirmation_of(Run.open(tmp_path)) is not None
    confirmed = analyse([Run.open(tmp_path)])
    assert [slow.is_confirmed for slow in MAPS.of(confirmed)[0].slow] == [True]
    (warning,) = [one for one in confirmed.warnings if "n3" in one.text]
    assert warning.severity is Severity.WARNING


def test_before_and_after_have_maps_of_their_own(tmp_path: Path):
    found = analyse([write(tmp_path / "a", {}), write(tmp_path / "b", with_slow_node(0, 1.3), seed=3)])
    assert [(one.fabric, len(one.slow)) for one in MAPS.of(found)] == [("net (before)", 0), ("net (after)", 1)]


def write_many(directory: Path, nodes: int, slower: Mapping[tuple[int, int], float], *, seed: int = 1) -> Run:
    """A run of `pairs` among more nodes, healthy but for the pairs given."""
    random = np.random.default_rng(seed)
    medians = {
        (one, other): TRIP_NS * slower.get((one, other), 1.0) * float(np.exp(random.normal(0, 0.01)))
        for one in range(nodes)
        for other in range(one + 1, nodes)
    }
    ranks = tuple(range(nodes))
    cell = SyntheticCell(Layer.TCP, Pattern.PAIRS, 1024, {"net": TRIP_NS}, samples=8, ranks=ranks, pair_medians=medians)
    bed = synthetic_testbed({"net": 100e6}, nodes=nodes)
    return write_synthetic_run(
        directory, cells=[cell], blocks=3, seed=seed, noise=Noise(launch=0.005, sample=0.02), testbed=bed
    )


def across(first: int, nodes: int, factor: float) -> dict[tuple[int, int], float]:
    """Pairs between the first nodes and the others, all that much slower."""
    return {(one, other): factor for one in range(first) for other in range(first, nodes)}


def test_nodes_behind_another_switch_are_told_as_a_group_and_not_accused(tmp_path: Path):
    (one,) = network_maps(write_many(tmp_path, 8, across(6, 8, 1.25)))
    assert one.slow == ()
    assert one.verdict is MapVerdict.NOBODY
    assert one.groups == (("n0", "n1", "n2", "n3", "n4", "n5"), ("n6", "n7"))
    assert one.crossing == pytest.approx(0.2, abs=0.03)
    assert "the nodes are in 2 groups" in map_verdict([one])
    assert "20 % slower" in one.groups_words or "19 % slower" in one.groups_words or "21 % slower" in one.groups_words


def test_a_lone_node_behind_a_switch_is_not_said_to_be_slow_alone(tmp_path: Path):
    (one,) = network_maps(write_many(tmp_path, 8, across(7, 8, 1.25)))
    assert [slow.words for slow in one.slow] == ["n7 is slow with all others, or alone behind another switch"]


def test_slow_pairs_without_a_cause_are_listed_and_nobody_is_said_to_be_fast(tmp_path: Path):
    tangled = {(0, 1): 4.5, (1, 2): 2.2, (2, 3): 5.0, (3, 4): 3.1, (4, 5): 4.0, (0, 5): 2.6, (0, 3): 3.5}
    run = write_many(tmp_path / "run", 6, tangled)
    (one,) = network_maps(run)
    assert one.verdict is MapVerdict.UNNAMED
    assert one.needs_second_run
    assert (one.unexplained[0].source, one.unexplained[0].destination) == ("n2", "n3")
    assert one.unexplained[0].slower == pytest.approx(0.8, abs=0.05)
    assert one.unexplained[0].value == pytest.approx(5 * TRIP_NS, rel=0.05)
    words = map_verdict([one])
    assert "Cannot be named yet" in words
    assert "No node" not in words
    listed = [row[1].split(":")[0] for row in slow_table([one]).rows]
    assert listed[0] == "n2 with n3"
    (again,) = network_maps(run, confirmation=write_many(tmp_path / "again", 6, tangled, seed=2))
    assert again.verdict is MapVerdict.UNNAMED
    (cleared,) = network_maps(run, confirmation=write_many(tmp_path / "cleared", 6, {}, seed=3))
    assert cleared.verdict is MapVerdict.NOBODY


def test_pairs_alone_confirm_and_clear_what_was_slow_among_pairs_at_once_and_not_the_other_way_round(tmp_path: Path):
    slow, rounds = with_slow_node(2, 1.25), {"schedule": "rounds"}
    at_once = write(tmp_path / "rounds", slow, parameters=rounds)
    (confirmed,) = network_maps(at_once, confirmation=write(tmp_path / "alone", slow, seed=2))
    assert [(one.hosts, one.is_confirmed) for one in confirmed.slow] == [(("n2",), True)]
    (cleared,) = network_maps(at_once, confirmation=write(tmp_path / "good", {}, seed=2))
    assert cleared.verdict is MapVerdict.NOBODY
    alone = write(tmp_path / "first", slow)
    (suspected,) = network_maps(alone, confirmation=write(tmp_path / "second", slow, seed=2, parameters=rounds))
    assert [one.is_confirmed for one in suspected.slow] == [False]


def test_the_report_warns_of_pairs_that_nobody_could_name(tmp_path: Path):
    tangled = {(0, 1): 4.5, (1, 2): 2.2, (2, 3): 5.0, (3, 4): 3.1, (4, 5): 4.0, (0, 5): 2.6, (0, 3): 3.5}
    found = analyse([write_many(tmp_path, 6, tangled)])
    assert [one.severity for one in found.warnings if "Cannot be named yet" in one.text] == [Severity.NOTE]


@pytest.mark.slow
def test_a_map_of_hundreds_of_hosts_is_an_image_with_all_of_its_numbers_beside_it(tmp_path: Path):
    slower = {(min(3, other), max(3, other)): 1.3 for other in range(130) if other != 3}
    findings = analyse([write_many(tmp_path, 130, slower)])
    (one,) = MAPS.of(findings)
    figure = matrix(findings)
    assert figure is not None
    (panel,) = figure.panels
    image, *frames = panel.spec["layer"]
    png = base64.b64decode(image["data"]["values"][0]["url"].partition(",")[2])
    width, height = struct.unpack(">II", png[16:24])
    assert (width, height) == (130, 130)
    pixels = np.frombuffer(zlib.decompress(png[png.index(b"IDAT") + 4 : -16]), dtype=np.uint8).reshape(130, 131)[:, 1:]
    assert set(np.diag(pixels)) == {201}
    assert pixels[3, 50] == pixels[50, 3] == 200
    assert pixels[50, 60] != 200
    drawn = [(row["x"], row["x_end"], row["y"], row["y_end"]) for row in frames[0]["data"]["values"]]
    assert sorted(drawn) == [(0, 130, 3, 4), (3, 4, 0, 130)]
    assert len(figure.table.rows) == 1000
    assert all("n3" in row for row in figure.table.rows[:258])
    ((_, text),) = figure.files
    header, *lines = csv.reader(io.StringIO(text))
    assert header[1:] == list(one.hosts)
    assert float(lines[5][8]) == pytest.approx(one.matrix[5][7], rel=1e-3)
    assert "matrix-1.csv" in render_html(findings)
