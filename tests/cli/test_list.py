from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from fabricbench.cli import app
from fabricbench.errors import UsageError
from fabricbench.model import Layer, Pattern
from fabricbench.patterns import PATTERNS, why_impossible
from fabricbench.workload.registry import WORKLOADS


def printed(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["list", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def listed(*arguments: str) -> str:
    """What is printed, each entry in a line, however wide the terminal was."""
    return re.sub(r"\n {5,}", " ", printed(*arguments))


def test_every_layer_pattern_and_operation_has_a_line_with_what_it_measures():
    lines = {line.split()[0]: line for line in listed().splitlines() if line.startswith("  ")}
    assert set(lines) == {*Layer, *Pattern}
    for pattern, facts in PATTERNS.items():
        assert facts.summary in lines[pattern]
        assert all(f"{name}={parameter.default}" in lines[pattern] for name, parameter in facts.parameters.items())


@pytest.mark.parametrize("name", [*Layer, *Pattern])
def test_each_of_them_can_be_told_in_detail(name: str):
    text = printed(name)
    assert text.startswith(f"{name}: ")
    assert "  can carry  " in text if name in set(Layer) else "  measures   " in text
    assert max(len(line) for line in text.splitlines()[1:]) <= 110


@pytest.mark.parametrize(("columns", "widest"), [("80", 80), ("60", 60), ("300", 110), ("20", 60)])
def test_prose_is_as_wide_as_the_terminal_but_no_wider_than_is_read_with_ease(
    columns: str, widest: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", columns)
    lines = [line for line in printed().splitlines() if line.startswith("  ")]
    assert 0.9 * widest < max(len(line) for line in lines) <= widest


def test_a_pattern_in_detail_tells_its_channels_parameters_and_why_a_layer_cannot_carry_it():
    text = listed("chaos")
    assert "n (n - 1) x flows among n ranks; the mean logical-channel throughput is the throughput over this" in text
    assert "flows = 1 (1 to 256): parallel connections" in text
    assert "layers     frame, ip, udp, tcp, rdma, mpi" in text
    assert "not over   memory: memory has one rank alone: there is nobody to exchange with" in text
    assert "not over   memory, frame, ip, udp, tcp, rdma: only layer mpi has operations of MPI" in listed("alltoall")


def test_a_kernel_in_detail_may_run_alone_and_takes_any_path_as_its_program():
    text = listed("npb")
    assert "ranks      1 or more; all there are if a campaign does not say" in text
    assert "program = own (any text)" in text


def test_the_kinds_of_workload_are_listed_with_their_keys():
    text = listed("workloads")
    assert re.search(r"^  npb +the eight kernels", text, re.MULTILINE)
    assert "keys: benchmarks, class, ranks, repetitions, program" in text
    kinds = json.loads(listed("workloads", "--json"))["workloads"]
    assert [one["kind"] for one in kinds] == list(WORKLOADS)
    assert {"command", "figure", "files", "success"} <= set(
        next(one for one in kinds if one["kind"] == "command")["keys"]
    )


def test_a_kind_of_workload_is_told_with_its_keys_and_what_they_take():
    text = listed("hpl")
    assert "nb: columns of a panel (a whole number from 1 to 4,096, or a list of such; default 192)" in text
    assert "(one of ring, ring-modified, long, mpi, or a list of such; default ring-modified)" in text
    assert "jobs: a whole number from 1 to 1,000,000; must be there" in listed("farm")
    assert "(a whole number from 1 to 1.0" in listed("shared-data")
    of_kernels = listed("npb")
    assert "measures   time (ns)" in of_kernels
    assert "benchmarks: text, or a list of such; default all of EP, MG" in of_kernels
    assert json.loads(listed("hpl", "--json"))["keys"]["threads"] == (
        "of the BLAS on each rank (a whole number from 1 to 4,096; default 1)"
    )
    for kind in WORKLOADS:
        assert f'kind = "{kind}"' in listed(kind)


def test_an_application_is_told_with_where_it_is_to_be_had():
    text = listed("lammps-lj")
    assert 'kind = "command", application = "lammps-lj"' in text
    assert "to get it  apt install lammps" in text
    assert json.loads(listed("lammps-lj", "--json"))["licence"]


def test_programs_get_the_whole_table():
    data = json.loads(listed("--json"))
    assert [one["layer"] for one in data["layers"]] == list(Layer)
    assert [one["pattern"] for one in data["patterns"]] == list(PATTERNS)
    for one in data["patterns"]:
        assert one["layers"] == {layer: why_impossible(layer, one["pattern"], {}) for layer in Layer}
    incast = json.loads(listed("incast", "--json"))
    assert (incast["unit"], incast["family"], incast["parameters"]["flows"]["default"]) == ("bit/s", "flood", 1)
    assert json.loads(listed("frame", "--json"))["patterns"]["pingpong"] is None


def test_a_name_that_is_none_is_refused_with_a_guess():
    with pytest.raises(
        UsageError, match=r"there is no layer, pattern, operation, .* or application 'cahos'; did you mean 'chaos'"
    ):
        listed("cahos")


def test_listing_needs_nothing_that_takes_long_to_load():
    script = (
        "import sys; from typer.testing import CliRunner; from fabricbench.cli import app;"
        "assert CliRunner().invoke(app, ['list', 'chaos']).exit_code == 0;"
        "print(*({'scipy', 'numpy', 'polars', 'pyroute2', 'altair', 'jinja2', 'ClusterShell'} & {*sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == []
