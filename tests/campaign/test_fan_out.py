"""Nodes that a fan-out of the site's own asks: whose answer cannot be told from another's, or is cut, is asked alone."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fabricbench.campaign import preflight
from fabricbench.campaign.venue import Standing
from fabricbench.launch.mpi import find_starter
from fabricbench.launch.ssh import SshLauncher
from fabricbench.testbed.model import Fabric, LauncherKind, Node, Testbed
from support.fake_nodes import FakeNodes

FAN_OUT = """
from pathlib import Path
import subprocess, sys
for name in sys.argv[2].split(","):
    for line in subprocess.run(["sh", str(Path(sys.argv[1]) / name)], capture_output=True, text=True).stdout.splitlines():
        print(f"{name}: {line[: len(line) // 2] if name == 'c1' else line}")
"""


SWAPPED = """
from pathlib import Path
import subprocess, sys
for name, other in zip("c0 c1 c2".split(), sys.argv[3].split(",")):
    for line in subprocess.run(["sh", str(Path(sys.argv[1]) / name)], capture_output=True, text=True).stdout.splitlines():
        print(f"{other}: {line}")
"""


def rack(*fan_out: str) -> Testbed:
    """Three nodes of one fabric that these tokens ask."""
    return Testbed(
        name="rack",
        launcher=LauncherKind.SSH,
        nodes=tuple(Node(name=f"c{number}") for number in range(3)),
        fabrics=(Fabric(name="slow", interface="eth0"),),
        fan_out=fan_out,
    )


@pytest.mark.parametrize(
    ("behind", "alone"),
    [("c0,c1,c2", None), ("c1,c0,c2", "c[0-1] do not"), ("x0,c1,c2", "c0 does not"), ("x,x,x", "c[0-2] do not")],
)
@pytest.mark.usefixtures("nodes")
def test_who_does_not_answer_a_fan_out_under_its_own_name_is_asked_alone_and_told(
    tmp_path: Path, behind: str, alone: str | None
):
    (tmp_path / "fan.py").write_text(SWAPPED)
    testbed = rack(sys.executable, str(tmp_path / "fan.py"), str(tmp_path / "nodes"), "{nodes}", behind, "{program}")
    found, answers = preflight.look_at_nodes(Standing(given=testbed), None, lambda _: None)
    hosts = {name: one.facts.host for name, one in answers.items() if isinstance(one, preflight.NodeAnswer)}
    assert hosts == {"c0": "c0", "c1": "c1", "c2": "c2"}
    told = [one.found for one in found.findings if one.subject == "fan_out"]
    assert told == ([] if alone is None else [f"that {alone} answer by `fan_out`, and each had to be asked alone"])


def test_whose_answer_to_a_fan_out_is_cut_is_asked_alone(nodes: FakeNodes, tmp_path: Path):
    (tmp_path / "fan.py").write_text(FAN_OUT)
    testbed = rack(sys.executable, str(tmp_path / "fan.py"), str(tmp_path / "nodes"), "{nodes}", "{program}")
    answers = preflight.ask_nodes(testbed, SshLauncher(find_starter(), testbed))
    assert all(isinstance(one, preflight.NodeAnswer) for one in answers.values())
    assert len(nodes.asked) == 1, "c1 alone"
