"""`fabricbench map`: what it writes of stored runs, and that nobody is accused before the pairs were measured again."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner, Result

import fabricbench.campaign.plan
import fabricbench.campaign.venue
import fabricbench.cli.map
from fabricbench.analysis.findings import NetworkMap
from fabricbench.analysis.network_map import CONFIRMATION
from fabricbench.campaign.preparing import Prepared
from fabricbench.cli import app
from fabricbench.cli.map import render
from fabricbench.cli.output import OutputFormat
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Metric, Pattern
from support.synthetic_run import Noise, SyntheticCell, synthetic_testbed, write_synthetic_run

PAIRS = tuple((one, other) for one in range(4) for other in range(one + 1, 4))
BED = synthetic_testbed({"net": 100e6}, nodes=4)


def write(directory: Path, slow_node: int | None = None, seed: int = 1) -> None:
    medians = {pair: 1e5 * (1.3 if slow_node in pair else 1.0) * (1 + 0.001 * sum(pair)) for pair in PAIRS}
    cell = SyntheticCell(
        Layer.TCP, Pattern.PAIRS, 1024, {"net": 1e5}, samples=30, ranks=(0, 1, 2, 3), pair_medians=medians
    )
    write_synthetic_run(directory, cells=[cell], blocks=3, seed=seed, noise=Noise(0.005, 0.02), testbed=BED)


def show(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["map", *map(str, arguments)], env={"COLUMNS": "400"})


def test_a_healthy_network_is_said_to_be_so_above_its_matrix(tmp_path: Path):
    write(tmp_path)
    result = show(tmp_path)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("No node, pair or direction was found slow.")
    within = r"the slowest pair, n\d with n\d, is 0\.\d % slower than the median one, within the margin of 5 %"
    assert re.search(rf"net, tcp pairs of 1 KiB: {within}", result.stdout)
    assert [line.split()[0] for line in result.stdout.splitlines()[-4:]] == ["n0", "n1", "n2", "n3"]


def test_one_run_alone_only_suspects(tmp_path: Path):
    write(tmp_path, slow_node=2)
    first = show(tmp_path).stdout.splitlines()[0]
    assert "n2 is slow with all others" in first
    assert "suspected only: one run, not measured again" in first


def test_a_second_run_beside_it_confirms_or_clears(tmp_path: Path):
    write(tmp_path, slow_node=2)
    write(tmp_path / CONFIRMATION, slow_node=2, seed=2)
    first = show(tmp_path).stdout.splitlines()[0]
    assert "n2 is slow with all others" in first
    assert "suspected" not in first
    other = tmp_path / "other"
    write(other, slow_node=2)
    write(other / CONFIRMATION, seed=2)
    assert show(other).stdout.startswith("No node, pair or direction was found slow.")


def test_json_holds_every_field_and_csv_a_row_for_each_pair(tmp_path: Path):
    write(tmp_path, slow_node=1)
    (one,) = json.loads(show(tmp_path, "--format", "json").stdout)
    assert one["slow"][0]["hosts"] == ["n1"]
    assert one["matrix"][0][0] is None
    rows = list(csv.DictReader(io.StringIO(show(tmp_path, "--format", "csv").stdout)))
    assert len(rows) == 12
    assert {row["unit"] for row in rows} == {"ns"}
    assert show(tmp_path, "--format", "markdown").stdout.count("\n| n") == 4


def test_slow_pairs_without_a_cause_are_never_called_nobody(tmp_path: Path):
    tangled = {(0, 1): 4.5, (2, 3): 5.0, (0, 2): 3.0}
    medians = {pair: 1e5 * tangled.get(pair, 1.0) for pair in PAIRS}
    cell = SyntheticCell(
        Layer.TCP, Pattern.PAIRS, 1024, {"net": 1e5}, samples=30, ranks=(0, 1, 2, 3), pair_medians=medians
    )
    write_synthetic_run(tmp_path, cells=[cell], blocks=3, noise=Noise(0.005, 0.02), testbed=BED)
    result = show(tmp_path)
    assert result.exit_code == 0
    assert "No node, pair or direction was found slow" not in result.stdout
    assert "Cannot be named yet: 3 pairs are 3.0 times to 5.0 times slower than the others" in result.stdout
    assert "n2 with n3 (5.0 times)" in result.stdout
    (one,) = json.loads(show(tmp_path, "--format", "json").stdout)
    assert one["verdict"] == "cannot be named yet"
    assert len(one["unexplained"]) == 3


def test_a_smaller_margin_names_what_a_larger_one_lets_pass(tmp_path: Path):
    write(tmp_path, slow_node=0)
    assert "n0 is slow" in show(tmp_path).stdout
    assert "n0 is slow" not in show(tmp_path, "--margin", "40%").stdout


def test_a_run_without_pairs_says_how_to_get_them(tmp_path: Path):
    cell = SyntheticCell(Layer.TCP, Pattern.PINGPONG, 64, {"net": 1e5}, samples=20)
    write_synthetic_run(tmp_path, cells=[cell], blocks=2)
    result = show(tmp_path)
    assert isinstance(result.exception, UsageError)
    assert "no matrix was measured in" in str(result.exception)
    assert "the campaign `map` measures one" in str(result.exception.hint)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Replace the measuring: the first run finds n3 slow, the second nobody."""
    directories: list[Path] = []

    def measure(prepared: Prepared, directory: Path) -> None:
        assert prepared.plan == 7
        directories.append(directory)
        write(directory, slow_node=3 if len(directories) == 1 else None, seed=len(directories))

    monkeypatch.setattr(fabricbench.cli.map, "measure", measure)
    monkeypatch.setattr(fabricbench.cli.map, "find_venue", lambda _where, _nodes: SimpleNamespace(testbed=lambda: BED))
    monkeypatch.setattr(fabricbench.cli.map, "plan_run", lambda _campaign, _testbed, *, seed: seed)
    return directories


def test_whoever_looks_slow_is_measured_again_before_being_accused(tmp_path: Path, measured: list[Path]):
    result = show(tmp_path / "run", "--testbed", "lab:net", "--seed", "7")
    assert result.exit_code == 0, result.output
    assert measured == [tmp_path / "run", tmp_path / "run" / CONFIRMATION]
    assert "measured again before anybody is accused" in result.stderr
    assert result.stdout.startswith("No node, pair or direction was found slow.")


def test_a_testbed_of_one_node_has_no_pair_to_map(tmp_path: Path):
    result = show(tmp_path / "run", "--testbed", "local")
    assert isinstance(result.exception, UsageError)
    assert result.exception.message == "a map is of pairs of nodes, and the fabrics of this testbed are measured over 1"
    assert result.exception.exit_code == 2
    assert not (tmp_path / "run").exists()


def test_a_layer_without_a_stream_cannot_be_mapped(tmp_path: Path, measured: list[Path]):
    result = show(tmp_path / "run", "--testbed", "lab:net", "--seed", "7", "--layer", "udp")
    assert isinstance(result.exception, UsageError)
    assert "--layer udp cannot be mapped" in result.exception.message
    assert measured == []


def test_every_form_says_that_the_links_are_emulated(tmp_path: Path):
    write(tmp_path)
    assert "emulated: net (the lab's switches, not hardware)" in show(tmp_path).stdout.splitlines()
    assert {one["origin"] for one in json.loads(show(tmp_path, "--format", "json").stdout)} == {"emulated"}
    rows = list(csv.DictReader(io.StringIO(show(tmp_path, "--format", "csv").stdout)))
    assert {row["origin"] for row in rows} == {"emulated"}


def test_the_verdict_fits_the_terminal(tmp_path: Path):
    write(tmp_path, slow_node=2)
    told = CliRunner().invoke(app, ["map", str(tmp_path)], env={"COLUMNS": "80"}).stdout.partition("\n\n")[0]
    assert max(map(len, told.splitlines())) <= 80
    assert "suspected only: one run, not measured again" in " ".join(told.split())


def test_a_matrix_that_is_wider_than_the_terminal_is_in_parts_and_no_number_is_broken():
    hosts = tuple(f"n{number}" for number in range(12))
    rows = tuple(tuple(None if one == other else 94.1e6 for other in hosts) for one in hosts)
    network = NetworkMap(
        fabric="net",
        layer=Layer.TCP,
        pattern=Pattern.PAIRS_STREAM,
        schedule="alone",
        message_bytes=65536,
        metric=Metric.THROUGHPUT,
        launches=1,
        hosts=hosts,
        matrix=rows,
        slow=(),
        is_judged=True,
    )
    text = render([network], OutputFormat.TEXT, {}, width=80)
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("94.1 Mbit/s") == 12 * 11
    assert text.count("(median of 1 launch)") == text.count("from \\ to") > 1
