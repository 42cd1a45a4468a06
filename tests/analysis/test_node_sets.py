"""What stands first where a run went on without nodes that failed: the nodes that have the most blocks, by their name."""

from __future__ import annotations

from pathlib import Path

import pytest

from fabricbench.analysis import analyse
from fabricbench.analysis.findings import CellKey, Findings, Verdict, is_basic
from fabricbench.analysis.load_subjects import on_most_ranks
from fabricbench.analysis.node_sets import on_leading_nodes
from fabricbench.analysis.sides import read_sides
from fabricbench.analysis.weighing import weigh
from fabricbench.model import Layer, Pattern
from fabricbench.record.decision_table import DecisionTable, Weight
from fabricbench.record.manifest import NodeLoss, read_manifest, write_manifest
from fabricbench.record.probe_plan import PlanCongestor
from fabricbench.record.store import Run
from support.cell_keys import cell_key
from support.synthetic_run import Noise, ladder_cells, synthetic_testbed, write_synthetic_run

RATES = {"one": 100e6, "other": 1280e6}


def run_with(path: Path, *losses: NodeLoss, nodes: int = 3) -> Run:
    cells = [cell for cell in ladder_cells(RATES, samples=20) if cell.layer in (Layer.TCP, Layer.MPI)]
    write_synthetic_run(
        path,
        cells=cells,
        blocks=12,
        noise=Noise(launch=0.005, sample=0.02),
        testbed=synthetic_testbed(RATES, nodes=nodes),
    )
    write_manifest(path, read_manifest(path).model_copy(update={"losses": losses}))
    return Run.open(path)


def loss(node: str, *kept: int) -> NodeLoss:
    return NodeLoss(reasons={node: "gone"}, kept=kept, ranks=2, unix_ns=1)


def shown(findings: Findings) -> list[tuple[str, Verdict]]:
    return [(row.what, row.pairs[0].verdict) for row in findings.headline.effects]


@pytest.mark.slow
@pytest.mark.parametrize("kept", [(), (0,), tuple(range(5))])
def test_the_blocks_without_a_node_stand_first_where_they_are_more(tmp_path: Path, kept: tuple[int, ...]):
    findings = analyse([run_with(tmp_path / "run", loss("n0", *kept))])
    rows = shown(findings)
    assert ("MPI (without n0) round trip, 64 B", Verdict.B_FASTER) in rows
    assert all("without n0" in what for what, _ in rows)
    assert len(findings.ladder) == 4
    assert findings.ladder[0].round_trip is not None
    assert findings.headline.sentence.startswith("other is faster")
    assert "11 of 11 sizes" in findings.headline.detail


def test_the_blocks_on_all_nodes_stand_first_where_they_are_more(tmp_path: Path):
    rows = shown(analyse([run_with(tmp_path / "run", loss("n0", *range(8)))]))
    assert ("MPI round trip, 64 B", Verdict.B_FASTER) in rows
    assert not any("without" in what for what, _ in rows)


def test_what_is_weighed_is_of_the_nodes_with_the_most_blocks(tmp_path: Path):
    sides = read_sides([run_with(tmp_path / "run", loss("n0", 0))])
    weight = Weight(layer=Layer.TCP, pattern=Pattern.PINGPONG, message_bytes=64, weight=1.0)
    for table in (DecisionTable(), DecisionTable(weight=(weight,))):
        weighed = weigh(sides, table)
        assert {key.variant for key in weighed.keys} == {"without n0"}
        assert weighed.logs.shape[2] == 11


def test_cautions_name_the_sets_of_nodes_that_there_are(tmp_path: Path):
    run = run_with(tmp_path / "run", loss("n1", 0, 1, 2, 3), loss("n0", *range(8)), nodes=5)
    findings = analyse([run])
    texts = {one.subject: one.text for one in findings.warnings if one.subject in ("n0", "n1")}
    assert "called `without n1` and `without n1 n0`," in texts["n1"]
    assert "called `without n1 n0`," in texts["n0"]
    assert "on all nodes" not in texts["n0"]
    assert {cell.variant for cell in findings.cells} == {"", "without n1", "without n1 n0"}


def farm(ranks: int, *lost_nodes: str) -> CellKey:
    return cell_key(Layer.MPI, Pattern.WORKLOAD, ranks=ranks, lost_nodes=lost_nodes, workload="speech")


def test_a_workload_leads_on_most_ranks_and_after_a_failure_where_most_blocks_are():
    three, two = farm(3), farm(2)
    assert on_most_ranks([two, three]) == [three]
    assert on_most_ranks([two, three], {three: 2, two: 22}) == [two]
    moved = farm(2, "n0")
    still = farm(2)
    assert on_leading_nodes([still, moved], {still: 2, moved: 22}) == [moved]
    assert on_leading_nodes([moved, still], {still: 12, moved: 12}) == [still]


def test_lost_nodes_are_a_field_and_leave_a_plain_test_plain():
    key = cell_key(Layer.TCP, Pattern.STREAM, 64, lost_nodes=("c3", "c4"))
    assert (key.variant, key.lost_nodes) == ("without c3 c4", ("c3", "c4"))
    assert is_basic(key)
    incast = PlanCongestor(layer=Layer.TCP, pattern=Pattern.INCAST, message_bytes=64, ranks=(2, 3, 4))
    beside = cell_key(Layer.TCP, Pattern.STREAM, 64, congestor=incast, lost_nodes=("c3",))
    assert not is_basic(beside)
    assert beside.variant_words == ("beside incast tcp 64 B of 3 ranks", "without c3")
