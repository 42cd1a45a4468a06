"""What an application says besides its command: who carries its messages, how it grows with ranks, what all launches share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fabricbench.campaign.plan import plan_run
from fabricbench.campaign.start import start_of
from fabricbench.errors import EnvironmentLacks, UsageError
from fabricbench.model import Layer
from fabricbench.testbed.model import Fabric
from fabricbench.workload import meeting
from fabricbench.workload.adapter import Output, Place
from fabricbench.workload.command import shipped_table
from fabricbench.workload.scaling import names_of, value_of
from support.applications import RATE, campaign, lab_of, parsed, start, starts, table
from support.scripts import script

MYRINET = lab_of().fabrics[1]


@pytest.mark.parametrize(
    ("rule", "value"),
    [
        ("round(n * sqrt(ranks))", 4000),
        ("n * cbrt(ranks / 4)", 2000),
        ("n * ranks ** 0.5 - 1", 3999),
        ("-(n) + 2001 / nodes", -1499.75),
        ("floor(log2(ranks + 1)) * 64", 128),
    ],
)
def test_a_rule_of_weak_scaling_is_arithmetic(rule: str, value: float):
    found = value_of(rule, {"n": 2000, "ranks": 4, "nodes": 4})
    assert found == pytest.approx(value)
    assert isinstance(found, int) == (value == int(value))


@pytest.mark.parametrize(
    "rule",
    [
        "",
        "n +",
        "__import__('os')",
        "n.real",
        "n if ranks else 1",
        "[n]",
        "n @ n",
        "'n'",
        "True",
        "sqrt(n, n)",
        "f(n)",
        "n; n",
    ],
)
def test_what_is_no_arithmetic_is_no_rule(rule: str):
    with pytest.raises(ValueError, match=r"no rule|is no number, name"):
        names_of(rule)


@pytest.mark.parametrize(
    ("rule", "said"), [("1 / (n - n)", "no value"), ("9.0 ** 9 ** 9", "no value|finite"), ("m", "needs a number m")]
)
def test_a_rule_without_a_value_is_said(rule: str, said: str):
    with pytest.raises(ValueError, match=said):
        value_of(rule, {"n": 1, "m": "text"})


def test_an_input_grows_with_the_ranks_by_its_rule_and_the_cell_keeps_what_was_asked_for():
    asked = {"command": ["solve", "{n}", "{rest}"], "parameters": {"n": [1000]}, "files": {"in": "{n}"}}
    scaling = {"n": "round(n * sqrt(ranks))", "rest": "n + ranks"}
    one, four = starts(table(**asked, scaling=scaling, ranks=[1, 4]))
    assert [each.files()["in"] for each in (one, four)] == ["1000", "2000"]
    assert (one.parameters, one.definition) == (four.parameters, four.definition)
    assert four.definition["scaling n"] == "round(n * sqrt(ranks))"
    assert "scaling n" not in starts(table(**{**asked, "command": ["solve", "{n}"]}, ranks=[1]))[0].definition


def test_a_parameter_that_a_rule_alone_needs_changes_something():
    (one,) = starts(table(command=["solve", "{size}"], parameters={"n": [3]}, scaling={"size": "n * ranks"}, ranks=[2]))
    assert one.files() == {}
    with pytest.raises(UsageError, match="m: changes nothing"):
        starts(table(command=["solve", "{size}"], parameters={"n": [3], "m": [1]}, scaling={"size": "n * ranks"}))


def test_a_rate_in_a_fixed_time_is_called_one_wherever_it_stands(tmp_path: Path):
    one = start(work="timed", figure=[RATE])
    assert one.figure.name == "rate (timed)"
    found = parsed(tmp_path, one, "rate 5\n")
    assert [figure.name for figure in found.figures] == ["rate (timed)"]
    assert (found.rate, one.definition["work"], one.parameters["figure"]) == (5.0, "timed", "rate (timed)")


def test_what_threads_a_program_was_told_must_be_the_same_on_all_fabrics(tmp_path: Path):
    one = start()
    assert "threads" not in parsed(tmp_path, one, "time 1\n").fixed
    around = tmp_path / "around.json"
    around.write_text(json.dumps({**json.loads(around.read_text()), "threads": "OMP_NUM_THREADS=2"}))
    again = one.parse(Output(tmp_path, tmp_path / "stdout.log", tmp_path / "stderr.log"))
    assert again is not None
    assert again.fixed["threads"] == "OMP_NUM_THREADS=2"


def pvm_at(root: Path) -> Path:
    """A folder with a daemon and a header of PVM, as its own makefiles leave them."""
    for folder in ("lib", "include"):
        (root / folder).mkdir(parents=True)
    script(root / "lib/pvmd", "exit 0")
    (root / "include/pvm3.h").touch()
    return root


def test_pvm_that_is_not_here_is_said_before_anything_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PVM_ROOT", str(tmp_path / "pvm3"))
    one = start(transport="pvm")
    with pytest.raises(
        EnvironmentLacks, match=f'needs for transport = "pvm" {tmp_path}/pvm3/lib/pvmd, which is not there'
    ) as found:
        one.tokens(Place(tmp_path, MYRINET))
    assert str(found.value.hint).startswith("apt install pvm, or say in PVM_ROOT in which folder another PVM is. ")
    pvm_at(tmp_path / "pvm3")
    tokens = one.tokens(Place(tmp_path, MYRINET))
    assert f"PVM_ROOT={tmp_path}/pvm3" in tokens  # which a starter may not pass on
    monkeypatch.delenv("PVM_ROOT")
    own = start(transport="pvm", environment={"PVM_ROOT": f"{tmp_path}/pvm3"})
    assert f"PVM_ROOT={tmp_path}/pvm3" in own.tokens(Place(tmp_path, MYRINET))


def test_the_ping_pong_of_pvm_is_made_with_the_pvm_that_pvm_root_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    asked = shipped_table("pvm-pingpong")
    monkeypatch.delenv("PVM_ROOT", raising=False)
    assert asked.wanted()[:2] == ("cc", "/usr/lib/pvm3/lib/pvmd")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    script(tmp_path / "bin/cc", "exit 0")
    monkeypatch.setenv("PVM_ROOT", str(pvm_at(tmp_path / "pvm3")))
    assert asked.lacking() == ()
    ours = {"kind": "command", "application": "pvm-pingpong", "ranks": [2], "parameters": {"route": "direct"}}
    (one,) = starts(ours)
    tokens = one.tokens(Place(tmp_path, MYRINET))
    build = json.loads(tokens[tokens.index("--build") + 1])
    assert f"-I{tmp_path}/pvm3/include" in build
    assert f"-L{tmp_path}/pvm3/lib/LINUX64" in build


def test_debian_has_the_header_of_pvm_beside_its_other_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    root = pvm_at(tmp_path / "usr/lib/pvm3")
    (tmp_path / "usr/include").mkdir()
    (root / "include/pvm3.h").rename(tmp_path / "usr/include/pvm3.h")
    monkeypatch.setenv("PVM_ROOT", str(root))
    assert shipped_table("pvm-pingpong").places["pvm_include"] == f"{tmp_path}/usr/include"


@pytest.mark.parametrize("transport", ["gloo", "sockets", "pvm"])
def test_who_selects_the_fabric_is_told_its_interface_on_each_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transport: str
):
    monkeypatch.setenv("PVM_ROOT", str(pvm_at(tmp_path / "pvm3")))
    asked = table(transport=transport, ranks=[4])
    plan = plan_run(campaign(asked), lab_of(), seed=1)
    launch = next(one for one in plan.launches if one.fabric == "myrinet")
    tokens = start_of(launch, plan).program(tmp_path, "10.98.2.1")
    told = tokens[next(index for index, one in enumerate(tokens) if one.endswith("on_subnet.py")) + 1 :][:2]
    wanted = "GLOO_SOCKET_IFNAME" if transport == "gloo" else "FABRICBENCH_ADDRESS={address} FABRICBENCH_INTERFACE"
    assert told == [wanted, "myr1"]
    front = json.loads(tokens[tokens.index("--front") + 1]) if "--front" in tokens else []
    assert [Path(one).name for one in front if one.endswith(".py")] == {
        "gloo": [], "sockets": ["meeting.py"], "pvm": ["meeting.py", "pvm_machine.py"],
    }[transport]  # fmt: skip
    assert ("10.98.2.1" in front) == (transport != "gloo")
    (one,) = starts(asked)
    assert one.definition["transport"] == transport


def test_an_mpi_program_is_told_nothing_more_and_is_the_test_that_it_was(tmp_path: Path):
    one = start()
    assert (dict(one.told_on_nodes()), "transport" in one.definition) == ({}, False)
    assert "--front" not in one.tokens(Place(tmp_path, MYRINET))


def test_a_fabric_without_an_interface_carries_no_sockets(tmp_path: Path):
    memory = Fabric(name="memory", layers=(Layer.MPI,))
    with pytest.raises(
        EnvironmentLacks, match="fabric memory has no interface, and transport sockets is to be told one"
    ):
        start(transport="sockets").tokens(Place(tmp_path, memory))


def met(
    tmp_path: Path, ranks: tuple[int, ...], of: int, limit_s: float = 30.0
) -> list[subprocess.CompletedProcess[str]]:
    """What ranks say that meet on this machine, each at an address of the loopback, and print what they were told."""
    show = "import os; print(os.environ['FABRICBENCH_ADDRESSES'], os.environ['FABRICBENCH_RANKS'])"
    patient = f"import sys; sys.path.insert(0, {str(Path(meeting.__file__).parent)!r}); import meeting as m"
    processes = []
    for rank in ranks:
        tokens = meeting.front(of, "127.0.0.1", str(tmp_path))[4:]
        code = f"{patient}; m.MEET_SECONDS = {limit_s}; sys.exit(m.main({[*tokens, sys.executable, '-c', show]!r}))"
        environment = {**os.environ, "FABRICBENCH_RANK": str(rank), "FABRICBENCH_ADDRESS": f"127.0.0.{rank + 1}"}
        processes.append(
            subprocess.Popen(
                [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        )
    return [
        subprocess.CompletedProcess("", one.returncode, *told)
        for one in processes
        for told in [one.communicate(timeout=60)]
    ]


def test_ranks_that_meet_know_where_all_are(tmp_path: Path):
    found = met(tmp_path, (2, 0, 1), of=3)
    assert [(one.returncode, one.stdout) for one in found] == [(0, "127.0.0.1,127.0.0.2,127.0.0.3 3\n")] * 3


@pytest.mark.slow
def test_a_rank_that_does_not_come_is_named_and_nobody_waits_for_ever(tmp_path: Path):
    first, second = met(tmp_path, (0, 1), of=3, limit_s=1.5)
    assert (first.returncode, second.returncode) == (meeting.CANNOT_MEET, meeting.CANNOT_MEET)
    assert "rank 0 of 3: rank 2 did not come to port" in first.stderr
    assert "ended before all ranks were there" in second.stderr
    (alone,) = met(tmp_path, (1,), of=2, limit_s=0.3)
    assert "rank 0 was not to be had at 127.0.0.1" in alone.stderr
