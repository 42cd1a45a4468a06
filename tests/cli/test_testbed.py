"""`fabricbench testbed` with hosts behind an ssh of our own, and over a lab that runs."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from fabricbench.analysis.testbed_check import FabricChecked
from fabricbench.cli import app, main
from fabricbench.cli.doctor import PreflightFormat
from fabricbench.cli.testbed_check import CheckedTestbed, Clocks, render
from fabricbench.errors import FabricbenchError
from fabricbench.lab import Lab, lab_support, parse_each
from fabricbench.model import Layer
from fabricbench.testbed.preflight_result import Preflight
from fabricbench.testbed.reading import read_testbed
from support import fake_srun
from support.fake_nodes import FakeNodes


@pytest.fixture
def nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNodes:
    return FakeNodes(tmp_path / "nodes", monkeypatch)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["testbed", *arguments])


def refusal(*arguments: str) -> FabricbenchError:
    error = run(*arguments).exception
    assert isinstance(error, FabricbenchError), error
    return error


def test_the_file_goes_to_stdout_and_can_be_read(nodes: FakeNodes, tmp_path: Path):
    for name in ("n1", "n2", "n3"):
        nodes.answer(name)
    done = run("init", "--hosts", "n[1-2]", "--hosts", "n3", "--name", "rack")
    assert done.exit_code == 0, done.output
    path = tmp_path / "rack.toml"
    path.write_text(done.stdout)
    testbed = read_testbed(path)
    assert testbed.name == "rack"
    assert [node.name for node in testbed.nodes] == ["n1", "n2", "n3"]
    assert [(one.interface, one.mtu) for one in testbed.fabrics] == [("eth0", 1500), ("eth1", 9000)]


def test_a_file_that_is_there_is_never_overwritten_and_no_host_is_asked(nodes: FakeNodes, tmp_path: Path):
    path = tmp_path / "rack.toml"
    path.write_text("corrected by hand")
    error = refusal("init", "--hosts", "n1", "-o", str(path))
    assert error.exit_code == 2
    assert "is there already" in error.message
    assert path.read_text() == "corrected by hand"
    assert not nodes.asked


def test_silent_hosts_other_versions_and_hosts_without_fabricbench_are_each_named(nodes: FakeNodes, tmp_path: Path):
    nodes.answer("n1")
    nodes.answer("n2", version="9.9.9")
    nodes.behave("n3", "echo 'sh: no such file' >&2; exit 127")
    error = refusal("init", "--hosts", "n[1-4]", "-o", str(tmp_path / "rack.toml"))
    assert error.exit_code == 3
    assert "n2: found fabricbench 9.9.9" in error.message
    assert "n3: found no " in error.message
    assert "n4: found ssh: Could not resolve hostname" in error.message
    assert "--hosts n1" in str(error.hint)
    assert not (tmp_path / "rack.toml").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "which hosts?"),
        (["--hosts", "n1", "--slurm"], "which hosts?"),
        (["--hosts", "n[1"], "is not a node set"),
        (["--hosts", "n1", "--launcher", "telnet"], "does not fit"),
        (["--hosts", "root@n1"], "names a user"),
    ],
)
def test_options_that_make_no_sense_are_refused(arguments: list[str], words: str):
    error = refusal("init", *arguments)
    assert error.exit_code == 2
    assert words in error.message


def test_slurm_outside_of_a_job_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    assert refusal("init", "--slurm").exit_code == 3


def test_in_a_slurm_job_its_nodes_are_asked_by_srun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    program = fake_srun.install(tmp_path / "slurm", "c1,c2", "/no/mpiexec")
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "c1,c2")
    error = refusal("init", "--slurm")
    # Both nodes are this machine, so that each of its addresses is that of both.
    assert "no network was found that joins c[1-2]" in error.message
    asked = [token for step in fake_srun.steps(program) for token in step if token.startswith("--nodelist")]
    assert asked == ["--nodelist=c1,c2"], "by one step"


def test_nodes_that_cannot_be_measured_are_told_in_json_and_nothing_is_measured(nodes: FakeNodes, tmp_path: Path):
    nodes.answer("n1")
    nodes.answer("n2", version="9.9.9")
    path = tmp_path / "rack.toml"
    path.write_text(
        '[testbed]\nname = "rack"\nnodes = "n[1-3]"\n[[fabric]]\nname = "eth"\ninterface = "eth0"\nline_rate = "1Gbit/s"\n'
    )
    done = run("check", str(path), "--format", "json")
    assert isinstance(done.exception, FabricbenchError)
    assert done.exception.exit_code == 3
    found = json.loads(done.stdout)
    assert not found["is_passed"]
    assert {(one["node"], one["subject"]) for one in found["findings"]} == {("n2", "fabricbench"), ("n3", "reach")}
    (fabric,) = found["fabrics"]
    assert fabric["left_out"] == ["n2", "n3"]
    assert fabric["unmeasured"] == "fewer than two nodes are sound there"


@pytest.mark.parametrize("where", ["local", "lab:fast-ethernet"])
def test_there_is_nothing_to_check_where_there_are_no_pairs_of_nodes(where: str):
    assert refusal("check", where).exit_code == 2


def test_a_file_that_cannot_be_read_is_a_usage_error(tmp_path: Path):
    assert refusal("check", str(tmp_path / "none.toml")).exit_code == 2


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    if lab_support().mode == "none":
        pytest.skip(f"no lab here: {lab_support().reason}")
    built = Lab.up("testbed-check", 3, parse_each(["gigabit-ethernet:n2.rate=500Mbit/s"]), owned=True)
    yield built
    built.down()


@pytest.mark.lab
@pytest.mark.mpi
def test_a_lab_describes_itself_and_its_slow_link_is_named(
    lab: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "lab.toml"
    assert run("init", "--lab", lab.topology.name, "-o", str(path)).exit_code == 0
    fabrics = tomllib.loads(path.read_text())["fabric"]
    assert {one["name"]: one["interface"] for one in fabrics} == {"ethernet-1g": "ge0", "ctl0": "ctl0"}
    monkeypatch.setattr("sys.argv", ["fabricbench", "testbed", "check", f"lab:{lab.topology.name}", "--format", "json"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 3
    found = json.loads(capsys.readouterr().out)
    errors = [one for one in found["findings"] if one["severity"] == "error"]
    assert {one["node"] for one in errors} == {"n2"}
    assert {one["subject"] for one in errors} == {"rate"}
    (fabric,) = found["fabrics"]
    assert fabric["is_emulated"]
    assert fabric["proof"] == "proven"


@pytest.mark.parametrize(("highest", "is_told"), [(94.14e6, False), (96.1e6, True)])
def test_more_than_a_wire_can_carry_is_remarked(highest: float, is_told: bool):
    rates = {"lowest_bit_s": 94.0e6, "median_bit_s": 94.1e6, "highest_bit_s": highest, "expected_bit_s": 94.12e6}
    fabric = FabricChecked(fabric="fast", nodes=("a", "b"), pairs=2, layer=Layer.TCP, **rates)
    found = CheckedTestbed(testbed="t", preflight=Preflight(), clocks=Clocks(), fabrics=(fabric,), findings=())
    text = render(found, PreflightFormat.TEXT, 80)
    assert ("96.1 Mbit/s is more than a wire of that rate can carry" in text) is is_told
    assert max(map(len, text.splitlines())) <= 80
